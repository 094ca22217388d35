"""The monitor, which runs the background work of one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

from germane import alerting
from germane.alerting import Channel, Log, build_channels
from germane.delivery import Backoff
from germane.monitor.jobs.maintenance import RetentionSchedule
from germane.monitor.loop.scheduler import Scheduler
from germane.monitor.sampling.eligibility import EligibilityChecker, warn_unused_filters
from germane.monitor.supervisor import AttachScores, MonitorStatus, Supervisor, SupervisorConfig, SuppressTelemetry
from germane.scorers import Scorer
from germane.settings import Settings
from germane.storage import CalibrationCache, TrackingStore
from germane.tracer import BacklogState


class Monitor:
    """Samples and scores exchanges, and evaluates alert rules, in one daemon thread.

    Args:
        store: The store that contains the exchanges and scores.
        scorers: The scorers to run. If there are none, only alert rules are evaluated.
        attach: Called with an exchange and its scores after they are saved.
        suppressed: Returns a context in which nothing is traced or captured. All code except ``attach`` runs in it.
        channels: Alert channels, by name, in addition to the log and the configured channels.
        close: Closes the scorers' clients on their event loop when the monitor stops.
        cancel_judge_requests: Cancels judge requests that are waiting for the rate limiter. Called when the monitor
            starts to stop.
        budget_exhausted_until: Returns the time until which the budget is exhausted, for :meth:`status`.
        backoff: The delays between attempts of a task, and between probes of a judge.
        retention_schedule: The schedule for deleting old data.
        worker_id: The worker id of this process. Defaults to a new id.
        waiting_exchanges: Returns the ids of the exchanges whose spans this process holds. It scores them first.

    Raises:
        SettingsError: A predicate cannot be imported.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorers: Sequence[Scorer],
        settings: Settings,
        *,
        attach: AttachScores,
        suppressed: SuppressTelemetry = contextlib.nullcontext,
        channels: Mapping[str, Channel] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        close: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0),
        cancel_judge_requests: Callable[[], object] = lambda: None,
        budget_exhausted_until: Callable[[], datetime | None] = lambda: None,
        backoff: Backoff | None = None,
        retention_schedule: RetentionSchedule | None = None,
        worker_id: str | None = None,
        waiting_exchanges: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        names = [scorer.name for scorer in scorers]
        alerting.warn_about_missing_scorers(settings.rules, names)
        warn_unused_filters(settings.filters, names)
        config = SupervisorConfig(
            store=store,
            scorers=tuple(scorers),
            settings=settings,
            eligibility=EligibilityChecker(scorers, filters=settings.filters, always_score=settings.always_score),
            attach=attach,
            suppressed=suppressed,
            channels={"log": Log(), **build_channels(settings), **(channels or {})},
            clock=clock,
            close=close,
            cancel_judge_requests=cancel_judge_requests,
            budget_exhausted_until=budget_exhausted_until,
            backoff=backoff or Backoff(),
            retention_schedule=retention_schedule or RetentionSchedule(),
            worker_id=worker_id,
            waiting_exchanges=waiting_exchanges,
            calibrations=CalibrationCache(store),
        )
        self._scheduler = Scheduler(lambda: Supervisor(config), poll_interval=settings.poll_interval)

    def start(self) -> None:
        """Start the thread unless it is running. A forked child process has no thread until it calls this method."""
        self._scheduler.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Stop accepting work, finish or release claimed tasks, close the clients, and end the thread.

        Returns:
            Whether everything succeeded within ``timeout`` seconds. Interrupted tasks are released, or their leases
            expire. They are then scored by another process, or by this process after a restart.
        """
        return self._scheduler.stop(timeout)

    @property
    def queue_metrics(self) -> BacklogState | None:
        """The last snapshot of the queue in the database; None if another process is the leader. Thread-safe."""
        service = self._scheduler.service
        return service.queue_metrics if isinstance(service, Supervisor) else None

    def status(self) -> MonitorStatus:
        """Return the status of the background jobs. Thread-safe."""
        service = self._scheduler.service
        return service.status() if isinstance(service, Supervisor) else MonitorStatus(running=self._scheduler.running)
