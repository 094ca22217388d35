"""The texts of the answer in the chunks of a stream: events, messages, graph states and tagged tuples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from germane.recognizers import find_answer, read_messages
from germane.tracer.outcomes import is_status_text, outcome_of, words_of
from germane.tracer.shapes import plain

_MAX_DEPTH = 10
_MAX_NAMES = 500
"""Number of names of events whose kinds are remembered."""
_PIECES = ("delta", "token", "answer", "text", "content", "chunk", "response", "output", "parts", "data", "message")
"""Names of the text in an event of a stream, from the most to the least specific."""
_WEAK_PIECES = frozenset(_PIECES[-2:])
"""Names that may also belong to the text of a status."""
_ALTERNATIVES = ("choices", "candidates")
_TEXT_WORDS = frozenset({*_PIECES[:-2], "tokens", "messages", "stream", "deltas", "chunks"})
"""Words in the names of events that contain text of the answer."""
_OTHER_WORDS = (
    *("tool", "function", "reason", "think", "thought", "plan", "step", "task", "action", "observation", "debug"),
    *("log", "trace", "status", "progress", "info", "notice", "warn", "ping", "heartbeat", "keepalive", "usage"),
    *("meta", "source", "context", "doc", "cit", "refer", "retrieve", "retrieval", "search", "quer"),
    *("title", "suggest", "follow", "user", "human", "input", "prompt", "chain", "parser", "checkpoint"),
)
"""Beginnings of words in the names of events whose text is not part of the answer."""
_ERROR_WORDS = ("error", "fail", "exception")
_CONTROL_WORDS = frozenset(
    {"start", "end", "done", "finish", "finished", "complete", "values", "updates", "custom", "final"}
)
"""Words in the names of other events, with which tuples may be tagged."""
_TAGS = ("type", "event", "kind", "stage", "step", "phase")
"""Fields that contain the name of an event."""
_WORD = re.compile(r"[^\W\d][\w.-]{0,30}")

SEPARATOR: Final = "\0"
"""Character between the name of a source and the word that distinguishes it from others with this name."""
CONVERSATION: Final = 4
TEXT: Final = 3
UNNAMED: Final = 2
STATE: Final = 1
WEAK: Final = 0
"""Ranks of sources: conversations, texts of named events, of other events, graph states, and possible statuses."""


class Piece(NamedTuple):
    """The text of one chunk of a stream."""

    text: str
    source: str = ""
    """Name of the event, or of the part of it, that contains the text; empty for plain text."""
    rank: int = TEXT
    """How likely the source contains the answer. Sources of the rank ``WEAK`` may contain statuses."""
    is_whole: bool = False
    """Whether the text is the answer so far, such as a conversation's last message, rather than a part of it."""
    run: str = ""
    """The call of a model that the text belongs to, if the event names it."""
    is_final: bool = False
    """Whether a flag of the event says that it ends the stream."""
    is_error: bool = False
    """Whether the event says that the answer failed. The text describes the error."""


def text_piece(text: str, event: str = "", field: str = "") -> Piece | None:
    """Return the piece of a text with the names of its event and of the part of the event, if any."""
    kind, rank = _kind(event), _rank(event, field)
    is_status = rank != TEXT and (is_status_text(text) or text.lower() in _CONTROL_WORDS)
    if kind == "other" or is_status:
        return None
    return Piece(text, event or field, rank, is_error=kind == "error")


def piece_in(value: Any, event: str = "") -> Piece | None:
    """Find the text in a structured chunk of a stream; None if the chunk contains no text of the answer."""
    is_tuple, value = issubclass(type(value), tuple), plain(value)
    if isinstance(value, list):
        return _piece_in_parts(value, event, is_tuple=is_tuple)
    if not isinstance(value, dict):
        return None
    messages = read_messages(value)
    if messages and messages[0].role != "assistant":
        return None
    name = event or ("" if messages else _tag_of(value))
    run = value.get("run_id") or (value.get("id") if messages else None)
    inner = value.get("data")
    piece = piece_in(inner, name) if isinstance(inner, dict) else _piece_in_object(value, name)
    return piece._replace(run=run) if piece is not None and isinstance(run, str) else piece


def _piece_in_object(value: dict[str, Any], name: str) -> Piece | None:
    if any("messages" in part for part in (value, *value.values()) if isinstance(part, dict)):
        return _whole(_answer_of_step(value), CONVERSATION)
    kind = _kind(name)
    if kind == "other":
        return None
    if kind == "error" or outcome_of(value) == "failed":
        return Piece(_message_in(value), name, is_error=True)
    if (found := _text_in(value, 0)) is not None:
        return _piece_of_event(value, name, *found)
    return None if _kind(_tag_of(value)) == "other" else _whole(_answer_of_step(value), STATE)


def _piece_of_event(value: dict[str, Any], name: str, field: str, text: str) -> Piece | None:
    """Return the piece of an event. The text of a final event is uncertain if there are texts before it.

    The first field may say what the text is of, such as the node of a graph. These are different sources.
    """
    piece = text_piece(text, name, field)
    if piece is None or piece.is_error:
        return piece
    if piece.rank == TEXT and any(flag is True and _kind(of) == "control" for of, flag in value.items()):
        piece = piece._replace(rank=UNNAMED, is_final=True)
    first, word = next(iter(value.items()))
    is_word = isinstance(word, str) and _WORD.fullmatch(word) and word not in text
    if (
        name
        or not is_word
        or first in _PIECES
        or _kind(first)
        or outcome_of({first: word})
        or words_of(first)[-1:] == ["id"]
    ):
        return piece
    if _kind(word) == "other":
        return None
    return piece._replace(source=f"{field}{SEPARATOR}{word}")


def _piece_in_parts(parts: list[Any], event: str, *, is_tuple: bool) -> Piece | None:
    if len(read_messages(parts) or ()) == len(parts) > 0:
        return _whole(find_answer(parts), CONVERSATION)
    *before, last = parts or [None]
    names = [part for part in before if isinstance(part, str) and part]
    if (
        len(names) == 1 and " " not in names[0] and (_kind(names[0]) or names[0] in _WEAK_PIECES)
    ):  # such as ("token", "Be"), ("done", None) or ((), "updates", {...})
        return text_piece(last, names[0]) if isinstance(last, str) else piece_in(last, names[0])
    others = (piece_in(part, event) for part in parts if isinstance(part, dict | list))
    if (piece := next(filter(None, others), None)) is not None:
        return piece
    texts = [part for part in parts if isinstance(part, str) and part] if is_tuple else ()
    return text_piece(texts[0], event) if len(texts) == 1 else None


def _whole(answer: str | None, rank: int) -> Piece | None:
    return None if answer is None or is_status_text(answer) else Piece(answer, rank=rank, is_whole=True)


def _answer_of_step(value: dict[str, Any]) -> str | None:
    """Return the answer in a graph's state, or in the update of one of its nodes."""
    name, inner = next(iter(value.items())) if len(value) == 1 else ("", None)
    is_update = isinstance(inner, dict) and _kind(name) != "other" and "message" not in inner
    return find_answer(value) or (find_answer(inner) if is_update else None)


def _message_in(value: dict[str, Any]) -> str:
    """Return the text of an error."""
    error = value.get("error")
    fields = error if isinstance(error, dict) else value
    texts = (error, *(fields.get(name) for name in ("message", "detail", "content", "text", "data")))
    return next((text for text in texts if isinstance(text, str)), "")


def _text_in(value: Any, depth: int) -> tuple[str, str] | None:
    """Return the name and the text of the most specific part of an event."""
    if (
        type(value) is not dict
        or depth > _MAX_DEPTH
        or value.get("thought") is True
        or _kind(_tag_of(value)) == "other"
    ):
        return None
    deltas = (name for name in value if name.lower().endswith("delta") and _kind(name) != "other")
    for name in (*_ALTERNATIVES, *_PIECES, *deltas):
        inner = value.get(name)
        if isinstance(inner, str):
            return name, inner
        parts = inner if isinstance(inner, list) else [inner]
        found = [_text_in(part, depth + 1) for part in (_first(parts) if name in _ALTERNATIVES else parts)]
        if texts := [text for text in found if text is not None]:
            return texts[0][0] if name in _WEAK_PIECES else name, "".join(text for _, text in texts)
    return None


def _first(alternatives: list[Any]) -> list[Any]:
    """Return the alternative that has the first index, or none."""
    return [part for part in alternatives if isinstance(part, dict) and not part.get("index")][:1]


def _tag_of(value: Mapping[str, Any]) -> str:
    return next((value[name] for name in _TAGS if isinstance(value.get(name), str)), "")


def _rank(tag: str, name: str) -> int:
    """Return how likely the text with this name in an event with this tag is a part of the answer."""
    is_text = _kind(tag) == "text"
    if name in _WEAK_PIECES and not is_text:
        return WEAK
    return TEXT if is_text or tag in {"", *_WEAK_PIECES} else UNNAMED


@lru_cache(_MAX_NAMES)
def _kind(name: str) -> Literal["text", "other", "error", "control", ""]:
    """Return what the name of an event says about its text; nothing for most texts."""
    words = words_of(name)
    if any(word.startswith(_OTHER_WORDS) for word in words):
        return "other"
    if any(word.startswith(_ERROR_WORDS) for word in words):
        return "error"
    if not _TEXT_WORDS.isdisjoint(words):
        return "text"
    return "" if _CONTROL_WORDS.isdisjoint(words) else "control"
