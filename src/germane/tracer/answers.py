"""Text extraction from answers and chunks: plain text, structured values, or responses of web frameworks."""

from __future__ import annotations

from typing import Any

from germane.errors import UsageError
from germane.tracer.events import Piece, piece_in, text_piece
from germane.tracer.known_types import defines, library_classes
from germane.tracer.pieces import Pieces, join_pieces
from germane.tracer.responses import body_reader, is_response
from germane.tracer.serialized import STRUCTURED, events_in, is_event, is_plain, json_value
from germane.tracer.shapes import answer_in, describe, is_structured
from germane.tracer.text import as_text, json_strings

_SSE_FIELDS = frozenset({"data", "event", "id", "retry", "comment", "sep"})


def answer_text(value: Any) -> str | None:
    """Return the text of an answer; None for None. Raise a usage error if no part is known to be the answer."""
    kind = type(value)
    if kind is str:
        return read_text(value)
    if value is None:
        return None
    if issubclass(kind, bytes | bytearray | memoryview):
        text = as_text(value)
        strings = json_strings([text])
        return strings[0] if strings is not None else read_text(text) or None
    if issubclass(kind, tuple) and value and is_response(type(value[0])):  # with a status or headers
        return answer_text(value[0])
    if (read := body_reader(kind)) is not None:
        return answer_text(read(value))
    return _answer_in(value) if is_structured(kind) else _text(value)


def read_text(text: str, *, may_be_sse: bool = True) -> str:
    """Return the answer in a text: the text itself, unless it is a serialized structure or a stream of events.

    Raises:
        UsageError: The structure has no part that is known to be the answer.
    """
    if is_plain(text):
        return text
    if (value := json_value(text)) is not None:
        return _answer_in(value, "JSON")
    events = events_in(text, may_be_sse=may_be_sse)
    return text if events is None else _answer_in_events(events)


def _answer_in_events(events: list[tuple[Any, str]]) -> str:
    pieces = Pieces()
    for data, name in events:
        if (piece := chunk_piece(data, name)) is not None:
            pieces.add(piece)
    if pieces.error is not None:
        raise UsageError("the events end with an error")
    if not (texts := pieces.texts()):
        raise UsageError("found no text in the events; select it with answer=")
    return join_pieces(json_strings(texts) or texts)


def chunk_piece(chunk: Any, event: str = "") -> Piece | None:
    """Return the text of a stream's chunk, if it contains any. ``event`` is the name of the chunk's event, if any."""
    kind = type(chunk)
    if kind is str:
        value = json_value(chunk) if chunk[:1] in STRUCTURED else None
        return piece_in(value, event) if is_event(value) else text_piece(chunk, event)
    if chunk is None:
        return None
    if ("sse_starlette", "ServerSentEvent") in library_classes(kind):
        return chunk_piece(chunk.data, event or str(getattr(chunk, "event", None) or ""))
    if is_sse(chunk):
        return chunk_piece(chunk.get("data"), event or str(chunk.get("event") or ""))
    if is_structured(kind):
        return piece_in(chunk, event)
    text = answer_text(chunk) if is_response(kind) else _text(chunk)
    return None if text is None else text_piece(text, event)


def is_sse(chunk: Any) -> bool:
    """Return whether a chunk is a dict with the fields of a server-sent event, as for ``sse_starlette``."""
    return type(chunk) is dict and isinstance(chunk.get("data"), str) and _SSE_FIELDS.issuperset(chunk)


def _answer_in(value: Any, what: str = "") -> str:
    answer = answer_in(value)
    if answer is None:
        raise UsageError(f"found no answer in {describe(value, what)}; select it with answer=")
    return answer


def _text(value: Any) -> str:
    try:
        return as_text(value)
    except UsageError as error:
        kind = type(value)
        if (defines(kind, "__iter__") or defines(kind, "__aiter__")) and not defines(kind, "__len__"):
            raise UsageError(f"{error}; if it is a stream, pass its class with stream=") from None
        raise
