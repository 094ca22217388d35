"""Tests of the passage index."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from germane.demo.corpus import Passage, PassageIndex, Vectors

PASSAGES = [Passage(name, "setup", f"{name} text.") for name in ("a", "b", "c")]
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
NEAR_A = np.array([0.8, -0.6])


def _found(index: PassageIndex, k: int = 3) -> list[str]:
    return [hit.passage.id for hit in index.search(NEAR_A, k)]


def test_nearest_passages_come_first() -> None:
    """Search ranks by cosine similarity, and returns at most the limit."""
    hits = PassageIndex(PASSAGES, VECTORS).search(NEAR_A, 2)

    assert [hit.passage.id for hit in hits] == ["a", "b"]
    assert [hit.similarity for hit in hits] == pytest.approx([0.8, 0.0])


def test_building_the_index_embeds_the_passages() -> None:
    """Each passage has one vector, computed from its text."""
    embedded: list[str] = []

    async def embed(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return VECTORS

    assert _found(asyncio.run(PassageIndex.build(PASSAGES, embed))) == ["a", "b", "c"]
    assert embedded == ["a text.", "b text.", "c text."]


def test_a_corrupt_index_returns_the_next_passage_with_the_same_similarity() -> None:
    """The similarities that the retriever reports do not reveal the fault."""
    index = PassageIndex(PASSAGES, VECTORS)
    before = [hit.similarity for hit in index.search(NEAR_A, 3)]

    index.corrupt()

    assert _found(index) == ["b", "c", "a"]
    assert [hit.similarity for hit in index.search(NEAR_A, 3)] == before


def test_corrupting_an_index_does_not_change_the_original_passages() -> None:
    """Indexes over the same passages are independent."""
    other = PassageIndex(PASSAGES, VECTORS)

    PassageIndex(PASSAGES, VECTORS).corrupt()

    assert _found(other) == ["a", "b", "c"]


def test_passages_without_vectors_are_rejected() -> None:
    """Every passage needs a vector."""
    with pytest.raises(ValueError, match="expected 3 vectors, one per passage, but got 2"):
        PassageIndex(PASSAGES, VECTORS[:2])
