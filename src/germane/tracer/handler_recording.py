"""The recording of one call of an observed handler: what becomes an exchange."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from germane.exchange import Exchange, draw_of, new_exchange_id
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.contexts import MAX_CONTEXTS
from germane.tracer.frames import Frames, looks_framed
from germane.tracer.guard import attempt
from germane.tracer.handler import Handler, read_turns
from germane.tracer.privacy import Privacy
from germane.tracer.provider import holders, tracer
from germane.tracer.recording import Recording, place
from germane.tracer.selectors import Call
from germane.tracer.text import as_text, encode

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


class HandlerRecording(Recording):
    """One call of an observed handler. Of nested ones the outermost, the ``root``, yields the exchange."""

    root: HandlerRecording
    __slots__ = (
        "_frames",
        "_id",
        "_length",
        "_pieces",
        "answer",
        "contexts",
        "handler",
        "history",
        "labels",
        "question",
    )

    def __init__(
        self, handler: Handler, span: Span, here: Here, privacy: Privacy, root: HandlerRecording | None
    ) -> None:
        super().__init__(span, here, privacy, root or self)
        self.handler = handler
        self.question: str | None = None
        self.answer: str | None = None
        self.history: tuple[Turn, ...] = ()
        self.contexts: list[Context] = []
        self.labels: dict[str, AttributeValue] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._frames: Frames | None = None
        self._id: str | None = None

    @property
    def exchange_id(self) -> str:
        """The id of the exchange that this call yields."""
        if self._id is None:
            self._id = new_exchange_id()
        return self._id

    @property
    def trace_id(self) -> str:
        """The trace this call belongs to, 32 hexadecimal digits."""
        return f"{self.span.get_span_context().trace_id:032x}"

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Read what the handler was called with, before it can change it."""
        handler = self.handler
        self.question = attempt(handler.on_question, handler.question, args, kwargs, problems=self.problems)
        if handler.find_attributes or handler.find_history:
            self._read_more(Call(handler.function, args, kwargs))

    def _read_more(self, call: Call) -> None:
        if self.handler.find_history:
            found = attempt("history", self.handler.find_history, call, problems=self.problems)
            self.history = attempt("history", read_turns, found, problems=self.problems) or ()
        for name, find in self.handler.find_attributes.items():
            self.label(name, attempt(f"attribute {name}", find, call, problems=self.problems))

    def label(self, name: str, value: Any) -> None:
        """Keep an attribute of the exchange; None removes it."""
        if value is None:
            self.root.labels.pop(name, None)
        elif isinstance(value, bool | int | float):
            self.root.labels[name] = value
        elif (text := attempt(f"attribute {name}", as_text, value, problems=self.problems)) is not None:
            self.root.labels[name] = text

    def keep(self, result: Any) -> None:
        handler = self.handler
        self.answer = attempt(handler.on_answer, handler.answer, result, problems=self.problems)
        if handler.find_contexts is not None:
            self.add_contexts(attempt("contexts", handler.contexts, result, problems=self.problems) or ())
        self.finish()

    def expect_frames(self) -> None:
        """Read the chunks to come as server-sent events."""
        self._frames = Frames()

    def add(self, chunk: Any) -> None:
        if self._length < self.privacy.connection.text_limit:
            attempt(self.handler.on_chunk, self._add, chunk)

    def _add(self, chunk: Any) -> None:
        first = not self._pieces and self._frames is None
        if first and self.handler.find_chunk is None and isinstance(chunk, str) and looks_framed(chunk):
            self.expect_frames()
        for part in [chunk] if self._frames is None else self._frames.feed(as_text(chunk)):
            text = self.handler.chunk(part)
            if text:
                self._pieces.append(text)
                self._length += len(text)

    def add_contexts(self, contexts: Iterable[Context]) -> None:
        """Screen contexts and keep them for the exchange."""
        self.root.contexts.extend(self.privacy.screen_contexts(contexts, self.problems))

    def _finish(self, status: Status, error: BaseException | None) -> None:
        seconds, exchange = self.seconds, None
        if self._pieces:
            handler = self.handler
            self.answer = attempt(handler.on_answer, handler.joined, self._pieces, problems=self.problems)
        told = self._told(status, error)
        try:
            question = self.privacy.screen("question", self.question, self.problems)
            answer = self.privacy.screen("answer", self.answer, self.problems)
            if self.root is self:
                exchange = self._exchange(question, answer, status, told, seconds)
            self.span.set_attributes(self._attributes(question, answer))
        finally:
            if exchange is not None and question and answer:
                self._announce(exchange)
            self._end_span(status, error, told)
        if exchange is not None:
            self.privacy.connection.sink(exchange)

    def _exchange(
        self, question: str | None, answer: str | None, status: Status, told: str | None, seconds: float
    ) -> Exchange:
        context, labels = self.span.get_span_context(), self.labels
        trace_id = f"{context.trace_id:032x}" if context.trace_id else os.urandom(16).hex()
        contexts = {kept.text: kept for kept in self.contexts}
        return Exchange(
            id=self.exchange_id,
            trace_id=trace_id,
            span_id=f"{context.span_id:016x}",
            service=self.privacy.connection.service,
            route=self.handler.route,
            question=question,
            answer=answer,
            contexts=tuple(contexts.values())[:MAX_CONTEXTS],
            history=self.privacy.screen_turns(self.history, self.problems),
            model=_column(labels, "model"),
            prompt_version=_column(labels, "prompt_version"),
            session=_column(labels, "session"),
            user=_column(labels, "user"),
            attributes={name: value for name, value in labels.items() if name not in _COLUMNS},
            status=status,
            error=told,
            started_at=datetime.fromtimestamp(self.started / 1e9, UTC),
            duration=seconds,
            draw=draw_of(trace_id),
        )

    def _announce(self, exchange: Exchange) -> None:
        """Have the span wait for its score, where one will be made in this process, soon."""
        connection, context = self.privacy.connection, self.span.get_span_context()
        if connection.hold and exchange.draw <= connection.rate and self.span.is_recording():
            for holder in holders():
                holder.announce((context.trace_id, context.span_id))

    def _attributes(self, question: str | None, answer: str | None) -> dict[str, AttributeValue]:
        """Return what the span shows; kind, question and answer last, as a full span drops its oldest attributes."""
        shown: dict[str, AttributeValue] = {}
        for name, value in self.labels.items():
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
    root = outer.root if outer is not None else None
    if outer is not None:
        privacy = privacy.within(outer.privacy)
    span = source.start_span(handler.span_name, here, attributes=handler.span_attributes)
    recording = HandlerRecording(handler, span, here, privacy, root)
    recording.read(args, kwargs)
    return recording


def _column(labels: Mapping[str, AttributeValue], name: str) -> str | None:
    return str(labels[name]) if name in labels else None
