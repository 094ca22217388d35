"""The demo's corpus: short passages about a fictional weather station, the questions they answer, and their index."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROUTES: Final = ("billing", "setup", "api")
"""Parts of the documentation, each with a file ``corpus/<route>.toml`` and a handler."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
Vectors = NDArray[np.floating[Any]]
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Embeds texts. Returns an array with one unit-length row per text."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A few sentences about one topic."""

    id: str
    """Route and topic, such as ``billing/refund``."""
    route: str
    text: str


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question that a visitor may ask."""

    text: str
    route: str
    passage_id: str
    """Id of the passage that answers the question. Not known to the application."""


@dataclass(frozen=True)
class DemoCorpus:
    """All passages and questions, in the order of the files."""

    passages: tuple[Passage, ...]
    questions: tuple[DemoQuestion, ...]

    def passages_for(self, route: str) -> list[Passage]:
        """Return the passages of a route."""
        return [passage for passage in self.passages if passage.route == route]

    def questions_for(self, route: str) -> list[DemoQuestion]:
        """Return the questions that visitors ask on a route."""
        return [question for question in self.questions if question.route == route]


def load_corpus() -> DemoCorpus:
    """Load the corpus that is included in the package."""
    passages: list[Passage] = []
    questions: list[DemoQuestion] = []
    for route in ROUTES:
        document = (files("germane.demo") / "corpus" / f"{route}.toml").read_text(encoding="utf-8")
        for topic, entry in tomllib.loads(document).items():
            passage = Passage(f"{route}/{topic}", route, entry["text"])
            passages.append(passage)
            questions += [DemoQuestion(text, route, passage.id) for text in entry["questions"]]
    return DemoCorpus(tuple(passages), tuple(questions))


def split_sentences(text: str) -> list[str]:
    """Split a passage into sentences."""
    return _SENTENCE_END.split(text)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage, with the cosine similarity between its vector and the query vector."""

    passage: Passage
    similarity: float


class PassageIndex:
    """Finds the passages nearest to a query vector, by the cosine similarity of unit-length rows, one per passage."""

    def __init__(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        if len(passages) != len(vectors):
            raise ValueError(f"expected {len(passages)} vectors, one per passage, but got {len(vectors)}")
        self.passages = list(passages)
        self.vectors = vectors

    @classmethod
    async def build(cls, passages: Sequence[Passage], embed: Embed) -> PassageIndex:
        """Embed the passages, and return an index of them."""
        return cls(passages, await embed([passage.text for passage in passages]))

    def search(self, vector: Vectors, limit: int) -> list[SearchHit]:
        """Return the passages nearest to a vector of shape (dimensions,), nearest first."""
        similarities = self.vectors @ vector
        nearest = np.argsort(-similarities, kind="stable")[:limit]
        return [SearchHit(self.passages[row], float(similarities[row])) for row in nearest]

    def corrupt(self) -> None:
        """Shift the passages by one row, so that each vector leads to the passage after its own.

        This is how indexes break in practice. The vectors are in one file and the passages in a table, joined only by
        row number. After the documentation is edited, a nightly job rewrites the table with all passages shifted by one
        row, but skips the embedding step because it detects no change. No request fails, latency is unchanged, and the
        retriever reports the same similarities as before. Only the answers are about something else.
        """
        self.passages = [*self.passages[1:], self.passages[0]]
