"""Session, user, model, route and tool names, under the attribute names of all conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from germane.recognizers.reading import SpanReading
from germane.recognizers.results import Source
from germane.recognizers.spans import SpanData
from germane.recognizers.text import MAX_DEPTH, decode

ROUTE: Final = "germane.route"
_SESSION: Final = (
    "session.id",
    "gen_ai.conversation.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langfuse.session.id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session_id",
    "mlflow.trace.session",
    "spring.ai.chat.client.conversation.id",
    "group_id",
)
_USER: Final = (
    "user.id",
    "enduser.id",
    "traceloop.association.properties.user_id",
    "langfuse.user.id",
    "ai.telemetry.metadata.userId",
    "ai.telemetry.metadata.user_id",
    "mlflow.trace.user",
)
_METADATA_SESSION: Final = ("session_id", "sessionId", "thread_id", "conversation_id")
_METADATA_USER: Final = ("user_id", "userId")
_MODEL: Final = (
    "gen_ai.request.model",
    "llm.model_name",
    "ai.model.id",
    "gen_ai.response.model",
    "llm.request.model",
    "model_name",
)
_NAMES: Final = (
    "gen_ai.workflow.name",
    "gen_ai.agent.name",
    "traceloop.workflow.name",
    "agent.name",
    "langfuse.trace.name",
)
_TOOL_NAMES: Final = (
    "gen_ai.tool.name",
    "tool.name",
    "ai.toolCall.name",
    "haystack.tool.name",
    "traceloop.entity.name",
    "name",
)
_FINISH: Final = ("gen_ai.response.finish_reasons", "ai.response.finishReason", "llm.finish_reason")
_SEARCH_TOOL: Final = re.compile(r"search|retrieve|retrieval|docs|document|knowledge", re.IGNORECASE)
_UNKNOWN: Final = frozenset({"", "unknown", "None", "null"})

Found = tuple[str, Source]
"""A text and where it was found."""


def find_session(spans: Sequence[SpanData]) -> Found | None:
    """Return the id of the session or conversation."""
    return _first(spans, _SESSION) or _first_in_metadata(spans, _METADATA_SESSION)


def find_user(spans: Sequence[SpanData]) -> Found | None:
    """Return the id of the user."""
    return _first(spans, _USER) or _first_in_metadata(spans, _METADATA_USER)


def find_model(span: SpanData, reading: SpanReading) -> Found | None:
    """Return the name of the model that a span called."""
    if (found := _first([span], _MODEL)) is not None:
        return found
    for raw in reading.outputs:
        if (name := _model_in(decode(raw.value), 0)) is not None:
            return name, Source(span.span_id, raw.source)
    return None


def _model_in(value: Any, depth: int) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return None
    name = value.get("model")
    if isinstance(name, str) and name not in _UNKNOWN:
        return name
    return next((found for key in ("meta", "replies") if (found := _model_in(value.get(key), depth + 1))), None)


def find_name(spans: Iterable[tuple[SpanData, SpanReading]]) -> Found | None:
    """Return the name of the workflow or agent."""
    for span, reading in spans:
        if (
            reading.kind in {"workflow", "model"}
            and (found := _first([span], (*_NAMES, *reading.name_attributes))) is not None
        ):
            return found
    return None


def is_search_tool(span: SpanData) -> bool:
    """Return whether a tool's name indicates that it searches documents."""
    names = [span.attributes[key] for key in _TOOL_NAMES if isinstance(span.attributes.get(key), str)]
    return _SEARCH_TOOL.search(names[0] if names else span.name) is not None


def is_finished(span: SpanData) -> bool:
    """Return whether a model call has a finish reason, which means that its output is complete."""
    return any(span.attributes.get(name) for name in _FINISH)


def find_attribute(spans: Iterable[SpanData], name: str) -> Found | None:
    """Return the first value of one attribute."""
    return _first(spans, (name,))


def _first(spans: Iterable[SpanData], names: tuple[str, ...]) -> Found | None:
    for span in spans:
        attributes = span.attributes
        for name in names:
            if name not in attributes:
                continue
            value = attributes[name]
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip() not in _UNKNOWN:
                return str(value).strip(), Source(span.span_id, name)
    return None


def _first_in_metadata(spans: Iterable[SpanData], keys: tuple[str, ...]) -> Found | None:
    for span in spans:
        metadata = decode(span.attributes.get("metadata"))
        if metadata and isinstance(metadata, dict):
            for key in keys:
                value = metadata.get(key)
                if isinstance(value, str) and value.strip() not in _UNKNOWN:
                    return value.strip(), Source(span.span_id, f"metadata.{key}")
    return None
