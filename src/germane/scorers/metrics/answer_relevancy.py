"""Does the answer answer the question? A judge writes the questions that it would answer; how near is the one asked?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score, band
from germane.scorers.base.protocols import Embedder, Judge
from germane.scorers.base.text import shorten
from germane.scorers.base.vectors import mean_pairwise
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.prompting.inputs import ANSWER_LIMIT, Material, material_of
from germane.scorers.prompting.judge_scorer import Judged
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.question_generator import Form, QuestionWriter, Written, way_for
from germane.scorers.prompting.question_similarity import PROMPT, embedded, judged
from germane.scorers.prompting.template import Prompt
from germane.scorers.refusals.rules import NONCOMMITTAL, RULES, find_noncommittal

Similarity = Literal["embedding", "judge"]

MOST_QUESTIONS = 10
CUTS = (
    (0.8, "The answer addresses the question directly"),
    (0.6, "The answer addresses the question partially"),
    (0.4, "The answer misses key aspects of the question"),
    (-1.0, "The answer does not address the question"),
)
"""Least mean similarity and what it is said to mean, best first."""


@dataclass(frozen=True)
class _Compared:
    """How near each usable question is to the one asked."""

    similarities: Sequence[float]
    diversity: float | None = None
    """Mean cosine of the written questions to one another; None without vectors, or of one question."""

    @property
    def mean(self) -> float:
        return sum(self.similarities) / len(self.similarities)


class AnswerRelevancy(Judged):
    """Mean similarity to the question asked of N questions that a judge wrote from the answer alone.

    With ``similarity="embedding"`` the similarity is the cosine of two vectors, so that the value lies from -1 to 1, in
    practice from about 0 for another topic to 1. With ``"judge"`` the judge rates each written question as 1
    (identical), .75, .5, .25 or 0; the value lies from 0 to 1 and no embedder is needed.

    It says whether the answer addresses the question, not whether it is true or complete. An answer that does not
    commit itself ("I don't know", a question back) is found by rules, before any judge is asked, and gets 0 and the
    label ``noncommittal``. One judge request per exchange, two with ``"judge"``; one more where something is missing.

    Source: Es et al. 2023, arXiv 2309.15217, section 3.
    """

    name = "answer_relevancy"
    version = "2"
    range = (-1.0, 1.0)

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder | None = None,
        *,
        questions: int = 3,
        form: Form = "instructions",
        similarity: Similarity = "embedding",
        noncommittal_votes: bool = False,
        remove_copies: bool = True,
    ) -> None:
        """Ask for ``questions`` questions, 1 to 10.

        Args:
            judge: Who writes the questions.
            embedder: Needed for ``similarity="embedding"``.
            questions: How many; the value is the mean over those that can be used.
            form: ``few_shot`` for the smallest models, which take examples and no instructions.
            similarity: Who compares the questions: ``embedding`` or ``judge``.
            noncommittal_votes: The judge says, too, whether the answer is noncommittal; a strict majority of its votes
                makes the score 0. Costs a longer prompt, and small judges vote wrongly.
            remove_copies: Cut copies of the question out of the answer first.

        Raises:
            ValueError: an argument has a value that it cannot have.
        """
        if not 1 <= questions <= MOST_QUESTIONS:
            raise ValueError(f"questions must be from 1 to {MOST_QUESTIONS}, not {questions}")
        if form not in ("instructions", "few_shot"):
            raise ValueError(f"form must be 'instructions' or 'few_shot', not {form!r}")
        if similarity not in ("embedding", "judge"):
            raise ValueError(f"similarity must be 'embedding' or 'judge', not {similarity!r}")
        if similarity == "embedding" and embedder is None:
            raise ValueError("similarity 'embedding' needs an embedder")
        self._batcher = _batched(embedder) if embedder is not None and similarity == "embedding" else None
        super().__init__(judge, self._batcher)
        self.questions = questions
        self.form = form
        self.similarity = similarity
        self.noncommittal_votes = noncommittal_votes
        self.remove_copies = remove_copies
        self.range = (-1.0, 1.0) if similarity == "embedding" else (0.0, 1.0)
        self._writer = QuestionWriter(judge, way_for(form, votes=noncommittal_votes), questions)

    def __repr__(self) -> str:
        return f"AnswerRelevancy({self.judge!r}, questions={self.questions}, form={self.form!r})"

    def prompts(self) -> Sequence[Prompt]:
        """Return those for writing questions, and the one for comparing them if the judge does."""
        return (*self._writer.prompts(), PROMPT) if self.similarity == "judge" else self._writer.prompts()

    def parameters(self) -> Mapping[str, object]:
        """Return N, the rules and all options."""
        return {
            **self._writer.way.parameters(),
            "questions": self.questions,
            "form": self.form,
            "similarity": self.similarity,
            "noncommittal": RULES,
            "noncommittal_votes": self.noncommittal_votes,
            "remove_copies": self.remove_copies,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds every question with its similarity, and how many were asked for.

        Raises:
            ScoringError: the judge or the embedder failed, or no reply held a usable question.
        """
        material = self._material(exchange, ANSWER_LIMIT)
        if material.only_copies:
            return await self._without_judge("The answer only repeats the question.", band(0.0), material.details())
        found = find_noncommittal(material.answer)
        if found is not None:
            why = f"The answer does not commit itself: {found.rule}."
            return await self._without_judge(why, NONCOMMITTAL, {**material.details(), "noncommittal": found.details()})
        limit = self._writer.way.limit
        return await self._judged(material if limit == ANSWER_LIMIT else self._material(exchange, limit))

    def _material(self, exchange: Exchange, limit: int) -> Material:
        return material_of(exchange, remove_copies=self.remove_copies, answer_limit=limit, contexts=False)

    async def _judged(self, material: Material) -> Score:
        inquiry = Inquiry(self.judge)
        written = await self._writer.write(inquiry, material.answer)
        if self.noncommittal_votes and written.noncommittal:
            details = {**self._details(written, None), **material.details()}
            explanation = "The judge holds the answer for noncommittal."
            return self._made(0.0, inquiry, written, label=NONCOMMITTAL, explanation=explanation, details=details)
        if not written.usable:
            raise ScoringError(
                Reason.NO_USABLE_QUESTION, f"of {len(written.questions)} texts none is a usable question"
            )
        compared = await self._compare(inquiry, material.question, [question.text for question in written.usable])
        return self._made(
            compared.mean,
            inquiry,
            written,
            explanation=_explanation(written, compared),
            details={**self._details(written, compared), **material.details()},
        )

    async def _compare(self, inquiry: Inquiry, question: str, written: Sequence[str]) -> _Compared:
        if self._batcher is None:
            return _Compared(await judged(inquiry, question, written))
        rows = await embedded(self._batcher, question, written)
        return _Compared((rows[1:] @ rows[0]).tolist(), mean_pairwise(rows[1:]))

    def _made(self, value: float, inquiry: Inquiry, written: Written, **parts: Any) -> Score:
        return self.scored(value, inquiry, fingerprint=self.fingerprint_by(inquiry.model, asked=written.asked), **parts)

    async def _without_judge(self, explanation: str, label: str, details: Mapping[str, object]) -> Score:
        """Return 0, of the same fingerprint as if the judge had been asked: trends count both together."""
        asked = await self._writer.asked()
        fingerprint = self.fingerprint_by(await self.judge.identify(), asked=asked)
        return await self.unasked(0.0, fingerprint=fingerprint, label=label, explanation=explanation, details=details)

    def _details(self, written: Written, compared: _Compared | None) -> dict[str, Any]:
        similarities = iter(compared.similarities if compared else ())
        return {
            "questions": [
                {
                    "text": shorten(question.text, 500),
                    "similarity": next(similarities, None) if question.is_usable else None,
                    "noncommittal": question.noncommittal,
                }
                for question in written.questions
            ],
            "requested": self.questions,
            "usable": len(written.usable),
            "diversity": compared.diversity if compared else None,
            "asked": written.asked,
            "similarity": self.similarity,
        }


def _batched(embedder: Embedder) -> Batcher:
    return embedder if isinstance(embedder, Batcher) else Batcher(embedder)


def _explanation(written: Written, compared: _Compared) -> str:
    """Return what the mean is said to mean, with the nearest and the farthest written question."""
    meaning = next(meaning for edge, meaning in CUTS if compared.mean >= edge or edge == CUTS[-1][0])
    pairs = sorted(zip(compared.similarities, (question.text for question in written.usable), strict=True))
    (least, farthest), (most, nearest) = pairs[0], pairs[-1]
    told = f'{meaning}. Nearest written question: "{shorten(nearest, 80)}" ({most:.2f})'
    return f'{told}; farthest: "{shorten(farthest, 80)}" ({least:.2f}).' if farthest != nearest else f"{told}."
