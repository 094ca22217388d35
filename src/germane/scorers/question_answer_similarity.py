"""How near is the answer to the question? One cosine, no judge."""

from __future__ import annotations

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.batcher import Batcher
from germane.scorers.fingerprint import fingerprint
from germane.scorers.protocols import Embedder
from germane.scorers.text import clean, cut

VERSION = "1"
LIMIT = 8_000
"""Bytes of one text that go to the embedder."""


class QuestionAnswerSimilarity:
    """Cosine similarity of question and answer, from -1 to 1: do they speak of the same thing?

    It separates topics, well. It does not see refusals that are worded on topic, nor instructions ignored, nor what is
    untrue; and an answer that repeats the question lifts it. It is not answer relevancy, and its thresholds hold for
    one embedder only.
    """

    name = "question_answer_similarity"
    requires = frozenset({"question", "answer"})
    range = (-1.0, 1.0)

    def __init__(self, embedder: Embedder | Batcher) -> None:
        self.embedder = embedder if isinstance(embedder, Batcher) else Batcher(embedder)

    def __repr__(self) -> str:
        return f"QuestionAnswerSimilarity({self.embedder.model!r})"

    @property
    def fingerprint(self) -> str:
        """Of version and embedder."""
        return fingerprint(scorer=self.name, version=VERSION, parameters={"limit": LIMIT}, embedder=self.embedder.model)

    async def score(self, exchange: Exchange) -> Score:
        """Return the score.

        Raises:
            ScoringError: the embedder failed.
        """
        question, answer = clean(exchange.question or ""), clean(exchange.answer or "")
        shown = cut(answer, LIMIT)
        rows = await self.embedder.embed([cut(question, LIMIT), shown], keep=1)
        value = float(rows[0] @ rows[1])
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=band(value),
            details={} if shown == answer else {"cut": {"shown": len(shown), "of": len(answer)}},
            embedder=self.embedder.model,
        )
