"""Judge failures: a circuit breaker per scorer, and the retry policy for tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.delivery import Backoff
from germane.score import Score, UnscoredReason
from germane.scorers import is_rejected, is_retryable, is_unanswered

Admission = Literal["allow", "probe", "reject"]
MAX_REJECTIONS: Final = 2
"""The number of consecutive rejections that opens the circuit. A single rejection may be due to the exchange."""
MAX_OUTAGES: Final = 5
"""The number of consecutive failures that opens the circuit if the judge is unreachable, slow or rate-limited."""
NO_ANSWER_TIMEOUT: Final = timedelta(seconds=5)
"""Time without an answer to any request after which a scorer counts as stuck."""
_UNRELATED_TO_JUDGE: Final = frozenset(
    {UnscoredReason.MISSING_INPUT, UnscoredReason.SCORER_ERROR, UnscoredReason.BUDGET}
)
logger = logging.getLogger("germane.monitor")
MIN_CLEANUP_SIZE: Final = 10_000
"""The number of tasks in memory above which the states of old tasks are dropped."""


class CircuitBreaker:
    """Decides whether a scorer may call its judge.

    Consecutive failures open the circuit for a period that doubles with each failed probe. After this period, one
    exchange is scored as a probe. Any reply from the judge closes the circuit.
    """

    def __init__(self, scorer: str, *, backoff: Backoff, clock: Callable[[], datetime]) -> None:
        self.scorer = scorer
        self.reason: UnscoredReason | None = None
        self.problem: str | None = None
        """Why the circuit is open; None while it is closed."""
        self.open_until: datetime | None = None
        """The time from which the next probe is allowed; None while the circuit is closed."""
        self._backoff = backoff
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._probing = False
        self._is_rejected = False
        self._unanswered_since: datetime | None = None
        self._last_error = ""

    @property
    def is_rejecting(self) -> bool:
        """Whether :meth:`admit` would reject an exchange now."""
        if self.open_until is None:
            return False
        # If more than the longest delay remains, the clock was set back.
        remaining = self.open_until - self._clock()
        return self._probing or timedelta() < remaining <= timedelta(seconds=self._backoff.longest_delay)

    @property
    def stuck_reason(self) -> str | None:
        """Why waiting does not help: the judge's server also rejected the probe, or does not answer at all.

        None if the judge is only busy or slow, or works.
        """
        since = self._unanswered_since
        is_silent = since is not None and self._clock() - since >= NO_ANSWER_TIMEOUT
        return self._last_error if is_silent or (self._is_rejected and self._openings > 1) else None

    def admit(self) -> Admission:
        """Return whether to score an exchange normally, score it as the probe, or reject it."""
        if self.open_until is None:
            return "allow"
        if self.is_rejecting:
            return "reject"
        self._probing = True
        return "probe"

    def retry_delay(self) -> timedelta:
        """Return the delay before the next attempt: the remaining pause, but at least the initial delay."""
        if self.open_until is None:
            return timedelta()
        return max(self.open_until - self._clock(), timedelta(seconds=self._backoff.initial))

    def cancel_admission(self, admission: Admission) -> None:
        """Cancel an admission whose exchange was not scored."""
        if admission == "probe":
            self._probing = False

    def record_score(self, score: Score, admission: Admission) -> None:
        """Open or close the circuit, depending on an admitted exchange's score."""
        self.cancel_admission(admission)
        if is_rejected(score) or is_retryable(score):
            self._failures += 1
            self._is_rejected = is_rejected(score)
            self._unanswered_since = (self._unanswered_since or self._clock()) if is_unanswered(score) else None
            text = f"{score.reason}: {score.explanation or 'no explanation'}"
            self._last_error = "".join(character if character.isprintable() else " " for character in text)
            requested = retry_after(score)
            limit = MAX_REJECTIONS if is_rejected(score) else MAX_OUTAGES
            if admission == "probe" or (self.open_until is None and (requested or self._failures >= limit)):
                self._openings += 1
                self.open_until = self._clock() + self._backoff.delay(self._openings, retry_after=requested)
                if self.problem is None:
                    message = "%s is paused and will be retried automatically: %s"
                    logger.log(_log_level(score.reason), message, self.scorer, self._last_error)
                self.reason, self.problem = score.reason, self._last_error
        elif score.reason not in _UNRELATED_TO_JUDGE:
            if self.problem is not None:
                logger.log(_log_level(self.reason), "%s has resumed", self.scorer)
            self.open_until = self.reason = self.problem = self._unanswered_since = None
            self._failures = self._openings = 0
            self._is_rejected = False


def retry_after(score: Score) -> float | None:
    """Return the ``Retry-After`` delay that the judge's server sent, in seconds; None if it sent none."""
    seconds = score.details.get("retry_after")
    return float(seconds) if isinstance(seconds, (int, float)) else None


def _log_level(reason: UnscoredReason | None) -> int:
    """Return the log level for a pause. Rate limits are normal and do not need a warning."""
    return logging.INFO if reason is UnscoredReason.JUDGE_RATE_LIMITED else logging.WARNING


@dataclass(slots=True)
class RetryState:
    """The failed attempts of one task."""

    since: datetime
    attempts: int = 0


class RetryPolicy:
    """Decides when to retry a task with a transient failure. Retries end ``retry_timeout`` after its first failure.

    The timeout starts at the first failure rather than at the start of the exchange, so an exchange that waited
    overnight is retried for as long as any other. The times of first failures are kept in memory, so a restart resets
    the timeout. The number of attempts, which determines the delay, is stored with the task and survives a restart.
    """

    def __init__(self, retry_timeout: timedelta, *, backoff: Backoff, clock: Callable[[], datetime]) -> None:
        self._retry_timeout = retry_timeout
        self._backoff = backoff
        self._clock = clock
        self._states: dict[object, RetryState] = {}
        self._cleanup_size = MIN_CLEANUP_SIZE

    def next_retry_at(self, task_id: object, *, attempts: int = 0, retry_after: float | None = None) -> datetime | None:
        """Record a failed attempt and return the time of the next one; None if the task has failed for too long.

        ``attempts`` counts the earlier failed attempts by any process. ``retry_after`` is the minimum delay in seconds.
        """
        now = self._clock()
        state = self._states.setdefault(task_id, RetryState(now))
        if now - state.since >= self._retry_timeout:
            return None
        state.attempts = max(state.attempts, attempts) + 1
        if len(self._states) > self._cleanup_size:  # other processes finished most of these tasks long ago
            oldest = now - 2 * self._retry_timeout
            self._states = {id_: state for id_, state in self._states.items() if state.since > oldest}
            self._cleanup_size = max(MIN_CLEANUP_SIZE, 2 * len(self._states))
        return now + self._backoff.delay(state.attempts, retry_after=retry_after)

    def forget_task(self, task_id: object) -> None:
        """Discard the state of a finished task."""
        self._states.pop(task_id, None)
