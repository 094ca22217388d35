"""Recording of one call to an observed handler as an exchange."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, create_key

from germane.exchange import Exchange, new_exchange_id, sampling_key_for
from germane.records import fast_constructor
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT, current_connection
from germane.tracer.contexts import MAX_CONTEXTS
from germane.tracer.delivery import stream_recorder
from germane.tracer.guard import guarded, log_once
from germane.tracer.handler import Handler, history_of, read_history
from germane.tracer.iterator_proxy import is_proxy, proxy_iterator
from germane.tracer.privacy import Privacy
from germane.tracer.provider import start_span
from germane.tracer.questions import batch_in, in_order, may_be_prompt, question_in, question_of_prompt
from germane.tracer.recording import Recording, current_context
from germane.tracer.requests import bodies_of, current_requests, requests_of
from germane.tracer.responses import has_text, head_of, http_status, is_redirect, is_response, media_type
from germane.tracer.score_processor import score_processors
from germane.tracer.selectors import Call
from germane.tracer.serialized import is_plain
from germane.tracer.shapes import with_last_reply
from germane.tracer.stream_text import StreamText
from germane.tracer.text import NAME_LIMIT, as_attribute, as_text, clean
from germane.tracer.watching import complete_from_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opentelemetry.context import Context as OTelContext
    from opentelemetry.trace import Span, SpanContext

    from germane.exchange import AttributeValue, Context, Message, Status
    from germane.tracer.connection import Connection

RECORDING_KEY = create_key("germane.recording")
"""OpenTelemetry context key under which the innermost handler's recording is stored."""
_COLUMNS = {
    "model": (conventions.REQUEST_MODEL,),
    "prompt_version": (conventions.PROMPT_VERSION,),
    "session": (conventions.SESSION_ID, conventions.CONVERSATION_ID),
    "user": (conventions.USER_ID,),
}
"""Attributes that have their own column, with their attribute names on a span."""
_new_exchange = fast_constructor(Exchange)
_USER_MESSAGE = '[{"role":"user","parts":[{"type":"text","content":%s}]}]'
_ASSISTANT_MESSAGE = '[{"role":"assistant","parts":[{"type":"text","content":%s}],"finish_reason":"stop"}]'


class HandlerRecording(Recording):
    """A recording of one call to an observed handler. If handlers are nested, the outermost (``root``) creates the
    exchange."""

    __slots__ = (
        "_answers",
        "_batch",
        "_batch_items",
        "_exchange_id",
        "_failure",
        "_found",
        "_has_text",
        "_requests",
        "_skipped_media",
        "_stream_text",
        "_without_question",
        "answer",
        "attributes",
        "contexts",
        "handler",
        "history",
        "outer",
        "question",
        "span_context",
    )

    def __init__(
        self,
        handler: Handler,
        span: Span,
        span_context: SpanContext,
        outer_context: OTelContext,
        privacy: Privacy,
        outer: HandlerRecording | None,
    ) -> None:
        super().__init__(span, outer_context, privacy)
        self.outer = outer
        """The recording of the enclosing handler, if any."""
        dict.__setitem__(self.context, RECORDING_KEY, self)  # a context is read-only, but no one else has it yet
        self.span_context = span_context
        self.handler = handler
        self.question: str | None = None
        self.answer: str | None = None
        self.history: tuple[Message, ...] = ()
        self.contexts: list[Context] = []
        self.attributes: dict[str, AttributeValue] = {}
        self._stream_text: StreamText | None = None
        self._requests: Sequence[Any] = ()
        """The requests that may contain the question, until the handler has returned."""
        self._without_question: str | None = None
        """What the arguments are, if they contain no question."""
        self._found: str | None = None
        """The text that was found in the arguments, if it may be a whole prompt."""
        self._batch: Sequence[str] = ()
        """The questions of a batch, if the arguments contain one."""
        self._batch_items: Sequence[Any] = ()
        """The parts of the arguments that contain these questions."""
        self._answers: Sequence[str | None] = ()
        """The answers to the questions of a batch."""
        self._exchange_id: str | None = None
        self._failure: str | None = None
        """The status of an error response, such as ``HTTP 500``, or the error event at the end of a stream."""
        self._has_text = True
        self._skipped_media: str | None = None
        """The media type of a stream that is not captured."""

    @property
    def root(self) -> HandlerRecording:
        """The outermost active handler around this call, or this call itself."""
        root: HandlerRecording = self
        while (outer := root.outer) is not None:
            if outer.active:
                root = outer
            else:  # unlink it: otherwise, a chain of tasks that start tasks would keep all of them alive
                root.outer = outer.outer
        return root

    @property
    def exchange_id(self) -> str:
        """The id of the exchange that this call creates."""
        if self._exchange_id is None:
            self._exchange_id = new_exchange_id()
        return self._exchange_id

    @property
    def trace_id(self) -> str:
        """The trace id as 32 hexadecimal digits, or the exchange id if tracing is disabled."""
        trace_id = self.span_context.trace_id
        return f"{trace_id:032x}" if trace_id else self.exchange_id

    @property
    def span_id(self) -> str:
        """The span id as 16 hexadecimal digits, or the end of the exchange id if tracing is disabled."""
        span_id = self.span_context.span_id
        return f"{span_id:016x}" if span_id else self.exchange_id[-16:]

    def capture_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Capture the arguments, before the handler can change them."""
        handler = self.handler
        if handler.find_question is None:
            self.question = handler.question_argument.plain(args, kwargs)
            if self.question is None:
                guarded(handler.on_question, self._search_question, args, kwargs, problems=self.problems)
        if not handler.needs_call:
            return
        call = Call(handler.function, args, kwargs, handler.signature)
        if handler.find_question is not None:
            self.question = guarded(handler.on_question, handler.question, call, problems=self.problems)
        if handler.find_history:
            history = guarded("history", handler.find_history, call, problems=self.problems)
            self.history = guarded("history", read_history, history, problems=self.problems) or ()
        for name, find_attribute in handler.find_attributes.items():
            self.set_attribute(name, guarded(f"attribute {name}", find_attribute, call, problems=self.problems))

    def _search_question(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Find the question in the arguments. If it is not certain, remember the requests that may contain it."""
        argument = self.handler.question_argument
        found = argument.find(args, kwargs)
        if found is not None:
            self._take_question(found.text)
            self.history = history_of(found) if found.history else ()
            return
        self._take_question(argument.first_text(args, kwargs))
        self._requests = requests_of(value for _, value in argument.arguments(args, kwargs))
        if self.question is None:
            self._without_question = argument.describe(args, kwargs)
            if self.handler.find_answer is None:
                self._batch, self._batch_items = batch_in(argument.arguments(args, kwargs))

    def _take_question(self, text: str | None) -> None:
        self.question = text
        self._found = text if text is not None and may_be_prompt(text) else None

    def _read_requests(self) -> None:
        """Look for the question in what the handler has read from its requests."""
        requests, self._requests = self._requests, ()
        for body in (body for request in requests for body in bodies_of(request)):
            if (found := question_in({"body": body})) is not None:
                self._take_question(found.text)
                self.history = self.history or history_of(found)
                return

    def set_question(self, text: Any) -> None:
        """Replace the question of the exchange."""
        root = self.root
        root.question = as_text(text) if root is self else self.privacy.screen("question", as_text(text), self.problems)

    def set_attribute(self, name: str, value: Any) -> None:
        """Set an attribute of the exchange, or remove it if the value is None."""
        attributes = self.root.attributes
        if value is None:
            attributes.pop(name, None)
            return
        limit = self.privacy.connection.max_text_length
        converted = guarded(f"attribute {name}", as_attribute, value, limit, problems=self.problems)
        if converted is not None:
            attributes[clean(name, NAME_LIMIT)] = converted

    def add_contexts(self, contexts: Iterable[Context]) -> list[Context]:
        """Add contexts to the exchange. Return those that the privacy settings allow, in redacted form."""
        screened = self.privacy.screen_contexts(contexts, self.problems)
        self.root.contexts.extend(screened)
        return screened

    def finish_with(self, result: Any) -> None:
        handler = self.handler
        if type(result) is str and handler.find_answer is None and is_plain(result):
            self.answer = result
        else:
            self.answer = guarded(handler.on_answer, self._read_answer, result, problems=self.problems)
            self.answer = self.answer if self.answer and not self.answer.isspace() else None
        if handler.find_contexts is not None and self._failure is None:
            self.add_contexts(guarded("contexts", handler.contexts, result, problems=self.problems) or ())
        self.finish()

    def record_returned(self, result: Any) -> Any:
        streams, kind = self.handler.streams, type(result)
        if kind is tuple and (head := self._head_of(result)) and (record := stream_recorder(type(result[0]))):
            if (stream := record(self, result[0])) is None:
                return None
            self.expect_response(head)
            return (stream, *result[1:])
        if streams and is_proxy(kind):
            kind = result.__class__
        return proxy_iterator(self, result) if streams and issubclass(kind, streams) else None

    @property
    def has_chunks(self) -> bool:
        return not self._has_text or (self._stream_text is not None and self._stream_text.has_chunks)

    def expect_response(self, response: Any) -> None:
        self._read_head(http_status(response), has_text=self.handler.find_chunk is not None or has_text(response))
        media = media_type(response)
        if self._has_text:
            self._start_stream(is_sse=media == "text/event-stream" if media else None)
        elif self._failure is None and not is_redirect(response):
            self._skipped_media = media

    def _read_answer(self, result: Any) -> str | None:
        if is_response(type(result)):
            self._read_head(http_status(result), has_text=self.handler.find_answer is not None or has_text(result))
        elif type(result) is tuple and (head := self._head_of(result)):
            self._read_head(head.status_code, has_text=has_text(head) or self.handler.find_answer is not None)
            result = result if self.handler.find_answer is not None else result[0]
        elif self._batch and not self.question and type(result) in {list, tuple} and len(result) == len(self._batch):
            answer = partial(guarded, self.handler.on_answer, self.handler.answer, problems=self.problems)
            self._answers = [answer(item) for item in in_order(result, self._batch, self._batch_items)]
            return None
        return self.handler.answer(with_last_reply(result, self.question)) if self._has_text else None

    @staticmethod
    def _head_of(result: tuple[Any, ...]) -> Any:
        """Return the status and headers of a Flask view's result, if it is one."""
        return head_of(result[1:]) if len(result) > 1 and any(current_requests()) else None

    def _read_head(self, status: int, *, has_text: bool) -> None:
        """Determine whether a response's body contains an answer. With a selector, any media type may contain one."""
        self._failure = f"HTTP {status}" if status >= 400 else None
        self._has_text = self._failure is None and has_text

    def add_chunk(self, chunk: Any) -> None:
        if self._has_text:
            stream_text = self._stream_text or self._start_stream(is_sse=None)
            text = with_last_reply(chunk, self.question)
            guarded(self.handler.on_chunk, stream_text.add, text, problems=self.problems)
        elif self._skipped_media is not None:
            problem = f"{self._skipped_media:.100} is not text; select the text with chunk="
            self.warn(f"{self.handler.on_answer}: {problem}", key=self.handler.on_answer)

    def _start_stream(self, *, is_sse: bool | None) -> StreamText:
        limit = self.privacy.connection.max_text_length
        self._stream_text = StreamText(self.handler, limit, self.problems, is_sse=is_sse)
        return self._stream_text

    def _join_stream(self, stream_text: StreamText, status: Status) -> None:
        """Join the stream's chunks into the answer."""
        handler = self.handler
        stream_text.close(is_complete=status == "ok")
        if (error := stream_text.error) is not None:
            self._failure = f"error event: {error}".removesuffix(": ")
        if texts := stream_text.texts():
            self.answer = guarded(handler.on_answer, handler.joined, texts, problems=self.problems)
        elif status == "ok" and stream_text.has_chunks and not self.problems and self._failure is None:
            self.warn(f"{handler.on_answer}: no text was found in the stream; select it with chunk=")

    def _complete_texts(self, status: Status) -> None:
        """Read the texts that are only complete at the end of the call. Report those that are missing then."""
        handler = self.handler
        if self._requests:
            guarded(handler.on_question, self._read_requests, problems=self.problems)
        if self._stream_text is not None:
            guarded(handler.on_answer, self._join_stream, self._stream_text, status, problems=self.problems)
        if self._found is not None and self.question is self._found:
            documents = [context.text for context in self.contexts]
            read = partial(question_of_prompt, is_typed=handler.question_argument.is_typed)
            self.question = guarded(handler.on_question, read, self._found, self.answer, documents)
            self._without_question = "the text is a whole prompt; select the question in it with question="
        if status != "ok" or self.root is not self or self._answers:
            return
        if not self.question:
            self._report(handler.on_question, self._without_question or "question= found no text")
        if not self.answer and self._failure is None:
            self._report(handler.on_answer, "the handler returned no text; select it with answer=")

    def _report(self, what: str, problem: str) -> None:
        """Report a missing text, unless its cause is reported."""
        if not any(reported.startswith((what, self.handler.on_chunk)) for reported in self.problems):
            self.warn(f"{what}: {problem}", key=what)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        seconds, privacy = self.seconds, self.privacy
        exchange: Exchange | None = None
        attributes: dict[str, AttributeValue] = {}
        is_taken = False  # whether the exchange is stored later, once its spans have been read
        error_text = self._failure
        if error is not None:
            error_text = self._describe_error(status, error)
        elif error_text is not None:
            status = "error"
        try:
            if not (self.question and self.answer) or self._requests or self._found is not None:
                self._complete_texts(status)
            if status == "ok" and self._failure is not None:
                status, error_text = "error", privacy.screen("error", self._failure, self.problems)
            question = privacy.screen("question", self.question, self.problems)
            answer = privacy.screen("answer", self.answer, self.problems)
            attributes = self._span_attributes(question, answer)
            if self._answers and self.root is self:
                self._store_batch(status, error_text, seconds)
            elif self.outer is None or self.root is self:
                exchange = self._create_exchange(question, answer, status, error_text, seconds)
            if exchange is not None:
                is_taken = complete_from_spans(exchange, privacy, self.span_context.span_id)
        finally:
            self._end_sampled_span(exchange, attributes, status, error, error_text)
        if exchange is not None and not is_taken:
            privacy.connection.sink(exchange)

    def _store_batch(self, status: Status, error_text: str | None, seconds: float) -> None:
        """Store an exchange for each question of a batch, without contexts, because it is unknown whose they are."""
        self.contexts = []
        question: str | None
        for question, answer in zip(self._batch, self._answers, strict=True):
            question = self.privacy.screen("question", question, self.problems)
            answer = self.privacy.screen("answer", answer, self.problems)
            if (exchange := self._create_exchange(question, answer, status, error_text, seconds)) is not None:
                self.privacy.connection.sink(exchange)
            self._exchange_id = None  # the next one has its own

    def _span_attributes(self, question: str | None, answer: str | None) -> dict[str, AttributeValue]:
        attributes: dict[str, AttributeValue] = {}
        for name, value in self.attributes.copy().items() if self.attributes else ():
            attributes.update(dict.fromkeys(_COLUMNS.get(name, (name,)), value))
        if self.outer is None or self.root is self:
            attributes[conventions.EXCHANGE_ID] = self.exchange_id
        attributes[conventions.SPAN_KIND] = conventions.CHAIN
        # Question and answer come last, because a span at its attribute limit drops the oldest attributes.
        if question is not None and self.privacy.shows_input:
            text = question[:SPAN_TEXT_LIMIT]
            attributes[conventions.INPUT_MESSAGES] = _USER_MESSAGE % encode_basestring(text)
            attributes[conventions.INPUT_VALUE] = text
            attributes[conventions.INPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        if answer is not None and self.privacy.shows_output:
            text = answer[:SPAN_TEXT_LIMIT]
            attributes[conventions.OUTPUT_MESSAGES] = _ASSISTANT_MESSAGE % encode_basestring(text)
            attributes[conventions.OUTPUT_VALUE] = text
            attributes[conventions.OUTPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        return attributes

    def texts(self) -> list[str]:
        contexts, history = (item.text for item in self.contexts), (message.content for message in self.history)
        pairs = [*self._batch, *filter(None, self._answers), self.question or "", self.answer or ""]
        return [*pairs, *map(str, self.attributes.values()), *contexts, *history]

    def _create_exchange(
        self, question: str | None, answer: str | None, status: Status, error_text: str | None, seconds: float
    ) -> Exchange | None:
        """Create the exchange. Return None if it exceeds the exchange limit."""
        trace_id, connection = self.trace_id, self.privacy.connection
        sampling_key = sampling_key_for(trace_id)
        probability = connection.admit(connection.service, self.handler.route, self.started, sampling_key)
        if probability is None:
            return None
        attributes: dict[str, AttributeValue] = {}
        columns: dict[str, Any] = {}
        if self.attributes:
            attributes = self.attributes.copy()  # another thread may still set one
            columns = {name: str(attributes.pop(name)) for name in _COLUMNS.keys() & attributes}
        contexts = tuple({context.text: context for context in self.contexts}.values()) if self.contexts else ()
        traced = self.span_context.trace_flags.sampled
        # The span waits if this process will score the exchange soon.
        span_waits = (
            traced
            and connection.holds_spans
            and status == "ok"
            and bool(question and answer)
            and not self._answers  # a span waits for the scores of one exchange
            and sampling_key <= connection.sample_rate
            and bool(score_processors())
        )
        return _new_exchange(
            id=self.exchange_id,
            trace_id=trace_id,
            span_id=self.span_id,
            service=connection.service,
            route=self.handler.route,
            question=question,
            answer=answer,
            contexts=contexts[:MAX_CONTEXTS],
            history=self.privacy.screen_history(self.history, self.problems) if self.history else (),
            attributes=attributes,
            status=status,
            error=error_text,
            started_at=datetime.fromtimestamp(self.started / 1e9, UTC),
            duration=seconds,
            sampling_key=sampling_key,
            capture_probability=probability,
            traced=traced,
            span_holder=connection.worker_id() if span_waits else None,
            **columns,
        )

    def _end_sampled_span(
        self,
        exchange: Exchange | None,
        attributes: Mapping[str, AttributeValue],
        status: Status,
        error: BaseException | None,
        error_text: str | None,
    ) -> None:
        """End the span. If it will wait for scores, announce it to the processors first."""
        processors = () if exchange is None or exchange.span_holder is None else score_processors()
        key = self.span_context.trace_id, self.span_context.span_id
        for processor in processors:
            processor.announce(key, self.exchange_id)
        try:
            self._end_span(attributes, status, error, error_text)
        finally:
            for processor in processors:
                processor.withdraw(key)


def recording_scope() -> tuple[Connection, OTelContext, HandlerRecording | None] | None:
    """Return the connection, context and enclosing recording for a new recording.

    Returns None if nothing is recorded: before ``germane.start()``, and inside calls that germane itself makes.
    """
    connection = current_connection()
    if connection is None:
        log_once("an observed handler was called, but germane is not running: nothing is captured")
        return None
    context = current_context()
    if context.get(_SUPPRESS_INSTRUMENTATION_KEY):
        return None
    return connection, context, enclosing_recording(context) if RECORDING_KEY in context else None


def enclosing_recording(context: OTelContext | None = None) -> HandlerRecording | None:
    """Return the recording of the innermost handler that is still active, if any."""
    value: Any = (current_context() if context is None else context).get(RECORDING_KEY)
    recording: HandlerRecording | None = value
    while recording is not None and not recording.active:
        recording = recording.outer
    return recording


def start_handler_recording(
    handler: Handler, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> HandlerRecording | None:
    """Start the span and the recording of a call. Return None if nothing is recorded."""
    scope = recording_scope()
    if scope is None:
        return None
    connection, context, outer = scope
    privacy = handler.privacy(connection)
    if outer is not None:
        privacy = privacy.within(outer.privacy)
    span, span_context = start_span(handler.span_name, context, handler.span_attributes)
    recording = HandlerRecording(handler, span, span_context, context, privacy, outer)
    try:
        recording.capture_call(args, kwargs)
    except BaseException as error:  # raised by a signal handler
        recording.fail(error)
        raise
    return recording
