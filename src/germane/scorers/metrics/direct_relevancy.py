"""Relevancy by direct rating: a judge rates from 1 to 5 how well the answer addresses the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score, band_of
from germane.scorers.base.protocols import Judge
from germane.scorers.base.text import ONLY_QUESTION_ECHO
from germane.scorers.prompting.judge_scorer import JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import Prompt, PromptInputs, build_prompt_inputs, load_prompt
from germane.scorers.prompting.rating import Rater, Rating
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH, find_noncommittal

PROMPT = load_prompt("direct_rating")


class DirectRelevancy(JudgeScorer):
    """A judge's rating of the answer from 1 (not at all) to 5 (fully), scaled to [0, 1] as (rating - 1) / 4.

    If the server returns logprobs, one request asks for one token without a rationale, and the rating is the expected
    value over the digits that this token can be. Otherwise, it is the digit that the judge writes. The two methods
    produce different values, so they have different fingerprints.

    A refusal keeps the judge's rating, because an honest refusal can be the best possible answer. If a rule of
    :func:`germane.scorers.find_noncommittal` matches, the label is ``noncommittal``. The judge also sees the earlier
    messages. The score does not show whether the answer is true.

    Source: weighting by token probabilities is from G-Eval, Liu et al. 2023, arXiv 2303.16634, section 2.
    """

    name = "direct_relevancy"
    version = "1"

    def __init__(self, judge: Judge, *, remove_question_echo: bool = True, logprobs: bool = True) -> None:
        """Configure the scorer.

        Args:
            judge: The judge that rates the answers.
            remove_question_echo: Whether to remove repetitions of the question from the answer first.
            logprobs: Whether to request token probabilities. Disable this for a judge that reasons before it replies.
        """
        super().__init__(judge)
        self.remove_question_echo = remove_question_echo
        self.rater = Rater(judge, PROMPT, logprobs=logprobs)

    def prompts(self) -> Sequence[Prompt]:
        """Return the scorer's prompt."""
        return (PROMPT,)

    def parameters(self) -> Mapping[str, object]:
        """Return the options, the rating scale, and the rules for the label. They become part of the fingerprint."""
        return {
            **self.rater.parameters(),
            "remove_copies": self.remove_question_echo,
            "noncommittal": REFUSAL_RULES_HASH,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains the rating and its method.

        Raises:
            ScoringError: the judge did not reply, or its reply is not a rating.
        """
        inputs = build_prompt_inputs(exchange, remove_echo=self.remove_question_echo, include_contexts=False)
        if inputs.is_only_question_echo:
            return await self.score_question_echo(inputs)
        session = JudgeSession(self.judge)
        rating = await self.rater.rate(session, inputs.template_values())
        return self.build_score(rating.value, session, **self.rating_fields(inputs, session, rating, rating.value))

    async def score_question_echo(self, inputs: PromptInputs) -> Score:
        """Return a score of 0 without requesting a rating.

        The fingerprint is the same as for rated scores, so that they share a trend.
        """
        method = await self.rater.rating_method()  # call this first, because it may also identify the judge
        return await self.build_zero_without_request(
            fingerprint=self.fingerprint_for(await self.judge.identify(), rated=method),
            explanation=ONLY_QUESTION_ECHO,
            details=inputs.details(),
        )

    def rating_fields(
        self, inputs: PromptInputs, session: JudgeSession, rating: Rating, value: float
    ) -> dict[str, Any]:
        """Return the fields of a rated :class:`Score` as a dict: fingerprint, label, explanation and details."""
        match = find_noncommittal(inputs.answer)
        explanation = f"The judge rates how well the answer addresses the question: {rating}."
        details = {**rating.details(), **inputs.details()}
        if match:
            explanation += f" The answer is noncommittal: {match.rule}."
            details["noncommittal"] = match.details()
        return {
            "fingerprint": self.fingerprint_for(session.model, rated=rating.method),
            "label": NONCOMMITTAL if match else band_of(value),
            "explanation": explanation,
            "details": details,
        }
