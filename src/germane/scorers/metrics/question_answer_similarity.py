"""How near is the answer to the question? One cosine, no judge."""

from __future__ import annotations

from collections.abc import Mapping

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder
from germane.scorers.base.text import clean, cut
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.prompting.inputs import without_copies

VERSION = "1"
LIMIT = 8_000
"""Bytes of one text that go to the embedder."""


class QuestionAnswerSimilarity:
    """Cosine similarity of question and answer, from -1 to 1: do they speak of the same thing?

    It separates topics, well. It does not see refusals that are worded on topic, nor instructions ignored, nor what is
    untrue; and an answer that repeats the question lifts it, unless copies are cut out. It is not answer relevancy, and
    its thresholds hold for one embedder only. No judge; a share of one request to the embedder.

    Source: none; it is the plain cosine that others are measured against.
    """

    name = "question_answer_similarity"
    requires = frozenset({"question", "answer"})
    range = (-1.0, 1.0)

    def __init__(self, embedder: Embedder | Batcher, *, remove_copies: bool = False) -> None:
        """With ``remove_copies``, cut copies of the question out of the answer first; what is nothing else has 0."""
        self.embedder = embedder if isinstance(embedder, Batcher) else Batcher(embedder)
        self.remove_copies = remove_copies

    def __repr__(self) -> str:
        return f"QuestionAnswerSimilarity({self.embedder.model!r})"

    @property
    def fingerprint(self) -> str:
        """Of version, option and embedder."""
        parameters = {"limit": LIMIT, **({"remove_copies": True} if self.remove_copies else {})}
        return fingerprint(scorer=self.name, version=VERSION, parameters=parameters, embedder=self.embedder.model)

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` says whether the answer was cut, and whether copies were.

        Raises:
            ScoringError: the embedder failed.
        """
        question, given = clean(exchange.question or ""), clean(exchange.answer or "")
        answer = without_copies(given, question) if self.remove_copies else given
        copies = {} if answer == given else {"copies_removed": True}
        if copies and not any(character.isalnum() for character in answer):
            return self._scored(0.0, copies, "The answer only repeats the question.")
        answer = answer.strip() if copies else answer
        shown = cut(answer, LIMIT)
        rows = await self.embedder.embed([cut(question, LIMIT), shown], keep=1)
        sizes = {} if shown == answer else {"cut": {"shown": len(shown), "of": len(answer)}}
        return self._scored(float(rows[0] @ rows[1]), {**sizes, **copies})

    def _scored(self, value: float, details: Mapping[str, object], explanation: str | None = None) -> Score:
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=band(value),
            explanation=explanation,
            details=details,
            embedder=self.embedder.model,
        )


def shown(exchange: Exchange) -> tuple[str, str]:
    """Return question and answer as the embedder is shown them, copies not cut out."""
    return cut(clean(exchange.question or ""), LIMIT), cut(clean(exchange.answer or ""), LIMIT)
