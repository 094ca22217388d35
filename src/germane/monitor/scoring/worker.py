"""The scoring worker. It claims tasks, runs their scorers, and passes the results to the result writer."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from germane import sanitize
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff
from germane.errors import GermaneError
from germane.exchange import Exchange
from germane.monitor.scoring.failures import CircuitBreaker, RetryPolicy, retry_after
from germane.monitor.scoring.result_writer import ExchangeResult, ResultWriter, ScheduledRetry
from germane.score import Score, UnscoredReason
from germane.scorers import (
    Scorer,
    apply_calibration,
    exchange_concurrency,
    is_rejected,
    is_retryable,
    run_scorer,
    uses_coalescing_judge,
)
from germane.storage import CalibrationCache, ScoringTask, TaskClaim, TrackingStore

JUDGE_TIMEOUTS_PER_SCORER: Final = 4
"""Maximum time for a scorer to score one exchange, as a multiple of the judge timeout. A scorer may send several
requests."""
MAX_PREFERRED: Final = 500
"""Maximum number of preferred exchanges, whose tasks are claimed first."""
TaskOutcome = Score | ScheduledRetry | None

_logger = logging.getLogger("germane.monitor")


class ScoringCrashed(GermaneError):
    """An unexpected error while scoring an exchange, whose tasks are claimed again when their leases expire."""


@dataclass(frozen=True, slots=True)
class ScoringLimits:
    """Limits on the concurrency and duration of scoring."""

    concurrency: int
    """Maximum number of in-flight judge requests, and of concurrent runs of scorers that do not use germane's judge."""
    judge_timeout: float
    """The timeout of a judge request, in seconds."""
    max_queue_wait: float = 0.0
    """Additional time to wait for the rate limiter, in seconds."""
    lease: timedelta = timedelta(seconds=60)
    """The duration for which a task stays claimed after the last heartbeat."""

    @property
    def scorer_timeout(self) -> float:
        """Maximum time for a scorer to score one exchange, including waits, in seconds."""
        return JUDGE_TIMEOUTS_PER_SCORER * self.judge_timeout + self.max_queue_wait


class ScoringWorker:
    """Claims tasks, scores them concurrently, and passes the outcomes to a :class:`ResultWriter`.

    Free slots are filled immediately, so a slow exchange does not delay others. The worker claims only as many tasks as
    it can start within about a second, starting with those of the ``preferred`` exchanges.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorers: Sequence[Scorer],
        results: ResultWriter,
        *,
        limits: ScoringLimits,
        retry_timeout: timedelta,
        backoff: Backoff,
        owner: str,
        thread_pool: DaemonThreadPool,
        clock: Callable[[], datetime],
        calibrations: CalibrationCache,
        preferred: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.in_flight = 0
        """The number of scorer runs in progress, one per scorer and exchange."""
        self.stopping = False
        self._scorers = {(scorer.name, scorer.fingerprint): scorer for scorer in scorers}
        self._circuit_breakers = {
            key: CircuitBreaker(scorer.name, backoff=backoff, clock=clock) for key, scorer in self._scorers.items()
        }
        self._store = store
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in scorers}
        self._results = results
        self._limits = limits
        self._owner = owner
        self._thread_pool = thread_pool
        self._clock = clock
        self._calibrations = calibrations
        self._preferred = preferred
        self._retry_policy = RetryPolicy(retry_timeout, backoff=backoff, clock=clock)
        self._uses_judge = any(uses_coalescing_judge(scorer) for scorer in scorers)
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._judge_slots = asyncio.Semaphore(exchange_concurrency(limits.concurrency))
        self._held_tasks = 0
        self._deadlines: dict[int, float] = {}
        """The times at which held tasks time out, by task id, in seconds on the monotonic clock."""
        self._seconds_per_score = math.inf
        """The moving average of the seconds per score; infinite before the first score."""
        self._rounds: set[asyncio.Task[None]] = set()
        self._crash: BaseException | None = None
        self._has_more = False
        self._wake_up = asyncio.Event()

    @property
    def problem(self) -> str | None:
        """The reason why a circuit breaker has paused a scorer, or None if no scorer is paused."""
        return next((breaker.problem for breaker in self._circuit_breakers.values() if breaker.problem), None)

    @property
    def stuck_scorers(self) -> Mapping[str, str]:
        """The scorers for which waiting does not help, with the reason."""
        reasons = {breaker.scorer: breaker.stuck_reason for breaker in self._circuit_breakers.values()}
        return {scorer: reason for scorer, reason in reasons.items() if reason is not None}

    def wake(self) -> None:
        """Make :meth:`wait_for_tasks` return."""
        self._wake_up.set()

    async def wait_for_tasks(self) -> None:
        """Wait until there may be tasks to claim."""
        await self._wake_up.wait()
        self._wake_up.clear()

    async def claim_tasks(self) -> None:
        """Claim and start tasks until all slots are filled or no more tasks are ready.

        Raises:
            ScoringCrashed: Scoring an earlier exchange raised an unexpected error.
            StorageError: The database is unreachable.
        """
        crash, self._crash = self._crash, None
        if crash is not None:
            raise ScoringCrashed(f"{type(crash).__name__} while scoring") from crash
        while capacity := self._capacity():
            claim_tasks = partial(
                self._store.queue.claim_tasks,
                limit=capacity,
                lease=self._limits.lease,
                preferred=self._preferred()[:MAX_PREFERRED],
            )
            claims = await self._thread_pool.run(claim_tasks, self._owner, self._fingerprints)
            self._has_more = len(claims) == capacity
            # If a task's lease has expired, it may be claimed again while this process is still scoring it. A retry may
            # be claimed while its postponement is being saved; that is a new attempt.
            held = self.held_task_ids()
            unsaved = {(task.id, task.retries) for task in self._results.unsaved_tasks()}
            for claim in claims:
                tasks = [task for task in claim.tasks if task.id not in held]
                if new := tuple(task for task in tasks if (task.id, task.retries) not in unsaved):
                    deadline = time.monotonic() + self._limits.scorer_timeout
                    self._held_tasks += len(new)
                    self._deadlines |= {task.id: deadline for task in new}
                    round_ = asyncio.create_task(self._score_claim(replace(claim, tasks=new), deadline))
                    self._rounds.add(round_)
                    round_.add_done_callback(self._end_round)
            if not self._has_more:
                break

    def held_task_ids(self) -> set[int]:
        """Return the ids of the tasks that are being scored. Thread-safe.

        A task is excluded if its deadline passed more than one lease duration ago, so that a scorer that never returns
        does not keep it.
        """
        now = time.monotonic() - self._limits.lease.total_seconds()
        return {task_id for task_id, deadline in self._deadlines.copy().items() if now < deadline}

    async def stop(self, grace_period: float) -> bool:
        """Stop starting tasks, and cancel those that exceed ``grace_period`` seconds. Return whether none did."""
        self.stopping = True
        if not self._rounds:
            return True
        _, unfinished = await asyncio.wait(self._rounds, timeout=grace_period)
        if unfinished:
            scores = sanitize.count_noun(self._held_tasks, "score")
            _logger.warning(
                "stopped before %s could be computed; the next start or another worker computes them", scores
            )
        for round_ in unfinished:
            round_.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return not unfinished

    def _capacity(self) -> int:
        """Return the number of exchanges to claim next."""
        breakers = self._circuit_breakers.values()
        is_saving_slow = len(self._results) > 4 * self._limits.concurrency
        if self.stopping or is_saving_slow or all(breaker.is_rejecting for breaker in breakers):
            return 0
        if all(breaker.open_until for breaker in breakers):  # claim one exchange as the probe
            return 0 if self._held_tasks else 1
        # Fill all slots, and queue about one second's worth of work. A few free slots are not worth a transaction.
        concurrency = self._limits.concurrency
        slots = exchange_concurrency(concurrency) if self._uses_judge else concurrency
        free = slots + min(slots, math.ceil(slots / self._seconds_per_score)) - self._held_tasks
        return math.ceil(free / len(self._scorers)) if free >= max(1, slots // 4) else 0

    def _end_round(self, round_: asyncio.Task[None]) -> None:
        self._rounds.discard(round_)
        if not round_.cancelled() and (error := round_.exception()) is not None:
            self._crash = error
        if self._has_more:
            self.wake()

    async def _score_claim(self, claim: TaskClaim, deadline: float) -> None:
        """Run the scorers of the claimed tasks concurrently on one exchange, and add their results to the next
        transaction.
        """
        try:
            outcomes = await asyncio.gather(*(self._score_task(claim.exchange, task, deadline) for task in claim.tasks))
        finally:
            self._held_tasks -= len(claim.tasks)
            for task in claim.tasks:
                self._deadlines.pop(task.id, None)
        pairs = zip(claim.tasks, outcomes, strict=True)
        scores = [(task, outcome) for task, outcome in pairs if isinstance(outcome, Score)]
        retries = [outcome for outcome in outcomes if isinstance(outcome, ScheduledRetry)]
        if scores or retries:
            self._results.add_result(ExchangeResult(claim.exchange, scores, retries))

    async def _score_task(self, exchange: Exchange, task: ScoringTask, deadline: float) -> TaskOutcome:
        """Run a task's scorer; return the score, a scheduled retry, or None to release the task."""
        key = (task.scorer, task.fingerprint)
        scorer, breaker = self._scorers[key], self._circuit_breakers[key]
        async with self._judge_slots if uses_coalescing_judge(scorer) else self._slots:
            if self.stopping:
                return None
            if (admission := breaker.admit()) == "reject":
                score = Score(
                    scorer=task.scorer,
                    fingerprint=task.fingerprint,
                    reason=breaker.reason or UnscoredReason.JUDGE_UNREACHABLE,
                    explanation=breaker.problem or "",
                    scored_at=self._clock(),
                )
                return self._retry_or_fail(task, score, retry_after=breaker.retry_delay().total_seconds())
            try:
                score = await self._run_scorer(scorer, exchange, deadline)
                # Use the task's scorer name, but keep the fingerprint in the score, which may differ from the task's.
                score = score if score.scorer == task.scorer else replace(score, scorer=task.scorer)
                if self.stopping and is_retryable(score):  # the request may not have been sent: the next start retries
                    return None
                breaker.record_score(score, admission)
            finally:
                breaker.cancel_admission(admission)
        if is_rejected(score) or is_retryable(score):
            return self._retry_or_fail(task, score, retry_after=retry_after(score))
        self._retry_policy.forget_task(task.id)
        return score

    async def _run_scorer(self, scorer: Scorer, exchange: Exchange, deadline: float) -> Score:
        started = time.monotonic()
        self.in_flight += 1
        try:
            async with asyncio.timeout(deadline - started):
                score = await run_scorer(scorer, exchange, clock=self._clock)
        except TimeoutError:
            return Score(
                scorer=scorer.name,
                fingerprint=scorer.fingerprint,
                reason=UnscoredReason.JUDGE_TIMEOUT,
                explanation=f"no score within {deadline - started:.0f} s",
                scored_at=self._clock(),
            )
        finally:
            self.in_flight -= 1
        seconds, average = max(time.monotonic() - started, 1e-3), self._seconds_per_score
        self._seconds_per_score = seconds if average == math.inf else 0.8 * average + 0.2 * seconds
        return apply_calibration(score, self._calibrations)

    def _retry_or_fail(self, task: ScoringTask, score: Score, *, retry_after: float | None) -> TaskOutcome:
        """Return a scheduled retry, or the unscored result if the task has been retried for too long."""
        until = self._retry_policy.next_retry_at(task.id, attempts=task.retries, retry_after=retry_after)
        if until is None or score.reason is None:
            self._retry_policy.forget_task(task.id)
            return score
        return ScheduledRetry(task=task, until=until, reason=score.reason, error=score.explanation or "")
