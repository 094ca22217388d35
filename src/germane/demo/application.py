"""The monitored application.

Each part of the documentation has its own handler, which answers with a sentence from that part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import germane
from germane.demo.corpus import ROUTES, DemoCorpus, Embed, PassageIndex, split_sentences

SEARCH_LIMIT: Final = 3
"""Maximum number of passages that a search returns."""


class Documentation:
    """Answers questions about a fictional weather station. Each route searches its own index."""

    def __init__(self, indexes: Mapping[str, PassageIndex], embed: Embed) -> None:
        self.indexes = indexes
        self._embed = embed

    @classmethod
    async def open(cls, corpus: DemoCorpus, embed: Embed) -> Documentation:
        """Build the index of each route, and return the application."""
        indexes = {route: await PassageIndex.build(corpus.passages_for(route), embed) for route in ROUTES}
        return cls(indexes, embed)

    @germane.observe(route="billing")
    async def billing(self, question: str) -> str:
        """Answer a question about prices and payment."""
        return await self._answer("billing", question)

    @germane.observe(route="setup")
    async def setup(self, question: str) -> str:
        """Answer a question about installing and maintaining the station."""
        return await self._answer("setup", question)

    @germane.observe(route="api")
    async def api(self, question: str) -> str:
        """Answer a question about the API."""
        return await self._answer("api", question)

    async def ask(self, route: str, question: str) -> str:
        """Send a question to a route's handler, and return the answer."""
        handlers = {"billing": self.billing, "setup": self.setup, "api": self.api}
        return await handlers[route](question)

    @germane.retrieval
    async def search(self, query: str, route: str) -> list[dict[str, Any]]:
        """Return a route's passages that are nearest to the query, as dicts with ``id``, ``text`` and ``score``."""
        (vector,) = await self._embed([query])
        hits = self.indexes[route].search(vector, SEARCH_LIMIT)
        return [{"id": hit.passage.id, "text": hit.passage.text, "score": hit.similarity} for hit in hits]

    async def _answer(self, route: str, question: str) -> str:
        """Return the sentence of the best passage that is nearest to the question."""
        best, *_ = await self.search(question, route)
        sentences = split_sentences(best["text"])
        vectors = await self._embed([question, *sentences])
        return sentences[int((vectors[1:] @ vectors[0]).argmax())]
