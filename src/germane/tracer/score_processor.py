"""A span processor that briefly delays the export of sampled spans, so that they are exported with their scores.

Processors register themselves. The tracer announces each sampled span to all processors before the span ends.
``attachment`` passes the scores to the processor that holds the span.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from germane.tracer.guard import guarded

try:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
except ValueError:  # an environment variable has an invalid limit: creating a provider will fail, too, and log this
    limits = {name: os.environ.pop(name) for name in list(os.environ) if name.endswith(("_LIMIT", "_SIZE"))}
    try:
        from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    finally:
        os.environ.update(limits)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span

SpanKey = tuple[int, int]
"""Trace id and span id."""
AttachOutcome = Literal["attached", "stashed", "gone"]
OrphanHandler = Callable[[SpanKey, Mapping[str, Any]], object]

_MIN_WAIT = 0.05
"""Minimum seconds between exports of expired spans. Waking up for each span would compete with callers for the GIL."""
_lock = threading.Lock()
_processors: tuple[ScoreSpanProcessor, ...] = ()
_orphan_handler: OrphanHandler = lambda _key, _attributes: None  # noqa: E731 - replaced by set_orphan_handler


def score_processors() -> tuple[ScoreSpanProcessor, ...]:
    """Return the score span processors that are registered in this process."""
    return _processors


def exchanges_with_waiting_spans() -> list[str]:
    """Return the ids of the exchanges whose spans are waiting in this process, oldest first."""
    return list(dict.fromkeys(id_ for processor in _processors for id_ in processor.exchange_ids()))


def forget_closed_processors() -> None:
    """Unregister the processors that have been shut down."""
    global _processors
    with _lock:
        _processors = tuple(processor for processor in _processors if not processor.closed)


def set_orphan_handler(handler: OrphanHandler) -> None:
    """Set the handler that processors call with score attributes whose span never arrives."""
    global _orphan_handler
    _orphan_handler = handler


class HeldSpan(NamedTuple):
    """A span that is waiting for its exchange's scores."""

    deadline: float
    """Monotonic time in seconds."""
    span: ReadableSpan
    exchange_id: str


class ScoredSpan(ReadableSpan):
    """An ended span with additional attributes. All other data, including the dropped counts, is unchanged."""

    def __init__(self, span: ReadableSpan, attributes: Mapping[str, Any]) -> None:
        self.__dict__.update(span.__dict__)
        self._attributes = {**(span.attributes or {}), **attributes}
        self._dropped_attributes = span.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped_attributes


class ScoreSpanProcessor(SpanProcessor):
    """A span processor that holds sampled spans until their scores arrive, then passes them to an exporting processor.

    ::

        provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(exporter)))

    Spans of unsampled exchanges, and all other spans, are passed on immediately. No span is exported twice.

    Args:
        processor: The exporting processor. It receives each span once, and sampled spans with their scores.
        max_delay: Maximum delay of a span in seconds. Keep it below the decision wait of a tail-sampling collector.
        max_spans: Maximum number of waiting spans. If it is exceeded, the oldest span is exported without scores.
    """

    def __init__(self, processor: SpanProcessor, *, max_delay: float = 15.0, max_spans: int = 2048) -> None:
        global _processors
        self.processor = processor
        self.max_delay = max_delay
        self.max_spans = max_spans
        # Looked up late, because the module that sets the handler may be imported after this processor is created.
        self.on_orphaned_score: OrphanHandler = lambda key, attributes: _orphan_handler(key, attributes)
        """Called with score attributes that were stashed for a span that never arrived."""
        self.closed = False
        """Whether the processor has been shut down. If so, spans are passed on immediately."""
        self._reset()
        if hasattr(os, "register_at_fork"):
            reset = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (method := reset()) and method())
        forget_closed_processors()
        with _lock:
            _processors = (*_processors, self)

    def _reset(self) -> None:
        """Clear the state, at creation and in a forked child. The parent exports the waiting spans."""
        # Reentrant: the garbage collector may end an abandoned stream and its span while this thread holds the lock.
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._announced: OrderedDict[SpanKey, str] = OrderedDict()  # exchange ids
        self._held: OrderedDict[SpanKey, HeldSpan] = OrderedDict()  # ordered by deadline
        self._stash: OrderedDict[SpanKey, Mapping[str, Any]] = OrderedDict()
        self.counts: Counter[str] = Counter(held=0, scored=0, expired=0, overflow=0, early=0, late=0)
        """Number of spans that were held, that were exported with scores (``scored``), or without them: after the
        maximum delay or at shutdown (``expired``), or because too many were waiting (``overflow``). Number of scores
        that arrived before the end of their span (``early``), or after its export (``late``)."""
        self._thread: threading.Thread | None = None

    def exchange_ids(self) -> list[str]:
        """Return the ids of the exchanges whose spans are waiting, oldest first. Thread-safe."""
        with self._lock:
            return [held.exchange_id for held in self._held.values()] + list(self._announced.values())

    def announce(self, key: SpanKey, exchange_id: str) -> None:
        """Announce a span that is about to end and should wait for its exchange's scores."""
        self._announced[key] = exchange_id  # atomic, so the lock is not needed
        if len(self._announced) <= self.max_spans:
            return
        with self._lock:
            if len(self._announced) <= self.max_spans:  # another thread was faster
                return
            evicted, _ = self._announced.popitem(last=False)
            orphan = self._stash.pop(evicted, None)
        if orphan is not None:
            self.on_orphaned_score(evicted, orphan)

    def withdraw(self, key: SpanKey) -> None:
        """Mark a span as ended. If this processor has not received it by now, stop waiting for it."""
        if key not in self._announced:
            return
        with self._lock:
            self._announced.pop(key, None)
            orphan = self._stash.pop(key, None)
        if orphan is not None:
            self.on_orphaned_score(key, orphan)

    def cancel(self, key: SpanKey) -> None:
        """Stop waiting for a span's scores, whether it has ended or not. If it is waiting, it is exported now."""
        with self._lock:
            self._announced.pop(key, None)
            self._stash.pop(key, None)
            entry = self._held.pop(key, None)
            self.counts["expired"] += entry is not None
        if entry is not None:
            self._export([entry.span])

    def attach(self, key: SpanKey, attributes: Mapping[str, Any]) -> AttachOutcome:
        """Attach score attributes to a span. ``stashed`` means that the span has not ended yet."""
        with self._lock:
            entry = self._held.pop(key, None)
            if entry is not None:
                self.counts["scored"] += 1
            elif key in self._announced and key not in self._stash:
                self.counts["early"] += 1
                self._stash[key] = attributes
                return "stashed"
            else:
                self.counts["late"] += 1
                return "gone"
        self._export([ScoredSpan(entry.span, attributes) if attributes else entry.span])
        return "attached"

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.processor.on_start(span, parent_context)

    def _on_ending(self, span: Span) -> None:
        self.processor._on_ending(span)  # noqa: SLF001 - forwards a hook of processors

    def on_end(self, span: ReadableSpan) -> None:
        if not self._announced:  # read without the lock: the same thread announced the span just before
            self.processor.on_end(span)
            return
        context = span.context
        key = (context.trace_id, context.span_id) if context else (0, 0)
        with self._lock:
            exchange_id = self._announced.pop(key, None)
            attributes = None if exchange_id is None else self._stash.pop(key, None)
            ready: list[ReadableSpan] = []
            if attributes is not None:  # the scores arrived before the span ended
                self.counts["scored"] += 1
                ready = [ScoredSpan(span, attributes)]
            elif exchange_id is None or self.closed or self.max_delay <= 0:
                ready = [span]
            else:
                self._hold(key, HeldSpan(time.monotonic() + self.max_delay, span, exchange_id))
                while len(self._held) > self.max_spans:
                    ready.append(self._held.popitem(last=False)[1].span)
                self.counts["overflow"] += len(ready)
        for exported in ready:
            self.processor.on_end(exported)

    def _hold(self, key: tuple[int, int], held: HeldSpan) -> None:
        self.counts["held"] += 1
        self._held[key] = held
        if self._thread is None:
            self._thread = threading.Thread(target=self._export_expired, name="germane-score-spans", daemon=True)
            self._thread.start()
        elif len(self._held) == 1:
            self._wake.notify()

    def _export_expired(self) -> None:
        """Export spans whose delay has expired until the processor is shut down. Runs in a separate thread."""
        while True:
            with self._lock:
                if self.closed:
                    return
                now, expired = time.monotonic(), []
                while self._held and next(iter(self._held.values())).deadline <= now:
                    expired.append(self._held.popitem(last=False)[1].span)
                self.counts["expired"] += len(expired)
                if not expired:
                    first = next(iter(self._held.values()), None)
                    self._wake.wait(None if first is None else max(first.deadline - time.monotonic(), _MIN_WAIT))
            self._export(expired)

    def release(self) -> None:
        """Export all waiting spans without scores."""
        with self._lock:
            held = [waiting.span for waiting in self._held.values()]
            orphans = list(self._stash.items())
            self._held.clear()
            self._stash.clear()
            self._announced.clear()
            self.counts["expired"] += len(held)
        self._export(held)
        for orphan in orphans:
            self.on_orphaned_score(*orphan)

    def _export(self, spans: list[ReadableSpan]) -> None:
        """Pass spans to the exporting processor. If it raises for one span, the others are still passed on."""
        for span in spans:
            guarded("export of a span", self.processor.on_end, span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.release()
        return self.processor.force_flush(timeout_millis)

    def shutdown(self) -> None:
        with self._lock:
            self.closed = True
            self._wake.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)
        self.release()
        self.processor.shutdown()
