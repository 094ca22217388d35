"""germane's scorers on labeled rows. Replies and vectors are cached: interrupted runs resume."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import Score, UnscoredReason
from germane.scorers import Embedder, Judge, Reply, Scorer, Vectors, run_scorer
from germane.scorers.factory.scorer_set import ScorerFactory, builtin_class
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.embedders import EmbeddingBatcher
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.local.minilm import MiniLM
from germane.settings import Settings
from labelled.rows import Row, exchange

AT_ONCE = 4
"""Maximum number of rows in flight, which is the number of slots of the judge server."""
TIMEOUT = 600.0
"""Timeout of a judge request in seconds."""
SIMILARITY = "question_answer_similarity"
FREE = (SIMILARITY, "context_coverage", "context_similarity", "noncommittal")
"""Scorers without a judge."""
GUARDED = "context_relevance, guarded"
VARIANTS = {GUARDED: ("context_relevance", {"guarded": True})}
"""Scorers with non-default options, by display name."""
_FENCE = re.compile(r"</?[a-z]+(?:[- ]\d+)?-([0-9a-f]{8,16})>")
_REPLY = TypeAdapter(Reply)


class Cache:
    """A file of replies, permanent failures, vectors and names."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute(
            "CREATE TABLE IF NOT EXISTS entry (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
        )

    def get(self, kind: str, key: str) -> Any:
        """Return an entry, or None."""
        found = self._base.execute("SELECT value FROM entry WHERE kind = ? AND key = ?", (kind, key)).fetchone()
        return found and found[0]

    def put(self, kind: str, key: str, value: str | bytes) -> None:
        """Store an entry."""
        self._base.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", (kind, key, value))

    def close(self) -> None:
        """Close the file."""
        self._base.close()


@dataclass
class Usage:
    """The judge's usage for one row."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    is_missing: bool = False
    """Whether a request was not made, or failed for a temporary reason."""


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


class CachingJudge:
    """Sends the requests that are not cached, unless there is no judge."""

    def __init__(self, cache: Cache, model: str, judge: Judge | None) -> None:
        self.model = model
        self.run = 0
        """Number of the run. Requests with a temperature above 0 are repeated in each run."""
        self._cache, self._judge = cache, judge
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def identify(self) -> str:
        """Return the model name that the server reports."""
        name = self._cache.get("name", self.model)
        if name is None and self._judge is not None:
            name = await self._judge.identify()
            self._cache.put("name", self.model, name)
        return str(name or self.model)

    async def ask(
        self, messages: Sequence[Message], *, n: int = 1, temperature: float = 0.0, max_tokens: int = 512,
        stop: Sequence[str] = (), schema: Mapping[str, Any] | None = None, top_tokens: int = 0,
    ) -> Reply:  # fmt: skip
        """Return the cached reply, or send the request.

        Raises:
            ScoringError: The request failed or was not made.
        """
        options = {
            "n": n, "temperature": temperature, "max_tokens": max_tokens, "stop": list(stop), "schema": schema,
            "top_tokens": top_tokens,
        }  # fmt: skip
        usage, key = _usage.get(None) or Usage(), key_of(messages, options, model=self.model, run=self.run)
        if self._cache.get("reply", key) is None and self._cache.get("failure", key) is None:
            try:
                await self._ask_once(key, messages, options)
            except ScoringError as error:
                usage.is_missing = is_temporary(error)
                raise
        if failure := self._cache.get("failure", key):
            reason, message = json.loads(failure)
            raise ScoringError(UnscoredReason(reason), message)
        reply = _REPLY.validate_json(self._cache.get("reply", key))
        usage.requests += 1
        usage.input_tokens += reply.input_tokens or 0
        usage.output_tokens += reply.output_tokens or 0
        return reply

    async def _ask_once(self, key: str, messages: Sequence[Message], options: dict[str, Any]) -> None:
        """Send a request; identical requests in flight are sent once."""
        if key not in self._asking:
            if self._judge is None:
                raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, "not asked yet")
            self._asking[key] = asyncio.create_task(self._ask(self._judge, key, messages, options))
        try:
            await asyncio.shield(self._asking[key])
        finally:
            self._asking.pop(key, None)

    async def _ask(self, judge: Judge, key: str, messages: Sequence[Message], options: dict[str, Any]) -> None:
        try:
            reply = await judge.ask(messages, **options)
        except ScoringError as error:
            if not is_temporary(error):
                self._cache.put("failure", key, json.dumps([error.reason, str(error)]))
            raise
        self._cache.put("reply", key, _REPLY.dump_json(reply))
        if reply.model:
            self._cache.put("name", self.model, reply.model)


def is_temporary(error: ScoringError) -> bool:
    """Return whether a later request may succeed."""
    return error.reason.is_transient or error.reason is UnscoredReason.JUDGE_REJECTED


def key_of(messages: Sequence[Message], options: Mapping[str, Any], *, model: str, run: int) -> str:
    """Return a request's cache key, without the random delimiter, which differs between processes.

    At temperature 0, the key does not include the number of the run either.
    """
    texts = [message.content for message in messages]
    for fence in sorted({fence for text in texts for fence in _FENCE.findall(text)}):
        texts = [text.replace(fence, "fence") for text in texts]
    turns = [[message.role, text] for message, text in zip(messages, texts, strict=True)]
    parts = json.dumps([model, turns, dict(options), run if options.get("temperature") else 0], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()


class CachingEmbedder:
    """Embeds texts that are not cached."""

    def __init__(self, cache: Cache, embedder: Embedder) -> None:
        self._cache, self._embedder = cache, embedder

    @property
    def model(self) -> str:
        """Model name of the embedder."""
        return self._embedder.model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        keys = {text: hashlib.sha256(f"{self.model}\n{text}".encode("utf-8", "replace")).hexdigest() for text in texts}
        absent = [text for text, key in keys.items() if self._cache.get("vector", key) is None]
        if absent:
            for text, row in zip(absent, await self._embedder.embed(absent), strict=True):
                self._cache.put("vector", keys[text], row.astype(np.float64).tobytes())
        return np.stack([np.frombuffer(self._cache.get("vector", keys[text]), dtype=np.float64) for text in texts])


@dataclass(frozen=True)
class Outcome:
    """One row's score and its usage."""

    score: Score
    usage: Usage


def add_arguments(parser: argparse.ArgumentParser, cache: str) -> None:
    """Add the options for rows, judge and cache."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--judge-url", help="an OpenAI-compatible server")
    parser.add_argument("--judge", default="qwen", help="model name on that server")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "germane" / cache)


@asynccontextmanager
async def opened(
    options: argparse.Namespace, embedder: Embedder | None = None
) -> AsyncIterator[tuple[CachingJudge, CachingEmbedder]]:
    """Yield the judge and the embedder of the options, by default the embedded MiniLM, with their cache."""
    async with AsyncExitStack() as stack:
        cache = stack.enter_context(closing(Cache(options.cache)))
        if embedder is None:
            embedder = await stack.enter_async_context(aclosing(MiniLM()))
        judge = None
        if options.judge_url:
            judge = OpenAIJudge(options.judge, ModelServer(base_url=options.judge_url, timeout=TIMEOUT))
            stack.push_async_callback(judge.aclose)
        yield CachingJudge(cache, options.judge, judge), CachingEmbedder(cache, embedder)


class Bench(ScorerFactory):
    """Builds germane's scorers with a given judge and embedder."""

    def __init__(self, settings: Settings, judge: CachingJudge, embedder: CachingEmbedder) -> None:
        super().__init__(settings)
        self._judge, self._embedder = judge, embedder

    @cached_property
    def judge(self) -> CachingJudge:
        """The given judge."""
        return self._judge

    @cached_property
    def embedder(self) -> EmbeddingBatcher:
        """The given embedder, batching concurrent requests."""
        return EmbeddingBatcher(self._embedder)

    def get_scorer(self, name: str) -> Scorer:
        """Return germane's scorer with this name, or the variant with this name."""
        if name not in VARIANTS:
            return super().get_scorer(name)
        base, options = VARIANTS[name]
        scorer: Scorer = builtin_class(base).build(self, options)
        return scorer

    async def score(self, names: Sequence[str], rows: Sequence[Row], *, run: int = 0) -> dict[str, dict[str, Outcome]]:
        """Score the rows. Return the outcomes by scorer and row id, without rows for which a request is missing."""
        self.judge.run = run
        places = asyncio.Semaphore(AT_ONCE)
        scorers = {name: self.get_scorer(name) for name in names}

        async def one(row: Row) -> list[Outcome]:
            async with places:
                return [await _outcome(scorer, row) for scorer in scorers.values()]

        found = list(zip(rows, await asyncio.gather(*map(one, rows)), strict=True))
        return {
            name: {row.id: each[place] for row, each in found if not each[place].usage.is_missing}
            for place, name in enumerate(scorers)
        }


async def _outcome(scorer: Scorer, row: Row) -> Outcome:
    with counted() as usage:
        score = await run_scorer(scorer, exchange(row, passage=scorer.name == SIMILARITY))
    return Outcome(score, usage)
