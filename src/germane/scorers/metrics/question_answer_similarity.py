"""The cosine similarity of question and answer, without a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.expected_kind import describe_missing_kind, find_missing_kind
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.protocols import Embedder, ScorerModels
from germane.scorers.base.text import MAX_EMBEDDED_BYTES, ONLY_QUESTION_ECHO, strip_control_characters, truncate_utf8
from germane.scorers.calibration import apply_calibration
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.prompting.prompt import remove_question_echo as without_question_echo

VERSION = "1"


class QuestionAnswerSimilarity:
    """Cosine similarity of question and answer, from -1 to 1, which shows whether they are about the same topic.

    It distinguishes topics well. It does not detect ignored instructions, false statements, or refusals that use the
    topic's words. An answer that repeats the question scores higher, unless repetitions are removed. It does not
    measure answer relevancy, and its thresholds apply only to one embedder. Scoring takes one shared embedding request
    and no judge request.

    Source: none; plain cosine similarity serves as a baseline.
    """

    name = "question_answer_similarity"
    requires = frozenset({"question", "answer"})
    range = (-1.0, 1.0)

    def __init__(self, embedder: Embedder | EmbeddingBatcher, *, remove_question_echo: bool = False) -> None:
        """Use an embedder. ``remove_question_echo`` removes repetitions of the question from the answer first.

        An answer that has no other content then gets a score of 0.
        """
        self.embedder = EmbeddingBatcher.wrap(embedder)
        self.remove_question_echo = remove_question_echo

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings."""
        return cls(models.embedder, **options)

    def __repr__(self) -> str:
        return f"QuestionAnswerSimilarity({self.embedder.model!r})"

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint, which covers the version, the option and the embedder."""
        parameters = {"limit": MAX_EMBEDDED_BYTES, **({"remove_copies": True} if self.remove_question_echo else {})}
        return fingerprint(
            scorer=fingerprint_name(self), version=VERSION, parameters=parameters, embedder=self.embedder.model
        )

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` shows whether the answer was truncated and whether repetitions were removed.

        Raises:
            ScoringError: the embedder failed.
        """
        question = strip_control_characters(exchange.question or "")
        answer = original = strip_control_characters(exchange.answer or "")
        if self.remove_question_echo:
            answer = without_question_echo(original, question)
        details: dict[str, object] = {}
        if answer != original:
            details["copies_removed"] = True
            if not any(character.isalnum() for character in answer):
                return self._build_score(0.0, details, ONLY_QUESTION_ECHO)
            answer = answer.strip()
        shown = truncate_utf8(answer, MAX_EMBEDDED_BYTES)
        if shown != answer:
            details["cut"] = {"shown": len(shown), "of": len(answer)}
        explanation = None
        if missing := find_missing_kind(question, answer):
            details["missing_kind"] = missing
            explanation = describe_missing_kind(missing)
        rows = await self.embedder.embed([truncate_utf8(question, MAX_EMBEDDED_BYTES), shown], keep=1)
        return self._build_score(float(rows[0] @ rows[1]), details, explanation)

    def _build_score(self, value: float, details: Mapping[str, object], explanation: str | None = None) -> Score:
        score = Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            explanation=explanation,
            details=details,
            embedder=self.embedder.model,
        )
        return apply_calibration(score, {})


def embedder_inputs(exchange: Exchange) -> tuple[str, str]:
    """Return the question and the answer as they are embedded. Repetitions of the question are not removed."""
    question, answer = (strip_control_characters(text or "") for text in (exchange.question, exchange.answer))
    return truncate_utf8(question, MAX_EMBEDDED_BYTES), truncate_utf8(answer, MAX_EMBEDDED_BYTES)
