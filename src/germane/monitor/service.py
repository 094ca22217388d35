"""The monitor, which runs the background work of one process."""

from __future__ import annotations

from functools import partial

from germane import alerting
from germane.alerting import Log, build_channels
from germane.monitor.loop.scheduler import Scheduler
from germane.monitor.sampling.eligibility import EligibilityChecker, warn_unused_filters
from germane.monitor.supervisor import MonitorConfig, MonitorStatus, Supervisor
from germane.storage import CalibrationCache
from germane.tracer import BacklogState


class Monitor:
    """Samples and scores exchanges, and evaluates alert rules, in one daemon thread.

    Raises:
        SettingsError: A predicate cannot be imported.
    """

    def __init__(self, config: MonitorConfig) -> None:
        settings, names = config.settings, [scorer.name for scorer in config.scorers]
        alerting.warn_about_missing_scorers(settings.rules, names)
        warn_unused_filters(settings.filters, names)
        build_supervisor = partial(
            Supervisor,
            config,
            eligibility=EligibilityChecker(
                config.scorers, filters=settings.filters, always_score=settings.always_score
            ),
            channels={"log": Log(), **build_channels(settings), **config.channels},
            calibrations=CalibrationCache(config.store),
        )
        self._scheduler = Scheduler(build_supervisor, poll_interval=settings.poll_interval)

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
