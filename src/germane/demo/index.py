"""A vector index: rows of vectors on one side, a list of passages on the other, joined by the row's number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.demo.corpus import Passage

Vectors = NDArray[np.floating[Any]]
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Turns texts into vectors: one row of length 1 per text."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and the cosine similarity of its vector to the query's."""

    passage: Passage
    similarity: float


class Index:
    """Finds the passages nearest to a query vector, by cosine similarity."""

    def __init__(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Keep the passages and their vectors, shape (passages, dimensions), rows of length 1.

        Raises:
            ValueError: there is not one vector per passage.
        """
        if len(passages) != len(vectors):
            raise ValueError(f"{len(passages)} passages need as many vectors, not {len(vectors)}")
        self.passages = list(passages)
        self.vectors = vectors

    @classmethod
    async def build(cls, passages: Sequence[Passage], embed: Embed) -> Index:
        """Embed the passages and return an index over them."""
        return cls(passages, await embed([passage.text for passage in passages]))

    def search(self, vector: Vectors, k: int) -> list[Hit]:
        """Return the ``k`` passages nearest to a vector of shape (dimensions,), nearest first."""
        similarities = self.vectors @ vector
        nearest = np.argsort(-similarities, kind="stable")[:k]
        return [Hit(self.passages[row], float(similarities[row])) for row in nearest]

    def corrupt(self) -> None:
        """Plant the demo's fault: from now on each vector finds the passage next to its own.

        This is how it happens in practice. The vectors live in one file, the passages in a table, and only the row
        number joins them. Somebody edits the documentation; the nightly job writes the table anew, in which every
        passage has moved by one row, and skips the embedding step because "nothing changed". No request fails, no
        latency moves, and the similarities that the retriever reports are as high as they were on the day before:
        only the answers are about something else.
        """
        self.passages = [*self.passages[1:], self.passages[0]]
