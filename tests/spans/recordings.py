"""Recorded traces as span data: the formats of the Python and the JavaScript SDK's exporters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from germane.recognizers import LogData, SpanData, SpanEvent


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """The spans and log records of one trace, with the file that they come from."""

    file: str
    number: int
    spans: tuple[SpanData, ...]
    logs: tuple[LogData, ...]
    expected: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}-{self.number}"


def load_recordings(directory: Path) -> Iterator[RecordedTrace]:
    """Yield the traces of all files in a directory."""
    for path in sorted(directory.glob("*.json")):
        recording = json.loads(path.read_text(encoding="utf-8"))
        traces: dict[str, list[SpanData]] = {}
        for span in recording["spans"]:
            data = span_data(span)
            traces.setdefault(data.trace_id, []).append(data)
        only = next(iter(traces)) if len(traces) == 1 else ""
        logs = [log_data(log, only) for log in recording.get("logs", ())]
        for number, (trace_id, spans) in enumerate(traces.items()):
            own = tuple(log for log in logs if log.trace_id == trace_id)
            yield RecordedTrace(path.stem, number, tuple(spans), own, recording["expected"])


def span_data(span: Mapping[str, Any]) -> SpanData:
    """Read a span."""
    context = span["context"]
    return SpanData(
        trace_id=_hex(context.get("trace_id") or context["traceId"]) or "",
        span_id=_hex(context.get("span_id") or context["spanId"]) or "",
        parent_id=_hex(span["parent_id"]),
        name=span["name"],
        scope=span["scope"]["name"],
        kind=str(span["kind"]).removeprefix("SpanKind."),
        attributes=span["attributes"],
        events=tuple(SpanEvent(name=each["name"], attributes=each["attributes"]) for each in span["events"]),
        start=_nanoseconds(span.get("start_time") or span["start"]),
        end=_nanoseconds(span.get("end_time") or span["end"]),
        status=span.get("status", {}).get("status_code", "UNSET"),
    )


def log_data(log: Mapping[str, Any], trace_id: str) -> LogData:
    """Read a log record of the SDK, or a record of Python's logging module, which has no trace id."""
    return LogData(
        trace_id=_hex(log.get("trace_id")) or trace_id,
        span_id=_hex(log.get("span_id")),
        event_name=log.get("event_name") or log.get("event.name") or "",
        body=log.get("body", log.get("msg")),
        attributes=log.get("attributes", {}),
    )


def _hex(value: str | None) -> str | None:
    return value.removeprefix("0x") if value else None


def _nanoseconds(value: Any) -> int:
    if isinstance(value, str):
        return int(datetime.fromisoformat(value).timestamp() * 1e6) * 1000
    seconds, nanoseconds = value
    return seconds * 1_000_000_000 + nanoseconds
