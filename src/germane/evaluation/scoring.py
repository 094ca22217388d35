"""All rows past all scorers: a bounded number at a time, equal work once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from germane.evaluation.rows import Row
from germane.evaluation.spending import Spending
from germane.evaluation.work import Work, work_of
from germane.exchange import Exchange
from germane.score import Reason, Score

if TYPE_CHECKING:
    from germane.evaluation.cache import Cache
    from germane.scorers import Meter, Scorer

Scores = Mapping[str, Score]
PATIENCE = 20
"""Rejections in a row after which a scorer's judge is not asked again: a wrong key does not mend itself in a run."""


class Bench:
    """Scores exchanges; what was scored before, in this run or in the cache's, is not scored again."""

    def __init__(self, scorers: Sequence[Scorer], meter: Meter, metered: Sequence[Scorer], cache: Cache | None) -> None:
        """Take scorers, and the meter that counts what those of them take that are ``metered``."""
        self.scorers = scorers
        self.meter = meter
        self.metered = {scorer.name for scorer in metered}
        self.cache = cache
        self._told = Spending()
        self._rejections: Counter[str] = Counter()
        self._known: dict[Work, asyncio.Future[Score]] = {}

    @property
    def spending(self) -> Spending:
        """What this run took so far, in requests, tokens and money."""
        return self._told.with_meter(self.meter)

    async def score(self, exchange: Exchange) -> Scores:
        """Return the scores of an exchange by scorer."""
        scores = await asyncio.gather(*(self._score(scorer, exchange) for scorer in self.scorers))
        return {score.scorer: score for score in scores}

    async def _score(self, scorer: Scorer, exchange: Exchange) -> Score:
        work = work_of(scorer, exchange)
        if work in self._known:
            return await asyncio.shield(self._known[work])
        future = self._known[work] = asyncio.get_running_loop().create_future()
        try:
            score = await self._find_or_make(work, scorer, exchange)
            future.set_result(score)
        finally:
            future.cancel()  # without a result: who waits for it is ended, too
        return score

    async def _find_or_make(self, work: Work, scorer: Scorer, exchange: Exchange) -> Score:
        if self.cache is not None and (found := self.cache.find(work)) is not None:
            return found
        if self._rejections[scorer.name] >= PATIENCE:
            return _not_asked(work)
        score = await self._make(scorer, exchange)
        if self.cache is not None:
            self.cache.keep(work, score)
        return score

    async def _make(self, scorer: Scorer, exchange: Exchange) -> Score:
        from germane.scorers import run

        # Under the scorer's own name, whatever it writes into its scores.
        score = replace(await run(scorer, exchange), scorer=scorer.name)
        if scorer.name not in self.metered:
            self._told = self._told.plus(score)
        if score.reason is Reason.JUDGE_REJECTED:
            self._rejections[scorer.name] += 1
        elif score.state != "skipped":
            self._rejections[scorer.name] = 0
        return score


def _not_asked(work: Work) -> Score:
    why = f"not asked: the judge had rejected {PATIENCE} requests in a row"
    return Score(scorer=work.scorer, fingerprint=work.fingerprint, reason=Reason.JUDGE_REJECTED, explanation=why)


async def score_all(
    rows: Sequence[Row], bench: Bench, *, at_once: int, tell: Callable[[], None] = lambda: None
) -> list[Scores]:
    """Return the scores of all rows in their order; at most ``at_once`` rows are at work at a time."""
    found: dict[int, Scores] = {}
    waiting = iter(enumerate(rows))

    async def work() -> None:
        for number, row in waiting:
            found[number] = await bench.score(row.exchange)
            tell()

    async with asyncio.TaskGroup() as workers:
        for _ in range(min(at_once, len(rows))):
            workers.create_task(work())
    return [found[number] for number in range(len(rows))]
