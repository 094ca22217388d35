"""Watched traces: counts, and a sample of the unreadable ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from germane.recognizers import SpanData, outline_spans
from germane.storage import TrackingStore
from germane.trace_outline import UnreadableTrace

LANGCHAIN = "openinference.instrumentation.langchain"
OPENAI = "opentelemetry.instrumentation.genai.openai"
FIRST_ID = 0x4BF92F3577B34DA6A3CE929D0E0E4736
FASTAPI = "opentelemetry.instrumentation.fastapi"


def sample_trace(number: int, service: str, at: datetime, scope: str, reason: str) -> UnreadableTrace:
    """Return the trace of a request: a web server, a chain, a retriever, and a model call without content."""
    start, attributes = int(at.timestamp()) * 10**9, dict[str, Any]()
    if scope == LANGCHAIN:
        attributes = {"input.value": "How do I pay by invoice?", "openinference.span.kind": "CHAIN"}
    spans = [
        _span(1, None, start, 1_900, name="POST /ask", scope=FASTAPI, kind="SERVER", attributes={"http.route": "/ask"}),
        _span(2, 1, start, 1_850, name="answer", scope=scope, attributes=attributes),
        _span(3, 2, start + 10**7, 40, name="retrieve", scope=scope, attributes={"gen_ai.operation.name": "retrieval"}),
        _span(
            4,
            2,
            start + 5 * 10**7,
            1_700,
            name="chat larch-small",
            scope=OPENAI,
            kind="CLIENT",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "larch-small",
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.usage.input_tokens": 812,
                "gen_ai.usage.output_tokens": 96,
            },
        ),
    ]
    outlines, omitted = outline_spans(spans)
    return UnreadableTrace(
        trace_id=f"{FIRST_ID + 7919 * number:032x}",
        service=service,
        scope=scope,
        reason=reason,
        started_at=at,
        spans=outlines,
        spans_omitted=omitted,
    )


def _span(number: int, parent: int | None, start: int, milliseconds: int, **given: Any) -> SpanData:
    parent_id = None if parent is None else f"{parent:016x}"
    end = start + milliseconds * 10**6
    return SpanData(trace_id="", span_id=f"{number:016x}", parent_id=parent_id, start=start, end=end, **given)


def add_watched_traces(
    store: TrackingStore, service: str, now: datetime, counts: Mapping[tuple[str, str], int]
) -> list[str]:
    """Count traces by scope and outcome in the last hours, with samples of the unreadable ones.

    Returns:
        The ids of the sampled traces.
    """
    hour = int(now.timestamp()) // 3600 - 1
    store.exchanges.count_watched({(hour, service, *names): count for names, count in counts.items()})
    traces = [
        sample_trace(1000 * index + number, service, now - timedelta(minutes=7 * number + 4), scope, outcome)
        for index, (scope, outcome) in enumerate(counts)
        if outcome not in {"recognized", "not_an_exchange"}
        for number in range(3)
    ]
    store.unreadable.add(traces)
    return [trace.trace_id for trace in traces]
