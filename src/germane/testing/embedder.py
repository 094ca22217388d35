"""A fake embedder that needs no model."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence

from germane.scorers import Vectors, normalize_rows

_WORD = re.compile(r"\w+")


def hashed_words(text: str, dimension: int = 256) -> list[float]:
    """Return a unit-length vector of hashed word counts. Texts that share words have similar vectors.

    The vector is the same in every process. If a text has no words, the whole text is hashed.
    """
    vector = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [text or " "]:
        digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        vector[int.from_bytes(digest) % dimension] += 1.0
    length = math.hypot(*vector)
    return [number / length for number in vector]


class FakeEmbedder:
    """An in-process embedder based on :func:`hashed_words`. Similarity depends on shared words, not on meaning."""

    model = "fake-embedder"

    def __init__(self, vectors: Mapping[str, Sequence[float]] | None = None, *, dimension: int = 256) -> None:
        """Create an embedder. ``vectors`` maps texts to fixed vectors, whose length overrides ``dimension``."""
        self.vectors = dict(vectors or {})
        self.dimension = len(next(iter(self.vectors.values()))) if self.vectors else dimension
        self.calls: list[list[str]] = []
        """The texts of each call."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array with one unit-length row per text."""
        self.calls.append(list(texts))
        return normalize_rows(
            [self.vectors.get(text) or hashed_words(text, self.dimension) for text in texts], len(texts)
        )
