"""The recording of one call of a retrieval function: its contexts belong to the exchange around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind

from germane.exchange import Context
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.contexts import MAX_CONTEXTS, ContextReader, document_attributes
from germane.tracer.guard import attempt
from germane.tracer.handler import FirstText, name_of, text_or_none
from germane.tracer.privacy import Privacy
from germane.tracer.provider import tracer
from germane.tracer.recording import Recording, place
from germane.tracer.selectors import Call, Selector, argument_reader, reader, signature_of
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context as Here
    from opentelemetry.trace import Span

    from germane.exchange import AttributeValue, Context, Status
    from germane.tracer.handler_recording import HandlerRecording


class Retriever:
    """A retrieval function: its source, and how to read the contexts that it returns."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        source: str | None = None,
        query: Selector | None = None,
        contexts: Selector | None = None,
        content: Selector | None = None,
        id: Selector | None = None,
        score: Selector | None = None,
    ) -> None:
        self.function = function
        self.signature = signature_of(function)
        self.source = clean(source or name_of(function), NAME_LIMIT)
        self.first_text = FirstText(self.signature)
        self.find_query = None if query is None else argument_reader(query)
        self.find_contexts = reader(contexts) if contexts is not None else None
        self.read_context = ContextReader(content=content, id=id, score=score)
        self.span_name = f"{conventions.RETRIEVAL} {self.source}"
        self.span_attributes = {
            conventions.SPAN_KIND: conventions.RETRIEVER,
            conventions.OPERATION_NAME: conventions.RETRIEVAL,
            conventions.DATA_SOURCE_ID: self.source,
        }

    def query(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Read the query of a call."""
        if self.find_query is None:
            return self.first_text(args, kwargs)
        return text_or_none(self.find_query(Call(self.function, args, kwargs, self.signature)))

    def contexts(self, result: Any) -> list[Context]:
        """Read the contexts in what the function returned."""
        return self.read_context.all(result if self.find_contexts is None else self.find_contexts(result))


class RetrievalRecording(Recording):
    """One call of a retrieval function, inside a handler or by itself."""

    __slots__ = ("contexts", "query", "retriever")

    def __init__(
        self, retriever: Retriever, span: Span, here: Here, privacy: Privacy, outer: HandlerRecording | None
    ) -> None:
        super().__init__(span, here, privacy, outer)
        self.retriever = retriever
        self.query: str | None = None
        self.contexts: list[Context] = []

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Read the query."""
        self.query = attempt("query", self.retriever.query, args, kwargs, problems=self.problems)

    def keep(self, result: Any) -> None:
        self.contexts = attempt("contexts", self.retriever.contexts, result, problems=self.problems) or []
        self.finish()

    def add(self, chunk: Any) -> None:
        if len(self.contexts) < MAX_CONTEXTS:
            found = attempt("contexts", self.retriever.read_context, chunk, problems=self.problems)
            if found is not None:
                self.contexts.append(found)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        told = self._told(status, error)
        try:
            contexts = self.privacy.screen_contexts(self.contexts, self.problems)
            query = self.privacy.screen("query", self.query, self.problems)
            if self.outer is not None:
                self.outer.root.contexts.extend(contexts)
            self.span.set_attributes(self._attributes(query, contexts))
        finally:
            attempt("the end of a span", self._end_span, status, error, told)

    def _attributes(self, query: str | None, contexts: list[Context]) -> dict[str, AttributeValue]:
        shown: dict[str, AttributeValue] = {}
        if self.privacy.shows_output:
            shown.update(document_attributes(contexts))
        shown[conventions.SPAN_KIND] = conventions.RETRIEVER
        if query is not None and self.privacy.shows_input:
            shown[conventions.RETRIEVAL_QUERY] = shown[conventions.INPUT_VALUE] = query[:SPAN_TEXT_LIMIT]
            shown[conventions.INPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        return shown


def begin(retriever: Retriever, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RetrievalRecording | None:
    """Open the span of a retrieval; None where nothing is to be recorded."""
    placed = place()
    if placed is None or (source := tracer()) is None:
        return None
    connection, here, outer = placed
    privacy = Privacy(connection) if outer is None else outer.privacy
    span = source.start_span(retriever.span_name, here, kind=SpanKind.CLIENT, attributes=retriever.span_attributes)
    recording = RetrievalRecording(retriever, span, here, privacy, outer)
    recording.read(args, kwargs)
    return recording
