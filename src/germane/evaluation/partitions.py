"""The driver: runs the partitions of a data set or of the history on an engine until each is done."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from germane.errors import DatabaseUnreachable, GermaneError, ModelError, SettingsError, UsageError, error_location
from germane.evaluation.engines import Engine, WorkerLost
from germane.score import Score, UnscoredReason
from germane.scorers import ScorerSet, is_rejected
from germane.settings import Settings, load_settings

if TYPE_CHECKING:
    from germane.evaluation.scoring import DatasetScorer

LOCAL_PARTITION: Final = 1000
"""Default number of exchanges in a partition if no scorer uses a judge."""
JUDGE_PARTITION: Final = 500
"""Default number of exchanges in a partition if a scorer uses a judge. If a process dies, its requests are lost."""
MAX_FAILURES: Final = 5
"""Number of failures of one partition after which the run stops."""
MAX_FAILURES_IN_A_ROW: Final = 100
"""Number of failures without a finished partition after which the run stops."""
PARTITIONS_PER_WORKER: Final = 2
"""Number of submitted partitions per worker: one that runs, and one that waits."""
MIN_DELAY: Final = 0.1
"""Minimum delay before a partition that another process holds is tried again, in seconds."""
OUTAGE_DELAY: Final = 5.0
"""Delay before a partition is retried if the database is unreachable, in seconds."""
MAX_OUTAGE: Final = 600.0
"""Seconds for which an unreachable database does not stop the run."""


class Numbered(Protocol):
    """A partition, as the engine receives it."""

    @property
    def number(self) -> int:
        """The number of the partition, from 0."""


Part = TypeVar("Part", bound=Numbered)
Outcome = TypeVar("Outcome")


class RunStopped(GermaneError):
    """No partition of the run can be scored now, for example because the budget is exhausted."""


class PartitionFailed(GermaneError):
    """One partition failed repeatedly, so the run has stopped. The partitions that are done stay done."""


@dataclass(frozen=True, slots=True)
class Held:
    """The outcome of a partition that another process holds."""

    seconds: float
    """Time after which the partition may be free, in seconds."""


class _Schedule(Generic[Part]):
    """The partitions to submit: first those whose retry is due, then the rest."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._rest = iter(parts)
        self._delayed: list[tuple[float, int, Part]] = []
        self._sequence = count()
        self._failures: Counter[int] = Counter()
        self._failures_in_a_row = 0
        self._outage_since: float | None = None

    def take(self) -> Part | None:
        """Return the next partition to submit; None if none is due."""
        if self._delayed and self._delayed[0][0] <= time.monotonic():
            return heapq.heappop(self._delayed)[2]
        return next(self._rest, None)

    def record_success(self) -> None:
        """Record that a partition is done."""
        self._failures_in_a_row = 0

    def record_database_access(self) -> None:
        """Record that a process has reached the database, which ends an outage."""
        self._outage_since = None

    def delay(self, part: Part, seconds: float) -> None:
        """Submit the partition again after a delay."""
        heapq.heappush(self._delayed, (time.monotonic() + seconds, next(self._sequence), part))

    def retry(self, part: Part, error: Exception, *, was_started: bool) -> None:
        """Submit a failed partition again, after a delay that doubles with each failure.

        If no process was working on it (``was_started``), the failure is not due to this partition.

        Raises:
            PartitionFailed: The partition has failed too often, or processes end before they start to work.
            DatabaseUnreachable: The outage has lasted too long.
            SettingsError, UsageError, ModelError: The error, because every partition would fail in the same way.
        """
        if isinstance(error, SettingsError | UsageError | ModelError):
            raise error
        self._failures_in_a_row += 1
        if not was_started and self._failures_in_a_row < MAX_FAILURES_IN_A_ROW:
            self.delay(part, 0.0)
            return
        if isinstance(error, DatabaseUnreachable):  # this is not about the partition
            now = time.monotonic()
            if self._outage_since is None:
                self._outage_since = now
            if now - self._outage_since > MAX_OUTAGE:
                raise error
            self.delay(part, OUTAGE_DELAY)
            return
        self.record_database_access()
        failures = self._failures[part.number] = self._failures[part.number] + 1
        if failures == MAX_FAILURES or self._failures_in_a_row == MAX_FAILURES_IN_A_ROW:
            # The message of an error that is not germane's may quote user text.
            described = str(error) if isinstance(error, GermaneError) else error_location(error)
            raise PartitionFailed(f"partition {part.number} failed {failures} times: {described}") from error
        self.delay(part, 0.0 if isinstance(error, WorkerLost) else 2.0 ** (failures - 1))

    @property
    def next_delay(self) -> float | None:
        """Seconds until the next retry is due; None if there is none."""
        return max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else None


def run_partitions(
    engine: Engine,
    function: Callable[[Any, Part], Outcome | Held],
    job: object,
    parts: Iterable[Part],
    *,
    on_done: Callable[[Part, Outcome], None],
    on_lost: Callable[[Part], bool] = lambda _part: True,
) -> None:
    """Run ``function(job, part)`` for each partition, with two per worker in flight, until each has an outcome.

    The function must be safe to repeat: a partition is retried if its process died, if it failed, and if another
    process held it. ``parts`` are read as they are submitted. After a :class:`RunStopped`, no partition is submitted,
    and those in flight end first, because they write the scores that they have.

    ``on_lost`` is called with each partition whose process died, before it is retried, and returns whether the process
    was working on it. If the run fails, it has been called for each partition in flight.

    Raises:
        PartitionFailed: One partition failed :data:`MAX_FAILURES` times.
        DatabaseUnreachable: The database was unreachable for ten minutes.
        RunStopped, SettingsError, UsageError, ModelError: A partition raised it.
    """
    schedule = _Schedule(parts)
    limit = PARTITIONS_PER_WORKER * engine.workers
    in_flight: dict[Future[Outcome | Held], Part] = {}
    stopped: RunStopped | None = None
    try:
        while True:
            while stopped is None and len(in_flight) < limit and (part := schedule.take()) is not None:
                in_flight[engine.submit(function, job, part)] = part
            # A delayed partition is submitted when it is due, unless the run is stopping or all places are taken.
            delay = schedule.next_delay if stopped is None and len(in_flight) < limit else None
            if in_flight:
                done, _ = wait(in_flight, timeout=delay, return_when=FIRST_COMPLETED)
            elif delay is not None:
                time.sleep(delay)
                continue
            else:
                break
            for future in done:
                part = in_flight[future]
                try:
                    outcome = future.result()
                except RunStopped as error:
                    stopped = stopped or error
                except Exception as error:  # noqa: BLE001 - the scorers and the engine raise anything
                    was_started = on_lost(part) if isinstance(error, WorkerLost) else True
                    schedule.retry(part, error, was_started=was_started)
                else:
                    schedule.record_database_access()
                    if isinstance(outcome, Held):
                        schedule.delay(part, max(MIN_DELAY, outcome.seconds))
                    else:
                        schedule.record_success()
                        on_done(part, outcome)
                del in_flight[future]
    finally:  # after the last partition, none is in flight
        for part in in_flight.values():
            on_lost(part)
    if stopped is not None:
        raise stopped


def find_interruption(scorer: DatasetScorer, scorer_set: ScorerSet, scores: Iterable[Score]) -> GermaneError | None:
    """Return why some exchanges of a partition had no chance to be scored; None if all had one.

    The error is :class:`RunStopped` if the budget is exhausted or a server rejects all requests, so that other
    partitions would not be scored either. Otherwise, a judge has not responded for a minute.
    """
    if any(score.reason is UnscoredReason.BUDGET for score in scores):
        until = scorer_set.budget_exhausted_until
        return RunStopped("the budget is exhausted" + ("" if until is None else f" until {until:%Y-%m-%d %H:%M} UTC"))
    failure = scorer.final_failure
    if failure is None:
        return None
    error = RunStopped if is_rejected(failure) else GermaneError
    return error(f"{failure.scorer} has stopped: {failure.reason}: {failure.explanation}")


def settings_for_workers(settings: Settings, engine: Engine) -> Settings:
    """Return the settings to send to the engine's processes: without secrets that scoring does not need.

    If the engine is remote, the API key, the judge's URL and the database's URL are not sent either, because Dask and
    Ray send arguments unencrypted.
    """
    removed: dict[str, object] = {"channels": {}, "dashboard_token": None, "receiver_token": None}
    if engine.is_remote:
        removed |= {"api_key": None, "base_url": None, "database": Settings.model_fields["database"].default}
    return settings.model_copy(update=removed)


def settings_of_worker(sent: Settings, *, has_own_secrets: bool) -> Settings:
    """Return the settings of a process of the engine: those that were sent, with secrets from its own settings."""
    if not has_own_secrets:
        return sent
    own = load_settings()
    return sent.model_copy(update={name: getattr(own, name) for name in ("api_key", "base_url", "database")})


def default_partition_size(scorer_set: ScorerSet) -> int:
    """Return the default number of exchanges in a partition."""
    return LOCAL_PARTITION if scorer_set.judge is None else JUDGE_PARTITION
