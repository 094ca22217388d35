"""How near are the retrieved chunks to the question? One cosine each, no judge."""

from __future__ import annotations

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder
from germane.scorers.base.text import clean, cut
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.prompting.context_blocks import (
    DECAY,
    MOST_CHUNKS,
    Aggregate,
    Cuts,
    checked_aggregate,
    means,
    with_first_contexts,
)

VERSION = "1"
LIMIT = 8_000
"""Bytes of one text that go to the embedder."""


class ContextSimilarity:
    """Cosine similarity of the question to each chunk, averaged in the order of the retriever; from -1 to 1.

    It separates topics and costs no judge. It does not see whether a chunk on the topic holds the answer, and its
    thresholds hold for one embedder only. A retriever that uses the same embedder is measured with its own yardstick.
    A share of one request to the embedder.

    Source: the form is ours.
    """

    name = "context_similarity"
    requires = frozenset({"question", "contexts"})
    range = (-1.0, 1.0)

    def __init__(self, embedder: Embedder | Batcher, *, aggregate: Aggregate = "position_weighted") -> None:
        """Score by the mean weighted by position, or by the plain ``mean``; the other one stands in the details."""
        self.embedder = embedder if isinstance(embedder, Batcher) else Batcher(embedder)
        self.aggregate = checked_aggregate(aggregate)

    def __repr__(self) -> str:
        return f"ContextSimilarity({self.embedder.model!r}, aggregate={self.aggregate!r})"

    @property
    def fingerprint(self) -> str:
        """Of version, aggregate, limits and embedder."""
        return fingerprint(
            scorer=self.name,
            version=VERSION,
            parameters={"aggregate": self.aggregate, "decay": DECAY, "most": MOST_CHUNKS, "limit": LIMIT},
            embedder=self.embedder.model,
        )

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds each chunk's similarity, and both means.

        Raises:
            ScoringError: the embedder failed.
        """
        exchange, left_out = with_first_contexts(exchange)
        chunks = [clean(context.text) for context in exchange.contexts]
        shown = [cut(chunk, LIMIT) for chunk in chunks]
        rows = await self.embedder.embed([cut(clean(exchange.question or ""), LIMIT), *shown], keep=1)
        similarities = [float(similarity) for similarity in rows[1:] @ rows[0]]
        both = means(similarities)
        value = both[self.aggregate]
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=band(value),
            details={"chunks": similarities, **both, **_cut(left_out, chunks, shown)},
            embedder=self.embedder.model,
        )


def _cut(left_out: Cuts, chunks: list[str], shown: list[str]) -> dict[str, object]:
    """Return what the details say of texts that were too many or too long; nothing where all was looked at."""
    sizes = {f"context {place}": (len(part), len(chunks[place])) for place, part in enumerate(shown)}
    found = {**left_out, **{name: {"shown": part, "of": of} for name, (part, of) in sizes.items() if part < of}}
    return {"cut": found} if found else {}
