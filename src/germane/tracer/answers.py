"""Text extraction from answers and chunks: plain text, structured values, or responses of web frameworks."""

from __future__ import annotations

from typing import Any

from germane.errors import UsageError
from germane.tracer.known_types import defines, library_classes
from germane.tracer.responses import body_reader, is_response
from germane.tracer.shapes import STRUCTURED, Piece, answer_in, describe, is_event, is_structured, json_value, piece_in
from germane.tracer.text import as_text, json_strings


def answer_text(value: Any) -> str | None:
    """Return the text of an answer, or None if the answer is None.

    Raises:
        UsageError: The value is not text, and has no part that is known to be the answer.
    """
    kind = type(value)
    if kind is str:
        return value if value[:1].isalnum() or json_value(value) is None else _answer_in(value)
    if value is None:
        return None
    if issubclass(kind, bytes | bytearray | memoryview):
        return response_text(value)
    if issubclass(kind, tuple) and value and is_response(type(value[0])):  # with a status or headers
        return answer_text(value[0])
    if (read := body_reader(kind)) is not None:
        return response_text(read(value))
    return _answer_in(value) if is_structured(kind) else _text(value)


def chunk_piece(chunk: Any, event: str = "") -> Piece | None:
    """Return the text of a stream's chunk, or None if the chunk contains no text of the answer.

    Args:
        chunk: The chunk.
        event: Name of the event whose data the chunk is, if any.

    Raises:
        UsageError: The chunk is not text.
    """
    kind = type(chunk)
    if kind is str:
        value = json_value(chunk) if chunk[:1] in STRUCTURED else None
        return piece_in(value, event) if is_event(value) else Piece(chunk, event)
    if chunk is None:
        return None
    if ("sse_starlette", "ServerSentEvent") in library_classes(kind):
        return chunk_piece(chunk.data, event or str(getattr(chunk, "event", None) or ""))
    if is_structured(kind):
        return piece_in(chunk, event)
    text = answer_text(chunk) if is_response(kind) else _text(chunk)
    return None if text is None else Piece(text, event)


def response_text(body: Any) -> str | None:
    """Return the answer text of a complete body, which may be JSON."""
    text = "" if body is None else as_text(body)
    if (strings := json_strings([text])) is not None:
        return strings[0]
    return (text if text[:1].isalnum() or json_value(text) is None else _answer_in(text)) or None


def _answer_in(value: Any) -> str:
    answer = answer_in(value)
    if answer is None:
        raise UsageError(f"found no answer in {describe(value)}; select it with answer=")
    return answer


def _text(value: Any) -> str:
    try:
        return as_text(value)
    except UsageError as error:
        kind = type(value)
        if (defines(kind, "__iter__") or defines(kind, "__aiter__")) and not defines(kind, "__len__"):
            raise UsageError(f"{error}; if it is a stream, pass its class with stream=") from None
        raise
