"""The recording of one call of an observed handler, which yields an exchange."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opentelemetry.context import set_value

from germane.exchange import Exchange, new_exchange_id, sampling_key_for
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.contexts import MAX_CONTEXTS
from germane.tracer.guard import guarded
from germane.tracer.handler import Handler, read_history
from germane.tracer.privacy import Privacy
from germane.tracer.provider import tracer
from germane.tracer.recording import RECORDING_KEY, EnclosingRecording, Recording, recording_scope
from germane.tracer.score_processor import score_processors
from germane.tracer.selectors import Call
from germane.tracer.sse import ChunkReader, EventReader, TextReader, looks_like_sse, may_become_sse
from germane.tracer.text import NAME_LIMIT, as_attribute, as_text, clean, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opentelemetry.context import Context as OTelContext
    from opentelemetry.trace import Span

    from germane.exchange import AttributeValue, Context, Message, Status

_COLUMNS = {
    "model": (conventions.REQUEST_MODEL,),
    "prompt_version": (conventions.PROMPT_VERSION,),
    "session": (conventions.SESSION_ID, conventions.CONVERSATION_ID),
    "user": (conventions.USER_ID,),
}
"""Attributes with their own column, and their names on a span."""
_MAX_STREAM_OVERHEAD = 32
"""Events and JSON around the text may make a stream this many times longer than the maximum text length. Chunks beyond
that are not read."""
_USER_MESSAGE = '[{{"role":"user","parts":[{{"type":"text","content":{}}}]}}]'
_ASSISTANT_MESSAGE = '[{{"role":"assistant","parts":[{{"type":"text","content":{}}}],"finish_reason":"stop"}}]'


class HandlerRecording(Recording):
    """One call of an observed handler. If handlers are nested, the outermost (``root``) yields the exchange."""

    __slots__ = (
        "_chunk_reader",
        "_exchange_id",
        "_expects_sse",
        "_pieces",
        "_pieces_length",
        "_stream_length",
        "answer",
        "attributes",
        "contexts",
        "handler",
        "history",
        "question",
    )

    def __init__(
        self,
        handler: Handler,
        span: Span,
        outer_context: OTelContext,
        privacy: Privacy,
        outer: EnclosingRecording | None,
    ) -> None:
        super().__init__(span, outer_context, privacy, outer)
        self.context = set_value(RECORDING_KEY, self, self.context)
        self.handler = handler
        self.question: str | None = None
        self.answer: str | None = None
        self.history: tuple[Message, ...] = ()
        self.contexts: list[Context] = []
        self.attributes: dict[str, AttributeValue] = {}
        self._pieces: list[str] = []
        self._pieces_length = 0
        self._stream_length = 0
        self._expects_sse = False
        self._chunk_reader: ChunkReader | None = None
        self._exchange_id: str | None = None

    @property
    def root(self) -> EnclosingRecording:
        """The outermost active handler around this call, or this call itself."""
        root: EnclosingRecording = self
        while (outer := root.outer) is not None:
            if outer.active:
                root = outer
            else:  # unlinked, because a chain of tasks that start tasks would otherwise keep all of them alive
                root.outer = outer.outer
        return root

    @property
    def exchange_id(self) -> str:
        """The id of the exchange that this call yields."""
        if self._exchange_id is None:
            self._exchange_id = new_exchange_id()
        return self._exchange_id

    @property
    def trace_id(self) -> str:
        """The trace id as 32 hexadecimal digits. If tracing is disabled, the exchange id."""
        trace_id = self.span.get_span_context().trace_id
        return f"{trace_id:032x}" if trace_id else self.exchange_id

    @property
    def span_id(self) -> str:
        """The span id as 16 hexadecimal digits. If tracing is disabled, the end of the exchange id."""
        span_id = self.span.get_span_context().span_id
        return f"{span_id:016x}" if span_id else self.exchange_id[-16:]

    def capture_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Capture the arguments, before the handler can change them."""
        handler = self.handler
        if not handler.needs_call:
            find = handler.question_argument
            self.question = guarded(handler.on_question, find, args, kwargs, problems=self.problems)
            return
        call = Call(handler.function, args, kwargs, handler.signature)
        self.question = guarded(handler.on_question, handler.question, call, problems=self.problems)
        if handler.find_history:
            history = guarded("history", handler.find_history, call, problems=self.problems)
            self.history = guarded("history", read_history, history, problems=self.problems) or ()
        for name, find_attribute in handler.find_attributes.items():
            self.set_attribute(name, guarded(f"attribute {name}", find_attribute, call, problems=self.problems))

    def set_question(self, text: Any) -> None:
        """Replace the question of the exchange."""
        root = self.root
        root.question = as_text(text) if root is self else self.privacy.screen("question", as_text(text), self.problems)

    def set_attribute(self, name: str, value: Any) -> None:
        """Set an attribute of the exchange. None removes it."""
        attributes = self.root.attributes
        if value is None:
            attributes.pop(name, None)
            return
        limit = self.privacy.connection.max_text_length
        converted = guarded(f"attribute {name}", as_attribute, value, limit, problems=self.problems)
        if converted is not None:
            attributes[clean(name, NAME_LIMIT)] = converted

    def add_contexts(self, contexts: Iterable[Context]) -> list[Context]:
        """Add contexts to the exchange, and return the contexts that the privacy settings allow, redacted."""
        screened = self.privacy.screen_contexts(contexts, self.problems)
        self.root.contexts.extend(screened)
        return screened

    def finish_with(self, result: Any) -> None:
        handler = self.handler
        self.answer = guarded(handler.on_answer, handler.answer, result, problems=self.problems)
        if handler.find_contexts is not None:
            self.add_contexts(guarded("contexts", handler.contexts, result, problems=self.problems) or ())
        self.finish()

    def expect_sse(self) -> None:
        self._expects_sse = True

    def add_chunk(self, chunk: Any) -> None:
        limit = self.privacy.connection.max_text_length
        if self._pieces_length < limit and self._stream_length < limit * _MAX_STREAM_OVERHEAD:
            guarded(self.handler.on_chunk, self._add_chunk, chunk, problems=self.problems)

    def _add_chunk(self, chunk: Any) -> None:
        if not isinstance(chunk, str | bytes | bytearray | memoryview):
            self._add_piece(chunk)
        elif chunk:
            self._stream_length += len(chunk)
            if self._chunk_reader is None:  # the first chunk decides how the stream is read
                handler = self.handler
                if (self._expects_sse and may_become_sse(chunk)) or (handler.detects_sse and looks_like_sse(chunk)):
                    self._chunk_reader = EventReader()
                else:
                    self._chunk_reader = TextReader() if handler.find_chunk is None else ChunkReader()
            for part in self._chunk_reader.feed(chunk):
                self._add_piece(part)

    def _add_piece(self, part: Any) -> None:
        text = self.handler.chunk(part)
        if text:
            self._pieces.append(text)
            self._pieces_length += len(text)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        seconds, exchange, handler = self.seconds, None, self.handler
        error_text = self._describe_error(status, error)
        try:
            if self._pieces or self._chunk_reader is not None:
                if status == "ok" and self._chunk_reader is not None:
                    for part in guarded(handler.on_chunk, self._chunk_reader.close, problems=self.problems) or ():
                        guarded(handler.on_chunk, self._add_piece, part, problems=self.problems)
                if self._pieces:
                    self.answer = guarded(handler.on_answer, handler.joined, self._pieces, problems=self.problems)
            question = self.privacy.screen("question", self.question, self.problems)
            answer = self.privacy.screen("answer", self.answer, self.problems)
            if self.root is self:
                exchange = self._create_exchange(question, answer, status, error_text, seconds)
            attributes: dict[str, AttributeValue] = {}
            for name, value in self.attributes.copy().items():
                attributes.update(dict.fromkeys(_COLUMNS.get(name, (name,)), value))
            if self.root is self:
                attributes[conventions.EXCHANGE_ID] = self.exchange_id
            attributes[conventions.SPAN_KIND] = conventions.CHAIN
            # Question and answer come last, because a span at its attribute limit drops the oldest attributes.
            if question is not None and self.privacy.shows_input:
                text = question[:SPAN_TEXT_LIMIT]
                attributes[conventions.INPUT_MESSAGES] = _USER_MESSAGE.format(encode(text))
                attributes[conventions.INPUT_VALUE] = text
                attributes[conventions.INPUT_MIME_TYPE] = conventions.TEXT_PLAIN
            if answer is not None and self.privacy.shows_output:
                text = answer[:SPAN_TEXT_LIMIT]
                attributes[conventions.OUTPUT_MESSAGES] = _ASSISTANT_MESSAGE.format(encode(text))
                attributes[conventions.OUTPUT_VALUE] = text
                attributes[conventions.OUTPUT_MIME_TYPE] = conventions.TEXT_PLAIN
            self.span.set_attributes(attributes)
        finally:
            guarded("the end of a span", self._end_sampled_span, exchange, status, error, error_text)
        if exchange is not None:
            self.privacy.connection.sink(exchange)

    def _create_exchange(
        self, question: str | None, answer: str | None, status: Status, error_text: str | None, seconds: float
    ) -> Exchange | None:
        """Return the exchange, or None if it exceeds the exchange limit."""
        trace_id, connection = self.trace_id, self.privacy.connection
        sampling_key = sampling_key_for(trace_id)
        probability = connection.admit(connection.service, self.handler.route, self.started, sampling_key)
        if probability is None:
            return None
        attributes = self.attributes.copy()  # another thread may still set one
        columns: dict[str, Any] = {name: str(attributes.pop(name)) for name in _COLUMNS if name in attributes}
        distinct_contexts = {context.text: context for context in self.contexts}
        return Exchange(
            id=self.exchange_id,
            trace_id=trace_id,
            span_id=self.span_id,
            service=connection.service,
            route=self.handler.route,
            question=question,
            answer=answer,
            contexts=tuple(distinct_contexts.values())[:MAX_CONTEXTS],
            history=self.privacy.screen_history(self.history, self.problems) if self.history else (),
            attributes=attributes,
            status=status,
            error=error_text,
            started_at=datetime.fromtimestamp(self.started / 1e9, UTC),
            duration=seconds,
            sampling_key=sampling_key,
            capture_probability=probability,
            traced=self.span.get_span_context().trace_flags.sampled,
            **columns,
        )

    def _end_sampled_span(
        self, exchange: Exchange | None, status: Status, error: BaseException | None, error_text: str | None
    ) -> None:
        """End the span. If this process will score the exchange soon, announce the span first, so that it waits."""
        context, connection = self.span.get_span_context(), self.privacy.connection
        awaits_score = (
            exchange is not None
            and context.trace_flags.sampled
            and connection.holds_spans
            and exchange.status == "ok"
            and bool(exchange.question and exchange.answer)
            and exchange.sampling_key <= connection.sample_rate
        )
        if not awaits_score:
            self._end_span(status, error, error_text)
            return
        key, processors = (context.trace_id, context.span_id), score_processors()
        for processor in processors:
            processor.announce(key)
        self._end_span(status, error, error_text)
        for processor in processors:
            processor.withdraw(key)


def start_handler_recording(
    handler: Handler, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> HandlerRecording | None:
    """Start the span and the recording of a call. Return None if nothing is recorded."""
    scope = recording_scope()
    if scope is None or (current_tracer := tracer()) is None:
        return None
    connection, context, outer = scope
    privacy = Privacy(connection, handler.redact, handler.capture)
    if outer is not None:
        privacy = privacy.within(outer.privacy)
    span = current_tracer.start_span(handler.span_name, context, attributes=handler.span_attributes)
    recording = HandlerRecording(handler, span, context, privacy, outer)
    recording.capture_call(args, kwargs)
    return recording
