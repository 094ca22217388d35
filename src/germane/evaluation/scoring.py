"""All rows past all scorers: a bounded number at a time, equal work once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane.errors import UsageError
from germane.evaluation.progress import Spending
from germane.evaluation.rows import Row
from germane.exchange import Exchange
from germane.monitor import Admission, Backoff, Pause, retry_after
from germane.registry import BUILT_IN
from germane.sanitize import harmless
from germane.score import Reason, Score
from germane.scorers import is_rejected, may_succeed_later, run

if TYPE_CHECKING:
    from germane.evaluation.cache import Cache
    from germane.scorers import Meter, Scorer


log = logging.getLogger("germane.evaluation")

REJECTIONS: Final = 20
"""Rejections in a row after which a judge is not asked again: a wrong key does not mend itself in a run."""
FIRST: Final = 1.0
"""Seconds of the first wait; each further one is twice as long, up to :data:`LONGEST`."""
LONGEST: Final = 10.0
BUSY: Final = 10
"""A busy judge serves other rows meanwhile: one that has no luck has so many times the patience."""


class Asker:
    """Asks one scorer, and again where that may help.

    After some failures in a row the scorer pauses: one row tries, the others stand in line behind it. A judge that does
    not come back is given up: what is left fails for the same reason without being asked.
    """

    def __init__(
        self,
        scorer: Scorer,
        patience: float,
        *,
        first: float = FIRST,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Wait for up to ``patience`` seconds in which nothing succeeds, the first time for ``first``."""
        self._scorer = scorer
        self._patience = timedelta(seconds=patience)
        self._backoff = Backoff(first=first, limit=min(LONGEST, patience), longest_asked=patience)
        self._pause = Pause(scorer.name, backoff=self._backoff, clock=clock)
        self._clock = clock
        self._line = asyncio.Lock()
        self._since: datetime | None = None
        self._rejections = 0
        self._given_up: Score | None = None

    async def ask(self, exchange: Exchange) -> Score:
        """Return the score, or the failure that is final."""
        since, tries = None, 0
        while True:
            score = await self._try(exchange)
            if self._given_up or not _may_help(score):
                return score
            tries, since = tries + 1, since or self._clock()
            wait = self._backoff.wait(tries, at_least=retry_after(score))
            patience = self._patience * (BUSY if score.reason is Reason.JUDGE_RATE_LIMITED else 1)
            if self._clock() + wait - since >= patience:
                return score
            await asyncio.sleep(wait.total_seconds())

    async def _try(self, exchange: Exchange) -> Score:
        async with self._line:
            if self._pause.closed and not self._given_up:
                await asyncio.sleep(self._pause.left().total_seconds())
            if self._given_up:
                return self._given_up
            if (admission := self._pause.admit()) == "probe":
                return await self._ask(exchange, admission)
        return await self._ask(exchange, admission)

    async def _ask(self, exchange: Exchange, admission: Admission) -> Score:
        score = await run(self._scorer, exchange)
        # Under the scorer's own name, whatever it writes into its scores.
        score = replace(score, scorer=self._scorer.name)
        if is_rejected(score):
            self._pause.abandon(admission)
            self._note_rejection(score)
        elif _may_help(score):
            self._since = self._since or self._clock()
            self._pause.note(score, admission)
            self._note_trouble(score, self._since)
        else:
            self._pause.note(score, admission)
            if score.state != "skipped":
                self._since, self._rejections = None, 0
        return score

    def _note_rejection(self, score: Score) -> None:
        self._rejections += 1
        if self._rejections >= REJECTIONS:
            self._give_up(score, f"{_whose(score)} had rejected {REJECTIONS} requests in a row")

    def _note_trouble(self, score: Score, since: datetime) -> None:
        until = self._pause.until
        if until is not None and until - since >= self._patience:
            passed, most = (self._clock() - since).total_seconds(), self._patience.total_seconds()
            next_try = (until - self._clock()).total_seconds()
            why = f"no score for {passed:.0f} s, and the next try, in {next_try:.0f} s, would come after the {most:g} s"
            self._give_up(score, f"{why} that a run waits")

    def _give_up(self, score: Score, why: str) -> None:
        if self._given_up is None:
            last = harmless(f"{score.reason}: {score.explanation}", 500)
            log.warning("%s asks no more: %s; the last time %s", self._scorer.name, why, last)
            self._given_up = Score(
                scorer=self._scorer.name,
                fingerprint=score.fingerprint,
                reason=score.reason,
                explanation=f"not asked: {why}; the last time {last}",
            )


def _whose(score: Score) -> str:
    return "the embedder" if score.reason is Reason.EMBEDDER_ERROR else "the judge"


def _may_help(score: Score) -> bool:
    """Return whether to ask again. What is rejected stays rejected, even by a server that names a time."""
    return not is_rejected(score) and may_succeed_later(score)


@dataclass(frozen=True, slots=True)
class Work:
    """A scorer as configured, and all that it may look at."""

    scorer: str
    fingerprint: str
    content: str
    """Hash of what the scorer sees."""


def work_of(scorer: Scorer, exchange: Exchange) -> Work:
    """Return what is to be done.

    Our scorers see question, answer, contexts and history. Yours may look at anything, a reference in a column of its
    own for one: all but the row's id counts.

    Raises:
        UsageError: the scorer has no name or no fingerprint.
    """
    try:
        name, fingerprint = scorer.name, scorer.fingerprint
    except AttributeError as error:
        raise UsageError(f"a scorer needs name, fingerprint, requires, range and score(exchange): {error}") from None
    seen = _content(exchange) if is_ours(scorer) else {**_content(exchange), **_rest(exchange)}
    canonical = json.dumps(seen, sort_keys=True, separators=(",", ":"))
    return Work(name, str(fingerprint), hashlib.sha256(canonical.encode()).hexdigest()[:32])


def is_ours(scorer: Scorer) -> bool:
    """Return whether a scorer is one of germane's own."""
    return scorer.name in BUILT_IN and type(scorer).__module__.startswith("germane.scorers.")


def _content(exchange: Exchange) -> dict[str, Any]:
    return {
        "question": exchange.question,
        "answer": exchange.answer,
        "contexts": [context.text for context in exchange.contexts],
        "history": [[turn.role, turn.text] for turn in exchange.history],
    }


def _rest(exchange: Exchange) -> dict[str, Any]:
    return {
        "route": exchange.route,
        "model": exchange.model,
        "attributes": dict(exchange.attributes),
        "chunks": [[context.id, context.score] for context in exchange.contexts],
    }


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
