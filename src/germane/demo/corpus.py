"""What the demo knows: short passages about an invented weather station, and questions that they answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUTES = ("billing", "setup", "api")
"""The parts of the documentation, each with a file ``corpus/<route>.toml`` and a handler of its own."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A few sentences about one topic."""

    id: str
    """Route and topic, such as ``billing/refund``."""
    route: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a visitor may ask."""

    text: str
    route: str
    passage_id: str
    """The passage that answers it. The application does not get to see it."""


@dataclass(frozen=True)
class Corpus:
    """All passages and all questions, in the order of the files."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    def passages_of(self, route: str) -> list[Passage]:
        """Return the passages of one route."""
        return [passage for passage in self.passages if passage.route == route]

    def questions_of(self, route: str) -> list[Question]:
        """Return the questions that visitors ask on one route."""
        return [question for question in self.questions if question.route == route]


def read_corpus() -> Corpus:
    """Return the corpus that comes with the package."""
    passages: list[Passage] = []
    questions: list[Question] = []
    for route in ROUTES:
        document = (files("germane.demo") / "corpus" / f"{route}.toml").read_text(encoding="utf-8")
        for topic, entry in tomllib.loads(document).items():
            passage = Passage(f"{route}/{topic}", route, entry["text"])
            passages.append(passage)
            questions += [Question(text, route, passage.id) for text in entry["questions"]]
    return Corpus(tuple(passages), tuple(questions))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a passage, in order."""
    return _SENTENCE_END.split(text)


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
