"""The span processor through which germane watches the spans of other instrumentations.

On the application's threads, it only queues each span at its start and end, without a lock and without reading its
attributes. The background thread assigns the spans to their traces, in the same order.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_current
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from germane.recognizers import registered_recognizers
from germane.tracer import conventions
from germane.tracer.guard import guarded
from germane.tracer.trace_assembler import (
    PendingHandler,
    TraceAssembler,
    TraceLimits,
    Work,
    follows_convention,
    scope_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context

NOT_WATCHED: Final = "watching failed: {} (the application is not affected)"
_BATCH: Final = 250
"""Maximum number of starts and ends that are assigned at once, because an application's thread may wait meanwhile."""


class TraceCollector(SpanProcessor):
    """Collects spans by trace. A background thread takes the complete traces.

    ``announce`` is called on the application's thread just before the first span of a relevant trace ends, and returns
    the id of the trace's exchange if the span will wait for scores. ``ensure_reader`` is called when a span has ended
    while the background thread is idle, to start it if necessary, and returns whether it is running.
    """

    def __init__(
        self,
        limits: TraceLimits,
        announce: Callable[[Span], str | None] = lambda _: None,
        ensure_reader: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limits = limits
        self._announce = announce
        self._ensure_reader = ensure_reader
        self.closed = False
        self._reset()
        if hasattr(os, "register_at_fork"):
            reset = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (method := reset()) and method())

    def _reset(self) -> None:
        """Clear the state, at creation and in a forked child. The parent reads the traces that it started."""
        # Reentrant: the garbage collector may end an abandoned span while this thread holds the lock.
        self._lock = threading.RLock()
        """Guards the assembler, but not the queue: adding to a deque or a dict is atomic."""
        self._changed = threading.Condition(self._lock)
        self._queue: deque[Any] = deque()
        """What has happened since the last assignment: spans that started (:class:`Span`) and ended
        (:class:`ReadableSpan`), handlers that are about to end, and log records."""
        self._announced: dict[int, str] = {}
        self._relevant: dict[int, None] = {}
        """Ids of traces with a span of a known convention. Their first spans may wait for scores."""
        self.assembler = TraceAssembler(self.limits, self._announced)
        self._taken = 0
        """Number of traces and exchanges of handlers that are being read."""
        self._is_idle = True
        """Whether the background thread waits for the next span that ends."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        context = get_current() if parent_context is None else parent_context
        if not self.closed and not context.get(_SUPPRESS_INSTRUMENTATION_KEY):
            guarded("start of a span", self._queue_start, span, message=NOT_WATCHED)

    def _queue_start(self, span: Span) -> None:
        if follows_convention(span):
            self._relevant[span.context.trace_id] = None
        self._queue.append(span)
        if len(self._queue) >= self.limits.queued:
            self._assign_batch()

    def _on_ending(self, span: Span) -> None:
        """Announce the first span of a relevant trace, before any score span processor receives it."""
        parent = span.parent
        if parent is None or parent.is_remote or span.context.span_id in self.assembler.buffers:
            guarded("end of a span", self._announce_root, span, message=NOT_WATCHED)

    def _announce_root(self, span: Span) -> None:
        if self.closed or scope_of(span) == conventions.SCOPE:
            return
        is_relevant = span.context.trace_id in self._relevant or follows_convention(span)
        if (is_relevant or registered_recognizers()) and (exchange_id := self._announce(span)) is not None:
            self._announced[span.context.span_id] = exchange_id

    def on_end(self, span: ReadableSpan) -> None:
        if not self.closed:
            guarded("end of a span", self._queue_end, span, message=NOT_WATCHED)

    def _queue_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context is not None and context.trace_id not in self._relevant and follows_convention(span):
            self._relevant[context.trace_id] = None
        self._queue.append(span)
        if self._is_idle:
            with self._lock:
                self._is_idle = False  # before the thread runs, because it sets this again when it waits
                self._changed.notify_all()
            if not self._ensure_reader():
                self._is_idle = True

    def add_log(self, record: Any) -> None:
        """Add a log record to the trace that it belongs to, if that is being collected."""
        if not self.closed:
            self._queue.append(record)
            if len(self._queue) >= self.limits.queued:
                self._assign_batch()

    def add_handler(self, handler: PendingHandler, trace_id: int) -> bool:
        """Take over the exchange of an observed handler, just before its span ends, to complete it from other spans.

        Return whether there may be spans to read. If not, the caller stores the exchange.
        """
        if self.closed or not (trace_id in self._relevant or registered_recognizers()):
            return False
        self._queue.append(handler)
        return True

    def assign(self) -> None:
        """Assign what is queued to traces, in batches, because an application's thread may wait for the lock."""
        while self._queue:
            self._assign_batch()

    def _assign_batch(self) -> None:
        with self._lock:
            for _ in range(min(_BATCH, len(self._queue))):
                guarded("a watched span", self._assign_next, message=NOT_WATCHED)

    def _assign_next(self) -> None:
        event = self._queue.popleft()
        if isinstance(event, Span):
            self.assembler.start(event)
        elif isinstance(event, ReadableSpan):
            self.assembler.end(event)
        elif isinstance(event, PendingHandler):
            self.assembler.add_handler(event)
        else:
            self.assembler.add_log(event)

    def take(self, *, is_last: bool = False) -> list[Work]:
        """Return the traces that no longer wait for spans, or all. Call :meth:`finish` with their number once read."""
        known = list(self._relevant)  # a trace that starts after this may be in the queue, and not yet assigned
        self.assign()
        with self._lock:
            self.assembler.complete_overdue(is_last=is_last)
            work = self.assembler.take()
            self._taken += len(work)
        if len(known) > 2 * self.limits.traces:
            for trace_id in known:
                if trace_id not in self.assembler.by_trace:
                    self._relevant.pop(trace_id, None)
        return work

    def finish(self, count: int) -> None:
        """Report that ``count`` traces have been read."""
        with self._lock:
            self._taken -= count
            self._changed.notify_all()

    def wait_until_read(self, timeout: float) -> bool:
        """Wait until all complete traces have been read. Return False if that takes longer than ``timeout`` seconds."""
        with self._lock:
            return self._changed.wait_for(lambda: not (self.assembler.ready or self._taken), timeout)

    def wait(self, timeout: float) -> None:
        """Wait until a trace can be taken, or for ``timeout`` seconds."""
        with self._lock:
            self._is_idle = True  # before looking at the queue, so that a span that ends meanwhile is not missed
            if not self._queue and not self.assembler.ready and not self.closed:
                self._changed.wait(timeout)
            self._is_idle = False

    def close(self) -> None:
        """Stop collecting, and discard the open traces. Complete traces can still be taken."""
        self.closed = True
        self.assign()
        with self._lock:
            self.assembler.forget_open()
            self._relevant.clear()
            self._changed.notify_all()

    def shutdown(self) -> None:
        """Do nothing. The application may have another provider, whose spans must still be collected."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the signature is the SDK's
        return True


class LogCollector(LogRecordProcessor):
    """Passes log records with messages of model calls to the collector of spans."""

    def __init__(self, collector: TraceCollector) -> None:
        self._collector = collector

    def on_emit(self, log_record: Any) -> None:
        guarded("log record", self._add, getattr(log_record, "log_record", log_record), message=NOT_WATCHED)

    emit = on_emit
    """The method's name in older versions of the SDK."""

    def _add(self, record: Any) -> None:
        name = getattr(record, "event_name", None) or (record.attributes or {}).get("event.name")
        if isinstance(name, str) and name.startswith("gen_ai.") and record.trace_id:
            self._collector.add_log(record)

    def shutdown(self) -> None:
        """Do nothing: the collector of spans is shut down with its own provider."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the signature is the SDK's
        return True
