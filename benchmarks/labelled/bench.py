"""Scorers over rows: the library's own, with a judge and an embedder whose replies are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from germane.errors import SettingsError
from germane.score import Score
from germane.scorers import Batcher, Scorer
from germane.scorers import run as run_scorer
from germane.scorers.catalogue import CATALOGUE
from germane.scorers.maker import Maker
from germane.settings import Settings
from labelled.judge import Forecast, KeptEmbedder, KeptJudge, Usage, counted
from labelled.rows import Row, exchange

AT_ONCE = 4
"""Rows in flight: as many as the measuring judge has places."""
FREE = ("question_answer_similarity", "context_coverage", "context_similarity", "noncommittal")
"""Scorers that ask no judge."""
GUARDED = "context_relevance, guarded"
VARIANTS = {GUARDED: ("context_relevance", {"guarded": True})}
"""Scorers with options, by the name under which they are shown."""


@dataclass(frozen=True)
class Outcome:
    """What a scorer said of a row."""

    score: Score
    usage: Usage

    @property
    def asked(self) -> bool:
        """Whether all was asked that the score needs."""
        return not self.usage.missing

    @property
    def value(self) -> float | None:
        """The score's value, where all was asked."""
        return self.score.value if self.asked else None


@dataclass
class Outcomes:
    """What one scorer said in one run, by row id."""

    scorer: str
    run: int = 0
    by_id: dict[str, Outcome] = field(default_factory=dict)

    def values(self, rows: Iterable[Row]) -> list[float]:
        """Return the value of each row, NaN where there is none."""
        found = (self.by_id[row.id].value if row.id in self.by_id else None for row in rows)
        return [float("nan") if value is None else value for value in found]

    def covers(self, row: Row) -> bool:
        """Whether all was asked that the scorer needs to know of the row."""
        return row.id in self.by_id and self.by_id[row.id].asked

    @property
    def asked_judge(self) -> bool:
        """Whether the judge was asked about any row."""
        return any(outcome.asked and outcome.usage.requests for outcome in self.by_id.values())

    @property
    def missing(self) -> dict[str, Forecast]:
        """What the requests that were not made would take, by their keys."""
        return {key: each for outcome in self.by_id.values() for key, each in outcome.usage.missing.items()}


class Bench(Maker):
    """Makes the library's scorers around a judge and an embedder that are given."""

    def __init__(self, settings: Settings, judge: KeptJudge, embedder: KeptEmbedder) -> None:
        super().__init__(settings)
        self._kept_judge = judge
        self._kept_embedder = embedder

    @cached_property
    def judge(self) -> KeptJudge:
        """The judge that was given."""
        return self._kept_judge

    @cached_property
    def embedder(self) -> Batcher:
        """The embedder that was given, for many at once."""
        return Batcher(self._kept_embedder)

    def scorer(self, name: str) -> Scorer:
        """Return the library's scorer of that name, or a variant of one."""
        if name not in VARIANTS:
            return super().scorer(name)
        base, options = VARIANTS[name]
        return CATALOGUE[base](self, options)

    def has(self, name: str) -> bool:
        """Whether the library has a scorer of that name, and all of its parts."""
        try:
            return (name in CATALOGUE or name in VARIANTS) and bool(self.scorer(name))
        except SettingsError:
            return False

    async def score(self, names: Sequence[str], rows: Sequence[Row], *, run: int = 0) -> dict[str, Outcomes]:
        """Return what the scorers say of the rows, by scorer; those that the library does not have are left out."""
        self.judge.run = run
        places = asyncio.Semaphore(AT_ONCE)
        scorers = {name: self.scorer(name) for name in names if self.has(name)}

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
