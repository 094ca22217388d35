"""The independent requests of one trace, such as a batch of questions under one span of the application.

Calls of language models belong to one request if one of them works on texts of the other: a rewritten question, a
check of the answer, or a loop of tool calls. They also do if both got the same query of a retriever, such as a grade of
each document before the answer. Only calls that no step of a framework contains together are separated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from germane.recognizers.answering import texts_in
from germane.recognizers.calls import ModelCall, read_calls
from germane.recognizers.spans import LogData, SpanData
from germane.recognizers.templates import MIN_DOCUMENT, labeled_question
from germane.recognizers.trace import Trace

_MAX_REQUESTS: Final = 50
"""Maximum number of requests in one trace, because all of them are compared with each other."""
_MAX_QUERIES: Final = 100
"""Maximum number of queries that are looked up in prompts."""
_MIN_LENGTH: Final = 3
"""Minimum number of characters of a text whose occurrence in another call relates the two calls."""


def split_trace(trace: Trace, logs: Sequence[LogData]) -> Iterator[tuple[list[SpanData], list[LogData]]]:
    """Yield the spans and log records of each request in a trace; nothing if there is only one.

    Args:
        trace: The trace.
        logs: Its log records. Those without a span of the trace are left out.
    """
    parts = _parts(trace)
    if not 2 <= len(parts) <= _MAX_REQUESTS:
        return
    calls = read_calls(trace)
    own_calls = [[call for call in calls if trace.tree.contains(top, call.span)] for top, _ in parts]
    queries = set(islice(_queries(trace), _MAX_QUERIES))
    own_queries = [
        {query for query in queries for call in own if any(query in prompt for prompt in call.prompts)}
        for own in own_calls
    ]
    groups: list[list[int]] = []
    for index, own in enumerate(own_calls):
        # Texts of related calls occur in each other: questions and answers in prompts, or the same question.
        related = [
            group
            for group in groups
            if any(own_queries[index] & own_queries[other] for other in group)
            or any(_works_on(a, b) or _works_on(b, a) for other in group for a in own for b in own_calls[other])
        ]
        merged = [*(member for group in related for member in group), index]
        groups = [*(group for group in groups if group not in related), merged]
    if len(groups) < 2:
        return
    for group in groups:
        spans: dict[str, SpanData] = {}
        for top in (top for index in sorted(group) for top in (*parts[index][1], parts[index][0])):
            spans |= {span.span_id: span for span in trace.tree.walk(top)}
            spans[top.span_id] = dataclasses.replace(top, parent_id=None)
        yield list(spans.values()), [log for log in logs if log.span_id in spans]


def _parts(trace: Trace) -> list[tuple[SpanData, list[SpanData]]]:
    """Return the highest spans that contain different calls, each with the spans without calls just before it."""
    calls = [span for span in trace.tree.spans if trace.kind(span) == "model"]
    children = list(trace.tree.roots) if len(calls) > 1 else []
    while True:
        containing = [span for span in children if any(trace.tree.contains(span, call) for call in calls)]
        if len(containing) != 1:
            break
        if trace.kind(containing[0]) in {"workflow", "model"}:
            return []
        children = trace.tree.children(containing[0])
    parts: list[tuple[SpanData, list[SpanData]]] = []
    before: list[SpanData] = []
    for span in children:
        if span in containing:
            parts.append((span, before))
            before = []
        else:
            before.append(span)
    return parts


def _queries(trace: Trace) -> Iterator[str]:
    """Yield the texts that retrievers searched for, without short ones, which may occur in a prompt by accident."""
    for span in trace.tree.spans:
        reading = trace.reading(span)
        for raw in reading.inputs if reading is not None and reading.kind == "retriever" else ():
            yield from (text for text in texts_in(raw.content) if len(text) >= MIN_DOCUMENT)


def _works_on(later: ModelCall, earlier: ModelCall) -> bool:
    question = None if earlier.question is None else earlier.question.text
    labeled = None if question is None else labeled_question(question)
    texts = [text for text in (question, labeled, earlier.answer) if text is not None and len(text) >= _MIN_LENGTH]
    return not texts or any(text in prompt for text in texts for prompt in later.prompts)
