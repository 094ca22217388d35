"""The relevance of the retrieved contexts to the question: a judge rates all contexts in one request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from germane.exchange import Exchange
from germane.score import LOW_SCORE, Score
from germane.scorers.base.protocols import Embedder, Judge, ScorerModels
from germane.scorers.base.reply_parser import parse_list, parse_number
from germane.scorers.base.text import MAX_EMBEDDED_BYTES
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.prompting.context_blocks import (
    DECAY,
    MAX_CONTEXTS,
    ContextAggregate,
    aggregate_both,
    delimited_blocks,
    limit_contexts,
    validate_aggregate,
    validate_decay,
)
from germane.scorers.prompting.judge_scorer import JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import (
    MAX_CONTEXTS_BYTES,
    MAX_QUESTION_BYTES,
    Prompt,
    PromptInputs,
    build_prompt_inputs,
    delimiter_for,
    load_prompt,
)
from germane.scorers.prompting.question_similarity import embed_with_question
from germane.scorers.prompting.rating import (
    MAX_RATING,
    MIN_RATING,
    TOP_TOKENS,
    Rater,
    Rating,
    expected_ratings,
    require_scale,
)

SINGLE_PROMPT, LIST_PROMPT = load_prompt("context_rating"), load_prompt("context_ratings")

RatingSource = Literal["expected", "parsed", "list expected", "list parsed"]
"""How the ratings were obtained: for a single context or for a list, and as expected values or as the judge wrote
them."""


class ContextRelevance(JudgeScorer):
    """Position-weighted mean of a judge's ratings of the contexts, from 0 to 1. The weights are decay ** position.

    The judge rates all contexts of an exchange in one request, each from 1 (contains no part of the answer) to 5
    (contains the whole answer). Ratings are scaled to [0, 1] as (rating - 1) / 4. If the server returns logprobs, each
    rating is the expected value over the possible digits, which is more precise than the digit that the judge writes; a
    single context then takes only one output token. The source of the ratings is part of the fingerprint.

    With an embedder, each rating is multiplied by the cosine of context and question. Such values are lower and are on
    a different scale. The answer is neither required nor used. The score does not reflect contexts that should have
    been retrieved but were not.

    Sources: Es et al. 2023, arXiv 2309.15217; expected values as in Liu et al. 2023, arXiv 2303.16634.
    """

    name = "context_relevance"
    version = "1"
    requires = frozenset({"question", "contexts"})

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder | None = None,
        *,
        aggregate: ContextAggregate = "position_weighted",
        decay: float = DECAY,
        logprobs: bool = True,
    ) -> None:
        """Configure the scorer.

        Args:
            judge: The judge that rates the contexts.
            embedder: If one is given, a context's score is its rating times max(cosine(question, context), 0).
            aggregate: The mean to use as the value: ``position_weighted``, or the unweighted ``mean``. ``details``
                contains both.
            decay: The weight of each context relative to the previous one; greater than 0 and at most 1.
            logprobs: Whether to request token probabilities. Without them, all ratings are the digits that the judge
                writes.

        Raises:
            TypeError, ValueError: an option is invalid.
        """
        self._batcher = None if embedder is None else EmbeddingBatcher.wrap(embedder)
        super().__init__(judge, self._batcher)
        self.aggregate = validate_aggregate(aggregate)
        self.decay = validate_decay(decay)
        self.rater = Rater(judge, SINGLE_PROMPT, logprobs=logprobs)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings. The ``guarded`` option multiplies ratings by cosines."""
        arguments = dict(options)
        guarded = arguments.pop("guarded", False)
        if not isinstance(guarded, bool):
            raise TypeError(f"guarded must be true or false, not {guarded!r}")
        return cls(models.judge, models.embedder if guarded else None, **arguments)

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompts for a single context and for several contexts."""
        return (SINGLE_PROMPT, LIST_PROMPT)

    def parameters(self) -> Mapping[str, object]:
        """Return the options and the limits. They become part of the fingerprint."""
        return {
            **self.rater.parameters(),
            "aggregate": self.aggregate,
            "decay": self.decay,
            "limits": [MAX_QUESTION_BYTES, MAX_CONTEXTS_BYTES, MAX_CONTEXTS],
            "embedded_limit": MAX_EMBEDDED_BYTES if self._batcher else None,
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange.

        ``details`` contains each context's score, both means, and the number of ``relevant`` contexts.

        Raises:
            ScoringError: the judge did not reply or did not rate every context, or the embedder failed.
        """
        exchange, truncations = limit_contexts(dataclasses.replace(exchange, answer=None))
        inputs = build_prompt_inputs(exchange)
        session = JudgeSession(self.judge)
        ratings, source = await self._rate(inputs, session)
        details: dict[str, object] = {
            "ratings": [rating.points for rating in ratings],
            "reading": source,
            **inputs.details(truncations),
        }
        scores = [rating.value for rating in ratings]
        if self._batcher is not None:
            rows = await embed_with_question(self._batcher, inputs.question, inputs.contexts)
            cosines = [float(cosine) for cosine in rows[1:] @ rows[0]]
            details["cosines"] = cosines
            scores = [score * max(cosine, 0.0) for score, cosine in zip(scores, cosines, strict=True)]
        means = aggregate_both(scores, decay=self.decay)
        relevant = sum(score >= LOW_SCORE for score in scores)
        return self.build_score(
            means[self.aggregate],
            session,
            fingerprint=self.fingerprint_for(session.model, reading=source),
            details={"chunks": scores, "relevant": relevant, **means, **details},
            explanation=f"{relevant} of {len(scores)} contexts score {LOW_SCORE:g} or more.",
        )

    async def _rate(self, inputs: PromptInputs, session: JudgeSession) -> tuple[Sequence[Rating], RatingSource]:
        count = len(inputs.contexts)
        if count == 1 and await self.rater.rating_method() == "expected":
            rating = await self.rater.rate(session, inputs.template_values(context=inputs.contexts[0]))
            return [rating], rating.method

        delimiter = delimiter_for(inputs.question, inputs.history, *inputs.contexts)
        values = {
            "question": inputs.question,
            "history": inputs.history,
            "contexts": delimited_blocks(inputs.contexts, "context", delimiter, title="Passage"),
            "count": str(count),
            "shape": ", ".join(["..."] * count),
            "fence": delimiter,
        }
        item = {"type": "integer", "minimum": MIN_RATING, "maximum": MAX_RATING}
        schema = {
            "type": "object",
            "properties": {"ratings": {"type": "array", "minItems": count, "maxItems": count, "items": item}},
            "required": ["ratings"],
            "additionalProperties": False,
        }

        def parse(reply: Mapping[str, Any]) -> list[Rating]:
            require_scale(reply)
            items = parse_list(reply.get("ratings"), count=count)
            return [Rating(parse_number(item, MIN_RATING, MAX_RATING), "parsed") for item in items]

        top_tokens = TOP_TOKENS if self.rater.logprobs else 0
        written = await session.ask_json(LIST_PROMPT, values, schema, parse, top_tokens=top_tokens)
        expected = expected_ratings(session.replies[-1].tokens, [rating.points for rating in written])
        return (expected, "list expected") if expected else (written, "list parsed")
