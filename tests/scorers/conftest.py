"""Exchanges, a fake judge, and helpers that score exchanges with it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from germane.exchange import Context, Exchange
from germane.score import Score
from germane.scorers import AnswerRelevancy, Embedder, Judge, Scorer, build_scorers, run_scorer
from germane.scorers.judge import client as client_module
from germane.scorers.judge import embedders, openai_judge
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.embedders import OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.settings import load_settings
from germane.testing import FakeJudge
from germane.testing.judge_request import JudgeRequest

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUESTION = "Where does the ferry to the island leave?"
ANSWER = "The ferry leaves from pier four, behind the fish market."


def make_exchange(question: str | None = QUESTION, answer: str | None = ANSWER, *contexts: str) -> Exchange:
    """Return an exchange with these texts."""
    return Exchange(
        id="0" * 32,
        trace_id="1" * 32,
        span_id="2" * 16,
        service="tests",
        route="ask",
        question=question,
        answer=answer,
        contexts=tuple(Context(text) for text in contexts),
        started_at=NOON,
    )


def score_with(scorer: Scorer, *exchanges: Exchange) -> list[Score]:
    """Return the scores of exchanges, scored one after another on one event loop."""

    async def score_all() -> list[Score]:
        return [await run_scorer(scorer, exchange, clock=lambda: NOON) for exchange in exchanges]

    return asyncio.run(score_all())


def answer_relevancy_without_ratings(judge: Judge, embedder: Embedder | None, **options: Any) -> AnswerRelevancy:
    """Return a scorer that sends no request for the label, unless the options say so."""
    options.setdefault("label_from", "questions" if options.get("similarity") == "judge" else "answer")
    return AnswerRelevancy(judge, embedder, **options)


class Bench:
    """A scorer connected to a fake judge: answer relevancy without ratings, or the scorer that ``make`` builds."""

    def __init__(self, fake: FakeJudge) -> None:
        self.fake = fake
        self.make: Callable[..., Any] = answer_relevancy_without_ratings
        self.options: dict[str, Any] = {}
        self.server: dict[str, Any] = {}

    def score(self, *exchanges: Exchange) -> list[Score]:
        """Return the scores of exchanges."""

        async def score_all() -> list[Score]:
            server = ModelServer(api_key="test", base_url=self.fake.base_url, **self.server)
            judge, embedder = OpenAIJudge("fake-judge", server), OpenAIEmbedder("fake-embedder", server)
            scorer = self.make(judge, embedder, **self.options)
            try:
                return [
                    await run_scorer(scorer, exchange, clock=lambda: NOON)
                    for exchange in exchanges or (make_exchange(),)
                ]
            finally:
                if batcher := getattr(scorer, "embedder", None):
                    await batcher.aclose()
                await judge.aclose()
                await embedder.aclose()

        return asyncio.run(score_all())


@pytest.fixture
def fake() -> Iterator[FakeJudge]:
    """Start a fake judge that is reached over HTTP."""
    with FakeJudge() as judge:
        yield judge


HTTP_SHARE = 20
"""Of so many requests, ``mostly_in_process`` sends one over HTTP."""


@pytest.fixture
def mostly_in_process(fake: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer most requests to the fake judge without HTTP, in a fifth of the time."""
    numbers = itertools.count()

    async def send(client: Any, path: str, body: Mapping[str, Any], **limits: Any) -> Any:
        if next(numbers) % HTTP_SHARE and not (fake.faults or fake.embedding_faults or fake.outage):
            request = JudgeRequest(f"/v1{path}", dict(body), {})
            reply = fake.reply(request, None)
            if reply.status == 200:
                fake.requests.append(request)
                return client_module._parse_reply(json.dumps(reply.body).encode())
        return await client_module.post_json(client, path, body, **limits)

    monkeypatch.setattr(openai_judge, "post_json", send)
    monkeypatch.setattr(embedders, "post_json", send)


@pytest.fixture
def bench(fake: FakeJudge) -> Bench:
    """Return the fake judge and an answer relevancy scorer that uses it."""
    return Bench(fake)


@pytest.fixture
def exchange() -> Callable[..., Exchange]:
    """Return a function that creates an exchange from question, answer and contexts."""
    return make_exchange


@pytest.fixture
def score() -> Callable[..., list[Score]]:
    """Return a function that scores exchanges with a scorer."""
    return score_with


@pytest.fixture
def judged(fake: FakeJudge, bare: Path) -> Callable[..., list[Score]]:
    """Return a function that scores exchanges with a named scorer and given judge replies (see
    ``FakeJudge.replies``).
    """

    def score_by(name: str, replies: Any, *exchanges: Exchange, **options: Any) -> list[Score]:
        fake.replies = replies
        settings = load_settings(service="tests", **fake.settings(), scorers=(name,), scorer_options={name: options})

        async def score_all() -> list[Score]:
            scorer_set = build_scorers(settings)
            try:
                return [await run_scorer(scorer_set.scorers[0], each, clock=lambda: NOON) for each in exchanges]
            finally:
                await scorer_set.aclose()

        return asyncio.run(score_all())

    return score_by
