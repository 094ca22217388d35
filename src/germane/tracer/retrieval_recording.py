"""Retrieval functions: their options, and recordings of their calls, which add contexts to the enclosing exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind

from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.contexts import MAX_CONTEXTS, ContextReader, document_attributes
from germane.tracer.guard import guarded
from germane.tracer.handler import QuestionArgument, name_of, text_or_none
from germane.tracer.handler_recording import HandlerRecording, recording_scope
from germane.tracer.iterator_proxy import is_mapping_proxy, is_sequence_proxy, proxy_mapping, proxy_sequence
from germane.tracer.known_types import is_lazy_mapping, is_lazy_sequence
from germane.tracer.privacy import Privacy
from germane.tracer.provider import start_span
from germane.tracer.recording import Recording
from germane.tracer.selectors import Call, Selector, argument_reader, signature_of, value_reader
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from opentelemetry.context import Context as OTelContext
    from opentelemetry.trace import Span

    from germane.exchange import AttributeValue, Context, Status


class Retriever:
    """A decorated retrieval function: its data source, and readers for the query and contexts of a call."""

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
        self.query_argument = QuestionArgument(self.signature, f"query of {self.source}")
        self.find_query = None if query is None else argument_reader(query)
        self.find_contexts = value_reader(contexts) if contexts is not None else None
        self.context_reader = ContextReader(content=content, id=id, score=score)
        self.span_name = f"{conventions.RETRIEVAL} {self.source}"
        self.span_attributes = {
            conventions.SPAN_KIND: conventions.RETRIEVER,
            conventions.OPERATION_NAME: conventions.RETRIEVAL,
            conventions.DATA_SOURCE_ID: self.source,
        }

    def query(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Extract the query from a call's arguments."""
        if self.find_query is None:
            return self.query_argument(args, kwargs)
        return text_or_none(self.find_query(Call(self.function, args, kwargs, self.signature)))

    def contexts(self, result: Any) -> list[Context]:
        """Extract the contexts from a return value."""
        return self.context_reader.read_all(result if self.find_contexts is None else self.find_contexts(result))


class RetrievalRecording(Recording):
    """A recording of one call to a retrieval function, inside or outside an observed handler."""

    __slots__ = ("contexts", "outer", "query", "retriever")

    def __init__(
        self,
        retriever: Retriever,
        span: Span,
        outer_context: OTelContext,
        privacy: Privacy,
        outer: HandlerRecording | None,
    ) -> None:
        super().__init__(span, outer_context, privacy)
        self.outer = outer
        self.retriever = retriever
        self.query: str | None = None
        self.contexts: list[Context] = []

    def record_returned(self, result: Any) -> Any:
        kind = type(result)
        if self.retriever.find_contexts is not None:
            return None
        if is_lazy_mapping(kind) or is_mapping_proxy(kind):
            return proxy_mapping(self, result) if self.retriever.context_reader.content_keys else None
        return proxy_sequence(self, result) if is_lazy_sequence(kind) or is_sequence_proxy(kind) else None

    @property
    def has_chunks(self) -> bool:
        return bool(self.contexts)

    def finish_with(self, result: Any) -> None:
        self._add(guarded("contexts", self.retriever.contexts, result, problems=self.problems) or ())
        self.finish()

    def add_chunk(self, chunk: Any) -> None:
        if len(self.contexts) < MAX_CONTEXTS:
            context = guarded("contexts", self.retriever.context_reader.read, chunk, problems=self.problems)
            if context is not None:
                guarded("contexts", self._add, (context,), problems=self.problems)

    def add_field(self, key: Any, value: Any) -> None:
        if type(key) is str and key in self.retriever.context_reader.content_keys and value is not None:
            self.add_chunk({key: value})

    def _add(self, contexts: Iterable[Context]) -> None:
        """Add contexts to the exchange immediately, because the handler may end before it has read all of them."""
        screened = self.privacy.screen_contexts(contexts, self.problems)
        self.contexts.extend(screened)
        if self.outer is not None:
            self.outer.root.contexts.extend(screened)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        error_text = self._describe_error(status, error)
        attributes: dict[str, AttributeValue] = {}
        try:
            query = self.privacy.screen("query", self.query, self.problems)
            if self.privacy.shows_output:
                attributes.update(document_attributes(self.contexts))
            attributes[conventions.SPAN_KIND] = conventions.RETRIEVER
            if query is not None and self.privacy.shows_input:
                text = query[:SPAN_TEXT_LIMIT]
                attributes[conventions.RETRIEVAL_QUERY] = attributes[conventions.INPUT_VALUE] = text
                attributes[conventions.INPUT_MIME_TYPE] = conventions.TEXT_PLAIN
        finally:
            self._end_span(attributes, status, error, error_text)

    def texts(self) -> list[str]:
        return [self.query or "", *(context.text for context in self.contexts)]


def start_retrieval_recording(
    retriever: Retriever, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> RetrievalRecording | None:
    """Start the span and the recording of a retrieval. Return None if nothing is recorded."""
    scope = recording_scope()
    if scope is None:
        return None
    connection, context, outer = scope
    privacy = Privacy(connection) if outer is None else outer.privacy
    span, _ = start_span(retriever.span_name, context, retriever.span_attributes, SpanKind.CLIENT)
    recording = RetrievalRecording(retriever, span, context, privacy, outer)
    try:
        recording.query = guarded("query", retriever.query, args, kwargs, problems=recording.problems)
    except BaseException as error:  # raised by a signal handler
        recording.fail(error)
        raise
    return recording
