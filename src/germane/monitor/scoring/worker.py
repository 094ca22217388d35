"""The loop that turns tasks into scores."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import Threads
from germane.errors import GermaneError
from germane.exchange import Exchange
from germane.monitor.loop.backoff import Backoff
from germane.monitor.scoring.circuit_breaker import Pause, retry_after
from germane.monitor.scoring.result_writer import Finished, Postponed, Results
from germane.monitor.scoring.retry_policy import Patience
from germane.score import Reason, Score
from germane.scorers import Scorer, asks_judge, at_work, is_rejected, may_succeed_later, run
from germane.storage import Claim, Store, Task

REQUESTS: Final = 4
"""Judge time-outs that one scorer may take for one exchange: it may ask more than once."""
Outcome = Score | Postponed | None


class LostTask(GermaneError):
    """A round of scoring ended in an error of our own; its tasks are taken up again when their lease runs out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is scored at a time, and for how long."""

    concurrency: int
    """Judge requests in flight, which the judge keeps to; and scorers at work that ask no judge of ours."""
    judge_timeout: float
    """Seconds."""
    turns: float = 0.0
    """Seconds more for waiting under a limit of requests or tokens a minute."""
    lease: timedelta = timedelta(seconds=60)
    """How long a claimed task is ours after the last heartbeat."""

    @property
    def longest(self) -> float:
        """Seconds that one scorer may take for one exchange, its waits for a place and at the judge included."""
        return REQUESTS * self.judge_timeout + self.turns


class Scoring:
    """Claims tasks, scores them side by side, and hands what came of them to :class:`Results`.

    A place that becomes free is taken at once: one slow exchange holds up no other. No more is claimed than starts
    within about a second.
    """

    def __init__(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        results: Results,
        *,
        limits: Limits,
        retry_for: timedelta,
        backoff: Backoff,
        owner: str,
        threads: Threads,
        clock: Callable[[], datetime],
    ) -> None:
        self.in_flight = 0
        """Scorers at work for an exchange now."""
        self.stopping = False
        self.pauses = {_identity(scorer): Pause(scorer.name, backoff=backoff, clock=clock) for scorer in scorers}
        self._store = store
        self._scorers = {_identity(scorer): scorer for scorer in scorers}
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in scorers}
        self._results = results
        self._limits = limits
        self._owner = owner
        self._threads = threads
        self._clock = clock
        self._patience = Patience(retry_for, backoff=backoff, clock=clock)
        self._with_judge = any(asks_judge(scorer) for scorer in scorers)
        self._places = asyncio.Semaphore(limits.concurrency)
        self._judged_places = asyncio.Semaphore(at_work(limits.concurrency))
        self._held = 0
        self._until: dict[int, float] = {}
        self._usual = math.inf
        self._under_way: set[asyncio.Task[None]] = set()
        self._lost: BaseException | None = None
        self._more = False
        self._changed = asyncio.Event()

    @property
    def problem(self) -> str | None:
        """Why a scorer leaves its judge alone for a while; None while none does."""
        return next((pause.problem for pause in self.pauses.values() if pause.problem is not None), None)

    def wake(self) -> None:
        """Look for tasks."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there may be something to claim."""
        await self._changed.wait()
        self._changed.clear()

    async def claim(self) -> None:
        """Claim as many tasks as can be started soon, and start them; again while there are more.

        Raises:
            LostTask: an earlier round ended in an error.
        """
        self._tell_lost()
        while room := self._room():
            claims = await self._threads.run(self._claim, room)
            self._more = len(claims) == room
            for claim in claims:
                if new := self._new(claim):
                    self._start(replace(claim, tasks=new))
            if not self._more:
                break

    def held(self) -> set[int]:
        """Return the ids of the tasks that are worked on; may be called from any thread.

        Work that is a whole lease behind its time is left out: a scorer that never returns must not keep a task.
        """
        longest = time.monotonic() - self._limits.lease.total_seconds()
        return {id_ for id_, until in self._until.copy().items() if longest < until}

    async def stop(self, patience: float) -> bool:
        """Start nothing more, and give up what is not finished within ``patience`` seconds.

        Returns:
            Whether nothing had to be given up.
        """
        self.stopping = True
        if not self._under_way:
            return True
        _, rest = await asyncio.wait(self._under_way, timeout=max(0.0, patience))
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        return not rest

    def _new(self, claim: Claim) -> tuple[Task, ...]:
        """Return the tasks that are not being worked on: those whose lease ran out meanwhile are ours again by now."""
        ours = self.held() | self._results.held()
        return tuple(task for task in claim.tasks if task.id not in ours)

    def _claim(self, room: int) -> list[Claim]:
        return self._store.claim(self._owner, self._fingerprints, limit=room, lease=self._limits.lease)

    def _room(self) -> int:
        """Return how many exchanges to claim now."""
        pauses = self.pauses.values()
        if self.stopping or len(self._results) > 4 * self._limits.concurrency or all(pause.closed for pause in pauses):
            return 0
        if all(pause.until for pause in pauses):
            return 0 if self._held else 1
        return self._free()

    def _free(self) -> int:
        """Return how many exchanges fill what is free: all places, and a second's work behind them.

        Few are worth a transaction only when there is nothing else to do.
        """
        places = at_work(self._limits.concurrency) if self._with_judge else self._limits.concurrency
        free = places + min(places, math.ceil(places / self._usual)) - self._held
        return -(-free // len(self._scorers)) if free >= max(1, places // 4) else 0

    def _start(self, claim: Claim) -> None:
        self._held += len(claim.tasks)
        deadline = time.monotonic() + self._limits.longest
        self._until |= {task.id: deadline for task in claim.tasks}
        task = asyncio.create_task(self._score(claim, deadline))
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._lost = error
        if self._more:
            self.wake()

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            raise LostTask(f"{type(lost).__name__} while scoring") from lost

    async def _score(self, claim: Claim, deadline: float) -> None:
        """Score one exchange by all its scorers together."""
        try:
            outcomes = await asyncio.gather(*(self._try(claim.exchange, task, deadline) for task in claim.tasks))
        finally:
            self._held -= len(claim.tasks)
            for task in claim.tasks:
                self._until.pop(task.id, None)
        pairs = list(zip(claim.tasks, outcomes, strict=True))
        scores = [(task, outcome) for task, outcome in pairs if isinstance(outcome, Score)]
        postponed = [outcome for outcome in outcomes if isinstance(outcome, Postponed)]
        if scores or postponed:
            self._results.add(Finished(claim.exchange, scores, postponed))

    async def _try(self, exchange: Exchange, task: Task, deadline: float) -> Outcome:
        """Return a score, when to try again, or None to hand the task back."""
        scorer = self._scorers[task.scorer, task.fingerprint]
        async with self._judged_places if asks_judge(scorer) else self._places:
            if self.stopping:
                return None
            pause = self.pauses[task.scorer, task.fingerprint]
            if (admission := pause.admit()) == "wait":
                return self._paused(task, pause)
            try:
                score = await self._ask(scorer, exchange, deadline)
                # Under the task's name, whatever a scorer says; the fingerprint is that of what was really done.
                score = replace(score, scorer=task.scorer)
                if self.stopping and may_succeed_later(score):  # at the next start, for one that has not had its turn
                    return None
                pause.note(score, admission)
            finally:
                pause.abandon(admission)
        return self._judged(task, score)

    async def _ask(self, scorer: Scorer, exchange: Exchange, deadline: float) -> Score:
        began = time.monotonic()
        self.in_flight += 1
        try:
            async with asyncio.timeout(deadline - began):
                score = await run(scorer, exchange, clock=self._clock)
        except TimeoutError:
            error = f"no score within {deadline - began:.0f} s"
            return self._without_value(scorer.name, scorer.fingerprint, Reason.JUDGE_TIMEOUT, error)
        finally:
            self.in_flight -= 1
        took = max(time.monotonic() - began, 1e-3)
        self._usual = took if self._usual == math.inf else 0.8 * self._usual + 0.2 * took
        return score

    def _judged(self, task: Task, score: Score) -> Outcome:
        """Keep a score, unless the same request may well succeed later."""
        if score.reason is None or not (is_rejected(score) or may_succeed_later(score)):
            self._patience.forget(task.id)
            return score
        return self._later(task, score, at_least=retry_after(score))

    def _paused(self, task: Task, pause: Pause) -> Outcome:
        reason = pause.reason or Reason.JUDGE_UNREACHABLE
        score = self._without_value(task.scorer, task.fingerprint, reason, pause.problem or "")
        return self._later(task, score, at_least=pause.left().total_seconds())

    def _later(self, task: Task, score: Score, *, at_least: float | None) -> Outcome:
        """Postpone a task; when that has gone on for too long, the score without a value is final."""
        until = self._patience.next_try(task.id, tries=task.tries, at_least=at_least)
        if until is None or score.reason is None:
            self._patience.forget(task.id)
            return score
        return Postponed(task=task, until=until, reason=score.reason, error=score.explanation or "")

    def _without_value(self, scorer: str, fingerprint: str, reason: Reason, error: str) -> Score:
        return Score(scorer=scorer, fingerprint=fingerprint, reason=reason, explanation=error, scored_at=self._clock())


def _identity(scorer: Scorer) -> tuple[str, str]:
    return scorer.name, scorer.fingerprint
