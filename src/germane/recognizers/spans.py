"""Spans and log records as plain data, and the tree of the spans of one trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """An event of a span."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanData:
    """An ended span, independent of the SDK or protocol that it came from."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent_id: str | None = None
    """None for the first span of a trace in a process, even if another process called it."""
    name: str = ""
    scope: str = ""
    """Name of the instrumentation scope."""
    kind: str = "INTERNAL"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    start: int = 0
    """Nanoseconds since 1970."""
    end: int = 0
    """Nanoseconds since 1970."""
    status: str = "UNSET"
    """``UNSET``, ``OK`` or ``ERROR``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogData:
    """A log record that belongs to a trace."""

    trace_id: str
    span_id: str | None = None
    """None if only the trace is known."""
    event_name: str = ""
    body: Any = None
    """Text, which may be JSON, or decoded JSON."""
    attributes: Mapping[str, Any] = field(default_factory=dict)


class SpanTree:
    """The spans of one trace, in the order of their start times.

    If spans are missing, the tree is still connected: the children of a missing span are attached to the root, or
    become roots if there is no other root. Repeated spans and cycles, which a faulty exporter may send, are tolerated.
    """

    def __init__(self, spans: Iterable[SpanData]) -> None:
        unique: dict[str, SpanData] = {}
        for span in spans:
            unique.setdefault(span.span_id, span)
        self.spans = sorted(unique.values(), key=lambda span: span.start)
        self.roots = [span for span in self.spans if span.parent_id in {None, "", span.span_id}]
        self.orphans = [
            span for span in self.spans if span.parent_id not in unique and span.parent_id not in {None, ""}
        ]
        """The spans whose parent is missing."""
        self.is_rootless = not self.roots
        """Whether the trace's first span is missing."""
        self._children: dict[str, list[SpanData]] = {}
        self._parents: dict[str, SpanData] = {}
        for span in self.spans:
            parent = unique.get(span.parent_id or "")
            if parent is not None and parent is not span:
                self._children.setdefault(parent.span_id, []).append(span)
                self._parents[span.span_id] = parent
        if len(self.roots) == 1:
            root = self.roots[0]
            children = self._children.setdefault(root.span_id, [])
            children += self.orphans
            children.sort(key=lambda span: span.start)
            self._parents.update((orphan.span_id, root) for orphan in self.orphans)
        else:
            self.roots += self.orphans
        self._number_spans()
        self._breadth_first = tuple(self._walk(self.roots))

    def _number_spans(self) -> None:
        """Number the spans depth first, so that :meth:`contains` is a comparison. Spans in a cycle become roots."""
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self.roots.sort(key=lambda span: span.start)
        known_roots = {span.span_id for span in self.roots}
        for root in (*self.roots, *self.spans):
            if root.span_id in self._first:
                continue
            if root.span_id not in known_roots:
                self.roots.append(root)
                self._parents.pop(root.span_id, None)
            stack: list[tuple[SpanData, bool]] = [(root, False)]
            while stack:
                span, is_done = stack.pop()
                if is_done:
                    self._last[span.span_id] = len(self._first)
                elif span.span_id not in self._first:
                    self._first[span.span_id] = len(self._first)
                    stack.append((span, True))
                    stack += [(child, False) for child in self._children.get(span.span_id, ())]

    def walk(self, top: SpanData | None = None) -> Iterator[SpanData]:
        """Return the spans breadth first, from the roots or from one span."""
        return iter(self._breadth_first) if top is None else self._walk([top])

    def _walk(self, tops: list[SpanData]) -> Iterator[SpanData]:
        queue = deque(tops)
        seen: set[str] = set()
        while queue:
            span = queue.popleft()
            if span.span_id not in seen:
                seen.add(span.span_id)
                yield span
                queue.extend(self._children.get(span.span_id, ()))

    def children(self, span: SpanData) -> list[SpanData]:
        """Return the children of a span, in the order of their start times."""
        return list(self._children.get(span.span_id, ()))

    def walk_depth_first(self) -> Iterator[tuple[SpanData, int]]:
        """Yield each span with the number of its ancestors, parents before their children."""
        stack = [(root, 0) for root in reversed(self.roots)]
        seen: set[str] = set()
        while stack:
            span, depth = stack.pop()
            if span.span_id not in seen:
                seen.add(span.span_id)
                yield span, depth
                stack += [(child, depth + 1) for child in reversed(self._children.get(span.span_id, ()))]

    def ancestors(self, span: SpanData) -> Iterator[SpanData]:
        """Yield a span's ancestors, from its parent to the root."""
        seen = {span.span_id}
        parent = self._parents.get(span.span_id)
        while parent is not None and parent.span_id not in seen:
            seen.add(parent.span_id)
            yield parent
            parent = self._parents.get(parent.span_id)

    def contains(self, outer: SpanData, inner: SpanData) -> bool:
        """Return whether ``inner`` is ``outer`` or one of its descendants."""
        return self._first[outer.span_id] <= self._first[inner.span_id] < self._last[outer.span_id]
