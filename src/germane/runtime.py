"""Putting the rooms together in one process: start, stop, lifespan."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from germane import tracer
from germane.errors import DatabaseNotMigrated, ModelError, StorageError, UsageError
from germane.logging_filters import hushed

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.annotation import Annotation
    from germane.exchange import Exchange
    from germane.monitor import Alert, Monitor
    from germane.scorers import Workbench
    from germane.settings import Settings
    from germane.storage import Floors, Store

TIMEOUT = 10.0
"""Seconds that stopping may take."""
LEAST = 1.0
"""Seconds that each part may take to stop, when those before it have used up the time."""
_logger = logging.getLogger("germane")
_lock = threading.RLock()  # a signal handler that stops may interrupt a start or a stop
_running: Runtime | None = None


class Runtime:
    """What runs in one process between :func:`start` and :func:`stop`. Nothing runs before :meth:`begin`.

    Raises:
        SettingsError: the settings do not fit together.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        redact: Callable[[str], str] | None,
        on_alert: Callable[[Alert], object] | None,
        tracer_provider: TracerProvider | None,
    ) -> None:
        from germane.storage import Floors, Store, Writer

        self.settings = settings
        self.store = Store(settings.database, told=tracer.count, erase_after_scoring=settings.erase_after_scoring)
        self._on_alert = on_alert
        self._redact = redact
        self._provider = tracer_provider
        self._floors = Floors(self.store)
        self._build()
        names = [scorer.name for scorer in self.workbench.scorers] if self.workbench else []
        self._names = frozenset(names)
        self.writer = Writer(self.store, capacity=settings.queue, limit=settings.capture_limit, scorers=names)
        self._asleep = self._stopped = False
        self._waking: threading.Thread | None = None
        self._lock = threading.Lock()

    def _build(self) -> None:
        self.workbench = _workbench(self.settings, self.store, self._floors)
        self.monitor = _monitor(self.settings, self.store, self.workbench, self._on_alert)

    @property
    def scores(self) -> bool:
        """Whether there is a scorer in this process."""
        return bool(self.workbench and self.workbench.scorers)

    @property
    def problem(self) -> str | None:
        """Why nothing can be scored in this process, in one sentence; None when all is well, or it is not to score."""
        return self.workbench.problem if self.workbench else None

    def begin(self) -> None:
        """Look at the database, capture, and start the background."""
        self.writer.problem = _prepare(self.store, self.settings)
        tracer.connect(
            sink=self._take,
            admit=self.writer.admit,
            annotate=self._take,
            service=self.settings.service,
            scorers=self._names,
            capture=self.settings.capture,
            redact=self._redact,
            text_limit=self.settings.text_limit,
            rate=self.settings.rate,
            hold=self.scores and self.settings.budget is None,  # which is picked later than a span can wait
            max_hold=self.settings.max_hold,
            provider=self._provider,
            state=self._state,
        )
        if self.monitor is not None:
            self.monitor.start()

    def _state(self) -> tracer.State:
        """Return what gauges show, from memory: exporters ask for it."""
        here = None if self._asleep or self.monitor is None else self.monitor.waiting
        return tracer.State(queued=self.writer.depth, waiting=here)

    def _take(self, item: Exchange | Annotation) -> None:
        if self._stopped:  # the handler was called before the stop, and returned after it
            return
        self.writer.put(item)
        if self._asleep:
            self._wake()

    def after_fork(self) -> None:
        """Take note that this is a child now: threads did not come along."""
        self._asleep = True
        self._waking = None
        self._lock = threading.Lock()

    def _wake(self) -> None:
        """Start the background in a forked child, at its first exchange: many children never have one."""
        with self._lock:
            if not self._asleep:
                return
            self._asleep = False
            _end_with_multiprocessing()
            self._waking = threading.Thread(target=self._begin_anew, name="germane-waking", daemon=True)
            self._waking.start()

    def _begin_anew(self) -> None:
        # Connections, threads and servers of the parent are not for use here, nor to be closed by being collected.
        self._inherited = self.workbench, self.monitor
        self._build()
        if self.monitor is not None:
            self.monitor.start()

    def rest(self, timeout: float) -> bool:
        """End the background; capture goes on."""
        if self._waking is not None:
            self._waking.join(timeout)
        return self.monitor is None or self.monitor.stop(timeout)

    def stop(self, timeout: float, drain: float) -> bool:
        """Flush and end everything, in the order in which exchanges flow."""
        deadline = time.monotonic() + timeout

        def left() -> float:
            return max(LEAST, deadline - time.monotonic())

        self.writer.flush(left())
        if drain and self.scores:
            self._drain(drain)
            deadline = time.monotonic() + timeout
        finished = self.rest(left())
        exported = tracer.flush(left())
        exported = tracer.disconnect(left()) and exported
        self._stopped = True
        written = self.writer.stop(left())
        if written and not self._asleep:
            _declare(self.store, self.settings.service)
        self.store.close()
        return written and finished and exported

    def _drain(self, seconds: float) -> None:
        """Wait until everything captured has been decided on, and scored as far as this process does that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._is_drained():
            time.sleep(min(0.1, self.settings.tick))

    def _is_drained(self) -> bool:
        try:
            left = self.store.outstanding()
        except StorageError as error:
            _logger.warning("not waiting for scores: %s", error)
            return True
        scorers = self.workbench.scorers if self.workbench else ()
        own = left.of([(scorer.name, scorer.fingerprint) for scorer in scorers])
        return not left.undecided and not any(tasks.under_way for tasks in own)


def start(
    *,
    redact: Callable[[str], str] | None = None,
    on_alert: Callable[[Alert], object] | None = None,
    tracer_provider: TracerProvider | None = None,
    **settings: Any,
) -> None:
    """Begin to capture, score and watch in this process. A second call begins anew with the new settings.

    Args:
        redact: Called with each text before it goes anywhere; a text for which it fails is dropped.
        on_alert: Called with each :class:`~germane.alert.Alert`, sync or async, in the background. Of several
            processes one watches: what is found by one without such a function is told by other channels alone.
        tracer_provider: Spans go here, instead of to the global provider.
        **settings: Any of :class:`germane.settings.Settings`; they win over the environment and the files.

    Raises:
        SettingsError: a setting is wrong or unknown; what ran before goes on. A database or judge that cannot be
            reached only warns.
        UsageError: ``redact`` or ``on_alert`` cannot be called; what ran before goes on.
    """
    from germane.settings import load

    for name, given in {"redact": redact, "on_alert": on_alert}.items():
        if given is not None and not callable(given):
            raise UsageError(f"{name}={given!r:.100}: must be a function")
    install(Runtime(load(**settings), redact=redact, on_alert=on_alert, tracer_provider=tracer_provider))


def install(runtime: Runtime) -> None:
    """Begin with it, in place of what ran before; :func:`stop` ends it."""
    global _running
    _rest_before_the_end()
    _end_with_multiprocessing()
    with _lock:
        previous, _running = _running, None
        if previous is not None:
            previous.stop(TIMEOUT, 0.0)
        runtime.begin()
        _running = runtime


def running() -> Runtime | None:
    """Return what runs in this process; None before :func:`start` and after :func:`stop`."""
    return _running


def stop(timeout: float = TIMEOUT, *, drain: float = 0.0) -> bool:
    """Write what was captured, end the background, export spans. Nothing happens where nothing runs.

    It also happens by itself when the interpreter ends.

    Args:
        timeout: Seconds that it may take.
        drain: Seconds to wait first until everything captured is scored, for scripts. What is not scored by then
            stays in the database, for the next start. What a budget may pick later is not waited for.

    Returns:
        Whether everything ended in time, and nothing was left in memory.
    """
    global _running
    with _lock:
        runtime, _running = _running, None
        return True if runtime is None else runtime.stop(timeout, drain)


@asynccontextmanager
async def lifespan(app: object = None, **settings: Any) -> AsyncIterator[None]:  # noqa: ARG001 - frameworks pass it
    """Run germane for as long as an ASGI application lives.

    ::

        app = FastAPI(lifespan=germane.lifespan)
    """
    import asyncio

    await asyncio.to_thread(start, **settings)
    try:
        yield
    finally:
        await asyncio.to_thread(stop)


def _workbench(settings: Settings, store: Store, floors: Floors) -> Workbench | None:
    if settings.role == "capture":
        return None
    from germane.monitor import shared_pace
    from germane.scorers import Workbench, build

    try:
        return build(settings, calibrations=floors, pace=shared_pace(settings, store))
    except ModelError as error:
        _logger.warning("nothing will be scored: %s", error)
        return Workbench(problem=f"nothing will be scored: {error}")


def _monitor(
    settings: Settings, store: Store, workbench: Workbench | None, on_alert: Callable[[Alert], object] | None
) -> Monitor | None:
    if workbench is None:
        return None
    from germane.monitor import Callback, Monitor

    return Monitor(
        store,
        workbench.scorers,
        settings,
        attach=tracer.attach,
        suppressed=_quietly,
        channels=None if on_alert is None else {"callback": Callback(on_alert)},
        close=workbench.aclose,
        give_up=workbench.give_up,
        spent_until=lambda: workbench.spent_until,
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the background's own requests out of the application's traces, exchanges and log."""
    with tracer.suppressed(), hushed():
        yield


def _prepare(store: Store, settings: Settings) -> str | None:
    """Bring an SQLite file up to date, look at any other database; return what is wrong, which is said once."""
    try:
        make_ready(store, settings)
    except StorageError as error:
        until = "it is" if isinstance(error, DatabaseNotMigrated) else "it is back"
        _logger.warning("%s; up to %d exchanges wait in memory until %s", error, settings.queue, until)
        return str(error)
    _declare(store, settings.service)
    return None


def make_ready(store: Store, settings: Settings) -> None:
    """Bring an SQLite file up to date, look at any other database.

    Raises:
        StorageError: it is away, or somebody has to migrate it.
    """
    if settings.database.startswith("sqlite"):
        store.migrate()
    else:
        store.check()


def _declare(store: Store, service: str) -> None:
    """Let ``germane doctor`` know which handlers are decorated, so that it can name those that never fire."""
    try:
        store.declare(service, tracer.routes())
    except StorageError as error:
        _logger.info("decorated handlers were not noted: %s", error)


def _rest() -> None:
    if _running is not None:
        _running.rest(TIMEOUT)


@cache
def _rest_before_the_end() -> None:
    """End the background as soon as the main thread has ended, and everything else at the interpreter's end.

    From then on asyncio cannot start threads: it could neither look up a host name nor call into a thread, and scorers
    would fail for it. Handlers may go on in other threads, and are captured.
    """
    import concurrent.futures.thread  # noqa: F401 - what is registered later than its own end comes earlier

    # Private, and there since Python 3.9; without it the background ends with everything else.
    getattr(threading, "_register_atexit", atexit.register)(_rest)


def _end_with_multiprocessing() -> None:
    """Stop at the end of a child of multiprocessing as well: it leaves without what ``atexit`` would do."""
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:
        multiprocessing.Finalize(None, stop, exitpriority=0)


def _before_fork() -> None:
    """Let imports in other threads end first: a module that is being imported now stays locked in the child for ever.

    Our background imports much in its first second, which is when servers fork their workers.
    """
    deadline = time.monotonic() + TIMEOUT
    while _running is not None and _others_import() and time.monotonic() < deadline:
        time.sleep(0.001)


def _others_import() -> bool:
    # Private, and there since Python 3.3; without it a child may hang as it may without germane.
    locks = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    held = [reference() for reference in list(locks.values())]
    return any(getattr(lock, "owner", None) not in {None, threading.get_ident()} for lock in held)


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    if _running is not None:
        _running.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
atexit.register(stop)
