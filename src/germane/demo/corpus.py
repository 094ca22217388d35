"""What the demo knows: short passages about an invented weather station, and questions that they answer."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files

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
