"""Contexts: how they are read out of what a retriever returns, and how they stand on a span."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from germane.errors import UsageError
from germane.exchange import Context
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.selectors import Reader, Selector, reader
from germane.tracer.text import as_text, encode, items_of

MAX_CONTEXTS = 100
"""Contexts kept of one exchange."""
SPAN_CONTEXTS = 30
"""Contexts shown on one span, three attributes each: a span holds 128 attributes and drops the oldest."""
_CONTENT = ("page_content", "text", "content")
_ID = ("id", "id_", "node_id")
_SCORE = ("score",)


class ContextReader:
    """Reads a context out of what a retriever returns: text, or an object or mapping that carries it.

    Without selectors it knows the shapes of the common frameworks: ``page_content``, ``text`` or ``content``, with
    ``id`` and ``score`` where there are any, and pairs of such an object and its score.
    """

    def __init__(
        self, *, content: Selector | None = None, id: Selector | None = None, score: Selector | None = None
    ) -> None:
        self._content = reader(content) if content is not None else first_of(_CONTENT)
        self._id = reader(id) if id is not None else first_of(_ID)
        self._score = reader(score) if score is not None else first_of(_SCORE)
        self._chosen = content is not None

    def __call__(self, item: Any) -> Context:
        """Read one context.

        Raises:
            UsageError: no text was found in it.
        """
        if isinstance(item, str | bytes) and not self._chosen:
            return Context(as_text(item))
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Real) and not self._chosen:
            found = self(item[0])
            return Context(found.text, found.id, _number(item[1]))
        content = self._content(item)
        if content is None:
            raise UsageError(f"no text in {type(item).__name__}: name the part that is with content=")
        return Context(as_text(content), _identity(self._id(item)), _number(self._score(item)))

    def all(self, value: Any) -> list[Context]:
        """Read the contexts of a collection, as many as are kept."""
        found: list[Context] = []
        for item in items_of(value):
            if len(found) == MAX_CONTEXTS:
                break
            found.append(item if isinstance(item, Context) else self(item))
        return found


def document_attributes(contexts: Sequence[Context]) -> dict[str, str | float]:
    """Return contexts as span attributes, in both conventions."""
    flat: dict[str, str | float] = {}
    documents = []
    for number, context in enumerate(contexts[:SPAN_CONTEXTS]):
        prefix = conventions.DOCUMENT.format(number)
        content = context.text[: SPAN_TEXT_LIMIT // 8]
        # Phoenix refuses all documents of a span when one lacks a string id or a number for its score.
        identity, score = context.id or str(number), 0.0 if context.score is None else context.score
        flat[prefix + "content"] = content
        flat[prefix + "id"] = identity
        documents.append({"id": identity, "score": score, "content": content})
        if context.score is not None:
            flat[prefix + "score"] = score
    flat[conventions.RETRIEVAL_DOCUMENTS] = encode(documents)
    return flat


def first_of(names: Iterable[str]) -> Reader:
    """Return a reader of the first of these keys or attributes that is there."""

    def read(value: Any) -> Any:
        keyed = isinstance(value, Mapping)
        found = (value.get(name) if keyed else getattr(value, name, None) for name in names)
        return next((part for part in found if part is not None), None)

    return read


def _identity(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None  # JSON has no other numbers
