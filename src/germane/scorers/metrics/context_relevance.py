"""How relevant is what was retrieved to the question? A judge rates each chunk, all of them in one request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from germane.exchange import Exchange
from germane.score import LOW, Score
from germane.scorers.base.json_reply import as_list, as_number
from germane.scorers.base.protocols import Embedder, Judge
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.prompting.context_blocks import (
    DECAY,
    MOST_CHUNKS,
    Aggregate,
    checked_aggregate,
    cut_details,
    fenced,
    means,
    with_first_contexts,
)
from germane.scorers.prompting.inputs import CONTEXTS_LIMIT, QUESTION_LIMIT, Material, material_of
from germane.scorers.prompting.judge_scorer import Judged
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.question_similarity import EMBEDDED_LIMIT, embedded
from germane.scorers.prompting.rating import GREATEST, LEAST, TOP_TOKENS, Rater, Rating, expected_ratings
from germane.scorers.prompting.template import Prompt, fence_for, read_prompt

Reading = Literal["expected", "parsed", "list expected", "list parsed"]
"""How ratings were read: the one of a single chunk or a list, as expected values or as they were written."""

ONE, MANY = read_prompt("context_rating"), read_prompt("context_ratings")


class ContextRelevance(Judged):
    """Mean of a judge's ratings of the chunks, from 0 to 1, weighted by their position: .9 ** position.

    The judge rates each chunk from 1 (states nothing of the answer) to 5 (all of it), brought to 0..1 as
    (rating - 1) / 4: one request for all chunks of an exchange. Where the server returns logprobs, each rating is the
    expected value over the digits in its place, which is finer than the digit that the judge writes. A single chunk is
    then rated in one token. How the ratings were read is part of the fingerprint.

    With an embedder each rating is multiplied by the cosine of chunk and question: values are lower, and lie on a scale
    of their own. An answer is not needed, and not looked at. It does not see what was not retrieved.

    Sources: Es et al. 2023, arXiv 2309.15217; the expected value is that of Liu et al. 2023, arXiv 2303.16634.
    """

    name = "context_relevance"
    version = "1"
    requires = frozenset({"question", "contexts"})

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder | None = None,
        *,
        aggregate: Aggregate = "position_weighted",
        logprobs: bool = True,
    ) -> None:
        """Rate chunks.

        Args:
            judge: Who rates.
            embedder: With one, the score of a chunk is its rating times max(cosine(question, chunk), 0).
            aggregate: Which mean is the value: weighted by position, or the plain ``mean``. Both are in the details.
            logprobs: Ask for the likelihood of tokens. Without, there are only lists, of the digits that the judge
                writes: one reading for all.
        """
        self._batcher = embedder if isinstance(embedder, Batcher) or embedder is None else Batcher(embedder)
        super().__init__(judge, self._batcher)
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
            "embedded_limit": EMBEDDED_LIMIT if self._batcher else None,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds each chunk's score, both means, and how many chunks are ``relevant``.

        Raises:
            ScoringError: the judge gave no reply, or none that holds a rating for each chunk; or the embedder failed.
        """
        exchange, left_out = with_first_contexts(dataclasses.replace(exchange, answer=None))
        material = material_of(exchange)
        inquiry = Inquiry(self.judge)
        ratings, reading = await self._rate(material, inquiry)
        chunks = [rating.value for rating in ratings]
        points = [rating.points for rating in ratings]
        details: dict[str, object] = {"ratings": points, "reading": reading, **cut_details(material, left_out)}
        if self._batcher is not None:
            rows = await embedded(self._batcher, material.question, material.contexts)
            cosines = [float(cosine) for cosine in rows[1:] @ rows[0]]
            details["cosines"] = cosines
            chunks = [chunk * max(cosine, 0.0) for chunk, cosine in zip(chunks, cosines, strict=True)]
        return self._scored(chunks, inquiry, self.fingerprint_by(inquiry.model, reading=reading), details)

    async def _rate(self, material: Material, inquiry: Inquiry) -> tuple[Sequence[Rating], Reading]:
        if len(material.contexts) == 1 and await self.rater.rated() == "expected":
            rating = await self.rater.rate(inquiry, material.values(context=material.contexts[0]))
            return [rating], rating.rated
        ratings = await self._rate_all(material, inquiry)
        finer = expected_ratings(inquiry.replies[-1].tokens, [rating.points for rating in ratings])
        return (finer, "list expected") if finer else (ratings, "list parsed")

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
        self, chunks: Sequence[float], inquiry: Inquiry, fingerprint: str, details: Mapping[str, object]
    ) -> Score:
        both = means(chunks)
        relevant = sum(chunk >= LOW for chunk in chunks)
        return self.scored(
            both[self.aggregate],
            inquiry,
            fingerprint=fingerprint,
            details={"chunks": list(chunks), "relevant": relevant, **both, **details},
            explanation=f"{relevant} of {len(chunks)} chunks have {LOW:g} or more.",
        )


def _schema(count: int) -> dict[str, Any]:
    rating = {"type": "integer", "minimum": LEAST, "maximum": GREATEST}
    properties = {"ratings": {"type": "array", "minItems": count, "maxItems": count, "items": rating}}
    return {"type": "object", "properties": properties, "required": ["ratings"], "additionalProperties": False}
