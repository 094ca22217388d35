"""Documents from retrievers and tools, in the formats of all known frameworks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

from germane.exchange import Context
from germane.recognizers.messages import read_messages
from germane.recognizers.text import MAX_DEPTH, decode, is_missing, is_text, numbered_items
from germane.reprs import read_repr

_TEXT_KEYS: Final = ("page_content", "content", "text", "chunk", "passage", "snippet", "body", "document")
_NESTED_KEYS: Final = ("node", "document", "kwargs", "entity", "data", "payload", "item")
_LIST_KEYS: Final = (
    *("documents", "docs", "source_documents", "sources", "results", "hits", "matches", "nodes", "source_nodes"),
    *("chunks", "passages", "text_chunks", "contexts", "context", "items"),
)
_RESULT_KEYS: Final = (
    *("output", "outputs", "result", "raw_output", "data", "kwargs", "content", "blocks", "value", "structuredContent"),
)
CONTEXT_KEYS: Final = ("context", "contexts", "documents", "text_chunks", "context_str", "source_documents")
"""Names of the contexts in the input of a chain or in the variables of a prompt."""
_MAX_REPR: Final = 100_000
"""Maximum number of characters of a list or an object in Python's syntax that are read."""
_ID_KEYS: Final = ("id", "id_", "node_id", "doc_id", "document_id")
_SCORE_KEYS: Final = ("score", "relevance_score", "similarity")


def read_documents(value: Any) -> list[Context]:
    """Read the documents in a retriever's output. Documents without text are omitted."""
    return _documents(decode(value))


def read_tool_result(value: Any) -> list[Context]:
    """Read a search tool's result: its documents if there are any, otherwise its text as one context."""
    decoded = _decode_result(value)
    documents = _documents(decoded)
    if not documents:
        text = _result_text(decoded, 0) or (value if isinstance(value, str) and not is_missing(value) else "")
        documents = [Context(text.strip())] if is_text(text) or _decode_result(text) is not text else []
    # A part of a message may be the text of a whole list.
    return [context for each in documents for context in _documents(_decode_result(each.text)) or [each]]


def _decode_result(value: Any) -> Any:
    """Decode a tool's result, which may be JSON or the ``repr`` of a list or an object."""
    decoded = decode(value)
    found = read_repr(decoded) if isinstance(decoded, str) and len(decoded) <= _MAX_REPR else None
    return found if isinstance(found, list | dict) else decoded


def read_contexts(value: Any) -> list[Context]:
    """Read the contexts in a chain's inputs or among a prompt's variables."""
    value = decode(value)
    if not isinstance(value, dict):
        return []
    for key in CONTEXT_KEYS:
        inner = decode(value.get(key))
        if isinstance(inner, str) and is_text(inner):
            return [Context(text.strip()) for text in numbered_items(inner)]
        if isinstance(inner, list) and (documents := _documents(inner)):
            return documents
    for key in ("inputs", "kwargs", "data"):
        if key in value and (documents := read_contexts(value[key])):
            return documents
    return []


def read_lists(value: Any, depth: int = 0) -> list[Context]:
    """Read the documents in all lists of an object, whatever the names of the lists are."""
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return []
    documents = list[Context]()
    for name, inner in value.items():
        decoded = decode(inner)
        if name == "args" and isinstance(decoded, list):  # the positional arguments of a traced function
            documents += read_lists(dict(enumerate(decoded)), depth + 1)
        elif isinstance(decoded, list) and read_messages(decoded) is None:
            documents += _documents(decoded)
        elif isinstance(decoded, str) and len(items := numbered_items(decoded)) > 1:
            documents += (Context(text.strip()) for text in items if is_text(text))
        else:
            documents += read_lists(decoded, depth + 1)
    return documents


def distinct(contexts: Iterable[Context]) -> tuple[Context, ...]:
    """Remove contexts whose text occurred before."""
    by_text: dict[str, Context] = {}
    for context in contexts:
        by_text.setdefault(context.text, context)
    return tuple(by_text.values())


def _documents(value: Any, depth: int = 0) -> list[Context]:
    """Return the documents in a list, or under the first name in an object that has some."""
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, list):
        read = ((item, _document(item)) for item in value)
        return [each for item, found in read for each in (_documents(item, depth + 1) if found is None else [found])]
    if not isinstance(value, dict):
        return []
    inner = (decode(value.get(key)) for key in (*_LIST_KEYS, *_RESULT_KEYS))
    return next(filter(None, (_documents(each, depth + 1) for each in inner)), [])


def _document(value: Any, depth: int = 0) -> Context | None:
    """Read one document: text, or an object that contains text."""
    value = decode(value)
    if isinstance(value, str):
        return Context(value.strip()) if is_text(value) else None
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return None
    identity = next((str(value[key]) for key in _ID_KEYS if isinstance(value.get(key), (str, int))), None)
    score = next((number for key in _SCORE_KEYS if (number := _number(value.get(key))) is not None), None)
    for key in _TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str) and is_text(text):
            return Context(text.strip(), identity, score)
    for key in _NESTED_KEYS:
        inner = value.get(key)
        if isinstance(inner, dict) and (nested := _document(inner, depth + 1)) is not None:
            return Context(nested.text, nested.id or identity, score if nested.score is None else nested.score)
    return None


def _result_text(value: Any, depth: int) -> str | None:
    """Return the text of a tool's result, which may be wrapped in a message."""
    if isinstance(value, str):
        return value.strip() if is_text(value) else None
    if isinstance(value, dict) and depth <= MAX_DEPTH:
        for key in (*_RESULT_KEYS, "text", "page_content"):
            if key in value and (text := _result_text(value[key], depth + 1)) is not None:
                return text
    return None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < sys.float_info.max
    return float(value) if is_number else None  # JSON may contain integers that no float can hold
