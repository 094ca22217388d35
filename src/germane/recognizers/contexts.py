"""The contexts of an exchange: retrieved documents, results of search tools, or texts inserted into a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from germane.exchange import Context
from germane.recognizers.attributes import is_search_tool
from germane.recognizers.calls import ModelCall
from germane.recognizers.documents import distinct, lacks_text, read_contexts, read_tool_result
from germane.recognizers.results import Source
from germane.recognizers.spans import SpanData
from germane.recognizers.trace import Trace


class Contexts(NamedTuple):
    """Contexts and where they were found."""

    contexts: tuple[Context, ...] = ()
    sources: tuple[Source, ...] = ()
    from_tools: bool = False


def find_contexts(trace: Trace, region: Iterable[SpanData], calls: Sequence[ModelCall]) -> Contexts:
    """Return the contexts recorded in spans: documents if there are any, otherwise tool results, otherwise texts from
    prompts.
    """
    spans = sorted(region, key=lambda span: span.start)
    return retrieved(trace, spans) or _tool_results(trace, spans) or _inserted(trace, spans, calls) or Contexts()


def retrieved(trace: Trace, spans: Iterable[SpanData]) -> Contexts | None:
    """Return the documents of the rerankers if there are any, otherwise those of the retrievers."""
    found: Mapping[str, tuple[list[Context], list[Source]]] = {"reranker": ([], []), "retriever": ([], [])}
    for span in spans:
        if (documents := trace.documents(span)) is not None:
            contexts, sources = found["reranker" if trace.kind(span) == "reranker" else "retriever"]
            contexts += documents[0]
            sources.append(documents[1])
    for contexts, sources in found.values():
        if contexts:
            return Contexts(distinct(contexts), tuple(sources))
    return None


def has_documents_without_text(trace: Trace) -> bool:
    """Return whether a retriever recorded documents, but only their ids and scores."""
    return any(lacks_text(raw.content) for span in trace.tree.spans for raw in trace.reading(span).documents)


def _tool_results(trace: Trace, spans: Iterable[SpanData]) -> Contexts | None:
    contexts, sources = list[Context](), list[Source]()
    for span in spans:
        reading = trace.reading(span)
        if reading.kind != "tool" or not is_search_tool(span):
            continue
        for raw in reading.outputs:
            if documents := read_tool_result(raw.value):
                contexts += documents
                sources.append(Source(span.span_id, raw.source))
                break
    return Contexts(distinct(contexts), tuple(sources), from_tools=True) if contexts else None


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
        if documents := read_contexts(call.template_fields):
            return Contexts(distinct(documents), (call.question_source,))
    return None
