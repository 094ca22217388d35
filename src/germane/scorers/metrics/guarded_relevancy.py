"""A judge's rating, guarded by the similarity of question and answer: neither alone can lift an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.protocols import Embedder, Judge
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.metrics.direct_relevancy import PROMPT, said_of, without_rating
from germane.scorers.prompting.inputs import material_of
from germane.scorers.prompting.judge_scorer import Judged
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.question_similarity import EMBEDDED_LIMIT, embedded
from germane.scorers.prompting.rating import Rater
from germane.scorers.prompting.template import Prompt
from germane.scorers.refusals.rules import RULES


class GuardedRelevancy(Judged):
    """The rating of ``direct_relevancy`` times max(cosine(question, answer), 0), from 0 to 1.

    Copies of the question are cut out of the answer first; where nothing is left, the value is 0 and nobody is asked.
    Values are lower than those of either factor, and lie on a scale of their own. Both factors are in the details.
    The request to the judge is the same as that of ``direct_relevancy``; a share of one goes to the embedder.

    Source: the product is ours; the rating's is that of ``direct_relevancy``.
    """

    name = "guarded_relevancy"
    version = "1"

    def __init__(self, judge: Judge, embedder: Embedder, *, remove_copies: bool = True, logprobs: bool = True) -> None:
        """Rate answers; options as those of :class:`~germane.scorers.metrics.direct_relevancy.DirectRelevancy`."""
        self._batcher = embedder if isinstance(embedder, Batcher) else Batcher(embedder)
        super().__init__(judge, self._batcher)
        self.remove_copies = remove_copies
        self.rater = Rater(judge, PROMPT, logprobs=logprobs)

    def prompts(self) -> Sequence[Prompt]:
        """Return the one prompt."""
        return (PROMPT,)

    def parameters(self) -> Mapping[str, object]:
        """Return the options, the limits of a rating, and the rules that decide the label."""
        return {
            **self.rater.parameters(),
            "remove_copies": self.remove_copies,
            "noncommittal": RULES,
            "embedded_limit": EMBEDDED_LIMIT,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds rating and cosine.

        Raises:
            ScoringError: the judge or the embedder failed, or the reply is no rating.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            return await without_rating(self, self.rater, material)
        inquiry = Inquiry(self.judge)
        rating = await self.rater.rate(inquiry, material.values())
        rows = await embedded(self._batcher, material.question, [material.answer])
        cosine = float(rows[0] @ rows[1])
        value = rating.value * max(cosine, 0.0)
        said = said_of(self, material, inquiry, rating, value)
        explanation = f"{said['explanation']} Times the cosine of question and answer, {cosine:.2f}."
        factors = {"direct": rating.value, "cosine": cosine}
        return self.scored(
            value, inquiry, **{**said, "explanation": explanation, "details": {**factors, **said["details"]}}
        )
