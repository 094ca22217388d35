"""The embedder behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.meter import Meter
from germane.scorers.protocols import Vectors
from germane.scorers.server import Server
from germane.scorers.vectors import unit_rows


class OpenAIEmbedder:
    """Asks a server for vectors."""

    def __init__(self, model: str, server: Server, *, meter: Meter | None = None) -> None:
        self.model = model
        self.server = server
        self.meter = meter or Meter()
        self._client = server.connect()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text, in one request.

        Raises:
            ScoringError: ``embedder_error``. It carries ``retry_after`` (0 where the server named no time) when the
                server was away, slow or busy, and none when the same request would fail again.
        """
        self.meter.embedding_requests += 1
        try:
            async with self.server.request():
                reply = await self._client.embeddings.create(
                    model=self.model, input=list(texts), encoding_format="float"
                )
        except ScoringError as error:
            raise _as_embedder(error) from None
        self.meter.embedding_tokens += _tokens(reply)
        return unit_rows(_rows(reply), len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def _as_embedder(error: ScoringError) -> ScoringError:
    pause = error.retry_after or 0.0 if error.reason.transient else None
    return ScoringError(Reason.EMBEDDER_ERROR, f"embedder: {error}", retry_after=pause)


def _tokens(reply: Any) -> int:
    count = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
    return max(count, 0) if isinstance(count, int) else 0


def _rows(reply: Any) -> list[Any]:
    """Return the vectors in the order of the texts. The client checks nothing."""
    data = getattr(reply, "data", None)
    if not isinstance(data, list):
        raise ScoringError(Reason.EMBEDDER_ERROR, "the embedder's reply holds no vectors")
    places = [getattr(item, "index", None) for item in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(data))):
        data = sorted(data, key=lambda item: item.index)
    return [getattr(item, "embedding", None) for item in data]
