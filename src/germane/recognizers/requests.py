"""The independent requests of one trace, such as a batch of questions under one span of the application.

Calls of language models belong to one request if one of them works on texts of the other: a rewritten question, a
check of the answer, or a loop of tool calls. They also do if both got the same query of a retriever, such as a grade of
each document before the answer. Only calls that no step of a framework contains together are separated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from germane.recognizers.calls import ModelCall, read_calls
from germane.recognizers.prompts import MIN_DOCUMENT, question_in
from germane.recognizers.spans import LogData, SpanData
from germane.recognizers.text import texts_in
from germane.recognizers.trace import Trace

_MAX_REQUESTS: Final = 50
"""Maximum number of requests in one trace, because all of them are compared with each other."""
_MAX_QUERIES: Final = 100
"""Maximum number of queries that are looked up in prompts."""
_MIN_LENGTH: Final = 3
"""Minimum number of characters of a text whose occurrence in another call relates the two calls."""


def split_trace(trace: Trace, logs: Sequence[LogData]) -> Iterator[tuple[list[SpanData], list[LogData]]]:
    """Yield the spans of each request in a trace, with their log records; nothing if there is only one request."""
    tops = _tops_of_parts(trace)
    if not 2 <= len(tops) <= _MAX_REQUESTS:
        return
    calls, queries = read_calls(trace), set(islice(_queries(trace), _MAX_QUERIES))
    parts = [
        _Part(spans, [call for call in calls if trace.tree.contains(spans[-1], call.span)], queries) for spans in tops
    ]
    groups = _group(parts)
    if len(groups) < 2:
        return
    for group in groups:
        spans: dict[str, SpanData] = {}
        for top in (top for part in parts if part in group for top in part.tops):
            spans |= {span.span_id: span for span in trace.tree.walk(top)}
            spans[top.span_id] = dataclasses.replace(top, parent_id=None)
        yield list(spans.values()), [log for log in logs if log.span_id in spans]


class _Part:
    """A part of a trace with its model calls, and the queries of retrievers that occur in their prompts."""

    def __init__(self, tops: Sequence[SpanData], calls: Sequence[ModelCall], queries: Iterable[str]) -> None:
        self.tops = tops
        self.calls = calls
        prompts = [prompt for call in calls for prompt in call.prompts]
        self.queries = {query for query in queries if any(query in prompt for prompt in prompts)}

    def is_related(self, other: _Part) -> bool:
        """Return whether texts of calls occur in each other: questions and answers in prompts, or the same query."""
        return not self.queries.isdisjoint(other.queries) or any(
            _works_on(a, b) or _works_on(b, a) for a in self.calls for b in other.calls
        )


def _group(parts: Iterable[_Part]) -> list[list[_Part]]:
    """Return groups of parts. Parts of different groups are not related."""
    groups: list[list[_Part]] = []
    for part in parts:
        related = [group for group in groups if any(part.is_related(other) for other in group)]
        merged = [*(member for group in related for member in group), part]
        groups = [*(group for group in groups if group not in related), merged]
    return groups


def _tops_of_parts(trace: Trace) -> list[list[SpanData]]:
    """Return the highest spans that contain different calls, each after the spans without calls just before it."""
    calls = [span for span in trace.tree.spans if trace.kind(span) == "model"]
    children = list(trace.tree.roots) if len(calls) > 1 else []
    while True:
        containing = [span for span in children if any(trace.tree.contains(span, call) for call in calls)]
        if len(containing) != 1:
            break
        if trace.kind(containing[0]) in {"workflow", "model"}:
            return []
        children = trace.tree.children(containing[0])
    parts: list[list[SpanData]] = [[]]
    for span in children:
        parts[-1].append(span)
        if span in containing:
            parts.append([])
    return parts[:-1]


def _queries(trace: Trace) -> Iterator[str]:
    """Yield the texts that retrievers searched for, without short ones, which may occur in a prompt by accident."""
    for span in trace.tree.spans:
        for raw in trace.reading(span).inputs if trace.kind(span) == "retriever" else ():
            yield from (text for text in texts_in(raw.content) if len(text) >= MIN_DOCUMENT)


def _works_on(later: ModelCall, earlier: ModelCall) -> bool:
    question = None if earlier.question is None else earlier.question.text
    asked = None if question is None else question_in(earlier)
    texts = [text for text in (question, asked, earlier.answer) if text is not None and len(text) >= _MIN_LENGTH]
    return not texts or any(text in prompt for text in texts for prompt in later.prompts)
