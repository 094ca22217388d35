"""Relevancy from generated questions: a judge writes questions to which the text would be an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score, UnscoredReason, band_of
from germane.scorers.base.protocols import Embedder, Judge, Scorer, ScorerModels
from germane.scorers.base.text import shorten
from germane.scorers.base.vectors import mean_pairwise_cosine
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.prompting.judge_scorer import ONLY_QUESTION_ECHO, JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import MAX_ANSWER_BYTES, Prompt, PromptInputs, build_prompt_inputs
from germane.scorers.prompting.question_generator import (
    GeneratedQuestions,
    PromptStyle,
    QuestionGenerator,
    generation_method,
)
from germane.scorers.prompting.question_similarity import PROMPT, embed_with_question, judge_similarities
from germane.scorers.refusals.judge_replies import REPLY_RULES_HASH
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH, find_noncommittal
from germane.settings import LOCAL

MAX_QUESTIONS = 10
MEANINGS = (
    (0.8, "The answer addresses the question directly"),
    (0.6, "The answer addresses the question partially"),
    (0.4, "The answer misses key aspects of the question"),
    (-1.0, "The answer does not address the question"),
)
"""Minimum mean similarity and its meaning, best first."""

SimilarityMethod = Literal["embedding", "judge"]


class AnswerRelevancy(JudgeScorer):
    """Mean similarity between the question and N questions that a judge generates from the answer alone.

    With ``similarity="embedding"``, the similarity is the cosine of two vectors. The value lies from -1 to 1, in
    practice from about 0 for another topic to 1. With ``"judge"``, the judge rates each generated question as 1
    (identical), .75, .5, .25 or 0; the value lies from 0 to 1 and no embedder is needed.

    The score says whether the answer addresses the question, not whether it is true or complete. Noncommittal answers
    ("I don't know", a clarifying question) are detected by rules without a judge request, and get 0 and the label
    ``noncommittal``. Sends one judge request per exchange, two with ``"judge"``, and one more if questions are missing.

    Source: Es et al. 2023, arXiv 2309.15217, section 3.
    """

    name = "answer_relevancy"
    version = "3"
    range = (-1.0, 1.0)

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder | None = None,
        *,
        generated_questions: int = 3,
        prompt_style: PromptStyle = "instructions",
        similarity: SimilarityMethod = "embedding",
        judge_detects_refusals: bool = False,
        remove_question_echo: bool = True,
    ) -> None:
        """Configure the scorer.

        Args:
            judge: Generates the questions.
            embedder: Required with ``similarity="embedding"``.
            generated_questions: Number of questions to generate, 1 to 10. The value is the mean over the usable ones.
            prompt_style: ``few_shot`` suits the smallest models, which follow examples but not instructions.
            similarity: Compare the questions by ``embedding`` or by the ``judge``.
            judge_detects_refusals: The judge also votes on whether the answer is noncommittal; a strict majority makes
                the score 0. The prompt is longer, and small judges vote wrongly.
            remove_question_echo: Remove repetitions of the question from the answer first.

        Raises:
            ValueError: an argument is invalid.
        """
        if not 1 <= generated_questions <= MAX_QUESTIONS:
            raise ValueError(f"generated_questions must be from 1 to {MAX_QUESTIONS}, not {generated_questions}")
        if prompt_style not in ("instructions", "few_shot"):
            raise ValueError(f"prompt_style must be 'instructions' or 'few_shot', not {prompt_style!r}")
        if similarity not in ("embedding", "judge"):
            raise ValueError(f"similarity must be 'embedding' or 'judge', not {similarity!r}")
        if similarity == "embedding" and embedder is None:
            raise ValueError("similarity 'embedding' needs an embedder")
        self._batcher = None
        if embedder is not None and similarity == "embedding":
            self._batcher = embedder if isinstance(embedder, EmbeddingBatcher) else EmbeddingBatcher(embedder)
        super().__init__(judge, self._batcher)
        self.generated_questions = generated_questions
        self.prompt_style = prompt_style
        self.similarity = similarity
        self.judge_detects_refusals = judge_detects_refusals
        self.remove_question_echo = remove_question_echo
        self.range = (-1.0, 1.0) if similarity == "embedding" else (0.0, 1.0)
        method = generation_method(prompt_style, votes=judge_detects_refusals)
        self._generator = QuestionGenerator(judge, method, generated_questions)

    def __repr__(self) -> str:
        return (
            f"AnswerRelevancy({self.judge!r}, generated_questions={self.generated_questions}, "
            f"prompt_style={self.prompt_style!r})"
        )

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompts for generating questions, and for comparing them if the judge does."""
        return (*self._generator.prompts(), PROMPT) if self.similarity == "judge" else self._generator.prompts()

    def parameters(self) -> Mapping[str, object]:
        """Return the number of questions, the rules, the schema and all options."""
        return {
            **self._generator.method.parameters(),
            "questions": self.generated_questions,
            "form": self.prompt_style,
            "similarity": self.similarity,
            "noncommittal": REFUSAL_RULES_HASH,
            "reply_rules": REPLY_RULES_HASH,
            "noncommittal_votes": self.judge_detects_refusals,
            "remove_copies": self.remove_question_echo,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange; ``details`` holds every question with its similarity.

        Raises:
            ScoringError: the judge or the embedder failed, or no reply contained a usable question.
        """
        inputs = self._inputs(exchange, MAX_ANSWER_BYTES)
        if inputs.is_only_question_echo:
            return await self._score_without_judge(ONLY_QUESTION_ECHO, band_of(0.0), inputs.details())
        match = find_noncommittal(inputs.answer)
        if match is not None:
            explanation = f"The answer is noncommittal: {match.rule}."
            details = {**inputs.details(), "noncommittal": match.details()}
            return await self._score_without_judge(explanation, NONCOMMITTAL, details)
        limit = self._generator.method.max_answer_bytes
        return await self._score_with_judge(inputs if limit == MAX_ANSWER_BYTES else self._inputs(exchange, limit))

    def _inputs(self, exchange: Exchange, max_answer_bytes: int) -> PromptInputs:
        return build_prompt_inputs(
            exchange,
            remove_echo=self.remove_question_echo,
            max_answer_bytes=max_answer_bytes,
            include_contexts=False,
        )

    async def _score_without_judge(self, explanation: str, label: str, details: Mapping[str, object]) -> Score:
        """Return a score of 0 without requesting questions.

        It has the fingerprint of judged scores, so that they share a trend.
        """
        request_kind = await self._generator.request_kind()  # first: it may identify the judge, too
        fingerprint = self.fingerprint_for(await self.judge.identify(), asked=request_kind)
        return await self.build_score_without_request(
            0.0, fingerprint=fingerprint, label=label, explanation=explanation, details=details
        )

    async def _score_with_judge(self, inputs: PromptInputs) -> Score:
        session = JudgeSession(self.judge)
        generated = await self._generator.generate(session, inputs.answer)
        if self.judge_detects_refusals and generated.noncommittal:
            return self.build_score(
                0.0,
                session,
                fingerprint=self.fingerprint_for(session.model, asked=generated.request_kind),
                label=NONCOMMITTAL,
                explanation="The judge considers the answer noncommittal.",
                details={**self._details(generated, []), **inputs.details()},
            )
        questions = [question.text for question in generated.usable]
        if not questions:
            raise _error_without_question(generated)
        diversity = None
        if self._batcher is None:
            similarities = await judge_similarities(session, inputs.question, questions)
        else:
            rows = await embed_with_question(self._batcher, inputs.question, questions)
            similarities = (rows[1:] @ rows[0]).tolist()
            diversity = mean_pairwise_cosine(rows[1:])
        mean = sum(similarities) / len(similarities)
        return self.build_score(
            mean,
            session,
            fingerprint=self.fingerprint_for(session.model, asked=generated.request_kind),
            explanation=_explain(mean, similarities, questions),
            details={**self._details(generated, similarities, diversity), **inputs.details()},
        )

    def _details(
        self, generated: GeneratedQuestions, similarities: Sequence[float], diversity: float | None = None
    ) -> dict[str, Any]:
        remaining = iter(similarities)
        return {
            "questions": [
                {
                    "text": shorten(question.text, 500),
                    "similarity": next(remaining, None) if question.is_usable else None,
                    "noncommittal": question.noncommittal,
                }
                for question in generated.questions
            ],
            "requested": self.generated_questions,
            "usable": len(generated.usable),
            "diversity": diversity,
            "asked": generated.request_kind,
            "similarity": self.similarity,
        }


def build(models: ScorerModels, options: Mapping[str, Any]) -> Scorer:
    """Build the scorer from settings."""
    settings = models.settings
    arguments: dict[str, Any] = {
        "generated_questions": settings.generated_questions,
        "prompt_style": "few_shot" if settings.judge == LOCAL else "instructions",
        "judge_detects_refusals": settings.judge_detects_refusals,
        **options,
    }
    needs_embedder = arguments.get("similarity", "embedding") == "embedding"
    return AnswerRelevancy(models.judge, models.embedder if needs_embedder else None, **arguments)


def _error_without_question(generated: GeneratedQuestions) -> ScoringError:
    """Return the error for a judge that refused, was cut off, passed on an error, or wrote something else."""
    problems = {question.problem for question in generated.questions}
    if "refusal" in problems:
        return ScoringError(UnscoredReason.JUDGE_REFUSED, "the judge refused to write a question")
    if "error" in problems:
        return ScoringError(UnscoredReason.UNPARSABLE, "the judge replied with an error message")
    if any(question.is_cut_off for question in generated.questions):
        return ScoringError(
            UnscoredReason.UNPARSABLE, "the judge reached its token limit before it finished a question"
        )
    return ScoringError(
        UnscoredReason.NO_USABLE_QUESTION, f"none of {len(generated.questions)} texts is a usable question"
    )


def _explain(mean: float, similarities: Sequence[float], questions: Sequence[str]) -> str:
    """Return the meaning of the mean, with the most and least similar generated question."""
    meaning = next(meaning for limit, meaning in MEANINGS if mean >= limit or limit == MEANINGS[-1][0])
    pairs = sorted(zip(similarities, questions, strict=True))
    (lowest, farthest), (highest, nearest) = pairs[0], pairs[-1]
    explanation = f'{meaning}. Most similar generated question: "{shorten(nearest, 80)}" ({highest:.2f})'
    if farthest == nearest:
        return f"{explanation}."
    return f'{explanation}; least similar: "{shorten(farthest, 80)}" ({lowest:.2f}).'
