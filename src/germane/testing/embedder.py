"""An embedder without a model, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from germane.scorers import Vectors, normalize_rows
from germane.testing.judge_server import hashed_words


class FakeEmbedder:
    """Gives each word a place: texts that share words are similar, and equal texts equal. Knows nothing of meaning."""

    model = "fake-embedder"

    def __init__(self, vectors: Mapping[str, Sequence[float]] | None = None, *, dimension: int = 256) -> None:
        """``vectors``: text -> its vector, for texts whose vectors are to be known; they set the dimension."""
        self.vectors = dict(vectors or {})
        self.dimension = len(next(iter(self.vectors.values()))) if self.vectors else dimension
        self.calls: list[list[str]] = []
        """The texts of every call."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text."""
        self.calls.append(list(texts))
        return normalize_rows([self.vectors.get(text) or hashed_words(text, self.dimension) for text in texts], len(texts))
