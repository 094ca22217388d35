"""Relevancy from generated questions: a judge writes questions that the answer would answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, get_args

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import LOWEST_BAND, MEANINGS, NONCOMMITTAL, Score, UnscoredReason, band_of
from germane.scorers.base.expected_kind import describe_missing_kind, find_missing_kind
from germane.scorers.base.protocols import Embedder, Judge, ScorerModels
from germane.scorers.base.text import ONLY_QUESTION_ECHO, shorten
from germane.scorers.base.vectors import mean_pairwise_cosine
from germane.scorers.calibration import MISSING_KIND_LIMIT, apply_calibration
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.metrics.direct_relevancy import PROMPT as DIRECT_PROMPT
from germane.scorers.prompting.judge_scorer import JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import MAX_ANSWER_BYTES, Prompt, PromptInputs, build_prompt_inputs
from germane.scorers.prompting.question_generator import (
    GeneratedQuestions,
    PromptStyle,
    QuestionGenerator,
    generation_method,
)
from germane.scorers.prompting.question_similarity import PROMPT, embed_with_question, judge_similarities
from germane.scorers.prompting.rating import Rater
from germane.scorers.refusals.judge_replies import REPLY_RULES_HASH
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH, find_noncommittal
from germane.settings import LOCAL

MAX_QUESTIONS = 10
SimilarityMethod = Literal["embedding", "judge"]
LabelSource = Literal["guarded", "answer", "questions"]


class AnswerRelevancy(JudgeScorer):
    """Mean similarity between the question and N questions that a judge generates from the answer alone.

    With ``similarity="embedding"``, the similarity is the cosine of two vectors. The value is between -1 and 1. In
    practice, it ranges from about 0 for a different topic to 1. With ``"judge"``, the judge rates each generated
    question as 1 (identical), 0.75, 0.5, 0.25 or 0. The value is between 0 and 1, and no embedder is needed.

    The score shows whether the answer addresses the question, not whether it is true or complete. Noncommittal answers
    ("I don't know", a clarifying question) are detected by rules, without a judge request; they get a score of 0 and
    the label ``noncommittal``. Scoring takes one judge request per exchange, one more with ``"judge"``, one more if the
    judge also rates the answer (``label_from="guarded"``), and one more if questions are missing.

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
        label_from: LabelSource | None = None,
    ) -> None:
        """Configure the scorer.

        Args:
            judge: The judge that generates the questions.
            embedder: Required if ``similarity`` is ``embedding``.
            generated_questions: The number of questions to generate, from 1 to 10. The value is the mean over the
                usable ones.
            prompt_style: ``few_shot`` suits the smallest models, which follow examples but not instructions.
            similarity: Whether to compare the questions by ``embedding`` or by the ``judge``.
            judge_detects_refusals: Whether the judge also votes on whether the answer is noncommittal. A strict
                majority sets the score to 0. The prompt is longer, and small judges vote unreliably.
            remove_question_echo: Whether to remove repetitions of the question from the answer first.
            label_from: With ``guarded``, the judge also rates the answer in a second request, and the label combines
                the rating with the similarity of question and answer. With ``answer``, the label is based on the higher
                of two similarities: between the questions, and between question and answer. With ``questions``, the
                label depends only on the value. Defaults to ``guarded`` with embeddings, and otherwise to
                ``questions``.

        Raises:
            ValueError: an argument is invalid.
        """
        if not 1 <= generated_questions <= MAX_QUESTIONS:
            raise ValueError(f"generated_questions must be from 1 to {MAX_QUESTIONS}, not {generated_questions}")
        if prompt_style not in ("instructions", "few_shot"):
            raise ValueError(f"prompt_style must be 'instructions' or 'few_shot', not {prompt_style!r}")
        if similarity not in ("embedding", "judge"):
            raise ValueError(f"similarity must be 'embedding' or 'judge', not {similarity!r}")
        if label_from is None:
            label_from = "guarded" if similarity == "embedding" else "questions"
        if label_from not in get_args(LabelSource):
            raise ValueError(f"label_from must be 'guarded', 'answer' or 'questions', not {label_from!r}")
        if label_from != "questions" and similarity == "judge":
            raise ValueError(f"label_from {label_from!r} needs similarity 'embedding'")
        if similarity == "embedding" and embedder is None:
            raise ValueError("similarity 'embedding' needs an embedder")
        self._batcher = None
        if embedder is not None and similarity == "embedding":
            self._batcher = EmbeddingBatcher.wrap(embedder)
        super().__init__(judge, self._batcher)
        self.generated_questions = generated_questions
        self.prompt_style = prompt_style
        self.similarity = similarity
        self.judge_detects_refusals = judge_detects_refusals
        self.remove_question_echo = remove_question_echo
        self.label_from = label_from
        self.range = (-1.0, 1.0) if similarity == "embedding" else (0.0, 1.0)
        self._rater = Rater(judge, DIRECT_PROMPT) if label_from == "guarded" else None
        method = generation_method(prompt_style, votes=judge_detects_refusals)
        self._generator = QuestionGenerator(judge, method, generated_questions)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings."""
        settings = models.settings
        arguments: dict[str, Any] = {
            "generated_questions": settings.generated_questions,
            "prompt_style": "few_shot" if settings.judge == LOCAL else "instructions",
            "judge_detects_refusals": settings.judge_detects_refusals,
            # The embedded judge is too small to rate answers.
            **({"label_from": "answer"} if settings.judge == LOCAL and options.get("similarity") != "judge" else {}),
            **options,
        }
        needs_embedder = arguments.get("similarity", "embedding") == "embedding"
        return cls(models.judge, models.embedder if needs_embedder else None, **arguments)

    def __repr__(self) -> str:
        return (
            f"AnswerRelevancy({self.judge!r}, generated_questions={self.generated_questions}, "
            f"prompt_style={self.prompt_style!r})"
        )

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompts for generating questions, and those for comparing them or rating the answer if the judge
        does that.
        """
        comparison = (PROMPT,) if self.similarity == "judge" else ()
        rating = (DIRECT_PROMPT,) if self._rater is not None else ()
        return (*self._generator.prompts(), *comparison, *rating)

    def parameters(self) -> Mapping[str, object]:
        """Return the number of questions, the rules, the schema and all options.

        They become part of the fingerprint.
        """
        return {
            **self._generator.method.parameters(),
            "questions": self.generated_questions,
            "form": self.prompt_style,
            "similarity": self.similarity,
            "noncommittal": REFUSAL_RULES_HASH,
            "reply_rules": REPLY_RULES_HASH,
            "noncommittal_votes": self.judge_detects_refusals,
            "remove_copies": self.remove_question_echo,
            **({"label_from": self.label_from} if self._rater is not None else {}),
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains every question and its similarity.

        Raises:
            ScoringError: the judge or the embedder failed, or no reply contained a usable question.
        """
        inputs = self._inputs(exchange, MAX_ANSWER_BYTES)
        if inputs.is_only_question_echo:
            return await self._score_without_judge(ONLY_QUESTION_ECHO, LOWEST_BAND, inputs.details())
        match = find_noncommittal(inputs.answer)
        if match is not None:
            explanation = f"The answer is noncommittal: {match.rule}."
            details = {**inputs.details(), "noncommittal": match.details()}
            return await self._score_without_judge(explanation, NONCOMMITTAL, details)
        limit = self._generator.method.max_answer_bytes
        return await self._score_with_judge(inputs if limit == MAX_ANSWER_BYTES else self._inputs(exchange, limit))

    def _inputs(self, exchange: Exchange, max_answer_bytes: int) -> PromptInputs:
        return build_prompt_inputs(
            exchange, remove_echo=self.remove_question_echo, max_answer_bytes=max_answer_bytes, include_contexts=False
        )

    async def _score_without_judge(self, explanation: str, label: str, details: Mapping[str, object]) -> Score:
        """Return a score of 0 without a request, with the fingerprint of judged scores, so that they share a trend."""
        request_kind = await self._generator.request_kind()  # call this first, because it may also identify the judge
        fingerprint = self.fingerprint_for(await self.judge.identify(), asked=request_kind)
        return await self.build_zero_without_request(
            fingerprint=fingerprint, label=label, explanation=explanation, details=details
        )

    async def _score_with_judge(self, inputs: PromptInputs) -> Score:
        """Score an answer that the rules consider committed.

        The value is the mean similarity of the questions. The label of a cosine is chosen at the end, by
        :func:`apply_calibration`, from details: ``answer_similarity`` and ``missing_kind``, and the rating ``direct``.
        """
        session = JudgeSession(self.judge)
        generated = await self._generator.generate(session, inputs.answer, inputs.question)
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
        diversity: float | None = None
        evidence: dict[str, object] = {}
        if self._batcher is None:
            similarities = await judge_similarities(session, inputs.question, questions)
        else:
            texts = questions if self.label_from == "questions" else [*questions, inputs.answer]
            rows = await embed_with_question(self._batcher, inputs.question, texts)
            cosines = (rows[1:] @ rows[0]).tolist()
            similarities = cosines[: len(questions)]  # the last cosine may be that of the answer
            diversity = mean_pairwise_cosine(rows[1 : len(questions) + 1])
            if self.label_from != "questions":
                evidence["answer_similarity"] = cosines[-1]
        if self._rater is not None:
            evidence.update(await self._rate(session, inputs))
        if missing := find_missing_kind(inputs.question, inputs.answer):
            evidence["missing_kind"] = missing
        mean = sum(similarities) / len(similarities)
        explanation = _describe_questions(similarities, questions)
        if missing:
            explanation = f"{describe_missing_kind(missing)} {explanation}"
        label = band_of(mean)  # for a cosine, the calibration below replaces it
        if self.similarity == "judge":
            label = band_of(min(mean, MISSING_KIND_LIMIT)) if missing else label
            explanation = f"{MEANINGS[label]}. {explanation}"
        score = self.build_score(
            mean,
            session,
            fingerprint=self.fingerprint_for(session.model, asked=generated.request_kind),
            label=label,
            explanation=explanation,
            details={**self._details(generated, similarities, diversity), **evidence, **inputs.details()},
        )
        return apply_calibration(score, {})

    async def _rate(self, session: JudgeSession, inputs: PromptInputs) -> dict[str, object]:
        """Return details with the judge's rating of the answer, which determines the label, or the reason there is
        none.

        Raises:
            ScoringError: the request may succeed later.
        """
        assert self._rater is not None  # noqa: S101 - only called if there is a rater
        try:
            rating = await self._rater.rate(session, inputs.template_values())
        except ScoringError as error:
            if error.reason.is_transient or error.retry_after is not None or error.rejected:
                raise
            return {"direct_failed": str(error.reason)}
        return {"direct": rating.value}

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


def _error_without_question(generated: GeneratedQuestions) -> ScoringError:
    """Return the error for replies without a usable question: a refusal, an error, a truncated reply, or other text."""
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


def _describe_questions(similarities: Sequence[float], questions: Sequence[str]) -> str:
    """Describe the most similar and the least similar generated question in a sentence."""
    pairs = sorted(zip(similarities, questions, strict=True))
    (lowest, farthest), (highest, nearest) = pairs[0], pairs[-1]
    explanation = f'Most similar generated question: "{shorten(nearest, 80)}" ({highest:z.2f})'
    if farthest == nearest:
        return f"{explanation}."
    return f'{explanation}; least similar: "{shorten(farthest, 80)}" ({lowest:z.2f}).'
