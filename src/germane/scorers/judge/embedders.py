"""An embedder for servers with an OpenAI-compatible API, and batching of concurrent calls."""

from __future__ import annotations

import asyncio
import base64
import unicodedata
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.protocols import Embedder, Vectors
from germane.scorers.base.vectors import normalize_rows
from germane.scorers.judge.client import ClientPool, ModelServer, post_json
from germane.scorers.judge.http_client import MAX_REPLY_BYTES
from germane.scorers.judge.openai_protocol import SupportedOptions
from germane.scorers.judge.prices import UsageMeter

MIN_CALLERS = 16
"""Number of waiting callers below which a request is delayed, so that more callers can join it."""
MAX_GATHER_SECONDS = 0.2
"""Maximum delay for gathering more callers after the last reply, in seconds."""
MAX_WAIT_SECONDS = 2.0
"""Maximum time that callers wait for an in-flight request, in seconds."""
MAX_REQUEST_BYTES = 800_000
"""Maximum size of the texts in one request: about 200,000 tokens. Servers accept 300,000 or more."""
MAX_VECTOR_BYTES = 100_000
"""Maximum size of a vector in a reply: 4,096 numbers as text."""
Vector = Vectors
"""One unit-length vector."""
_Results = dict[str, Vector | ScoringError]
_Call = tuple[Sequence[str], asyncio.Future[dict[str, Any]]]
_MIN_DISTANCE = 1e-3
"""Minimum distance between the unit-length vectors of different texts. Even "pier 4" and "pier 5" are 0.1 apart."""
_MIN_MAGNITUDE = 1e-18
"""Minimum size of a nonzero number, relative to the largest number in its vector. No model returns smaller ones."""
_COMPARED_CHARACTERS = 200
"""Number of characters to compare. Embedders ignore the end of long texts."""
FIX_EMBEDDER_KEY = (
    "set OPENAI_API_KEY to a valid key and `embedder` to a model that it can access, correct OPENAI_BASE_URL, or embed "
    'in this process with embedder = "local"'
)
EMBEDDER_OPTIONS: Mapping[str, Collection[str]] = {
    "base64": ("base64", "encoding_format"),
    "encoding_format": ("base64", "encoding_format"),
}
"""Options that some servers reject: first the encoding, then any encoding. Errors name them with the given words."""
CONTROL_TEXT = "ok"
"""A text that every embedder accepts. If an embedder rejects it, too, the other texts are not the cause."""


class EmbeddingBatcher:
    """An embedder that combines concurrent calls into fewer requests, and sends identical texts only once.

    If no request is in flight, it gathers calls for a few milliseconds. If one is in flight, it gathers calls until
    that request returns. If only a few callers are waiting by then, it waits for up to twice the request's duration.

    It can be used from one event loop at a time. If a batch is rejected, smaller ones are sent, because servers limit
    the number of texts. A text that is rejected alone, while another is embedded, fails only for its callers. If a
    reply is invalid, each caller's texts are sent separately.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        gather_seconds: float = 0.005,
        max_texts: int = 256,
        cache_size: int = 128,
        max_wait: float = MAX_WAIT_SECONDS,
    ) -> None:
        """Configure the batching.

        Args:
            embedder: The embedder that receives the batches. The caller closes it.
            gather_seconds: Time for which calls are gathered into a request, in seconds.
            max_texts: The number of waiting texts at which a request is sent immediately.
            cache_size: The number of vectors to cache; see :meth:`embed`. A vector takes about 12 kB.
            max_wait: Maximum number of seconds that texts wait for an in-flight request before they are sent in a
                separate request.
        """
        self.embedder = embedder
        self.gather_seconds = gather_seconds
        self.max_texts = max_texts
        self.cache_size = cache_size
        self.max_wait = max_wait
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: list[_Call] = []
        self._timer: asyncio.TimerHandle | None = None
        self._gather_until = 0.0
        self._in_flight: set[asyncio.Task[_Results]] = set()
        self._cache: OrderedDict[str, Vector] = OrderedDict()

    @classmethod
    def wrap(cls, embedder: Embedder | EmbeddingBatcher) -> EmbeddingBatcher:
        """Return a batcher for an embedder, or the embedder itself if it is a batcher that others may share."""
        return embedder if isinstance(embedder, EmbeddingBatcher) else cls(embedder)

    @property
    def model(self) -> str:
        """The embedder's model name."""
        return self.embedder.model

    async def embed(self, texts: Sequence[str], *, keep: int = 0) -> Vectors:
        """Return an array with one unit-length row per text.

        The vectors of the first ``keep`` texts are cached, because questions repeat but answers do not.

        Raises:
            ScoringError: the embedder failed. The reason is ``embedder_error``.
        """
        cached = {text: self._cache[text] for text in texts if text in self._cache}
        missing = [text for text in dict.fromkeys(texts) if text not in cached]
        rows = {**cached, **(await self._enqueue(missing) if missing else {})}
        if len({row.shape for row in rows.values()}) > 1:  # the server now serves a different model under the same name
            self._cache.clear()
            rows = await self._enqueue(list(dict.fromkeys(texts)))
        for text in texts[:keep]:
            self._cache[text] = np.array(rows[text])
            self._cache.move_to_end(text)
            while len(self._cache) > self.cache_size:
                self._cache.popitem(last=False)
        return np.stack([rows[text] for text in texts])

    async def aclose(self) -> None:
        """Cancel waiting calls and in-flight requests."""
        self._stop_timer()
        calls, self._calls = self._calls, []
        for _, future in calls:
            future.cancel()
        for task in self._in_flight:
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)

    async def _enqueue(self, texts: Sequence[str]) -> dict[str, Vector]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._calls, self._timer, self._gather_until, self._in_flight = loop, [], None, 0.0, set()
        future: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._calls.append((texts, future))
        self._schedule(loop)
        return await future

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send the waiting calls if there are enough texts. Otherwise, make sure that the timer fires soon enough."""
        if sum(len(texts) for texts, _ in self._calls) >= self.max_texts:
            self._send()
            return
        if not self._calls:
            return
        if self._in_flight:
            delay = self.max_wait
        elif len(self._calls) >= MIN_CALLERS:
            delay = self.gather_seconds
        else:
            delay = max(self.gather_seconds, self._gather_until - loop.time())
        if self._timer is None or self._timer.when() > loop.time() + delay:
            self._stop_timer()
            self._timer = loop.call_later(delay, self._send)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self) -> None:
        self._stop_timer()
        calls, self._calls = [call for call in self._calls if not call[1].done()], []
        if calls:
            self._start_request(calls)

    def _start_request(self, calls: list[_Call]) -> None:
        loop = asyncio.get_running_loop()
        texts = list(dict.fromkeys(text for call_texts, _ in calls for text in call_texts))
        task: asyncio.Task[_Results] = loop.create_task(self._request(texts))
        self._in_flight.add(task)
        task.add_done_callback(partial(self._finish, calls, loop.time()))

    async def _request(self, texts: Sequence[str]) -> _Results:
        """Return the vector of each text, or the error that it causes alone. Raise an error that concerns all texts."""
        results: _Results = {}
        is_control_embedded = False
        pending = list(_split_batches(texts, self.max_texts))[::-1]
        while pending:
            batch = pending.pop()
            try:
                results |= zip(batch, normalize_rows(await self.embedder.embed(batch), len(batch)), strict=True)
            except ScoringError as error:
                if error.http_status is None or error.retry_after:  # the server did not reply, replied badly or is busy
                    raise
                if len(batch) == 1 or not is_control_embedded:
                    await self.embedder.embed([CONTROL_TEXT])
                    is_control_embedded = True
                if len(batch) > 1:
                    middle = len(batch) // 2
                    pending += [batch[middle:], batch[:middle]]
                else:  # the error is the text's own
                    results[batch[0]] = ScoringError(error.reason, str(error)) if error.rejected else error
        if is_control_embedded:  # a single vector does not show that all are the same
            rows = {text: row for text, row in results.items() if not isinstance(row, ScoringError)}
            _require_different(list(rows), list(rows.values()))
        return results

    def _finish(self, calls: list[_Call], started: float, task: asyncio.Task[_Results]) -> None:
        self._in_flight.discard(task)
        error = None if task.cancelled() else task.exception()
        # The error is neither an outage nor a rejection of all requests, so the other calls may succeed.
        is_about_texts = isinstance(error, ScoringError) and error.retry_after is None and not error.rejected
        if len(calls) > 1 and is_about_texts:
            for call in calls:
                self._start_request([call])
            return
        for texts, future in calls:
            if future.done():
                continue
            if task.cancelled():
                future.cancel()
                continue
            results = {text: error or task.result()[text] for text in texts}
            if errors := [result for result in results.values() if isinstance(result, BaseException)]:
                future.set_exception(errors[0])
            else:
                future.set_result(results)
        # If there was only one caller, the next call does not wait for others.
        loop = task.get_loop()
        now = loop.time()
        self._gather_until = now + (min(2 * (now - started), MAX_GATHER_SECONDS) if len(calls) > 1 else 0.0)
        if loop is self._loop and not self._in_flight:
            self._stop_timer()
            self._schedule(loop)


def _split_batches(texts: Sequence[str], max_texts: int) -> Iterator[list[str]]:
    """Yield the texts in order, in batches of limited length and byte size."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == max_texts or size + length > MAX_REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    yield batch


class OpenAIEmbedder:
    """Requests vectors from a server, in base64 if the server supports it, because that is much faster to parse."""

    def __init__(self, model: str, server: ModelServer, *, meter: UsageMeter | None = None) -> None:
        self.model = model
        self.server = server
        self.meter = meter or UsageMeter()
        self._clients = ClientPool(server)
        self._options = SupportedOptions(EMBEDDER_OPTIONS)

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r})"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Send one request, and return an array with one unit-length row per text.

        Raises:
            ScoringError: the embedder failed. The reason is ``embedder_error``. The error has ``retry_after`` (0 if the
                server did not request a delay) if the server was unreachable, slow or busy, or rejected the request,
                for example because of the key, the model or the quota. For a rejection, ``rejected`` is true. Errors
                that concern only this reply have neither.
        """
        try:
            async with self.server.guard_request("/embeddings"):
                reply = await self._options.send({"encoding_format": True, "base64": True}, partial(self._send, texts))
        except ScoringError as error:
            rejected = error.reason is UnscoredReason.JUDGE_REJECTED
            raise ScoringError(
                UnscoredReason.EMBEDDER_ERROR,
                f"embedder: {error}",
                retry_after=(error.retry_after or 0.0) if rejected or error.reason.is_transient else None,
                rejected=rejected,
                fix=FIX_EMBEDDER_KEY if rejected else error.fix,
                http_status=error.http_status,
                is_unanswered=error.is_unanswered,
            ) from None
        tokens = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
        self.meter.embedding_tokens += max(tokens, 0) if isinstance(tokens, int) else 0
        return _parse_vectors(reply, texts)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _send(self, texts: Sequence[str], options: Mapping[str, Any]) -> Any:
        self.meter.embedding_requests += 1
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if "encoding_format" in options:
            body["encoding_format"] = "base64" if "base64" in options else "float"
        max_bytes = MAX_REPLY_BYTES + MAX_VECTOR_BYTES * len(texts)
        return await post_json(self._clients.client_for(0), "/embeddings", body, max_bytes=max_bytes)


def decode_vector(vector: Any) -> Any:
    """Decode a base64-encoded vector of little-endian 32-bit floats. Return a list of numbers unchanged."""
    if isinstance(vector, list) and all(type(number) in (int, float) for number in vector):
        return vector
    try:
        numbers = np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
    except (TypeError, ValueError):
        raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "the embedder's reply contains an invalid vector") from None
    # The lower halves of 64-bit floats are random bits. Read as 32-bit floats, some of them are extremely small or
    # large.
    with np.errstate(invalid="ignore"):
        magnitudes = np.abs(numbers)
        smallest = magnitudes.min(initial=np.inf, where=magnitudes > 0)
        is_plausible = smallest >= magnitudes.max(initial=0) * _MIN_MAGNITUDE
    if not is_plausible:
        raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "the embedder's vectors are not 32-bit floats")
    return numbers


def _parse_vectors(reply: Any, texts: Sequence[str]) -> Vectors:
    """Return an array with one unit-length row per text. The reply can be any JSON value.

    Raises:
        ScoringError: the reply does not contain one vector per text, each with the text's index, or different texts all
            have the same vector. The reason is ``embedder_error``.
    """
    data = getattr(reply, "data", None)
    if not isinstance(data, list):
        raise ScoringError(UnscoredReason.EMBEDDER_ERROR, "the embedder's reply contains no vectors")
    by_index = {index: item for item in data if type(index := getattr(item, "index", None)) is int}
    if len(data) != len(texts) or by_index.keys() != set(range(len(texts))):
        raise ScoringError(
            UnscoredReason.EMBEDDER_ERROR, f"the indexes of the embedder's vectors are not 0 to {len(texts) - 1}"
        )
    rows = normalize_rows(
        [decode_vector(getattr(by_index[index], "embedding", None)) for index in range(len(texts))], len(texts)
    )
    _require_different(texts, rows)
    return rows


def _require_different(texts: Sequence[str], rows: Sequence[Vector] | Vectors) -> None:
    """Check that vectors of different texts differ by more than noise. Usually, the second row does."""
    are_equal = all(np.linalg.norm(row - rows[0]) < _MIN_DISTANCE for row in rows)
    # Embedders may ignore case, accents and punctuation.
    letters = (unicodedata.normalize("NFKD", text[:_COMPARED_CHARACTERS]).casefold() for text in texts)
    if are_equal and len({"".join(filter(str.isalnum, each)) for each in letters}) > 1:
        raise ScoringError(
            UnscoredReason.EMBEDDER_ERROR, f"the embedder returned the same vector for {len(texts)} different texts"
        )
