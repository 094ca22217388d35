"""Session, user, model, route and tool names, under the attribute names of all conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from germane.recognizers.messages import SEARCH_NAME
from germane.recognizers.reading import SpanReading
from germane.recognizers.results import Source
from germane.recognizers.spans import SpanData
from germane.recognizers.text import MAX_DEPTH, decode

ROUTE: Final = ("germane.route",)
_METADATA: Final = (
    *("traceloop.association.properties", "ai.telemetry.metadata", "langfuse.trace.metadata", "langsmith.metadata"),
    "metadata",
)
"""Beginnings of the attributes with metadata that the application sets. The last one may be a whole object."""
SESSION: Final = (
    *("session.id", "gen_ai.conversation.id", "langfuse.session.id", "mlflow.trace.session"),
    "spring.ai.chat.client.conversation.id",
    *(f"{start}.{name}" for start in _METADATA for name in ("session_id", "sessionId", "thread_id", "conversation_id")),
    "group_id",
)
USER: Final = (
    *("user.id", "enduser.id", "langfuse.user.id", "mlflow.trace.user"),
    *(f"{start}.{name}" for start in _METADATA for name in ("user_id", "userId")),
)
_MODEL: Final = (
    *("gen_ai.request.model", "llm.model_name", "ai.model.id", "gen_ai.response.model", "llm.request.model"),
    *("langfuse.observation.model.name", "model_name"),
)
_PROVIDER: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_NAMES: Final = (
    *("gen_ai.workflow.name", "gen_ai.agent.name", "traceloop.workflow.name", "agent.name", "langfuse.trace.name"),
)
_TOOL_NAMES: Final = (
    *("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "haystack.tool.name", "traceloop.entity.name", "name"),
)
_FINISH: Final = ("gen_ai.response.finish_reasons", "ai.response.finishReason", "llm.finish_reason")
_ID: Final = re.compile(
    r"""(?<![^\W_])(?:
        [0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}  # UUIDs
        | (?=[0-9a-z]*[0-9])(?:[0-9a-f]{8,}|[0-9]{5,})  # hexadecimal and decimal numbers
        | (?=(?:[a-z]*[0-9]){4})[0-9a-z]{16,}  # ULIDs and the like
        | (?<=/)[0-9]+(?=/|\s|$)  # parts of a path
    )(?![^\W_])""",
    re.VERBOSE | re.IGNORECASE,
)
_UNKNOWN: Final = frozenset({"", "unknown", "None", "null"})

Found = tuple[str, Source]


def find_model(span: SpanData, reading: SpanReading) -> Found | None:
    """Return the name of the model that a span called, without a prefix such as ``azure/`` or ``openai:``."""
    found = find_attribute([span], _MODEL)
    for raw in reading.outputs if found is None and reading.kind == "model" else ():
        if (name := _model_in(decode(raw.value), 0)) is not None:
            found = name, Source(span.span_id, raw.source)
            break
    if found is None:
        return None
    name, provider = found[0].rstrip("/").rpartition("/")[2], find_attribute([span], _PROVIDER)
    return (name if provider is None else name.removeprefix(f"{provider[0]}:")), found[1]


def _model_in(value: Any, depth: int) -> str | None:
    """Return the name of the model in the response of a model call, wherever the framework puts it."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return None
    for key in ("model", "model_name"):
        if isinstance(name := value.get(key), str) and name not in _UNKNOWN:
            return name
    return next((found for inner in value.values() if (found := _model_in(inner, depth + 1))), None)


def stable_name(name: str) -> str:
    """Return the name of a span with ``{id}`` in place of ids, which differ from trace to trace."""
    return _ID.sub("{id}", name)


def find_name(spans: Iterable[tuple[SpanData, SpanReading]]) -> Found | None:
    """Return the name of the workflow or agent."""
    for span, reading in spans:
        if (
            reading.kind in {"workflow", "model"}
            and (found := find_attribute([span], (*_NAMES, *reading.name_attributes))) is not None
        ):
            return stable_name(found[0]), found[1]
    return None


def is_search(span: SpanData) -> bool:
    """Return whether the name of a tool or function says that it searches documents."""
    names = [span.attributes[key] for key in _TOOL_NAMES if isinstance(span.attributes.get(key), str)]
    return SEARCH_NAME.search(names[0] if names else span.name) is not None


def is_finished(span: SpanData) -> bool:
    """Return whether a model call has a finish reason, which means that its output is complete."""
    return any(span.attributes.get(name) for name in _FINISH)


def find_attribute(spans: Iterable[SpanData], names: Sequence[str]) -> Found | None:
    """Return the first value of one of the attributes, which is a name or an id."""
    for span in spans:
        for name in names:
            value = _value(span.attributes, name)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip() not in _UNKNOWN:
                return str(value).strip(), Source(span.span_id, name)
    return None


def _value(attributes: Mapping[str, Any], name: str) -> Any:
    """Return the value of an attribute, which may be a field of the object ``metadata``."""
    if name in attributes or not name.startswith("metadata."):
        return attributes.get(name)
    metadata = decode(attributes.get("metadata"))
    return metadata.get(name.removeprefix("metadata.")) if isinstance(metadata, dict) else None
