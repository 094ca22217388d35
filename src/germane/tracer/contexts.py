"""Extraction of contexts from the return values of retrievers, and their span attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

from germane.errors import UsageError
from germane.exchange import Context
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.known_types import attribute, is_lazy_mapping, pretends
from germane.tracer.selectors import Selector, ValueReader, value_reader
from germane.tracer.text import as_text, encode, items_of

MAX_CONTEXTS = 100
"""Maximum number of contexts per exchange."""
MAX_SPAN_CONTEXTS = 30
"""Maximum number of contexts on one span. Each has three attributes, and a span with more than 128 attributes drops
the oldest ones."""
_CONTENT = ("page_content", "text", "content")
_ID = ("id", "id_", "node_id")
_SCORE = ("score",)


class ContextReader:
    """Reads contexts from the items that a retriever returns: texts, or objects or mappings that contain a text.

    Without selectors, it recognizes the shapes of common frameworks: ``page_content``, ``text`` or ``content``, with an
    optional ``id`` and ``score``, and pairs of such an object and its score.
    """

    def __init__(
        self, *, content: Selector | None = None, id: Selector | None = None, score: Selector | None = None
    ) -> None:
        self.content_keys: tuple[str, ...] = _CONTENT
        """Keys under which a mapping may contain the text. Empty if a selector finds the text."""
        if content is not None:
            self.content_keys = (content,) if isinstance(content, str) and "." not in content else ()
        self._content = value_reader(content) if content is not None else first_present(_CONTENT)
        self._id = value_reader(id) if id is not None else first_present(_ID)
        self._score = value_reader(score) if score is not None else first_present(_SCORE)
        self._has_content_selector = content is not None

    def read(self, item: Any) -> Context:
        """Read one context. Raise a usage error if the item contains no text."""
        kind = type(item)
        if issubclass(kind, str | bytes) and not self._has_content_selector:
            return Context(as_text(item))
        is_pair = issubclass(kind, tuple) and len(item) == 2 and issubclass(type(item[1]), Real)
        if is_pair and not self._has_content_selector:
            context = self.read(item[0])
            return Context(context.text, context.id, _finite_or_none(item[1]))
        content, identity = self._content(item), self._id(item)
        if content is None:
            raise UsageError(f"no text in {type(item).__name__}: select its attribute or key with content=")
        return Context(
            as_text(content), None if identity is None else str(identity), _finite_or_none(self._score(item))
        )

    def read_all(self, value: Any) -> list[Context]:
        """Read the contexts in a collection, up to :data:`MAX_CONTEXTS`."""
        contexts: list[Context] = []
        for item in items_of(value):
            if len(contexts) == MAX_CONTEXTS:
                break
            contexts.append(item if type(item) is Context else self.read(item))
        return contexts


def document_attributes(contexts: Sequence[Context]) -> dict[str, str | float]:
    """Return contexts as span attributes that follow both semantic conventions."""
    attributes: dict[str, str | float] = {}
    documents: list[dict[str, str | float]] = []
    for number, context in enumerate(contexts[:MAX_SPAN_CONTEXTS]):
        prefix = conventions.DOCUMENT.format(number)
        content = context.text[: SPAN_TEXT_LIMIT // 8]
        # If a document has no score, Phoenix ignores the JSON attribute and reads the flat attributes.
        document: dict[str, str | float] = {"id": context.id or str(number), "content": content}
        if context.score is not None:
            document["score"] = context.score
        attributes |= {prefix + name: value for name, value in document.items()}
        documents.append(document)
    attributes[conventions.RETRIEVAL_DOCUMENTS] = encode(documents)
    return attributes


def first_present(names: Iterable[str]) -> ValueReader:
    """Return a function that returns a value's first key or attribute among ``names`` that is not None."""

    def read(value: Any) -> Any:
        kind = type(value)
        if pretends(kind) or is_lazy_mapping(kind):  # reading an attribute or a key would evaluate it
            return None
        if issubclass(kind, dict):
            get = partial(dict.get, value)  # a subclass may compute its values
        else:
            get = value.get if issubclass(kind, Mapping) else partial(attribute, value)
        candidates = (get(name) for name in names)
        return next((candidate for candidate in candidates if candidate is not None), None)

    return read


def _finite_or_none(value: Any) -> float | None:
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None  # JSON has no infinities
