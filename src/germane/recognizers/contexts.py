"""The contexts of an exchange: retrieved documents, results of search tools, or texts inserted into a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from germane.exchange import Context
from germane.language import asks
from germane.recognizers.attributes import is_search
from germane.recognizers.calls import ModelCall
from germane.recognizers.documents import distinct, read_contexts, read_documents, read_lists, read_tool_result
from germane.recognizers.messages import read_messages, search_results
from germane.recognizers.prompts import MIN_DOCUMENT
from germane.recognizers.results import Source
from germane.recognizers.spans import SpanData
from germane.recognizers.text import decode
from germane.recognizers.trace import Documents, Trace
from germane.recognizers.values import find_question

_MAX_DOCUMENTS: Final = 100
"""Maximum number of documents that are looked up in prompts."""


class Contexts(NamedTuple):
    """Contexts and where they were found."""

    contexts: tuple[Context, ...] = ()
    sources: tuple[Source, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The texts that are looked up in prompts and answers."""
        return [context.text for context in self.contexts if len(context.text) >= MIN_DOCUMENT][:_MAX_DOCUMENTS]


def find_contexts(trace: Trace, region: Iterable[SpanData], calls: Sequence[ModelCall]) -> Contexts:
    """Return the contexts recorded in spans: documents if there are any, otherwise tool results, otherwise texts from
    prompts.
    """
    spans = sorted(region, key=lambda span: span.start)
    return (
        retrieved(trace, spans, calls)
        or _tool_results(trace, spans)
        or _results_in_messages(trace, spans, calls)
        or _inserted(trace, spans, calls)
        or Contexts()
    )


def retrieved(trace: Trace, spans: Sequence[SpanData], calls: Sequence[ModelCall]) -> Contexts | None:
    """Return the documents of the rerankers if there are any, otherwise those of the retrievers, otherwise those that
    other steps returned for a prompt.
    """
    found: Mapping[str, tuple[list[Context], list[Source]]] = {"reranker": ([], []), "retriever": ([], [])}
    for span in spans:
        if (documents := trace.documents(span)) is not None:
            contexts, sources = found["reranker" if trace.kind(span) == "reranker" else "retriever"]
            contexts += documents[0]
            sources.append(documents[1])
    for contexts, sources in found.values():
        if contexts:
            return Contexts(distinct(contexts), tuple(sources))
    prompts = "\n".join(prompt for call in calls for prompt in call.prompts)
    replies = {call.answer for call in calls[:-1]}
    returned = [part for span in spans if (part := _returned_for(prompts, replies, trace, span)) is not None]
    texts = [context for contexts, _ in returned for context in contexts]
    return Contexts(distinct(texts), tuple(source for _, source in returned)) if returned else None


def _returned_for(prompts: str, replies: set[str | None], trace: Trace, span: SpanData) -> Documents | None:
    """Return the documents that a step of a workflow returned or got, and that are part of a prompt, but not replies.

    If there are no prompts, the name of a function must say that it searches documents.
    """
    if trace.kind(span) != "workflow" or not (prompts or (is_search(span) and _is_function(trace, span))):
        return None
    reading = trace.reading(span)
    for raw in (*reading.outputs, *(reading.inputs if prompts else ())):
        if read_messages(raw.content) is not None:  # the conversation so far
            continue
        found = (read_documents(raw.content) or read_lists(raw.content))[:_MAX_DOCUMENTS]
        if prompts:
            given = (each for each in found if len(each.text) >= MIN_DOCUMENT and each.text in prompts)
            found = [each for each in given if each.text not in replies]
        if found and not all(asks(document.text) for document in found):  # parts of the question
            return found, Source(span.span_id, raw.source)
    return None


def _is_function(trace: Trace, span: SpanData) -> bool:
    """Return whether a step of a workflow contains no other known steps."""
    inner = (trace.kind(each) for each in trace.tree.walk(span) if each is not span)
    return trace.kind(span) == "workflow" and all(kind == "other" for kind in inner)


def has_documents_without_text(trace: Trace) -> bool:
    """Return whether a retriever recorded documents, but only their ids and scores."""
    values = [decode(raw.content) for span in trace.tree.spans for raw in trace.reading(span).documents]
    return any(isinstance(value, list) and value and all(isinstance(item, dict) for item in value) for value in values)


def _tool_results(trace: Trace, spans: Iterable[SpanData]) -> Contexts | None:
    contexts, sources = list[Context](), list[Source]()
    for span in spans:
        if not is_search(span) or not (trace.kind(span) == "tool" or _is_function(trace, span)):
            continue
        for raw in trace.reading(span).outputs:
            if documents := read_tool_result(raw.content):
                contexts += documents
                sources.append(Source(span.span_id, raw.source))
                break
    return Contexts(distinct(contexts), tuple(sources)) if contexts else None


def _results_in_messages(trace: Trace, spans: Iterable[SpanData], calls: Sequence[ModelCall]) -> Contexts | None:
    """Return the results of search tools in a conversation after the user's last message, if no span records them."""
    conversations = [(call.question, call.question_source) for call in reversed(calls)]
    conversations += [
        (find_question(raw.content), Source(span.span_id, raw.source))
        for span, reading in trace.readings(spans)
        if reading.kind == "workflow"
        for raw in (*reading.outputs, *reading.inputs)
    ]
    for found, source in conversations:
        results = [] if found is None else search_results(found.messages[len(found.history) :])
        if contexts := [context for result in results for context in read_tool_result(result)]:
            return Contexts(distinct(contexts), (source,))
    return None


def _inserted(trace: Trace, spans: Sequence[SpanData], calls: Sequence[ModelCall]) -> Contexts | None:
    """Return the contexts in a prompt's variables, otherwise those of the first step that received or returned some."""
    readings = trace.readings(spans)
    values = [(span, reading.variables) for span, reading in readings if reading.variables is not None]
    values += [
        (span, raw)
        for span, reading in readings
        if reading.kind in {"workflow", "prompt"}
        for raw in (*reading.inputs, *reading.outputs)
    ]
    for span, raw in values:
        if documents := read_contexts(raw.content):
            return Contexts(distinct(documents), (Source(span.span_id, raw.source),))
    for call in calls:
        if documents := read_contexts(call.template_fields) or read_lists(call.template_fields):
            return Contexts(distinct(documents), (call.question_source,))
    return None
