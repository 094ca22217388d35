"""Assignment of spans to traces, until each trace is complete, within bounds of memory and time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from germane.recognizers import MARKERS, is_watched_scope, registered_recognizers
from germane.tracer import conventions

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from germane.exchange import Exchange
    from germane.tracer.privacy import Privacy

_MARKERS: Final = frozenset(MARKERS)
_SCALARS: Final = frozenset({str, bool, int, float})
_OTHER_SIZE: Final = 8
_MAX_SCOPES: Final = 1000
"""Maximum number of scopes that are remembered. Applications have a few dozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLimits:
    """Limits on the memory and the time that open traces take."""

    traces: int = 10_000
    """Maximum number of open traces. Further ones are not watched."""
    open_spans: int = 100_000
    """Maximum number of open spans. The oldest ones are forgotten, because they may never end."""
    spans: int = 2_000
    """Maximum number of spans per trace."""
    characters: int = 64_000_000
    """Maximum number of characters in all collected texts."""
    queued: int = 16_000
    """Maximum number of starts and ends of spans that the background thread has not assigned to a trace yet. Beyond it,
    the application's threads assign them."""
    grace: float = 5.0
    """Seconds for which a trace whose first span has ended waits for spans that are still open. Spans that follow a
    known convention are awaited until the trace has reached its maximum age, because answers may be streamed."""
    age: float = 600.0
    """Seconds after which the children of a first span that has not ended become traces of their own."""


@dataclass(slots=True, eq=False)
class TraceBuffer:
    """The spans of one trace in this process that have ended so far."""

    trace_id: int
    root_id: int
    """Id of the trace's first span in this process."""
    started: float
    """Monotonic time in seconds."""
    spans: list[ReadableSpan] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    root: ReadableSpan | None = None
    """The first span; None until it ends."""
    ended: float = 0.0
    """Monotonic time at which the first span ended."""
    size: int = 0
    """Number of characters in the texts of all spans and log records."""
    open: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """The spans that have not ended, by id: the parent's id, and whether the span follows a known convention."""
    is_relevant: bool = False
    """Whether any span follows a known convention, or may be read by a registered recognizer."""
    is_observed: bool = False
    """Whether a decorated handler captures the trace."""
    is_truncated: bool = False
    """Whether a limit was exceeded. The spans are dropped then, because a part of a trace may be misread."""
    is_cut: bool = False
    """Whether a span that follows a known convention had not ended when the buffer was passed on."""
    is_complete: bool = False
    """Whether the buffer was passed on or dropped."""
    exchange_id: str | None = None
    """Id of the exchange that was announced to the score span processors; None if the first span does not wait."""

    def has_open_convention(self) -> bool:
        """Return whether a span that follows a known convention has not ended."""
        return any(follows for _, follows in self.open.values())


@dataclass(slots=True, eq=False)
class PendingHandler:
    """An exchange of an observed handler that lacks contexts or the model, and the spans that may contain them."""

    exchange: Exchange
    privacy: Privacy
    span_id: int
    spans: tuple[ReadableSpan, ...] = ()


Work = TraceBuffer | PendingHandler


class TraceAssembler:
    """Collects spans by trace. Not thread-safe.

    ``announced`` has the exchange ids of first spans that wait for scores, by span id. They are removed once read.
    """

    def __init__(self, limits: TraceLimits, announced: dict[int, str]) -> None:
        self.limits = limits
        self.ready: deque[Work] = deque()
        """Complete traces, and exchanges of observed handlers, that can be read."""
        self.buffers: dict[int, TraceBuffer] = {}
        """All buffers that are not complete, by the id of their first span, the oldest first."""
        self.by_trace: dict[int, TraceBuffer] = {}
        """The latest buffer of each trace."""
        self.not_watched = 0
        """Number of traces that were not collected, because too many were open."""
        self.late = 0
        """Number of spans that ended after the exchange of their trace was read."""
        self._announced = announced
        self._open: dict[int, TraceBuffer] = {}
        """The buffers of open spans, by span id."""
        self._waiting: dict[int, TraceBuffer] = {}
        """The buffers whose first span has ended while others are open, the first that ended first."""
        self._observed: dict[int, None] = {}
        """The latest traces that a decorated handler captured. Their late spans are not watched."""
        self._rejected: dict[int, None] = {}
        """The latest traces that were not collected. Their later spans are not traces of their own."""
        self.size = 0
        """Number of characters in all collected texts."""

    def start(self, span: Span) -> None:
        """Add a span that has started to its trace, or begin a trace with it."""
        context, parent = span.context, span.parent
        follows = follows_convention(span)
        buffer = None
        is_local = parent is not None and not parent.is_remote
        if is_local and parent is not None:
            buffer = self._open.get(parent.span_id) or self.by_trace.get(context.trace_id)
        if buffer is None or buffer.is_complete:
            # Some instrumentations leave an ended span in the context, so that later requests become its children.
            # A session or a consumer may also have a span that stays open after its buffer was divided.
            if buffer is not None:
                buffer.is_relevant = buffer.is_relevant or follows
            buffer = self._new_buffer(context.trace_id, context.span_id, is_local=is_local)
        if buffer is None:
            return
        while len(self._open) >= self.limits.open_spans:
            oldest = next(iter(self._open))
            forgotten = self._open.pop(oldest)
            forgotten.is_cut = forgotten.open.pop(oldest, (0, False))[1] or forgotten.is_cut
        buffer.is_relevant = buffer.is_relevant or follows
        buffer.open[context.span_id] = (0 if parent is None else parent.span_id), follows
        self._open[context.span_id] = buffer

    def _new_buffer(self, trace_id: int, root_id: int, *, is_local: bool) -> TraceBuffer | None:
        """Begin a trace, unless it must not be watched. ``is_local`` says whether its parent is in this process."""
        if trace_id in self._observed or (is_local and trace_id in self._rejected):
            return None
        if len(self.buffers) >= self.limits.traces:
            self.not_watched += 1
            _remember(self._rejected, trace_id, self.limits.traces)
            return None
        buffer = TraceBuffer(trace_id, root_id, time.monotonic())
        self.buffers[root_id] = self.by_trace[trace_id] = buffer
        return buffer

    def end(self, span: ReadableSpan) -> None:
        """Add a span that has ended to its trace, which is complete if it was the last one."""
        if span.context is None:
            return
        span_id = span.context.span_id
        exchange_id = self._announced.pop(span_id, None) if self._announced else None
        buffer = self._open.pop(span_id, None)
        if exchange_id is not None and (buffer is None or buffer.is_complete or buffer.root_id != span_id):
            # Nothing will be read from the trace of this span, so that it must not wait.
            self.ready.append(TraceBuffer(span.context.trace_id, span_id, 0.0, exchange_id=exchange_id))
        if buffer is None:
            return
        buffer.open.pop(span_id, None)
        if buffer.is_complete:
            self._end_late(buffer, span, span_id)
            return
        if not buffer.is_relevant or scope_of(span) == conventions.SCOPE:
            self._classify(buffer, span)
        if not buffer.is_truncated:
            size = _span_size(span)
            buffer.spans.append(span)
            buffer.size += size
            self.size += size
            if len(buffer.spans) > self.limits.spans or self.size > self.limits.characters:
                self._truncate(buffer)
        if span_id == buffer.root_id:
            buffer.root, buffer.ended, buffer.exchange_id = span, time.monotonic(), exchange_id
            self._waiting[span_id] = buffer
        if buffer.root is not None and not buffer.open:
            self._complete(buffer)

    def _end_late(self, buffer: TraceBuffer, span: ReadableSpan, span_id: int) -> None:
        """Pass on a span that ended after its buffer, unless the buffer was read or counted."""
        if buffer.is_observed or buffer.trace_id in self._observed:
            return
        if buffer.is_relevant:
            self.late += 1
            return
        now, size = time.monotonic(), _span_size(span)
        late = TraceBuffer(buffer.trace_id, span_id, now, spans=[span], root=span, ended=now, size=size)
        self.size += size
        self._classify(late, span)
        self._complete(late)

    def _classify(self, buffer: TraceBuffer, span: ReadableSpan) -> None:
        if scope_of(span) == conventions.SCOPE:
            buffer.is_observed = buffer.is_observed or conventions.EXCHANGE_ID in attributes_of(span)
        elif not buffer.is_relevant:
            # A registered recognizer may read any span.
            buffer.is_relevant = follows_convention(span) or bool(registered_recognizers())

    def _truncate(self, buffer: TraceBuffer) -> None:
        """Drop the spans of a buffer that exceeds a limit."""
        self.size -= buffer.size
        buffer.size, buffer.spans, buffer.logs, buffer.is_truncated = 0, [], [], True

    def _complete(self, buffer: TraceBuffer) -> None:
        """Pass a buffer on, or drop it if there is nothing to read."""
        buffer.is_cut = buffer.is_cut or buffer.has_open_convention()
        self._close_buffer(buffer)
        if buffer.is_observed:
            _remember(self._observed, buffer.trace_id, self.limits.traces)
        if buffer.is_relevant and not buffer.is_observed:
            self.ready.append(buffer)
            return
        self.size -= buffer.size
        if buffer.exchange_id is not None:  # its first span must not wait any longer
            self.ready.append(
                TraceBuffer(buffer.trace_id, buffer.root_id, buffer.started, exchange_id=buffer.exchange_id)
            )

    def _close_buffer(self, buffer: TraceBuffer) -> TraceBuffer:
        """Stop collecting spans for a buffer. Return the empty one that its open spans get instead."""
        buffer.is_complete = True
        self.buffers.pop(buffer.root_id, None)
        self._waiting.pop(buffer.root_id, None)
        if self.by_trace.get(buffer.trace_id) is buffer:
            del self.by_trace[buffer.trace_id]
        closed = TraceBuffer(buffer.trace_id, buffer.root_id, buffer.started, is_complete=True)
        closed.is_relevant, closed.is_observed = buffer.is_relevant, buffer.is_observed
        for span_id in buffer.open:
            self._open[span_id] = closed  # otherwise, the spans that were read would stay in memory
        return closed

    def complete_overdue(self, *, is_last: bool = False) -> None:
        """Complete the traces that do not wait any longer for open spans, or all because the process is stopping."""
        now, age = time.monotonic(), self.limits.age
        for buffer in list(self._waiting.values()):
            if now - buffer.ended < self.limits.grace and not is_last:
                break
            if is_last or now - buffer.started >= age or not buffer.has_open_convention():
                self._complete(buffer)
        for buffer in list(takewhile(lambda each: is_last or now - each.started >= age, self.buffers.values())):
            if buffer.root is not None or buffer.is_observed or buffer.is_truncated:
                self._complete(buffer)
            else:
                self._divide(buffer)
        for buffer in list(self.buffers.values()) if is_last else ():
            self._complete(buffer)

    def _divide(self, buffer: TraceBuffer) -> None:
        """Make a trace of each child of a first span that stays open, such as that of a session or a consumer."""
        now, root_id = time.monotonic(), buffer.root_id
        parents = {span_id: parent_id for span_id, (parent_id, _) in buffer.open.items()}
        ended = {span.context.span_id: span for span in buffer.spans if span.context is not None}
        parents |= {span_id: 0 if span.parent is None else span.parent.span_id for span_id, span in ended.items()}
        closed = self._close_buffer(buffer)
        self.size -= buffer.size
        # Distribute the ended spans, the open spans and the log records to the children above them.
        tops = _find_tops(parents, root_id)
        parts = {top: TraceBuffer(buffer.trace_id, top, now) for top in dict.fromkeys(tops.values())}
        for span_id, top in tops.items():
            part = parts[top]
            if span_id in ended:
                self._classify(part, ended[span_id])
                part.spans.append(ended[span_id])
                part.size += _span_size(ended[span_id])
            elif span_id != root_id:
                part.open[span_id] = buffer.open[span_id]
                part.is_relevant = part.is_relevant or part.open[span_id][1]
                self._open[span_id] = part
        for record in buffer.logs:
            if (owner := parts.get(tops.get(record.span_id or 0, 0))) is not None:
                owner.logs.append(record)
                owner.size += text_size((record.body, record.attributes or {}))
        parts.pop(root_id, None)  # the first span's own
        closed.is_relevant = any(part.is_relevant for part in parts.values())
        for top, part in parts.items():
            part.root, part.ended = ended.get(top), now
            self.size += part.size
            self.buffers[top] = part
            if part.root is not None:
                self._waiting[top] = part
                if not part.open:
                    self._complete(part)

    def add_log(self, record: Any) -> None:
        """Add a log record to the trace that it belongs to, if that is being collected."""
        buffer = self._open.get(record.span_id or 0) or self.by_trace.get(record.trace_id)
        if buffer is not None and not buffer.is_truncated and not buffer.is_complete:
            buffer.logs.append(record)
            size = text_size((record.body, record.attributes or {}))
            buffer.size += size
            self.size += size
            if len(buffer.logs) > self.limits.spans or self.size > self.limits.characters:
                self._truncate(buffer)

    def add_handler(self, handler: PendingHandler) -> None:
        """Pass on the exchange of an observed handler, with the spans of its trace that have ended."""
        buffer = self._open.get(handler.span_id)
        if buffer is not None:
            handler.spans = tuple(buffer.spans)
        self.ready.append(handler)

    def forget_open(self) -> None:
        """Discard all incomplete traces."""
        for traces in (self._open, self.buffers, self.by_trace, self._waiting, self._observed, self._rejected):
            traces.clear()
        self._announced.clear()
        self.size = sum(work.size for work in self.ready if isinstance(work, TraceBuffer))

    def take(self) -> list[Work]:
        """Return the complete traces and exchanges, and remove them."""
        work = list(self.ready)
        self.ready.clear()
        self.size -= sum(each.size for each in work if isinstance(each, TraceBuffer))
        return work


def _find_tops(parents: Mapping[int, int], root_id: int) -> dict[int, int]:
    """Return the highest ancestor below the root for each span, by the ids of their parents."""
    tops: dict[int, int] = {}
    for span_id in parents:
        path, top = {span_id: None}, span_id
        while top not in tops and (parent := parents[top]) in parents and parent != root_id and parent not in path:
            top = parent
            path[top] = None
        tops |= dict.fromkeys(path, tops.get(top, top))
    return tops


def attributes_of(span: ReadableSpan | Span) -> Mapping[str, Any]:
    """Return a span's attributes. The SDK's own dict is used, because reading its wrapper takes ten times as long."""
    attributes = getattr(getattr(span, "_attributes", None), "_dict", None)
    return attributes if isinstance(attributes, dict) else span.attributes or {}


def scope_of(span: ReadableSpan | Span) -> str:
    """Return the name of a span's instrumentation scope."""
    scope = span.instrumentation_scope
    return "" if scope is None else scope.name


_known_scopes: dict[str, bool] = {}
"""Whether a convention owns a scope, by the scope's name."""


def follows_convention(span: ReadableSpan | Span) -> bool:
    """Return whether a span follows a known convention, by its scope or its attributes so far."""
    scope = scope_of(span)
    known = _known_scopes.get(scope)
    if known is None:
        known = is_watched_scope(scope)
        if len(_known_scopes) < _MAX_SCOPES:
            _known_scopes[scope] = known
    return known or (scope != conventions.SCOPE and not _MARKERS.isdisjoint(attributes_of(span)))


def _remember(traces: dict[int, None], trace_id: int, limit: int) -> None:
    traces[trace_id] = None
    if len(traces) > limit:
        del traces[next(iter(traces))]


def _span_size(span: ReadableSpan) -> int:
    """Return the number of characters in a span's texts."""
    attributes = attributes_of(span)
    size = len(span.name) + sum([len(value) for value in attributes.values() if type(value) is str])
    if not _SCALARS.issuperset(map(type, attributes.values())):
        size += sum(text_size(value) for value in attributes.values() if type(value) not in _SCALARS)
    if getattr(span, "_events", True):  # the property copies the list
        size += sum(len(event.name) + text_size(event.attributes or {}) for event in span.events)
    return size


def text_size(value: Any) -> int:
    """Return the number of characters in a value's texts, at any depth. Other values count like 8 characters."""
    if type(value) is str:
        return len(value)
    size, pending, seen = 0, [value], set[int]()
    while pending:
        value = pending.pop()
        if isinstance(value, str | bytes):
            size += len(value)
        elif isinstance(value, Mapping | list | tuple):
            if id(value) not in seen:  # a log record's body may contain itself
                seen.add(id(value))
                pending += value.values() if isinstance(value, Mapping) else value
        else:
            size += _OTHER_SIZE
    return size
