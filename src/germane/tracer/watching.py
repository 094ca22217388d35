"""Recognition of exchanges in the spans of other instrumentations, in a background thread."""

from __future__ import annotations

import dataclasses
import math
import os
import threading
import time
from collections import deque
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from germane.arguments import explain_unknown_arguments
from germane.exchange import Exchange, exchange_id_for, sampling_key_for
from germane.tracer.connection import Connection, current_connection, set_connection
from germane.tracer.contexts import MAX_CONTEXTS
from germane.tracer.guard import guarded, log_once
from germane.tracer.privacy import Privacy
from germane.tracer.provider import sdk_provider
from germane.tracer.score_processor import SpanKey, score_processors
from germane.tracer.telemetry import count_late, count_watched
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan, Span

    from germane.recognizers import LogData, Recognized, Recognizer, SpanData, Unreadable
    from germane.trace_outline import UnreadableTrace
    from germane.tracer.trace_assembler import PendingHandler, TraceBuffer, TraceLimits
    from germane.tracer.trace_collector import TraceCollector

MAX_ROUTES: Final = 100
"""Maximum number of routes of watched traces in one process. Names of spans may contain ids."""
OTHER_ROUTE: Final = "other"
NOT_READ: Final = "cannot read {}"
NOT_WATCHED: Final = "watching failed: {} (it continues)"
_POLL_INTERVAL: Final = 1.0
"""Maximum time in seconds between checks for overdue traces, and for a provider that the application sets late."""
_EARLY_POLL_INTERVAL: Final = 0.05
"""The same until a provider is found, in the first seconds."""
_BATCH_INTERVAL: Final = 0.05
"""Seconds for which a complete trace waits for others."""
_EARLY_SECONDS: Final = 10.0
_WITHDRAWAL_DELAY: Final = 1.0
"""Seconds after which every score span processor of a provider has received a span that has ended."""

_watcher: Watcher | None = None
_is_requested = False
"""Whether :func:`watch` was called since the tracer was last disconnected."""


@explain_unknown_arguments
def watch() -> None:
    """Recognize exchanges in the spans that other instrumentations record, and score them.

    Call it before or after :func:`germane.start`. It has an effect until :func:`germane.stop`.

    The spans must be recorded through the application's OpenTelemetry provider: the one given to
    :func:`germane.start`, or else the global one, which may be set later. Question, answer and contexts are read in the
    background, and become an exchange like that of a decorated handler. In a trace with a decorated handler, the
    handler captures the exchange; germane then only adds contexts and model.
    """
    global _is_requested
    _is_requested = True
    start()


def start() -> None:
    """Start watching, if it is turned on and the tracer is connected."""
    global _watcher
    connection = current_connection()
    if connection is None or not (connection.watches or _is_requested):
        return
    if not connection.watches:
        set_connection(dataclasses.replace(connection, watches=True))
    if _watcher is None:
        _watcher = Watcher()
    guarded("watching", _watcher.start)


def complete_from_spans(exchange: Exchange, privacy: Privacy, span_id: int) -> bool:
    """Add contexts and model to an observed handler's exchange, from the spans of its calls, before its span ends.

    Return whether the exchange will be stored in the background. If not, the caller stores it.
    """
    watcher = _watcher
    if (
        watcher is None
        or not privacy.connection.watches
        or privacy.capture == "none"
        or (exchange.contexts and exchange.model is not None)
    ):
        return False
    from germane.tracer.trace_assembler import PendingHandler

    handler, trace_id = PendingHandler(exchange, privacy, span_id), int(exchange.trace_id, 16)
    return bool(guarded("contexts of the call", watcher.collector.add_handler, handler, trace_id))


def stop() -> None:
    """Stop collecting spans, and end the thread. :func:`start` starts them again."""
    global _is_requested
    _is_requested = False
    if _watcher is not None:
        guarded("watching", _watcher.stop)


def flush(timeout: float, *, is_last: bool = False) -> None:
    """Read all complete traces, for at most ``timeout`` seconds.

    With ``is_last``, traces that wait for open spans are read too, because the process is stopping.
    """
    if _watcher is not None:
        guarded("watching", _watcher.flush, timeout, is_last)


class Watcher:
    """Reads the traces that a collector has completed, and stores their exchanges."""

    def __init__(self, limits: TraceLimits | None = None) -> None:
        from germane.tracer.trace_assembler import TraceLimits
        from germane.tracer.trace_collector import TraceCollector

        self.collector: TraceCollector = TraceCollector(limits or TraceLimits(), self._announce, self._ensure_thread)
        self._providers: list[Any] = []
        """The providers to which a collector was added."""
        self._routes: set[str] = set()
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        self._started = time.monotonic()
        self._counted_drops = self._counted_late = 0
        self._announced: deque[tuple[float, SpanKey]] = deque()
        """Announced spans with the time at which to withdraw the announcement."""

    def _after_fork(self) -> None:
        """Start without a thread in a forked child, because many children never record a trace. A late provider starts
        one.
        """
        self._reset()
        connection = current_connection()
        if connection is not None and connection.watches and not self._providers:
            guarded("watching", self.start)

    def start(self) -> None:
        """Add the collector to the current providers, and start the thread."""
        from germane.recognizers import registered_recognizers

        self._started = time.monotonic()
        self.collector.closed = False
        guarded("recognizers", registered_recognizers)  # imports those of packages, which the collector must not do
        self._attach()
        self._ensure_thread()

    def stop(self) -> None:
        """Stop collecting, and end the thread."""
        self.collector.close()
        self._thread = None

    def _ensure_thread(self) -> bool:
        """Start the thread if necessary. Return whether it is running."""
        if self.collector.closed:
            return False
        if self._thread is not None and self._thread.is_alive():
            return True
        self._thread = thread = threading.Thread(target=self._run, name="germane-watch", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # at interpreter exit or at the thread limit; flush() reads the traces
            self._thread = None
        return self._thread is not None

    def _attach(self) -> None:
        """Add the collectors to the application's providers as soon as they are set."""
        from opentelemetry._logs import get_logger_provider

        from germane.tracer.trace_collector import LogCollector

        connection = current_connection()
        if connection is None or not connection.watches:
            return
        spans = sdk_provider(connection.provider or trace.get_tracer_provider())
        if spans is not None and not any(spans is known for known in self._providers):
            self._providers.append(spans)
            spans.add_span_processor(self.collector)
        logs: Any = get_logger_provider()
        is_new = not any(logs is known for known in self._providers)
        if is_new and callable(getattr(type(logs), "add_log_record_processor", None)):
            self._providers.append(logs)
            logs.add_log_record_processor(LogCollector(self.collector))

    def _run(self) -> None:
        while not self.collector.closed and self._thread is threading.current_thread():
            guarded("watching", self._run_once, message=NOT_WATCHED)

    def _run_once(self) -> None:
        """Wait for work, then do it. The wait comes first, so that a repeated error does not cause a busy loop."""
        is_early = not self._providers and time.monotonic() - self._started < _EARLY_SECONDS
        self.collector.wait(_EARLY_POLL_INTERVAL if is_early else _POLL_INTERVAL)
        # Waking up for each trace would compete with the application's threads for the GIL.
        time.sleep(_BATCH_INTERVAL)
        if self.collector.closed:
            return
        guarded("watching", self._attach)
        if not self._providers and not is_early and current_connection() is not None:
            log_once("germane.watch() has no spans to read: the application has not set a tracer provider")
        self._read_all()
        self._count_dropped()
        # Withdraw the announcements of spans that ended some time ago, which no processor needs any more.
        while self._announced and self._announced[0][0] <= time.monotonic():
            _, key = self._announced.popleft()
            for processor in score_processors():
                processor.withdraw(key)

    def flush(self, timeout: float, is_last: bool) -> None:  # noqa: FBT001 - passed through guarded()
        """Read the complete traces in the caller's thread, and wait for those that the watching thread is reading."""
        deadline = time.monotonic() + timeout
        self._read_all(is_last=is_last, deadline=deadline)
        self._count_dropped()
        self.collector.wait_until_read(max(0.0, deadline - time.monotonic()))

    def _read_all(self, *, is_last: bool = False, deadline: float = math.inf) -> None:
        work = self.collector.take(is_last=is_last)
        try:
            for number, each in enumerate(work):
                if time.monotonic() > deadline:
                    log_once(f"lost {len(work) - number} watched traces, because the process stopped")
                    return
                guarded("a watched trace", self._read, each)
                self.collector.assign()  # so that the queue does not grow, however long this takes
        finally:
            self.collector.finish(len(work))

    def _announce(self, span: Span) -> str | None:
        """Announce a span that waits for scores, on the application's thread. Return its exchange's id if it waits."""
        connection, context = current_connection(), span.get_span_context()
        if connection is None or not connection.holds_spans or not context.trace_flags.sampled:
            return None
        processors = [processor for processor in score_processors() if not processor.closed]
        trace_id = f"{context.trace_id:032x}"
        if not processors or sampling_key_for(trace_id) > connection.sample_rate:
            return None
        exchange_id = exchange_id_for(trace_id, f"{context.span_id:016x}", span.start_time or 0)
        for processor in processors:
            processor.announce((context.trace_id, context.span_id), exchange_id)
        return exchange_id

    def _read(self, work: TraceBuffer | PendingHandler) -> None:
        from germane.tracer.trace_assembler import PendingHandler

        connection = current_connection()
        if isinstance(work, PendingHandler):
            self._complete_handler(work)
            return
        exchanges: list[Exchange] = []
        try:
            if connection is not None:
                problems = list[str]()
                found = guarded(
                    "a watched trace", self._exchanges_in, work, connection, problems=problems, message=NOT_READ
                )
                exchanges = found or []
                if problems:
                    self._count_unreadable(connection, unreadable(work, "recognition_failed"), work)
        finally:
            if work.exchange_id is not None:
                self._settle_announcement((work.trace_id, work.root_id), work.exchange_id, exchanges)
        if connection is not None:
            for exchange in exchanges:
                connection.sink(exchange)

    def _settle_announcement(self, key: SpanKey, exchange_id: str, exchanges: Sequence[Exchange]) -> None:
        """Release the announced span if its exchange was not found; otherwise, withdraw the announcement later."""
        if any(exchange.id == exchange_id for exchange in exchanges):
            self._announced.append((time.monotonic() + _WITHDRAWAL_DELAY, key))
            return
        for processor in score_processors():
            processor.cancel(key)

    def _complete_handler(self, work: PendingHandler) -> None:
        from germane.recognizers import complete, registered_recognizers

        exchange, privacy = work.exchange, work.privacy
        try:
            spans = [span_data(span, None) for span in work.spans]
            contexts, model = complete(spans, exchange.span_id, recognizers=_guarded(registered_recognizers()))
            exchange = dataclasses.replace(
                exchange,
                contexts=exchange.contexts or tuple(privacy.screen_contexts(contexts, []))[:MAX_CONTEXTS],
                model=exchange.model or (None if model is None else clean(model, NAME_LIMIT)),
            )
        finally:
            privacy.connection.sink(exchange)

    def _exchanges_in(self, buffer: TraceBuffer, connection: Connection) -> list[Exchange]:
        """Return the exchanges in a trace, without those that exceed the exchange limit."""
        from germane.recognizers import (
            Recognized,
            UnreadableReason,
            documents_fix_for,
            recognize_all,
            registered_recognizers,
        )

        if buffer.is_truncated:
            self._count_unreadable(connection, unreadable(buffer, "too_large"), buffer)
            return []
        spans = [span_data(span, buffer.root_id) for span in buffer.spans]
        logs = [log_data(record) for record in buffer.logs]
        results = recognize_all(spans, logs, recognizers=_guarded(registered_recognizers())) if spans else []
        if not spans and buffer.is_cut:
            results = [unreadable(buffer, "incomplete")]
        exchanges = []
        for result in results:
            if not isinstance(result, Recognized):
                if buffer.is_cut:
                    reason = UnreadableReason.INCOMPLETE
                    result = dataclasses.replace(result, reason=reason, fix=reason.fix)
                self._count_unreadable(connection, result, buffer)
                continue
            # A span that had not ended may get the answer, after a call that only rewrote the question.
            if buffer.is_cut and result.sources["answer"][0].span_id not in result.root_span_ids:
                self._count_unreadable(connection, unreadable(buffer, "incomplete"), buffer)
                continue
            exchange = self._create_exchange(result, spans, buffer, connection)
            exchanges += [] if exchange is None else [exchange]
            self._count(connection, result.scope, None, result.start)
            if result.has_documents_without_text:
                fix = documents_fix_for(result.scope)
                scope = clean(result.scope, NAME_LIMIT)
                log_once(f"exchanges of {scope!r} have no contexts: documents have no text; {fix}")
        return exchanges

    def _create_exchange(
        self, found: Recognized, spans: Sequence[SpanData], buffer: TraceBuffer, connection: Connection
    ) -> Exchange | None:
        """Create the exchange of a request; None if it exceeds the exchange limit."""
        from germane.recognizers import create_exchange

        route = self.bounded_route(found.route)
        root = next(span for span in spans if span.span_id == found.root_span_ids[0])
        sampling_key = sampling_key_for(root.trace_id)
        probability = connection.admit(connection.service, route, found.start, sampling_key)
        if probability is None:
            return None
        context = (buffer.root or buffer.spans[0]).context
        is_held = buffer.exchange_id == exchange_id_for(root.trace_id, root.span_id, root.start)
        return create_exchange(
            found,
            root,
            screen=partial(Privacy(connection).screen, problems=[]),
            service=connection.service,
            route=route,
            started_at=datetime.fromtimestamp(found.start / 1e9, UTC),
            sampling_key=sampling_key,
            capture_probability=probability,
            traced=context is not None and context.trace_flags.sampled,
            span_holder=connection.worker_id() if is_held else None,
        )

    def _count(self, connection: Connection, scope: str, reason: str | None, started: int, number: int = 1) -> None:
        """Count traces by the scope of their spans, in the metrics and in the database."""
        scope = clean(scope, NAME_LIMIT)
        count_watched(scope, reason, number)
        connection.count_watched(connection.service, scope, reason or "recognized", started, number)

    def _count_unreadable(self, connection: Connection, unreadable: Unreadable, buffer: TraceBuffer) -> None:
        """Count an unreadable trace, log the fix once per scope and reason, and add the trace to the sample."""
        from germane.recognizers import WITHOUT_EXCHANGE

        self._count(connection, unreadable.scope, unreadable.reason, unreadable.start)
        if unreadable.reason in WITHOUT_EXCHANGE:  # the tally counts exchanges
            return
        log_once(
            f"cannot read traces of {clean(unreadable.scope, NAME_LIMIT)!r}: {unreadable.reason.meaning.lower()}; "
            f"{unreadable.fix}"
        )
        connection.count_unreadable(connection.service, self.bounded_route(unreadable.route), unreadable.start)
        if connection.capture != "none":
            scope = clean(unreadable.scope, NAME_LIMIT)
            outline = partial(outline_buffer, buffer, unreadable, scope=scope, service=connection.service)
            connection.sample_unreadable(connection.service, scope, unreadable.reason.value, outline)

    def _count_dropped(self) -> None:
        """Count the traces that were not collected, and the spans that ended after their trace was read."""
        if (late := self.collector.assembler.late) > self._counted_late:
            count_late(late - self._counted_late)
            self._counted_late = late
        connection, number = current_connection(), self.collector.assembler.not_watched
        if connection is not None and number > self._counted_drops:
            dropped, self._counted_drops = number - self._counted_drops, number
            self._count(connection, "", "too_many_open", time.time_ns(), dropped)

    def bounded_route(self, name: str) -> str:
        """Return a trace's route, or ``other`` if there are too many distinct ones."""
        route = clean(name, NAME_LIMIT).strip() or OTHER_ROUTE
        if route not in self._routes:
            if len(self._routes) >= MAX_ROUTES:
                return OTHER_ROUTE
            self._routes.add(route)
        return route


def span_data(span: ReadableSpan, root_id: int | None) -> SpanData:
    """Convert an SDK span to the recognizers' format. The first span of the trace in this process gets no parent."""
    from germane.recognizers import SpanData, SpanEvent, plain_value

    context, parent = span.context, span.parent
    has_parent = parent is not None and context is not None and context.span_id != root_id
    return SpanData(
        trace_id="" if context is None else f"{context.trace_id:032x}",
        span_id="" if context is None else f"{context.span_id:016x}",
        parent_id=f"{parent.span_id:016x}" if has_parent and parent is not None else None,
        name=span.name,
        scope=span.instrumentation_scope.name if span.instrumentation_scope is not None else "",
        kind=span.kind.name,
        attributes=plain_value(span.attributes or {}),
        events=tuple(
            SpanEvent(name=event.name, attributes=plain_value(event.attributes or {})) for event in span.events
        ),
        start=span.start_time or 0,
        end=span.end_time or 0,
        status=span.status.status_code.name,
    )


def log_data(record: Any) -> LogData:
    """Convert an SDK log record to the recognizers' format."""
    from germane.recognizers import LogData, plain_value

    return LogData(
        trace_id=f"{record.trace_id:032x}",
        span_id=f"{record.span_id:016x}" if record.span_id else None,
        event_name=getattr(record, "event_name", None) or "",
        body=plain_value(record.body),
        attributes=plain_value(record.attributes or {}),
    )


def unreadable(buffer: TraceBuffer, reason: str) -> Unreadable:
    """Return the result for a trace whose spans were not or could not be read."""
    from germane.recognizers import Unreadable, UnreadableReason

    root = buffer.root or next(iter(buffer.spans), None)
    cause = UnreadableReason(reason)
    return Unreadable(
        reason=cause,
        fix=cause.fix,
        route=OTHER_ROUTE if root is None else root.name,
        scope=root.instrumentation_scope.name if root is not None and root.instrumentation_scope is not None else "",
        start=time.time_ns() if root is None or root.start_time is None else root.start_time,
    )


def outline_buffer(buffer: TraceBuffer, unreadable: Unreadable, *, service: str, scope: str) -> UnreadableTrace:
    """Return the outline of an unreadable trace, without values."""
    from germane.recognizers import outline_spans
    from germane.trace_outline import UnreadableTrace

    spans, omitted = outline_spans(
        [span_data(span, buffer.root_id) for span in buffer.spans], [log_data(record) for record in buffer.logs]
    )
    return UnreadableTrace(
        trace_id=f"{buffer.trace_id:032x}",
        service=service,
        scope=scope,
        reason=unreadable.reason.value,
        started_at=datetime.fromtimestamp(unreadable.start / 1e9, UTC),
        spans=spans,
        spans_omitted=omitted,
    )


def _guarded(recognizers: Sequence[Recognizer]) -> list[Recognizer]:
    """Wrap recognizers, which are functions of the application, so that they never raise."""
    return [partial(guarded, "a registered recognizer", recognizer) for recognizer in recognizers]
