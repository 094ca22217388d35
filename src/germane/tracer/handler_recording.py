"""The recording of one call of an observed handler: what becomes an exchange."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opentelemetry.context import set_value

from germane.exchange import Exchange, draw_of, new_exchange_id
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.contexts import MAX_CONTEXTS
from germane.tracer.guard import attempt
from germane.tracer.handler import Handler, read_turns
from germane.tracer.privacy import Privacy
from germane.tracer.provider import holders, tracer
from germane.tracer.recording import CURRENT, Recording, place
from germane.tracer.selectors import Call
from germane.tracer.sse import Chunks, Frames, Texts, Textual, looks_framed, may_be_framed
from germane.tracer.text import NAME_LIMIT, as_attribute, clean, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opentelemetry.context import Context as Here
    from opentelemetry.trace import Span

    from germane.exchange import AttributeValue, Context, Status, Turn

_COLUMNS = {
    "model": (conventions.REQUEST_MODEL,),
    "prompt_version": (conventions.PROMPT_VERSION,),
    "session": (conventions.SESSION_ID, conventions.CONVERSATION_ID),
    "user": (conventions.USER_ID,),
}
"""Attributes with a column of their own, and their names on a span."""
_WRAPPING = 32
"""How much longer than the answer a stream may be that wraps it in events or JSON, before it is read no further."""


class HandlerRecording(Recording):
    """One call of an observed handler. Of nested ones the outermost, the ``root``, yields the exchange."""

    __slots__ = (
        "_framed",
        "_id",
        "_length",
        "_pieces",
        "_reader",
        "_taken",
        "answer",
        "contexts",
        "handler",
        "history",
        "labels",
        "question",
    )

    def __init__(
        self, handler: Handler, span: Span, here: Here, privacy: Privacy, outer: HandlerRecording | None
    ) -> None:
        super().__init__(span, here, privacy, outer)
        self.context = set_value(CURRENT, self, self.context)
        self.handler = handler
        self.question: str | None = None
        self.answer: str | None = None
        self.history: tuple[Turn, ...] = ()
        self.contexts: list[Context] = []
        self.labels: dict[str, AttributeValue] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._taken = 0
        self._framed = False
        self._reader: Chunks | None = None
        self._id: str | None = None

    @property
    def root(self) -> HandlerRecording:
        """The outermost handler around this call that is still under way; this one when there is none."""
        root = self
        while (outer := root.outer) is not None:
            if outer.under_way:
                root = outer
            else:  # forgotten: else a task that starts a task that starts a task would keep them all
                root.outer = outer.outer
        return root

    @property
    def exchange_id(self) -> str:
        """The id of the exchange that this call yields."""
        if self._id is None:
            self._id = new_exchange_id()
        return self._id

    @property
    def trace_id(self) -> str:
        """The trace this call belongs to, 32 hexadecimal digits; of its own where tracing is switched off."""
        trace_id = self.span.get_span_context().trace_id
        return f"{trace_id:032x}" if trace_id else self.exchange_id

    @property
    def span_id(self) -> str:
        """The span of this call, 16 hexadecimal digits."""
        span_id = self.span.get_span_context().span_id
        return f"{span_id:016x}" if span_id else self.exchange_id[-16:]

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Read what the handler was called with, before it can change it."""
        handler = self.handler
        if not handler.needs_call:
            self.question = attempt(handler.on_question, handler.first_text, args, kwargs, problems=self.problems)
            return
        call = Call(handler.function, args, kwargs, handler.signature)
        self.question = attempt(handler.on_question, handler.question, call, problems=self.problems)
        if handler.find_history:
            found = attempt("history", handler.find_history, call, problems=self.problems)
            self.history = attempt("history", read_turns, found, problems=self.problems) or ()
        for name, find in handler.find_attributes.items():
            self.label(name, attempt(f"attribute {name}", find, call, problems=self.problems))

    def label(self, name: str, value: Any) -> None:
        """Keep an attribute of the exchange; None removes it."""
        labels = self.root.labels
        if value is None:
            labels.pop(name, None)
            return
        limit = self.privacy.connection.text_limit
        kept = attempt(f"attribute {name}", as_attribute, value, limit, problems=self.problems)
        if kept is not None:
            labels[clean(name, NAME_LIMIT)] = kept

    def keep(self, result: Any) -> None:
        handler = self.handler
        self.answer = attempt(handler.on_answer, handler.answer, result, problems=self.problems)
        if handler.find_contexts is not None:
            self.add_contexts(attempt("contexts", handler.contexts, result, problems=self.problems) or ())
        self.finish()

    def expect_frames(self) -> None:
        self._framed = True

    def add(self, chunk: Any) -> None:
        limit = self.privacy.connection.text_limit
        if self._length < limit and self._taken < limit * _WRAPPING:
            attempt(self.handler.on_chunk, self._add, chunk, problems=self.problems)

    def _add(self, chunk: Any) -> None:
        if not isinstance(chunk, str | bytes | bytearray | memoryview):
            self._keep_piece(chunk)
        elif chunk:
            self._taken += len(chunk)
            if self._reader is None:
                self._reader = self._reader_for(chunk)
            for part in self._reader.feed(chunk):
                self._keep_piece(part)

    def _reader_for(self, chunk: Textual) -> Chunks:
        """Choose how the texts of a stream are read, by its first one."""
        handler = self.handler
        if (self._framed and may_be_framed(chunk)) or (handler.reads_frames and looks_framed(chunk)):
            return Frames()
        return Texts() if handler.find_chunk is None else Chunks()

    def _keep_piece(self, part: Any) -> None:
        text = self.handler.chunk(part)
        if text:
            self._pieces.append(text)
            self._length += len(text)

    def _read_rest(self) -> None:
        """Take what a stream that came to its end left unfinished."""
        for part in [] if self._reader is None else self._reader.close():
            self._keep_piece(part)

    def add_contexts(self, contexts: Iterable[Context]) -> list[Context]:
        """Screen contexts and keep them for the exchange; return those that may be kept."""
        kept = self.privacy.screen_contexts(contexts, self.problems)
        self.root.contexts.extend(kept)
        return kept

    def _finish(self, status: Status, error: BaseException | None) -> None:
        seconds, exchange = self.seconds, None
        told = self._told(status, error)
        try:
            if self._pieces or self._reader is not None:
                self._join(status)
            question = self.privacy.screen("question", self.question, self.problems)
            answer = self.privacy.screen("answer", self.answer, self.problems)
            if self.root is self:
                exchange = self._exchange(question, answer, status, told, seconds)
            self.span.set_attributes(self._attributes(question, answer))
        finally:
            attempt("the end of a span", self._end_held, exchange, status, error, told)
        if exchange is not None:
            self.privacy.connection.sink(exchange)

    def _join(self, status: Status) -> None:
        """Make an answer of the pieces of a stream."""
        handler = self.handler
        if status == "ok":
            attempt(handler.on_chunk, self._read_rest, problems=self.problems)
        if self._pieces:
            self.answer = attempt(handler.on_answer, handler.joined, self._pieces, problems=self.problems)

    def _exchange(
        self, question: str | None, answer: str | None, status: Status, told: str | None, seconds: float
    ) -> Exchange | None:
        """Return what was captured; None when the capture limit does not keep it, before anything is made of it."""
        trace_id, connection = self.trace_id, self.privacy.connection
        draw = draw_of(trace_id)
        probability = connection.admit(connection.service, self.handler.route, self.started, draw)
        if probability is None:
            return None
        attributes = self.labels.copy()  # another thread may still set one
        columns: dict[str, Any] = {name: str(attributes.pop(name)) for name in _COLUMNS if name in attributes}
        return Exchange(
            id=self.exchange_id,
            trace_id=trace_id,
            span_id=self.span_id,
            service=connection.service,
            route=self.handler.route,
            question=question,
            answer=answer,
            contexts=self._distinct_contexts() if self.contexts else (),
            history=self.privacy.screen_turns(self.history, self.problems) if self.history else (),
            attributes=attributes,
            status=status,
            error=told,
            started_at=datetime.fromtimestamp(self.started / 1e9, UTC),
            duration=seconds,
            sampling_key=draw,
            capture_probability=probability,
            traced=self.span.get_span_context().trace_flags.sampled,
            **columns,
        )

    def _distinct_contexts(self) -> tuple[Context, ...]:
        """Return the contexts, each text once."""
        return tuple({kept.text: kept for kept in self.contexts}.values())[:MAX_CONTEXTS]

    def _end_held(
        self, exchange: Exchange | None, status: Status, error: BaseException | None, told: str | None
    ) -> None:
        """End the span; have it wait for its score, where one will be made in this process, soon."""
        context = self.span.get_span_context()
        if exchange is None or not (context.trace_flags.sampled and self._awaits_score(exchange)):
            self._end_span(status, error, told)
            return
        key, waiting = (context.trace_id, context.span_id), holders()
        for holder in waiting:
            holder.announce(key)
        self._end_span(status, error, told)
        for holder in waiting:
            holder.withdraw(key)

    def _awaits_score(self, exchange: Exchange) -> bool:
        connection = self.privacy.connection
        complete = exchange.status == "ok" and bool(exchange.question and exchange.answer)
        return connection.hold and complete and exchange.sampling_key <= connection.rate

    def _attributes(self, question: str | None, answer: str | None) -> dict[str, AttributeValue]:
        """Return what the span shows; kind, question and answer last, as a full span drops its oldest attributes."""
        shown: dict[str, AttributeValue] = {}
        for name, value in self.labels.copy().items():
            shown.update(dict.fromkeys(_COLUMNS.get(name, (name,)), value))
        if self.root is self:
            shown[conventions.EXCHANGE_ID] = self.exchange_id
        shown[conventions.SPAN_KIND] = conventions.CHAIN
        if question is not None and self.privacy.shows_input:
            text = question[:SPAN_TEXT_LIMIT]
            shown[conventions.INPUT_MESSAGES] = _USER_MESSAGE.format(encode(text))
            shown[conventions.INPUT_VALUE] = text
            shown[conventions.INPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        if answer is not None and self.privacy.shows_output:
            text = answer[:SPAN_TEXT_LIMIT]
            shown[conventions.OUTPUT_MESSAGES] = _ASSISTANT_MESSAGE.format(encode(text))
            shown[conventions.OUTPUT_VALUE] = text
            shown[conventions.OUTPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        return shown


_USER_MESSAGE = '[{{"role":"user","parts":[{{"type":"text","content":{}}}]}}]'
_ASSISTANT_MESSAGE = '[{{"role":"assistant","parts":[{{"type":"text","content":{}}}],"finish_reason":"stop"}}]'


def begin(handler: Handler, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> HandlerRecording | None:
    """Open the span of a call; None where nothing is to be recorded."""
    placed = place()
    if placed is None or (source := tracer()) is None:
        return None
    connection, here, outer = placed
    privacy = Privacy(connection, handler.redact, handler.capture)
    if outer is not None:
        privacy = privacy.within(outer.privacy)
    span = source.start_span(handler.span_name, here, attributes=handler.span_attributes)
    recording = HandlerRecording(handler, span, here, privacy, outer)
    recording.read(args, kwargs)
    return recording
