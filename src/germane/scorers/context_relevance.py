"""How relevant is what was retrieved to the question? A judge rates each chunk, all of them in one request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from germane.exchange import Exchange
from germane.score import LOW, Score
from germane.scorers.fence import fence_for
from germane.scorers.inquiry import Inquiry
from germane.scorers.judged import Judged
from germane.scorers.material import CONTEXTS_LIMIT, QUESTION_LIMIT, Material, material_of
from germane.scorers.parsing import as_list, as_number
from germane.scorers.passages import cut_details, fenced, with_first_contexts
from germane.scorers.prompt import Prompt, read_prompt
from germane.scorers.protocols import Judge
from germane.scorers.ranking import DECAY, MOST_CHUNKS, Aggregate, checked_aggregate, means
from germane.scorers.rating import GREATEST, LEAST, TOP_TOKENS, Rater, Rating
from germane.scorers.ratings import expected_ratings

Reading = Literal["expected", "parsed", "list expected", "list parsed"]
"""How ratings were read: the one of a single chunk or a list, as expected values or as they were written."""

ONE, MANY = read_prompt("context_rating"), read_prompt("context_ratings")


class ContextRelevance(Judged):
    """Mean of a judge's ratings of the chunks, from 0 to 1, weighted by their position: .9 ** position.

    The judge rates each chunk from 1 (does not answer the question at all) to 5 (fully), brought to 0..1 as
    (rating - 1) / 4: one request for all chunks of an exchange. Where the server returns logprobs, each rating is the
    expected value over the digits in its place, which is finer than the digit that the judge writes. A single chunk is
    then rated in one token. How the ratings were read is part of the fingerprint.

    An answer is not needed, and not looked at. It does not see what was not retrieved.
    """

    name = "context_relevance"
    version = "1"
    requires = frozenset({"question", "contexts"})

    def __init__(self, judge: Judge, *, aggregate: Aggregate = "position_weighted", logprobs: bool = True) -> None:
        """Score by the mean weighted by position, or by the plain ``mean``; the other one stands in the details.

        With ``logprobs=False`` there are only lists, of the digits that the judge writes: one reading for all.
        """
        super().__init__(judge)
        self.aggregate = checked_aggregate(aggregate)
        self.rater = Rater(judge, ONE, logprobs=logprobs)

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompt for one chunk and the one for several."""
        return (ONE, MANY)

    def parameters(self) -> Mapping[str, object]:
        """Return the options and the limits."""
        return {
            **self.rater.parameters(),
            "aggregate": self.aggregate,
            "decay": DECAY,
            "limits": [QUESTION_LIMIT, CONTEXTS_LIMIT, MOST_CHUNKS],
        }

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds each chunk's score, both means, and how many chunks are ``relevant``.

        Raises:
            ScoringError: the judge gave no reply, or none that holds a rating for each chunk.
        """
        exchange, left_out = with_first_contexts(dataclasses.replace(exchange, answer=None))
        material = material_of(exchange)
        inquiry = Inquiry(self.judge)
        if len(material.contexts) == 1 and await self.rater.rated() == "expected":
            rating = await self.rater.rate(inquiry, material.values(context=material.contexts[0]))
            details = {**rating.details(), **cut_details(material, left_out)}
            return self._scored([rating], rating.rated, inquiry, details)
        ratings = await self._rate_all(material, inquiry)
        finer = expected_ratings(inquiry.replies[-1].tokens, [rating.points for rating in ratings])
        reading: Reading = "list expected" if finer else "list parsed"
        return self._scored(finer or ratings, reading, inquiry, cut_details(material, left_out))

    async def _rate_all(self, material: Material, inquiry: Inquiry) -> list[Rating]:
        """Return the ratings as the judge wrote them."""
        count = len(material.contexts)
        fence = fence_for(material.question, material.history, *material.contexts)
        values = {
            "question": material.question,
            "history": material.history,
            "contexts": fenced(material.contexts, "context", fence, title="Passage"),
            "count": str(count),
            "shape": ", ".join(["..."] * count),
            "fence": fence,
        }

        def read(reply: Mapping[str, Any]) -> list[Rating]:
            items = as_list(reply.get("ratings"), count=count)
            return [Rating(as_number(item, LEAST, GREATEST), "parsed") for item in items]

        top_tokens = TOP_TOKENS if self.rater.logprobs else 0
        return await inquiry.ask_json(MANY, values, _schema(count), read, top_tokens=top_tokens)

    def _scored(
        self, ratings: Sequence[Rating], reading: Reading, inquiry: Inquiry, details: Mapping[str, object]
    ) -> Score:
        chunks = [rating.value for rating in ratings]
        both = means(chunks)
        relevant = sum(chunk >= LOW for chunk in chunks)
        return self.scored(
            both[self.aggregate],
            inquiry,
            fingerprint=self.fingerprint_by(inquiry.model, reading=reading),
            details={"chunks": chunks, "relevant": relevant, "reading": reading, **both, **details},
            explanation=f"{relevant} of {len(chunks)} chunks answer the question at least partly.",
        )


def _schema(count: int) -> dict[str, Any]:
    rating = {"type": "integer", "minimum": LEAST, "maximum": GREATEST}
    properties = {"ratings": {"type": "array", "minItems": count, "maxItems": count, "items": rating}}
    return {"type": "object", "properties": properties, "required": ["ratings"], "additionalProperties": False}
