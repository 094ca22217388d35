"""The index finds what is nearest, until it is corrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from germane.demo import Index, Passage
from germane.demo.corpus import Vectors

PASSAGES = [Passage(name, "setup", f"{name} text.") for name in ("a", "b", "c")]
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
NEAR_A = np.array([0.8, -0.6])


def _found(index: Index, k: int = 3) -> list[str]:
    return [hit.passage.id for hit in index.search(NEAR_A, k)]


def test_nearest_passages_come_first_with_their_similarity() -> None:
    """Search ranks by cosine similarity and returns no more than k."""
    hits = Index(PASSAGES, VECTORS).search(NEAR_A, 2)

    assert [hit.passage.id for hit in hits] == ["a", "b"]
    assert [hit.similarity for hit in hits] == pytest.approx([0.8, 0.0])


def test_build_embeds_the_texts_of_the_passages() -> None:
    """One vector per passage, made from its text."""
    embedded: list[str] = []

    async def embed(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return VECTORS

    assert _found(asyncio.run(Index.build(PASSAGES, embed))) == ["a", "b", "c"]
    assert embedded == ["a text.", "b text.", "c text."]


def test_corrupt_index_finds_the_neighbour_and_reports_the_same_similarities() -> None:
    """What a retriever reports of itself does not give the fault away."""
    index = Index(PASSAGES, VECTORS)
    before = [hit.similarity for hit in index.search(NEAR_A, 3)]

    index.corrupt()

    assert _found(index) == ["b", "c", "a"]
    assert [hit.similarity for hit in index.search(NEAR_A, 3)] == before


def test_corrupt_leaves_the_callers_passages_alone() -> None:
    """Indexes over the same passages fail one by one."""
    other = Index(PASSAGES, VECTORS)

    Index(PASSAGES, VECTORS).corrupt()

    assert _found(other) == ["a", "b", "c"]


def test_passages_without_vectors_are_refused() -> None:
    """Each passage needs a vector of its own."""
    with pytest.raises(ValueError, match="3 passages need as many vectors, not 2"):
        Index(PASSAGES, VECTORS[:2])
