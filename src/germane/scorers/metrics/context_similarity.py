"""The cosine similarity between the retrieved contexts and the question, without a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.protocols import Embedder, ScorerModels
from germane.scorers.base.text import MAX_EMBEDDED_BYTES, strip_control_characters, truncate_utf8
from germane.scorers.calibration import apply_calibration
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.prompting.context_blocks import (
    DECAY,
    MAX_CONTEXTS,
    ContextAggregate,
    aggregate_both,
    limit_contexts,
    truncation,
    validate_aggregate,
    validate_decay,
)

VERSION = "1"


class ContextSimilarity:
    """Position-weighted mean of the cosine similarities between the question and each context, from -1 to 1.

    It distinguishes topics and needs no judge. It does not show whether a context on the right topic contains the
    answer, and its thresholds apply to only one embedder. If the retriever uses the same embedder, the score judges the
    retriever by its own criterion. Scoring takes one shared embedding request.

    Source: defined by germane.
    """

    name = "context_similarity"
    requires = frozenset({"question", "contexts"})
    range = (-1.0, 1.0)

    def __init__(
        self,
        embedder: Embedder | EmbeddingBatcher,
        *,
        aggregate: ContextAggregate = "position_weighted",
        decay: float = DECAY,
    ) -> None:
        """Use the ``position_weighted`` mean or the unweighted ``mean`` as the value; ``details`` contains both.

        ``decay`` is the weight of each context relative to the previous one; greater than 0 and at most 1.

        Raises:
            TypeError, ValueError: an option is invalid.
        """
        self.embedder = EmbeddingBatcher.wrap(embedder)
        self.aggregate = validate_aggregate(aggregate)
        self.decay = validate_decay(decay)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings."""
        return cls(models.embedder, **options)

    def __repr__(self) -> str:
        return f"ContextSimilarity({self.embedder.model!r}, aggregate={self.aggregate!r})"

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint, which covers the version, the aggregate, the limits and the embedder."""
        return fingerprint(
            scorer=fingerprint_name(self),
            version=VERSION,
            parameters={
                "aggregate": self.aggregate,
                "decay": self.decay,
                "most": MAX_CONTEXTS,
                "limit": MAX_EMBEDDED_BYTES,
            },
            embedder=self.embedder.model,
        )

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains each context's similarity and both means.

        Raises:
            ScoringError: the embedder failed.
        """
        exchange, truncations = limit_contexts(exchange)
        question = truncate_utf8(strip_control_characters(exchange.question or ""), MAX_EMBEDDED_BYTES)
        contexts = [strip_control_characters(context.text) for context in exchange.contexts]
        shown = [truncate_utf8(context, MAX_EMBEDDED_BYTES) for context in contexts]
        rows = await self.embedder.embed([question, *shown], keep=1)
        similarities = [float(similarity) for similarity in rows[1:] @ rows[0]]
        means = aggregate_both(similarities, decay=self.decay)
        cut = dict(truncations)
        for index, (part, whole) in enumerate(zip(shown, contexts, strict=True)):
            cut |= truncation(f"context {index}", len(part), len(whole))
        score = Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=means[self.aggregate],
            details={"chunks": similarities, **means, **({"cut": cut} if cut else {})},
            embedder=self.embedder.model,
        )
        return apply_calibration(score, {})
