"""Hold-and-merge: a drawn span waits a little before its export, so that its score can still stand on it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from germane.tracer.guard import attempt

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span

Key = tuple[int, int]
"""Trace id and span id."""
Outcome = Literal["attached", "stashed", "gone"]

Orphaned = Callable[[Key, Mapping[str, Any]], object]


@dataclass(slots=True)
class HolderCounts:
    """How spans left a holder."""

    held: int = 0
    scored: int = 0
    expired: int = 0
    overflow: int = 0
    early: int = 0
    """Scores that came before their span."""
    late: int = 0
    """Scores that found their span gone."""


class ScoredSpan(ReadableSpan):
    """An ended span with more attributes. Everything else is the original's, the count of dropped attributes too."""

    def __init__(self, span: ReadableSpan, extra: Mapping[str, Any]) -> None:
        self.__dict__.update(span.__dict__)
        self._attributes = {**(span.attributes or {}), **extra}
        self._dropped_attributes = span.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        return self._dropped_attributes


class Holder(SpanProcessor):
    """A span processor in front of the one that exports.

    Only announced spans wait, for ``max_hold`` seconds at most and ``max_held`` at a time (then the oldest leaves);
    every other span passes at once. No span is exported twice.
    """

    def __init__(self, inner: SpanProcessor, *, max_hold: float = 15.0, max_held: int = 2048) -> None:
        self.inner = inner
        self.max_hold = max_hold
        self.max_held = max_held
        self.orphaned: Orphaned = lambda _key, _extra: None
        """Called with a score that was stashed for a span which then never came."""
        self.closed = False
        """Whether it was shut down: spans then pass at once."""
        self._start_empty()
        if hasattr(os, "register_at_fork"):
            fresh = weakref.WeakMethod(self._start_empty)
            os.register_at_fork(after_in_child=lambda: (method := fresh()) and method())

    def _start_empty(self) -> None:
        """Begin anew; in a forked child too, as what is held is the parent's to export."""
        # Reentrant: the collector may end a forgotten stream, and with it a span, while this thread is in here.
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._announced: OrderedDict[Key, None] = OrderedDict()
        self._held: OrderedDict[Key, tuple[float, ReadableSpan]] = OrderedDict()  # in the order of their deadlines
        self._stash: OrderedDict[Key, Mapping[str, Any]] = OrderedDict()
        self._counts = HolderCounts()
        self._thread: threading.Thread | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many spans were held, and how they left; see :class:`HolderCounts`."""
        return asdict(self._counts)

    def announce(self, key: Key) -> None:
        """Say that this span, about to end, is worth waiting for."""
        orphans = []
        with self._lock:
            self._announced[key] = None
            if len(self._announced) > self.max_held:
                evicted, _ = self._announced.popitem(last=False)
                orphans = [(evicted, self._stash.pop(evicted))] if evicted in self._stash else []
        for orphan in orphans:
            self.orphaned(*orphan)

    def withdraw(self, key: Key) -> None:
        """Say that this span has ended: when it did not come here, it never will."""
        if key not in self._announced:
            return
        with self._lock:
            self._announced.pop(key, None)
            orphan = self._stash.pop(key, None)
        if orphan is not None:
            self.orphaned(key, orphan)

    def attach(self, key: Key, extra: Mapping[str, Any]) -> Outcome:
        """Give a span its score: ``attached`` when it was waiting, ``stashed`` when it is yet to end, else ``gone``."""
        with self._lock:
            entry = self._held.pop(key, None)
            if entry is None:
                return self._keep_for_later(key, extra)
            self._counts.scored += 1
        self._pass_on([ScoredSpan(entry[1], extra) if extra else entry[1]])
        return "attached"

    def _keep_for_later(self, key: Key, extra: Mapping[str, Any]) -> Outcome:
        if key in self._announced and key not in self._stash:
            self._counts.early += 1
            self._stash[key] = extra
            return "stashed"
        self._counts.late += 1
        return "gone"

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.inner.on_start(span, parent_context)

    def _on_ending(self, span: Span) -> None:
        self.inner._on_ending(span)  # noqa: SLF001 - a processor's own hook, forwarded

    def on_end(self, span: ReadableSpan) -> None:
        if not self._announced:  # a look without the lock: the handler's own thread announced it, just before
            self.inner.on_end(span)
            return
        for leaving in self._admit(span):
            self.inner.on_end(leaving)

    def _admit(self, span: ReadableSpan) -> list[ReadableSpan]:
        """Hold a span, and return what leaves for it; a span that nobody announced leaves itself."""
        context = span.context
        key = (context.trace_id, context.span_id) if context else (0, 0)
        with self._lock:
            if self._announced.pop(key, self) is self:
                return [span]
            extra = self._stash.pop(key, None)
            if extra is not None:
                self._counts.scored += 1
                return [ScoredSpan(span, extra)]
            if self.closed or self.max_hold <= 0:
                return [span]
            self._counts.held += 1
            self._held[key] = (time.monotonic() + self.max_hold, span)
            self._run()
            return self._overflow()

    def _overflow(self) -> list[ReadableSpan]:
        leaving = []
        while len(self._held) > self.max_held:
            leaving.append(self._held.popitem(last=False)[1][1])
        self._counts.overflow += len(leaving)
        return leaving

    def _run(self) -> None:
        """Start the thread that watches deadlines, or wake it when it waits for a first span."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="germane-holder", daemon=True)
            self._thread.start()
        elif len(self._held) == 1:
            self._wake.notify()

    def _watch(self) -> None:
        while True:
            with self._lock:
                if self.closed:
                    return
                expired = self._expired()
                if not expired:
                    self._wake.wait(self._until_first_deadline())
            self._pass_on(expired)

    def _expired(self) -> list[ReadableSpan]:
        now, leaving = time.monotonic(), []
        while self._held and next(iter(self._held.values()))[0] <= now:
            leaving.append(self._held.popitem(last=False)[1][1])
        self._counts.expired += len(leaving)
        return leaving

    def _until_first_deadline(self) -> float | None:
        first = next(iter(self._held.values()), None)
        return None if first is None else max(first[0] - time.monotonic(), 0.0)

    def release(self) -> None:
        """Let all spans go as they are."""
        with self._lock:
            leaving = [span for _, span in self._held.values()]
            orphans = list(self._stash.items())
            self._held.clear()
            self._stash.clear()
            self._announced.clear()
            self._counts.expired += len(leaving)
        self._pass_on(leaving)
        for orphan in orphans:
            self.orphaned(*orphan)

    def _pass_on(self, spans: list[ReadableSpan]) -> None:
        """Export what waited; a processor that raises on one span keeps none of the others back."""
        for span in spans:
            attempt("the export of a span", self.inner.on_end, span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.release()
        return self.inner.force_flush(timeout_millis)

    def shutdown(self) -> None:
        with self._lock:
            self.closed = True
            self._wake.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)
        self.release()
        self.inner.shutdown()
