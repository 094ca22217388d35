"""The spans of one trace, with the recognizers' reading of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from germane.exchange import Context
from germane.recognizers.conventions import GENERIC, convention_for
from germane.recognizers.documents import read_documents
from germane.recognizers.reading import Kind, Recognizer, SpanReading
from germane.recognizers.results import Source
from germane.recognizers.spans import LogData, SpanData, SpanTree

OWN_SCOPE = "germane"
EXCHANGE_ID = "germane.exchange.id"
"""Attribute of the spans of observed handlers."""


UNREAD: Final = SpanReading(kind="other")
"""The reading of a span that no recognizer knows."""
Readings = dict[str, SpanReading]
Documents = tuple[list[Context], Source]
"""The documents of one span, and where they were found."""


class Trace:
    """A tree of spans with their readings."""

    def __init__(self, tree: SpanTree, readings: Readings, *, has_recognizers: bool = False) -> None:
        self.tree = tree
        self.has_recognizers = has_recognizers
        """Whether registered recognizers have read spans. Only they return a session, a user, a model or a route."""
        self._documents: dict[str, Documents | None] = {}
        self._spans = {span.span_id: span for span in tree.spans}
        self._readings = readings

    @classmethod
    def load(
        cls, spans: Iterable[SpanData], logs: Sequence[LogData], recognizers: Sequence[Recognizer]
    ) -> Trace | None:
        """Read the spans and log records of a trace, without germane's own spans, evaluations, and their descendants.

        None if nothing is left, or if a decorated handler captures the trace.
        """
        whole = SpanTree(spans)
        readings: Readings = {span.span_id: read_span(span, (), recognizers) for span in whole.spans}
        tree = _exclude_own_spans(whole, readings)
        if tree is None:
            return None
        trace = cls(tree, readings, has_recognizers=bool(recognizers))
        by_span: dict[str, list[LogData]] = {}
        for log in logs:
            if log.span_id in trace._spans or log.span_id not in readings:  # otherwise, its span is excluded
                by_span.setdefault(log.span_id if log.span_id in trace._spans else "", []).append(log)
        if (unassigned := by_span.pop("", None)) is not None:
            # Records of the trace as a whole belong to its first model call.
            first = next((span for span in tree.spans if trace.kind(span) == "model"), tree.roots[0])
            by_span.setdefault(first.span_id, []).extend(unassigned)
        for span_id, own in by_span.items():
            readings[span_id] = read_span(trace.span(span_id), tuple(own), recognizers)
        return trace

    def span(self, span_id: str) -> SpanData:
        """Return a span by its id."""
        return self._spans[span_id]

    def reading(self, span: SpanData) -> SpanReading:
        """Return the reading of a span, which is empty if no recognizer knows the span."""
        return self._readings[span.span_id]

    def readings(self, spans: Iterable[SpanData]) -> list[tuple[SpanData, SpanReading]]:
        """Return those of the spans that a recognizer knows, with their readings."""
        return [(span, reading) for span in spans if (reading := self._readings[span.span_id]) is not UNREAD]

    def documents(self, span: SpanData) -> Documents | None:
        """Return what a retriever or reranker returned, or the documents that another span recorded as such."""
        if span.span_id not in self._documents:
            reading = self._readings[span.span_id]
            recorded = reading.documents
            if reading.kind in {"reranker", "retriever"}:
                recorded = (*recorded, *reading.outputs)
            found = (
                (contexts, Source(span.span_id, raw.source))
                for raw in recorded
                if (contexts := read_documents(raw.content))
            )
            self._documents[span.span_id] = next(found, None)
        return self._documents[span.span_id]

    def kind(self, span: SpanData) -> Kind:
        """Return the kind of a span."""
        return self._readings[span.span_id].kind


def read_span(span: SpanData, logs: tuple[LogData, ...], recognizers: Sequence[Recognizer]) -> SpanReading:
    """Read a span with the first recognizer that knows it, then with the convention of its scope."""
    for recognizer in recognizers:
        if (reading := recognizer(span)) is not None:
            return reading
    convention = convention_for(span)
    if convention is None:
        return UNREAD
    return convention.read(span, logs, None if convention is GENERIC else GENERIC)


def _exclude_own_spans(tree: SpanTree, readings: Readings) -> SpanTree | None:
    """Return None if nothing else is left, or if a decorated handler captures the trace."""
    excluded: set[str] = set()
    for span in tree.walk():
        kind, is_own = readings[span.span_id].kind, span.scope == OWN_SCOPE
        if is_own and EXCHANGE_ID in span.attributes:
            return None
        # germane.retrieval records documents for any handler.
        if (kind == "evaluator" or (is_own and kind != "retriever")) and span.span_id not in excluded:
            excluded |= {inner.span_id for inner in tree.walk(span)}
    kept = [span for span in tree.spans if span.span_id not in excluded] if excluded else tree.spans
    if all(span.scope == OWN_SCOPE for span in kept):
        return None
    return SpanTree(kept) if excluded else tree
