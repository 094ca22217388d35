"""The per-process runtime: capture, storage and background work, including fork and exit handling."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from germane import tracer
from germane.daemon_pool import run_within
from germane.drain import Drain
from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, ModelError, StorageError
from germane.logging_filters import suppressed_loggers

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.annotation import Annotation
    from germane.exchange import Exchange
    from germane.monitor import Alert, Monitor
    from germane.scorers import ScorerSet
    from germane.settings import Settings
    from germane.storage import TrackingStore

START_TIMEOUT: Final = 2.0
"""Maximum time, in seconds, that :func:`germane.start` waits for a database server. If the server responds later, it is
used from then onward."""
RESPONSE_TIMEOUT: Final = 20.0
"""Time, in seconds, after which a database server that accepts connections but does not respond counts as
unreachable."""
STOP_TIMEOUT: Final = 10.0
"""Default timeout for stopping, in seconds."""
EXIT_TIMEOUT: Final = STOP_TIMEOUT / 2
"""Timeout, in seconds, for each of the two shutdown phases at interpreter exit."""
CHILD_START_DELAY: Final = 1.0
"""Time in seconds from a forked child's first exchange until it starts background work, which children that run one job
do not need."""

_logger = logging.getLogger("germane")
_lock = threading.RLock()  # reentrant: a signal handler may call stop() during a start or a stop
_running: Runtime | None = None
_stopping: Runtime | None = None
_exit = os._exit


class Runtime:
    """Components that run in one process between ``germane.start`` and ``germane.stop``.

    Raises:
        SettingsError: The settings contradict each other, or name something that cannot be imported.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        redact: Callable[[str], str] | None,
        on_alert: Callable[[Alert], object] | None,
        tracer_provider: TracerProvider | None,
    ) -> None:
        from germane.storage import ExchangeWriter, TrackingStore

        self.settings = settings
        self._stopped = False
        """Whether :meth:`stop` was called, so that no more data is accepted."""
        self.reset(forked=False)
        self.store = TrackingStore(
            settings.database,
            on_commit=tracer.count_outcomes,
            erase_after_scoring=settings.erase_after_scoring,
            archive=None if settings.archive is None else settings.archive.location,
            sinks=list(settings.sinks),
            auto_migrate=settings.auto_migrate,
        )
        self._redact = redact
        self._on_alert = on_alert
        self._tracer_provider = tracer_provider
        self._build_background()
        self._scorer_names = [scorer.name for scorer in self.scorer_set.scorers] if self.scorer_set else []
        self.writer = ExchangeWriter(
            self.store,
            capacity=settings.queue_size,
            limit=settings.max_exchanges_per_minute,
            scorers=self._scorer_names,
            stops_at_exit=False,  # the application's own exit callbacks may still call handlers
        )

    @property
    def is_idle(self) -> bool:
        """Whether this is a forked child that has captured nothing."""
        return self._forked and self.writer.is_idle

    @property
    def has_scorers(self) -> bool:
        """Whether this process runs scorers."""
        return bool(self.scorer_set and self.scorer_set.scorers)

    @property
    def scoring_problem(self) -> str | None:
        """The reason this process cannot score; None if it can, or if it is configured not to."""
        return self.scorer_set.unavailable_reason if self.scorer_set else None

    def start(self) -> None:
        """Check the database, and start capture and background work."""
        if self.settings.database.startswith("sqlite"):
            self._check_database()
        elif not run_within(START_TIMEOUT, self._check_database):
            # No warning yet: on a busy machine, a working server may take longer. The check continues.
            _logger.info(
                "the database did not respond within %g seconds; continuing without waiting for it", START_TIMEOUT
            )
        tracer.connect(
            sink=self._enqueue,
            admit=self.writer.admit,
            annotate=self._enqueue,
            count_unreadable=self.writer.count_unreadable,
            count_watched=self.writer.count_watched,
            sample_unreadable=self.writer.sample_unreadable,
            watches=self.settings.watch,
            service=self.settings.service,
            scorers=frozenset(self._scorer_names),
            capture=self.settings.capture,
            redact=self._redact,
            max_text_length=self.settings.max_text_length,
            sample_rate=self.settings.sample_rate,
            # A budget selects exchanges at the end of an interval, and spans cannot wait that long.
            holds_spans=self.has_scorers and self.settings.budget is None,
            max_span_delay=self.settings.max_span_delay,
            attach_forwarded=self.store.forwarding.attach,
            worker_id=lambda: self._worker_id,
            provider=self._tracer_provider,
            state=self._telemetry_state,
        )
        if self.monitor is not None:
            self.monitor.start()

    def stop_background(self, timeout: float) -> bool:
        """Stop background work but not capture. Return whether the work stopped in time."""
        self._is_stopping.set()
        if self._starter is not None:
            self._starter.join(timeout)
        return self.monitor is None or self.monitor.stop(timeout)

    def flush(self, timeout: float) -> bool:
        """Write captured data and export spans. Return whether all captured data is in the database."""
        deadline = time.monotonic() + timeout
        tracer.flush(timeout / 2)
        return self.writer.flush(max(0.0, deadline - time.monotonic()))

    def stop(self, timeout: float, drain_timeout: float, *, is_quiet: bool = False) -> bool:
        """Flush and stop all components, in the order of the data flow. Return whether no data was lost.

        If it ``is_quiet``, the progress of draining is not reported.

        Each step may use only a fraction of the timeout, so an unreachable database, judge or collector leaves time for
        the other steps. The writer thread keeps writing during all steps.
        """
        started = time.monotonic()

        def until(share: float) -> float:
            return max(0.0, started + share * timeout - time.monotonic())

        self.writer.flush(until(0.2))
        if drain_timeout and self.scorer_set is not None and self.monitor is not None:
            poll_interval = self.settings.poll_interval
            drain = Drain(self.store, self.scorer_set, self.monitor, poll_interval=poll_interval, is_quiet=is_quiet)
            drain.run(drain_timeout)
            started = time.monotonic()
        finished = self.stop_background(until(0.7))
        exported = tracer.flush(until(0.8))
        exported = tracer.disconnect(until(0.85)) and exported
        self._stopped = True
        written = self.writer.stop(until(0.9))
        if written and not self._forked:
            run_within(until(0.95), self._declare_routes)
        run_within(until(1.0), self.store.close)
        return written and finished and exported

    def reset(self, *, forked: bool) -> None:
        """Set the state of this process, also after a fork, because the parent's threads do not exist in the child."""
        from germane.storage import new_worker_id

        self._worker_id = new_worker_id()
        self._forked = forked
        """Whether this is a forked child that has not started background work."""
        self._starter: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()

    def _build_background(self) -> None:
        settings = self.settings
        self.scorer_set: ScorerSet | None = None
        self.monitor: Monitor | None = None
        if settings.role == "capture":
            return
        from germane.monitor import Callback, Monitor, MonitorConfig, shared_rate_limiter
        from germane.scorers import ScorerSet, build_scorers

        try:
            rate_limiter = shared_rate_limiter(settings, self.store)
            scorer_set = build_scorers(settings, rate_limiter=rate_limiter)
        except ModelError as error:
            _logger.warning("nothing will be scored: %s", error)
            scorer_set = ScorerSet(unavailable_reason=f"nothing will be scored: {error}")
        self.scorer_set = scorer_set
        config = MonitorConfig(
            self.store,
            scorer_set.scorers,
            settings,
            attach=tracer.attach_scores,
            suppressed=_suppressed_telemetry,
            channels={} if self._on_alert is None else {"callback": Callback(self._on_alert)},
            close=scorer_set.aclose,
            cancel_judge_requests=scorer_set.stop_waiting,
            budget_exhausted_until=lambda: scorer_set.budget_exhausted_until,
            worker_id=self._worker_id,
            waiting_exchanges=tracer.exchanges_with_waiting_spans,
        )
        self.monitor = Monitor(config)

    def _telemetry_state(self) -> tracer.TelemetryState:
        """Return the gauge values. They come from memory rather than the database, because exporters wait for them."""
        snapshot = None if self._forked or self.monitor is None else self.monitor.queue_metrics
        return tracer.TelemetryState(queued=self.writer.depth, waiting=snapshot)

    def _enqueue(self, item: Exchange | Annotation) -> None:
        if self._stopped:  # the handler was called before stop() and returned after it
            return
        self.writer.put(item)
        if not self._forked:
            return
        # A forked child starts its background work after its first exchange, because many children never capture one.
        with self._lock:
            if self._forked:
                self._forked = False
                _flush_on_sigterm()  # job queues reset the handlers of their children
                name = "germane-starter"
                self._starter = threading.Thread(target=self._start_background_after_fork, name=name, daemon=True)
                self._starter.start()

    def _start_background_after_fork(self) -> None:
        if self._is_stopping.wait(CHILD_START_DELAY):
            return
        # The parent's connections, threads and servers must not be used here, nor closed by garbage collection.
        self._inherited = self.scorer_set, self.monitor
        self._build_background()
        if self.monitor is not None:
            self.monitor.start()

    def _check_database(self) -> None:
        """Prepare the database and declare the routes. On failure, log a warning once."""
        try:
            self._prepare_database()
        except StorageError as error:
            if self._stopped or self.writer.problem is not None:  # the writer has already logged the failure
                return
            until = "it is migrated" if isinstance(error, DatabaseNotMigrated) else "it is reachable"
            size = self.settings.queue_size
            self.writer.problem = str(error)
            _logger.warning("%s; up to %d exchanges will wait in memory until %s", error, size, until)
        else:
            self._declare_routes()

    def _prepare_database(self) -> None:
        """Prepare the database. Raise a storage error if it does not respond in time, or has to be migrated."""
        if self.settings.database.startswith("sqlite"):
            prepare_database(self.store, self.settings)
            return
        errors: list[StorageError] = []

        def check() -> None:
            try:
                prepare_database(self.store, self.settings)
            except StorageError as error:
                errors.append(error)

        if not run_within(RESPONSE_TIMEOUT, check):
            raise DatabaseUnreachable(f"the database did not respond within {RESPONSE_TIMEOUT:g} seconds")
        if errors:
            raise errors[0]

    def _declare_routes(self) -> None:
        """Store the routes of decorated handlers, so that ``germane doctor`` can list those that were never called."""
        try:
            self.store.exchanges.declare_routes(self.settings.service, tracer.observed_routes())
        except StorageError as error:
            _logger.info("the routes of decorated handlers were not stored: %s", error)


def install_runtime(runtime: Runtime) -> None:
    """Stop the current runtime, if any, and start a new one. :func:`stop_runtime` stops it."""
    global _running
    _stop_background_before_exit()
    _flush_on_sigterm()
    os._exit = _stop_and_exit
    with _lock:
        previous, _running = _running, None
        if previous is not None:
            previous.stop(STOP_TIMEOUT, 0.0)
        runtime.start()
        _running = runtime
    _freeze_permanent_objects()


def current_runtime() -> Runtime | None:
    """Return the runtime of this process; None if germane is not running."""
    return _running


def flush_runtime(timeout: float) -> bool:
    """Write the captured data of this process. Return whether all of it is in the database."""
    runtime = _running or _stopping  # SIGTERM may interrupt a stop
    return True if runtime is None else runtime.flush(timeout)


def stop_runtime(timeout: float = STOP_TIMEOUT, drain_timeout: float = 0.0, *, is_quiet: bool = False) -> bool:
    """Stop the runtime of this process, if any. Return whether no data was lost."""
    global _running, _stopping
    with _lock:
        runtime = _stopping = _running
        if runtime is None:
            return True
        _running = None
        try:
            return runtime.stop(timeout, drain_timeout, is_quiet=is_quiet)
        finally:
            _stopping = None


def prepare_database(store: TrackingStore, settings: Settings) -> None:
    """Migrate the database, or check it if ``auto_migrate`` is off. Raise StorageError if neither is possible."""
    if settings.auto_migrate:
        store.migrate()
    else:
        store.check()


@contextmanager
def _suppressed_telemetry() -> Iterator[None]:
    """Keep germane's own requests out of the application's traces, exchanges and log."""
    with tracer.suppress_tracing(), suppressed_loggers():
        yield


@cache
def _freeze_permanent_objects() -> None:
    """Exempt the objects that exist after the first start, mostly imported modules, from garbage collection.

    A full collection visits every object while holding the GIL: the 190,000 objects of germane and its dependencies
    would delay the application's event loop by 50 to 150 ms each time. ``gc.unfreeze()`` undoes this.
    """
    gc.collect()  # otherwise, garbage would be exempt, too
    gc.freeze()


@cache
def _stop_background_before_exit() -> None:
    """Register a callback that stops background work when the main thread ends. The rest stops at interpreter exit.

    Once the main thread has ended, asyncio cannot start threads, so host names cannot be resolved and scorers would
    fail. Handlers in other threads may continue, and their exchanges are captured.
    """
    import concurrent.futures.thread  # noqa: F401 - callbacks registered after its own callback run first

    def stop_background() -> None:
        if _running is not None:
            _running.stop_background(EXIT_TIMEOUT)

    # Private API, available since Python 3.9. Without it, background work stops with everything else.
    getattr(threading, "_register_atexit", atexit.register)(stop_background)


def _stop_and_exit(status: int) -> NoReturn:
    """Stop germane, then exit. Replaces ``os._exit``, with which children of multiprocessing, Celery and RQ end."""
    try:
        if _running is not None and not _running.is_idle:
            stop_runtime()
    finally:
        _exit(status)


def _flush_on_sigterm() -> None:
    """Handle SIGTERM if the application leaves it to the system. Only the main thread can do this."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError):  # in a subinterpreter
            signal.signal(signal.SIGTERM, _flush_and_die)


def _flush_and_die(number: int, _frame: FrameType | None) -> None:
    """Write captured data in another thread, because this one may hold the queue's lock, then die by the signal."""
    if not run_within(STOP_TIMEOUT, partial(flush_runtime, STOP_TIMEOUT)):
        _logger.warning("not all captured data could be written in the %g seconds after SIGTERM", STOP_TIMEOUT)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _wait_for_imports() -> None:
    """Wait, before a fork, for imports in other threads. Otherwise, import locks would stay locked in the child.

    Background work imports many modules in its first second, which is when servers fork their workers.
    """
    deadline = time.monotonic() + STOP_TIMEOUT
    while _running is not None and time.monotonic() < deadline:
        # Private API, available since Python 3.3. Without it, a child may hang, as it may without germane.
        module_locks = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
        locks = [reference() for reference in list(module_locks.values())]
        if all(getattr(lock, "owner", None) in {None, threading.get_ident()} for lock in locks):
            return
        time.sleep(0.001)


def _reset_after_fork() -> None:
    global _lock, _stopping
    _lock = threading.RLock()
    _stopping = None
    if _running is not None:
        _running.reset(forked=True)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait_for_imports, after_in_child=_reset_after_fork)
