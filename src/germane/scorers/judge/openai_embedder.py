"""Embedder for servers that speak the OpenAI protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.protocols import Vectors
from germane.scorers.base.vectors import normalize_rows
from germane.scorers.judge.client import ClientPool, ModelServer, post_json
from germane.scorers.judge.prices import UsageMeter

_SINGLE_REQUEST_ERRORS = ("HTTP 400", "HTTP 422")
"""Prefixes of rejections that concern one request rather than all of them."""


class OpenAIEmbedder:
    """Requests vectors from a server, base64-encoded if the server supports it, because that parses much faster."""

    def __init__(self, model: str, server: ModelServer, *, meter: UsageMeter | None = None) -> None:
        self.model = model
        self.server = server
        self.meter = meter or UsageMeter()
        self._clients = ClientPool(server)
        self._encoding: Literal["base64", "float"] = "base64"
        self._is_encoding_proven = False

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text, in one request.

        Raises:
            ScoringError: ``embedder_error``. It has ``retry_after`` (0 if the server named no time) if the server was
                unreachable, slow or busy, or rejected the key, model or quota; in the latter cases ``rejected`` is
                true. Errors that concern these texts or the reply have neither.
        """
        try:
            async with self.server.guard_request():
                reply = await self._request(list(texts))
        except ScoringError as error:
            rejected = error.reason is UnscoredReason.JUDGE_REJECTED and not str(error).startswith(
                _SINGLE_REQUEST_ERRORS
            )
            pause = error.retry_after or 0.0 if rejected or error.reason.is_transient else None
            raise ScoringError(
                UnscoredReason.EMBEDDER_ERROR, f"embedder: {error}", retry_after=pause, rejected=rejected
            ) from None
        tokens = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
        self.meter.embedding_tokens += max(tokens, 0) if isinstance(tokens, int) else 0
        return normalize_rows(_parse_vectors(reply), len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _request(self, texts: list[str]) -> Any:
        """Send a request. If the server rejects the first one, it may not support base64: try again with floats."""
        import openai

        try:
            return await self._send(texts, self._encoding)
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            if self._is_encoding_proven or self._encoding == "float":
                raise
        reply = await self._send(texts, "float")
        self._encoding = "float"
        return reply

    async def _send(self, texts: list[str], encoding: Literal["base64", "float"]) -> Any:
        self.meter.embedding_requests += 1
        body = {"model": self.model, "input": texts, "encoding_format": encoding}
        reply = await post_json(self._clients.client_for(0), "/embeddings", body)
        self._is_encoding_proven = True
        return reply


def decode_vector(vector: Any) -> Any:
    """Decode a base64 vector of little-endian 32-bit floats. Return anything else unchanged."""
    if not isinstance(vector, str):
        return vector
    try:
        return np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
    except ValueError:
        raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "the embedder's reply holds an invalid vector") from None


def _parse_vectors(reply: Any) -> list[Any]:
    """Return the vectors in the order of the texts. The reply may be any JSON."""
    data = getattr(reply, "data", None)
    if not isinstance(data, list):
        raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "the embedder's reply holds no vectors")
    indexes = [getattr(item, "index", None) for item in data]
    if sorted(index for index in indexes if isinstance(index, int)) == list(range(len(data))):
        data = sorted(data, key=lambda item: item.index)
    return [decode_vector(getattr(item, "embedding", None)) for item in data]
