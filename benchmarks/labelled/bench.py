"""germane's scorers on labeled rows, with a caching judge and embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module

from germane.errors import SettingsError
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import Score
from germane.scorers import Scorer, run_scorer
from germane.scorers.factory.scorer_set import ScorerFactory
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.settings import Settings
from labelled.judge import Forecast, KeptEmbedder, KeptJudge, Usage, counted
from labelled.rows import Row, exchange

AT_ONCE = 4
"""Maximum number of rows in flight, which is the number of slots of the judge server."""
FREE = ("question_answer_similarity", "context_coverage", "context_similarity", "noncommittal")
"""Scorers without a judge."""
GUARDED = "context_relevance, guarded"
VARIANTS = {GUARDED: ("context_relevance", {"guarded": True})}
"""Scorers with non-default options, by display name."""


@dataclass(frozen=True)
class Outcome:
    """One row's score and its usage."""

    score: Score
    usage: Usage

    @property
    def asked(self) -> bool:
        """Whether every request for the score was made."""
        return not self.usage.missing

    @property
    def value(self) -> float | None:
        """The score's value, or None if a request is missing."""
        return self.score.value if self.asked else None


@dataclass
class Outcomes:
    """One scorer's outcomes in one run, by row id."""

    scorer: str
    run: int = 0
    by_id: dict[str, Outcome] = field(default_factory=dict)

    def values(self, rows: Iterable[Row]) -> list[float]:
        """Return the value of each row, or NaN if it has none."""
        found = (self.by_id[row.id].value if row.id in self.by_id else None for row in rows)
        return [float("nan") if value is None else value for value in found]

    def covers(self, row: Row) -> bool:
        """Whether every request for the row was made."""
        return row.id in self.by_id and self.by_id[row.id].asked

    @property
    def asked_judge(self) -> bool:
        """Whether any row needed a judge request."""
        return any(outcome.asked and outcome.usage.requests for outcome in self.by_id.values())

    @property
    def missing(self) -> dict[str, Forecast]:
        """Estimated cost of the missing requests, by key."""
        return {key: each for outcome in self.by_id.values() for key, each in outcome.usage.missing.items()}


class Bench(ScorerFactory):
    """Builds germane's scorers with a given judge and embedder."""

    def __init__(self, settings: Settings, judge: KeptJudge, embedder: KeptEmbedder) -> None:
        super().__init__(settings)
        self._kept_judge = judge
        self._kept_embedder = embedder

    @cached_property
    def judge(self) -> KeptJudge:
        """The given judge."""
        return self._kept_judge

    @cached_property
    def embedder(self) -> EmbeddingBatcher:
        """The given embedder, batching concurrent requests."""
        return EmbeddingBatcher(self._kept_embedder)

    def get_scorer(self, name: str) -> Scorer:
        """Return germane's scorer with this name, or the variant with this name."""
        if name not in VARIANTS:
            return super().get_scorer(name)
        base, options = VARIANTS[name]
        scorer: Scorer = import_module(f"germane.scorers.metrics.{base}").build(self, options)
        return scorer

    def has(self, name: str) -> bool:
        """Whether germane has the scorer with this name and all of its parts."""
        try:
            return (name in BUILTIN_SCORER_NAMES or name in VARIANTS) and bool(self.get_scorer(name))
        except SettingsError:
            return False

    async def score(self, names: Sequence[str], rows: Sequence[Row], *, run: int = 0) -> dict[str, Outcomes]:
        """Score the rows, and return the outcomes by scorer. Unknown scorers are omitted."""
        self.judge.run = run
        places = asyncio.Semaphore(AT_ONCE)
        scorers = {name: self.get_scorer(name) for name in names if self.has(name)}

        async def one(row: Row) -> dict[str, Outcome]:
            async with places:
                return {name: await _outcome(scorer, row) for name, scorer in scorers.items()}

        found = await asyncio.gather(*map(one, rows))
        return {
            name: Outcomes(name, run, {row.id: each[name] for row, each in zip(rows, found, strict=True)})
            for name in scorers
        }


async def _outcome(scorer: Scorer, row: Row) -> Outcome:
    with counted() as usage:
        score = await run_scorer(scorer, exchange(row, passage=scorer.name == FREE[0]))
    return Outcome(score, usage)
