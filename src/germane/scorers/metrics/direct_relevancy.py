"""How well does the answer address the question? A judge rates it, 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.base.protocols import Judge
from germane.scorers.prompting.inputs import Material, material_of
from germane.scorers.prompting.judge_scorer import Judged
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.rating import Rater, Rating
from germane.scorers.prompting.template import Prompt, read_prompt
from germane.scorers.refusals.rules import NONCOMMITTAL, RULES, Finding, find_noncommittal

PROMPT = read_prompt("direct_rating")
ONLY_COPIES = "The answer only repeats the question."


class DirectRelevancy(Judged):
    """A judge's rating of the answer, from 1 (not at all) to 5 (fully), brought to 0..1 as (rating - 1) / 4.

    Where the server returns logprobs, the rating is the expected value over the digits of its first token: one request
    of one token, no rationale. Else it is the digit that the judge wrote. The two give other values, so they have
    other fingerprints.

    A refusal keeps the judge's rating, since an honest refusal can be the best answer there is; where the rules of
    :func:`germane.scorers.find_noncommittal` find one, the label says ``noncommittal``. Earlier turns are shown. It
    does not see whether the answer is true.

    Source: the weighting by token probabilities is that of G-Eval, Liu et al. 2023, arXiv 2303.16634, section 2.
    """

    name = "direct_relevancy"
    version = "1"

    def __init__(self, judge: Judge, *, remove_copies: bool = True, logprobs: bool = True) -> None:
        """Rate answers.

        Args:
            judge: Who rates.
            remove_copies: Cut copies of the question out of the answer first.
            logprobs: Ask for the likelihood of tokens. Turn it off for a judge that thinks before it answers.
        """
        super().__init__(judge)
        self.remove_copies = remove_copies
        self.rater = Rater(judge, PROMPT, logprobs=logprobs)

    def prompts(self) -> Sequence[Prompt]:
        """Return the one prompt."""
        return (PROMPT,)

    def parameters(self) -> Mapping[str, object]:
        """Return the options, the limits of a rating, and the rules that decide the label."""
        return {**self.rater.parameters(), "remove_copies": self.remove_copies, "noncommittal": RULES}

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds the rating and how it was made.

        Raises:
            ScoringError: the judge gave no reply, or none that is a rating.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            return await without_rating(self, self.rater, material)
        inquiry = Inquiry(self.judge)
        rating = await self.rater.rate(inquiry, material.values())
        return self.scored(rating.value, inquiry, **said_of(self, material, inquiry, rating, rating.value))


async def without_rating(scorer: Judged, rater: Rater, material: Material) -> Score:
    """Return 0 without a request, of the same fingerprint as if the judge had been asked: trends count both."""
    rated = await rater.rated()
    fingerprint = scorer.fingerprint_by(await scorer.judge.identify(), rated=rated)
    return await scorer.unasked(0.0, fingerprint=fingerprint, explanation=ONLY_COPIES, details=material.details())


def said_of(scorer: Judged, material: Material, inquiry: Inquiry, rating: Rating, value: float) -> dict[str, Any]:
    """Return the fields of :class:`Score` that a rating decides: fingerprint, label, explanation and details."""
    found = find_noncommittal(material.answer)
    return {
        "fingerprint": scorer.fingerprint_by(inquiry.model, rated=rating.rated),
        "label": NONCOMMITTAL if found else band(value),
        "explanation": f"The judge rates how the answer addresses the question: {rating}.{_and(found)}",
        "details": {**rating.details(), **material.details(), **({"noncommittal": found.details()} if found else {})},
    }


def _and(found: Finding | None) -> str:
    return f" The answer does not commit itself: {found.rule}." if found else ""
