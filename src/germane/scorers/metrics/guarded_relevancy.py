"""Relevancy by direct rating times cosine similarity, so that neither alone can inflate the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.expected_kind import describe_missing_kind, find_missing_kind
from germane.scorers.base.protocols import Embedder, Judge, ScorerModels
from germane.scorers.base.text import MAX_EMBEDDED_BYTES
from germane.scorers.calibration import apply_calibration
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.metrics.direct_relevancy import DirectRelevancy
from germane.scorers.prompting.judge_scorer import JudgeSession
from germane.scorers.prompting.prompt import build_prompt_inputs
from germane.scorers.prompting.question_similarity import embed_with_question


class GuardedRelevancy(DirectRelevancy):
    """The rating of ``direct_relevancy`` times max(cosine(question, answer), 0), from 0 to 1.

    Repetitions of the question are removed from the answer first; if nothing is left, the value is 0 and no request is
    sent. Values are never higher than either factor, and are not comparable with those of other scorers. ``details``
    contains both factors. The label is derived from the rating times ``on_topic``, a factor from 0 to 1 that the
    calibrated cosine determines. The judge request is the same as for ``direct_relevancy``; the embedding request is
    shared.

    Source: the product is defined by germane; for the rating, see ``direct_relevancy``.
    """

    name = "guarded_relevancy"
    version = "1"

    def __init__(
        self, judge: Judge, embedder: Embedder, *, remove_question_echo: bool = True, logprobs: bool = True
    ) -> None:
        """Configure the scorer; see :class:`DirectRelevancy`."""
        super().__init__(judge, remove_question_echo=remove_question_echo, logprobs=logprobs)
        self.embedder = self._batcher = EmbeddingBatcher.wrap(embedder)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings."""
        return cls(models.judge, models.embedder, **options)

    def parameters(self) -> Mapping[str, object]:
        """Return the parameters of ``direct_relevancy`` and the limit. They become part of the fingerprint."""
        return {**super().parameters(), "embedded_limit": MAX_EMBEDDED_BYTES}

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains the rating and the cosine.

        Raises:
            ScoringError: the judge or the embedder failed, or the reply is not a rating.
        """
        inputs = build_prompt_inputs(exchange, remove_echo=self.remove_question_echo, include_contexts=False)
        if inputs.is_only_question_echo:
            return await self.score_question_echo(inputs)
        session = JudgeSession(self.judge)
        rating = await self.rater.rate(session, inputs.template_values())
        rows = await embed_with_question(self._batcher, inputs.question, [inputs.answer])
        cosine = float(rows[0] @ rows[1])
        value = rating.value * max(cosine, 0.0)
        fields = self.rating_fields(inputs, session, rating, value)
        fields["explanation"] += f" The rating is multiplied by the cosine of question and answer, {cosine:z.2f}."
        evidence: dict[str, object] = {"direct": rating.value, "cosine": cosine}
        if missing := find_missing_kind(inputs.question, inputs.answer):
            evidence["missing_kind"] = missing
            fields["explanation"] += f" {describe_missing_kind(missing)}"
        fields["details"] = {**evidence, **fields["details"]}
        return apply_calibration(self.build_score(value, session, **fields), {})
