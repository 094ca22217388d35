"""The embedder behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.protocols import Vectors
from germane.scorers.base.vectors import unit_rows
from germane.scorers.judge.client import Clients, Server, post
from germane.scorers.judge.prices import Meter

_ABOUT_TEXTS = ("HTTP 400", "HTTP 422")
"""How refusals begin that are about one request, not about all."""


class OpenAIEmbedder:
    """Asks a server for vectors: packed, which are much faster to read, from those that can pack them."""

    def __init__(self, model: str, server: Server, *, meter: Meter | None = None) -> None:
        self.model = model
        self.server = server
        self.meter = meter or Meter()
        self._clients = Clients(server)
        self._form: Literal["base64", "float"] = "base64"
        self._proven = False

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text, in one request.

        Raises:
            ScoringError: ``embedder_error``. It carries ``retry_after`` (0 where the server named no time) unless it is
                about these texts or the reply: the server was away, slow or busy, or refuses key, model or quota, which
                ``rejected`` tells.
        """
        try:
            async with self.server.request():
                reply = await self._ask(list(texts))
        except ScoringError as error:
            raise _as_embedder(error) from None
        self.meter.embedding_tokens += _tokens(reply)
        return unit_rows(_rows(reply), len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _ask(self, texts: list[str]) -> Any:
        """Ask; where a server refuses the first request, it may not be able to pack vectors."""
        import openai

        try:
            return await self._send(texts, self._form)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            if self._proven or self._form == "float":
                raise
        reply = await self._send(texts, "float")
        self._form = "float"
        return reply

    async def _send(self, texts: list[str], form: Literal["base64", "float"]) -> Any:
        self.meter.embedding_requests += 1
        body = {"model": self.model, "input": texts, "encoding_format": form}
        reply = await post(self._clients.of(0), "/embeddings", body)
        self._proven = True
        return reply


def _as_embedder(error: ScoringError) -> ScoringError:
    lasts = error.reason is Reason.JUDGE_REJECTED and not str(error).startswith(_ABOUT_TEXTS)
    pause = error.retry_after or 0.0 if lasts or error.reason.transient else None
    return ScoringError(Reason.EMBEDDER_ERROR, f"embedder: {error}", retry_after=pause, rejected=lasts)


def _tokens(reply: Any) -> int:
    count = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
    return max(count, 0) if isinstance(count, int) else 0


def _rows(reply: Any) -> list[Any]:
    """Return the vectors in the order of the texts. Nobody has checked the reply."""
    data = getattr(reply, "data", None)
    if not isinstance(data, list):
        raise ScoringError(Reason.EMBEDDER_ERROR, "the embedder's reply holds no vectors")
    places = [getattr(item, "index", None) for item in data]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(data))):
        data = sorted(data, key=lambda item: item.index)
    return [unpacked(getattr(item, "embedding", None)) for item in data]


def unpacked(vector: Any) -> Any:
    """Return the numbers of a packed vector: 32 bits each, the lowest byte first."""
    if not isinstance(vector, str):
        return vector
    try:
        return np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
    except ValueError:
        raise ScoringError(Reason.EMBEDDER_ERROR, "the embedder's reply holds a vector that cannot be read") from None
