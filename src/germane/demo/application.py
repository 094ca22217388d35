"""The application that is watched: three handlers, one per part of the documentation, that answer with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import germane
from germane.demo.corpus import ROUTES, Corpus, Embed, Index, split_sentences

NEAREST = 3
"""Passages that a search returns."""


class Documentation:
    """Answers questions about an invented weather station, each from the index of its own route."""

    def __init__(self, indexes: Mapping[str, Index], embed: Embed) -> None:
        self.indexes = indexes
        self._embed = embed

    @classmethod
    async def open(cls, corpus: Corpus, embed: Embed) -> Documentation:
        """Build the index of each route and return the application."""
        return cls({route: await Index.build(corpus.passages_of(route), embed) for route in ROUTES}, embed)

    @germane.observe(route="billing")
    async def billing(self, question: str) -> str:
        """Answer a question about prices and payment."""
        return await self._answer("billing", question)

    @germane.observe(route="setup")
    async def setup(self, question: str) -> str:
        """Answer a question about putting up the station and looking after it."""
        return await self._answer("setup", question)

    @germane.observe(route="api")
    async def api(self, question: str) -> str:
        """Answer a question about the programming interface."""
        return await self._answer("api", question)

    async def ask(self, route: str, question: str) -> str:
        """Send a question to the handler of a route."""
        handlers = {"billing": self.billing, "setup": self.setup, "api": self.api}
        return await handlers[route](question)

    @germane.retrieval
    async def search(self, query: str, route: str) -> list[dict[str, Any]]:
        """Return the passages of a route that are nearest to the query: ``id``, ``text`` and ``score`` of each."""
        (vector,) = await self._embed([query])
        hits = self.indexes[route].search(vector, NEAREST)
        return [{"id": hit.passage.id, "text": hit.passage.text, "score": hit.similarity} for hit in hits]

    async def _answer(self, route: str, question: str) -> str:
        """Return the sentence of the best passage that is nearest to the question."""
        best, *_ = await self.search(question, route)
        sentences = split_sentences(best["text"])
        vectors = await self._embed([question, *sentences])
        return sentences[int((vectors[1:] @ vectors[0]).argmax())]
