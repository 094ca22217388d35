"""All rows past all scorers: a bounded number at a time, equal work once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from germane.evaluation.rows import Row
from germane.evaluation.spending import Spending
from germane.evaluation.work import Work, work_of
from germane.exchange import Exchange
from germane.score import Score

if TYPE_CHECKING:
    from germane.evaluation.cache import Cache
    from germane.scorers import Meter, Scorer

Scores = Mapping[str, Score]


class Bench:
    """Scores exchanges; what was scored before, in this run or in the cache's, is not scored again."""

    def __init__(
        self,
        scorers: Sequence[Scorer],
        *,
        meter: Meter,
        metered: Sequence[Scorer],
        cache: Cache | None,
        patience: float,
    ) -> None:
        """Take scorers, the meter of those that are ``metered``, and the seconds for which a judge is waited for."""
        from germane.evaluation.asker import Asker

        self.scorers = scorers
        self.meter = meter
        self.metered = {scorer.name for scorer in metered}
        self.cache = cache
        self._told = Spending()
        self._askers = {scorer.name: Asker(scorer, patience) for scorer in scorers}
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
        score = await self._askers[scorer.name].ask(exchange)
        if scorer.name not in self.metered:
            self._told = self._told.plus(score)
        if self.cache is not None:
            self.cache.keep(work, score)
        return score


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
