"""What a decorator was told about a retrieval function: how to read its query and the contexts it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from germane.exchange import Context
from germane.tracer import conventions
from germane.tracer.contexts import ContextReader
from germane.tracer.handler import FirstText, name_of, text_or_none
from germane.tracer.selectors import Call, Selector, argument_reader, reader, signature_of
from germane.tracer.text import NAME_LIMIT, clean


class Retriever:
    """A retrieval function: its source, and how to read the contexts that it returns."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        source: str | None = None,
        query: Selector | None = None,
        contexts: Selector | None = None,
        content: Selector | None = None,
        id: Selector | None = None,
        score: Selector | None = None,
    ) -> None:
        self.function = function
        self.signature = signature_of(function)
        self.source = clean(source or name_of(function), NAME_LIMIT)
        self.first_text = FirstText(self.signature)
        self.find_query = None if query is None else argument_reader(query)
        self.find_contexts = reader(contexts) if contexts is not None else None
        self.read_context = ContextReader(content=content, id=id, score=score)
        self.span_name = f"{conventions.RETRIEVAL} {self.source}"
        self.span_attributes = {
            conventions.SPAN_KIND: conventions.RETRIEVER,
            conventions.OPERATION_NAME: conventions.RETRIEVAL,
            conventions.DATA_SOURCE_ID: self.source,
        }

    def query(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Read the query of a call."""
        if self.find_query is None:
            return self.first_text(args, kwargs)
        return text_or_none(self.find_query(Call(self.function, args, kwargs, self.signature)))

    def contexts(self, result: Any) -> list[Context]:
        """Read the contexts in what the function returned."""
        return self.read_context.all(result if self.find_contexts is None else self.find_contexts(result))
