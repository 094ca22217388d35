"""A caching judge and embedder that record the usage of each row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Embedder, Judge, Reply, Vectors
from labelled.kept import Kept, key_of, key_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARACTERS, WRITTEN = 4.0, 40
"""Characters per token, and output tokens per choice, for estimates."""


@dataclass(frozen=True)
class Forecast:
    """Approximate usage of a request."""

    input_tokens: float
    output_tokens: float


@dataclass
class Usage:
    """Usage for one row's scores."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    seconds: float = 0.0
    """Judge time in seconds, which is divided among concurrent requests."""
    missing: dict[str, Forecast] = field(default_factory=dict)
    """Estimated usage of the missing requests, by key."""

    def add(self, reply: Reply, seconds: float) -> None:
        """Add a reply's usage."""
        self.requests += 1
        self.input_tokens += reply.input_tokens or 0
        self.output_tokens += reply.output_tokens or 0
        self.seconds += seconds


_usage: ContextVar[Usage] = ContextVar("usage")


@contextmanager
def counted() -> Iterator[Usage]:
    """Collect the judge's usage inside the context."""
    usage = Usage()
    token = _usage.set(usage)
    try:
        yield usage
    finally:
        _usage.reset(token)


class Shares:
    """Divides elapsed time equally among concurrent requests."""

    def __init__(self) -> None:
        self._open: dict[object, float] = {}
        self._since = time.perf_counter()

    @contextmanager
    def of(self, found: list[float]) -> Iterator[None]:
        """Append this request's share of the elapsed seconds."""
        mark = object()
        self._divide()
        self._open[mark] = 0.0
        try:
            yield
        finally:
            self._divide()
            found.append(self._open.pop(mark))

    def _divide(self) -> None:
        now = time.perf_counter()
        for mark in self._open:
            self._open[mark] += (now - self._since) / len(self._open)
        self._since = now


class KeptJudge:
    """Sends requests that are not cached, unless there is no judge or the deadline has passed."""

    def __init__(self, kept: Kept, model: str, judge: Judge | None, *, deadline: float | None = None) -> None:
        """``deadline`` is a value of ``time.monotonic``."""
        self.kept = kept
        self.model = model
        self.judge = judge
        self.deadline = deadline
        self.run = 0
        """Number of the run; requests with a temperature above 0 are repeated in each run."""
        self._shares = Shares()
        self._asking: dict[str, asyncio.Task[Reply]] = {}

    @property
    def may_ask(self) -> bool:
        """Whether there is a judge and the deadline has not passed."""
        return self.judge is not None and (self.deadline is None or time.monotonic() < self.deadline)

    async def identify(self) -> str:
        """Return the model name that the server reports."""
        name = self.kept.served(self.model)
        if name is None and self.judge is not None:
            name = await self.judge.identify()
            self.kept.put_served(self.model, name)
        return name or self.model

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        n: int = 1,
        temperature: float = 0.0,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        top_tokens: int = 0,
    ) -> Reply:
        """Return the cached reply, or send the request.

        Raises:
            ScoringError: The request failed or was not made.
        """
        options: dict[str, Any] = {
            "n": n, "temperature": temperature, "max_tokens": max_tokens, "stop": list(stop), "schema": schema,
            "top_tokens": top_tokens,
        }  # fmt: skip
        key = key_of(messages, options, model=self.model, run=self.run)
        usage = _usage.get(None) or Usage()
        found = self.kept.reply(key)
        if found is None:
            await self._ask_once(key, messages, options, usage)
            found = self.kept.reply(key)
        assert found is not None
        usage.add(*found)
        return found[0]

    async def _ask_once(self, key: str, messages: Sequence[Message], options: dict[str, Any], usage: Usage) -> None:
        if key not in self._asking:
            if not self.may_ask:
                usage.missing[key] = forecast(messages, options)
                raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, "not asked yet")
            self._asking[key] = asyncio.create_task(self._ask(key, messages, options))
        try:
            await asyncio.shield(self._asking[key])
        except ScoringError as error:
            if error.reason.is_transient or error.reason is UnscoredReason.JUDGE_REJECTED:
                usage.missing[key] = forecast(messages, options)
            raise
        finally:
            self._asking.pop(key, None)

    async def _ask(self, key: str, messages: Sequence[Message], options: dict[str, Any]) -> Reply:
        assert self.judge is not None
        seconds: list[float] = []
        try:
            with self._shares.of(seconds):
                reply = await self.judge.ask(messages, **options)
        except ScoringError as error:
            self.kept.put_failure(key, error)
            raise
        self.kept.put(key, reply, seconds[0])
        if reply.model:
            self.kept.put_served(self.model, reply.model)
        return reply


def forecast(messages: Sequence[Message], options: Mapping[str, Any]) -> Forecast:
    """Estimate a request's usage."""
    characters = sum(len(message.content) for message in messages)
    return Forecast(characters / CHARACTERS, min(options["max_tokens"], WRITTEN * options["n"]))


class KeptEmbedder:
    """Embeds texts that are not cached."""

    def __init__(self, kept: Kept, embedder: Embedder) -> None:
        self.kept = kept
        self.embedder = embedder

    @property
    def model(self) -> str:
        """Model name of the embedder."""
        return self.embedder.model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        keys = [key_of_text(text, model=self.model) for text in texts]
        rows = [self.kept.vector(key) for key in keys]
        absent = [place for place, row in enumerate(rows) if row is None]
        if absent:
            made = await self.embedder.embed([texts[place] for place in absent])
            for place, row in zip(absent, made, strict=True):
                self.kept.put_vector(keys[place], row)
                rows[place] = row
        return np.array(rows)
