"""The events and log records of a span, which contain texts under any names.

An event is read in the same way whatever its name is. If it has the role of a message's author, it is a message.
Otherwise, its values are those of attributes with the same names, and the event as a whole is an object, such as
``{"query": {"query_str": "..."}, "response": {"response": "..."}}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from germane.recognizers.flattening import decoded_parts
from germane.recognizers.messages import role_of
from germane.recognizers.spans import LogData, SpanData
from germane.recognizers.text import decode

QUESTION_EVENT: Final = "gen_ai.user.message"
"""Name of the events and log records with a message of the user."""
CHOICE_EVENT: Final = "gen_ai.choice"
"""Name of the events and log records with a message of the model, or a tool's result."""
_EXCEPTION_EVENT: Final = "exception"
_DOCUMENT: Final = "db.query.result.document"
"""Attribute of the events in which instrumentations of vector databases record one document each."""
_MAX_OBJECTS: Final = 4
"""Maximum number of events at the beginning and at the end of a span that are read as objects. A framework records its
inputs at the beginning and its outputs at the end. Between them are the parts of a stream."""
_MAX_NAMES: Final = 200


class Record(NamedTuple):
    """An event or a log record."""

    name: str
    values: Mapping[str, Any]
    """The attributes, and the fields of the body. A body that is not an object is the field ``content``."""


def records_of(span: SpanData, logs: Sequence[LogData]) -> list[Record]:
    """Return the events and the named log records of a span, without exceptions."""
    records = [Record(event.name, event.attributes) for event in span.events]
    for log in logs:
        body = decode(log.body)
        name = log.event_name or str(log.attributes.get("event.name") or "")
        records.append(Record(name, {**log.attributes, **(body if isinstance(body, dict) else {"content": body})}))
    return [record for record in records if record.name not in {"", _EXCEPTION_EVENT}]


def messages_in(records: Iterable[Record]) -> tuple[list[Any], list[Any]]:
    """Return the messages sent to the model, and those it returned."""
    asked, answered = list[Any](), list[Any]()
    for name, values in records:
        if role_of(name, values.get("role")) is None:
            continue
        message = {**values, "event.name": name}
        inner = decode(values.get("message"))
        if isinstance(inner, Mapping):
            message["message"] = inner
        message["content"] = decoded_parts(values.get("content", None if isinstance(inner, Mapping) else inner))
        (answered if name == CHOICE_EVENT else asked).append(message)
    if not answered and asked and role_of(asked[-1]["event.name"], asked[-1].get("role")) == "assistant":
        answered = asked  # the whole conversation
    return asked, answered


def documents_in(records: Iterable[Record]) -> list[Any]:
    """Return the documents of a vector database that are recorded in an event each."""
    return [
        {"content": text, "id": values.get("db.query.result.id")}
        for _, values in records
        if (text := values.get(_DOCUMENT))
    ]


def objects_in(records: Sequence[Record]) -> Iterator[tuple[str, Any]]:
    """Yield the names and contents of the events that are not messages, as objects."""
    others = [
        record
        for record in records
        if role_of(record.name, record.values.get("role")) is None
        and any(isinstance(value, (str, list, dict)) for value in record.values.values())
    ]
    ends = (*others[:_MAX_OBJECTS], *others[_MAX_OBJECTS:][-_MAX_OBJECTS:])
    yield from ((record.name, _nested(record.values)) for record in ends)


def stream_in(records: Sequence[Record]) -> str:
    """Return the text of a stream whose parts are recorded in an event each; empty if the first ones may be missing."""
    parts = [text for record in records if isinstance(text := record.values.get("delta"), str)]
    return "".join(parts) if records and "delta" not in records[0].values else ""


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values such as ``response.text`` as an object of objects. Of a value and an object, the value is kept."""
    nested: dict[str, Any] = {}
    for name in sorted(values)[:_MAX_NAMES]:
        *path, last = name.split(".")
        inner = nested
        for part in path:
            child = inner.setdefault(part, {})
            if not isinstance(child, dict):
                break
            inner = child
        else:
            # Lists are JSON and have a plural as their name. JSON under other names may be a person's text.
            inner.setdefault(last, decode(values[name]) if last.endswith("s") else values[name])
    return nested
