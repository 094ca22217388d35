"""Recognition of questions, answers and contexts in the spans of other instrumentations.

Pure functions over span data: no OpenTelemetry, no database. :func:`recognize` reads the spans of one trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.lazy import lazy_exports

if TYPE_CHECKING:
    from germane.recognizers.conventions import (
        CONVENTIONS,
        MARKERS,
        content_attributes,
        documents_fix_for,
        fix_for,
        is_watched_scope,
    )
    from germane.recognizers.exchanges import NAME_LENGTH, create_exchange
    from germane.recognizers.outline import outline_spans
    from germane.recognizers.reading import Convention, RawValue, Recognizer, SpanReading
    from germane.recognizers.recognition import complete, recognize, recognize_all
    from germane.recognizers.registry import recognizer, registered_recognizers
    from germane.recognizers.results import WITHOUT_EXCHANGE, Recognized, Source, Unreadable, UnreadableReason
    from germane.recognizers.spans import LogData, SpanData, SpanEvent
    from germane.recognizers.text import plain_value

__all__ = [
    "CONVENTIONS",
    "MARKERS",
    "NAME_LENGTH",
    "WITHOUT_EXCHANGE",
    "Convention",
    "LogData",
    "RawValue",
    "Recognized",
    "Recognizer",
    "Source",
    "SpanData",
    "SpanEvent",
    "SpanReading",
    "Unreadable",
    "UnreadableReason",
    "complete",
    "content_attributes",
    "create_exchange",
    "documents_fix_for",
    "fix_for",
    "is_watched_scope",
    "outline_spans",
    "plain_value",
    "recognize",
    "recognize_all",
    "recognizer",
    "registered_recognizers",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "conventions": (
            "CONVENTIONS",
            "MARKERS",
            "content_attributes",
            "documents_fix_for",
            "fix_for",
            "is_watched_scope",
        ),
        "exchanges": ("NAME_LENGTH", "create_exchange"),
        "outline": ("outline_spans",),
        "reading": ("Convention", "RawValue", "Recognizer", "SpanReading"),
        "recognition": ("complete", "recognize", "recognize_all"),
        "registry": ("recognizer", "registered_recognizers"),
        "results": ("WITHOUT_EXCHANGE", "Recognized", "Source", "Unreadable", "UnreadableReason"),
        "spans": ("LogData", "SpanData", "SpanEvent"),
        "text": ("plain_value",),
    },
)
