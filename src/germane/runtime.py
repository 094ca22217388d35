"""Putting the rooms together in one process: start, stop, lifespan."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from germane import tracer
from germane.errors import DatabaseNotMigrated, ModelError, StorageError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.exchange import Exchange
    from germane.monitor import Alert, Monitor
    from germane.scorers import Workbench
    from germane.settings import Settings
    from germane.storage import Store

_logger = logging.getLogger("germane")
_lock = threading.Lock()
_running: Runtime | None = None


class Runtime:
    """What runs in one process between :func:`start` and :func:`stop`."""

    def __init__(
        self,
        settings: Settings,
        *,
        redact: Callable[[str], str] | None,
        on_alert: Callable[[Alert], object] | None,
        tracer_provider: TracerProvider | None,
    ) -> None:
        from germane.storage import Store, Writer

        self.settings = settings
        self.store = Store(settings.database)
        self._on_alert = on_alert
        self._set_up_background()
        names = [scorer.name for scorer in self.workbench.scorers] if self.workbench else []
        self.writer = Writer(self.store, capacity=settings.queue, scorers=names)
        self._asleep = False
        _prepare(self.store, settings)
        self._connect(redact, tracer_provider)
        if self.monitor is not None:
            self.monitor.start()

    def _set_up_background(self) -> None:
        self.workbench = _workbench(self.settings)
        self.monitor = _monitor(self.settings, self.store, self.workbench, self._on_alert)

    def _connect(self, redact: Callable[[str], str] | None, provider: TracerProvider | None) -> None:
        tracer.connect(
            sink=self._take,
            service=self.settings.service,
            capture=self.settings.capture,
            redact=redact,
            text_limit=self.settings.text_limit,
            rate=self.settings.rate,
            hold=bool(self.workbench and self.workbench.scorers),
            max_hold=self.settings.max_hold,
            provider=provider,
        )

    def _take(self, exchange: Exchange) -> None:
        self.writer.put(exchange)
        if self._asleep:
            self._wake()

    def _wake(self) -> None:
        """Start the background in a forked child, at its first exchange: many children never have one."""
        self._asleep = False
        if self.monitor is not None:
            threading.Thread(target=self._start_anew, name="germane-wake", daemon=True).start()

    def _start_anew(self) -> None:
        """Make the background anew: judge and embedder came along with connections that are the parent's."""
        self._inherited = self.workbench, self.monitor  # kept, because collecting them would close those
        self._set_up_background()
        if self.monitor is not None:
            self.monitor.start()

    def after_fork(self) -> None:
        """Take note that this is a child now: threads did not come along."""
        self._asleep = True

    def stop(self, timeout: float, drain: float) -> bool:
        """Flush and end everything, in the order in which exchanges flow."""
        written = self.writer.flush(timeout)
        if self.monitor is not None and drain:
            self._drain(drain)
        finished = self.monitor.stop(timeout) if self.monitor is not None else True
        exported = tracer.flush(timeout)
        tracer.disconnect()
        written = self.writer.stop(timeout) and written
        _declare(self.store, self.settings.service)
        self.store.close()
        return written and finished and exported

    def _drain(self, seconds: float) -> None:
        """Wait until everything captured has been decided on and scored."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._is_drained():
            time.sleep(min(0.1, self.settings.tick))

    def _is_drained(self) -> bool:
        try:
            counts = self.store.counts()
        except StorageError as error:
            _logger.warning("not waiting for scores: %s", error)
            return True
        return not counts.unsampled + counts.pending + counts.running


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
        on_alert: Called with each :class:`~germane.monitor.Alert`, sync or async, in the background.
        tracer_provider: Spans go here, instead of to the global provider.
        **settings: Any of :class:`germane.settings.Settings`; they win over the environment and the files.

    Raises:
        SettingsError: a setting is wrong or unknown. A database or judge that cannot be reached only warns.
    """
    from germane.settings import load

    global _running
    loaded = load(**settings)
    stop()
    with _lock:
        _running = Runtime(loaded, redact=redact, on_alert=on_alert, tracer_provider=tracer_provider)


def running() -> Runtime | None:
    """Return what runs in this process; None before :func:`start` and after :func:`stop`."""
    return _running


def stop(timeout: float = 10.0, *, drain: float = 0.0) -> bool:
    """Write what was captured, end the background, export spans. Nothing happens where nothing runs.

    It also happens by itself when the interpreter ends.

    Args:
        timeout: Seconds that each part may take to end.
        drain: Seconds to wait first until everything captured is scored, for scripts. What is not scored by then
            stays in the database, for the next start.

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


def _workbench(settings: Settings) -> Workbench | None:
    if settings.role == "capture":
        return None
    from germane.scorers import build

    try:
        return build(settings)
    except ModelError as error:
        _logger.warning("nothing will be scored: %s", error)
        return None


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
        suppressed=tracer.suppressed,
        channels=[] if on_alert is None else [Callback(on_alert)],
        close=workbench.aclose,
    )


def _prepare(store: Store, settings: Settings) -> None:
    """Bring an SQLite file up to date, look at any other database; what is wrong is said once, and capture goes on."""
    try:
        if settings.database.startswith("sqlite"):
            store.migrate()
        else:
            store.check()
    except DatabaseNotMigrated as error:
        _logger.warning("%s; up to %d exchanges wait in memory until it is", error, settings.queue)
    except StorageError as error:
        _logger.warning("%s; up to %d exchanges wait in memory until it is back", error, settings.queue)
    else:
        _declare(store, settings.service)


def _declare(store: Store, service: str) -> None:
    """Let ``germane doctor`` know which handlers are decorated, so that it can name those that never fire."""
    try:
        store.declare(service, tracer.routes())
    except StorageError as error:
        _logger.info("decorated handlers were not noted: %s", error)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    if _running is not None:
        _running.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(stop)
