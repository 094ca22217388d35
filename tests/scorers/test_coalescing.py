"""Coalescing, concurrency and metering of judge requests."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply, UsageMeter, uses_coalescing_judge
from germane.scorers.base.protocols import DEFAULT_JUDGE_OPTIONS
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.coalescing import CoalescingJudge
from germane.scorers.judge.embedders import EmbeddingBatcher, OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge, RequestSlots, exchange_concurrency
from germane.testing import FakeJudge, Fault

ASKED = [Message("user", "Why?")]


class Oracle:
    """Judge that replies with the prompt once it is released, and counts requests."""

    model = "oracle"

    def __init__(self, *, cost: float | None = 0.5, error: ScoringError | None = None) -> None:
        self.asked = 0
        self.cost = cost
        self.error = error
        self.begun, self.gate, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def identify(self) -> str:
        return "oracle-1"

    async def aclose(self) -> None:
        self.gate.set()

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
        self.asked += 1
        self.begun.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.gone.set()
            raise
        if self.error is not None:
            raise self.error
        return Reply((messages[-1].content,) * n, input_tokens=7, output_tokens=3, model="oracle-1", cost=self.cost)


def together(oracle: Oracle, *asks: Callable[[CoalescingJudge], Awaitable[Reply]]) -> tuple[list[Any], UsageMeter]:
    """Return the results of concurrent requests and their usage."""

    async def ask_all() -> tuple[list[Any], UsageMeter]:
        judge = CoalescingJudge(oracle)
        tasks = [asyncio.ensure_future(ask(judge)) for ask in asks]
        await oracle.begun.wait()
        oracle.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True), judge.meter

    return asyncio.run(ask_all())


def test_identical_concurrent_requests_are_sent_once() -> None:
    """One caller gets the tokens and the cost, and the others get 0."""
    oracle = Oracle()

    replies, meter = together(oracle, *[lambda judge: judge.ask(ASKED, n=3, temperature=0.7)] * 3)

    assert oracle.asked == 1
    assert {reply.texts for reply in replies} == {("Why?",) * 3}
    assert [(reply.input_tokens, reply.output_tokens, reply.cost) for reply in replies] == [
        (7, 3, 0.5), (0, 0, 0.0), (0, 0, 0.0),
    ]  # fmt: skip
    assert meter == UsageMeter(requests=1, input_tokens=7, output_tokens=3, cost=0.5)


def test_unknown_cost_of_a_coalesced_request_stays_unknown() -> None:
    """This applies to all callers of a coalesced request."""
    replies, meter = together(Oracle(cost=None), *[lambda judge: judge.ask(ASKED)] * 2)

    assert [reply.cost for reply in replies] == [None, None]
    assert meter.cost == 0.0


@each(
    "options",
    [
        {"n": 2},
        {"temperature": 0.1},
        {"max_tokens": 1},
        {"stop": ["\n"]},
        {"schema": {"type": "object"}},
        {"top_tokens": 5},
    ],
)
def test_different_requests_are_not_coalesced(options: dict[str, Any]) -> None:
    """Any option may change the reply."""
    oracle = Oracle()

    together(oracle, lambda judge: judge.ask(ASKED), lambda judge: judge.ask(ASKED, **options))

    assert oracle.asked == 2


def test_requests_with_omitted_and_default_options_are_coalesced() -> None:
    """A request that specifies a default is coalesced with one that omits the option."""
    oracle = Oracle()

    together(oracle, lambda judge: judge.ask(ASKED), lambda judge: judge.ask(ASKED, **DEFAULT_JUDGE_OPTIONS))

    assert oracle.asked == 1


def test_a_reply_is_not_reused_after_its_request_has_finished() -> None:
    """At a positive temperature, the next reply may differ."""
    oracle = Oracle()
    oracle.gate.set()

    async def ask_twice() -> None:
        judge = CoalescingJudge(oracle)
        await judge.ask(ASKED)
        await judge.ask(ASKED)

    asyncio.run(ask_twice())

    assert oracle.asked == 2


def test_a_failed_request_fails_for_all_waiting_callers() -> None:
    """Waiting callers get the same error. Later callers send a new request."""
    oracle = Oracle(error=ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "busy", retry_after=3))

    replies, meter = together(oracle, *[lambda judge: judge.ask(ASKED)] * 2)

    assert [(reply.reason, reply.retry_after) for reply in replies] == [(UnscoredReason.JUDGE_RATE_LIMITED, 3)] * 2
    assert (oracle.asked, meter.requests, meter.input_tokens) == (1, 1, 0)


@each("hasty", [0, 1])
def test_a_canceled_caller_does_not_affect_callers_of_the_same_request(hasty: int) -> None:
    """This holds for the caller that started the request and for callers that joined it."""
    oracle = Oracle()

    async def stop_waiting() -> list[Any]:
        judge = CoalescingJudge(oracle)
        tasks = [asyncio.create_task(judge.ask(ASKED)) for _ in range(2)]
        await oracle.begun.wait()
        tasks[hasty].cancel()
        await asyncio.wait([tasks[hasty]])
        oracle.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    replies = asyncio.run(stop_waiting())

    assert isinstance(replies[hasty], asyncio.CancelledError)
    assert replies[1 - hasty].texts == ("Why?",)
    assert (replies[1 - hasty].input_tokens, replies[1 - hasty].cost) == (7, 0.5)
    assert oracle.asked == 1


def test_a_request_is_canceled_when_its_last_caller_is_canceled() -> None:
    """The next caller sends a new request."""
    oracle = Oracle()

    async def stop_waiting() -> Reply:
        judge = CoalescingJudge(oracle)
        tasks = [asyncio.create_task(judge.ask(ASKED)) for _ in range(2)]
        await oracle.begun.wait()
        for task in tasks:
            task.cancel()
        later = asyncio.create_task(judge.ask(ASKED))
        await asyncio.wait(tasks)
        await oracle.gone.wait()
        oracle.gate.set()
        return await later

    assert asyncio.run(stop_waiting()).texts == ("Why?",)
    assert oracle.asked == 2


def test_a_coalescing_judge_works_on_successive_event_loops() -> None:
    """Requests from a closed event loop are sent again."""
    oracle = Oracle()
    judge = CoalescingJudge(oracle)

    async def stop_waiting() -> None:
        asked = asyncio.create_task(judge.ask(ASKED))
        await oracle.begun.wait()
        asked.cancel()

    asyncio.run(stop_waiting())
    oracle.gate = asyncio.Event()
    oracle.gate.set()

    assert asyncio.run(judge.ask(ASKED)).texts == ("Why?",)
    assert asyncio.run(judge.identify()) == "oracle-1"


@pytest.mark.parametrize("outage", [None, Fault("status", status=503)])
def test_concurrent_requests_for_the_model_name_are_coalesced(
    fake: FakeJudge, server: ModelServer, outage: Fault | None
) -> None:
    """An unreachable judge does not receive a request for each exchange."""
    fake.outage, fake.latency = outage, 0.05

    async def identify_all() -> list[Any]:
        judge = CoalescingJudge(OpenAIJudge("fake", server))
        try:
            return await asyncio.gather(*(judge.identify() for _ in range(20)), return_exceptions=True)
        finally:
            await judge.aclose()

    found = asyncio.run(identify_all())

    assert {str(each) for each in found} == {
        f"HTTP 503: this is a test ({fake.base_url}/chat/completions)" if outage else "fake-judge"
    }
    assert len(fake.requests) == 1


def test_concurrency_slots_are_free_in_the_next_event_loop() -> None:
    """It does not matter how the previous loop ended."""
    slots = RequestSlots(2)
    most, inside = 0, 0
    numbers: set[int] = set()

    async def work() -> None:
        nonlocal most, inside
        async with slots.acquire() as number:
            numbers.add(number)
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def crowd() -> None:
        await asyncio.gather(*(work() for _ in range(10)))

    for _ in range(2):
        asyncio.run(crowd())

    assert most == 2
    assert numbers == {0, 1}
    assert exchange_concurrency(64) == 128


@pytest.fixture
def server(fake: FakeJudge) -> ModelServer:
    """Return the URL of the fake judge."""
    return ModelServer(api_key="test", base_url=fake.base_url, timeout=30.0, retries=0)


def ask_at_once(server: ModelServer, count: int, concurrency: int) -> list[Any]:
    """Return the results of this number of different concurrent requests."""

    async def ask_all() -> list[Any]:
        judge = OpenAIJudge("fake-judge", server, concurrency=concurrency)
        asks = (judge.ask([Message("user", f"Why {place}?")]) for place in range(count))
        try:
            return await asyncio.gather(*asks, return_exceptions=True)
        finally:
            await judge.aclose()

    return asyncio.run(ask_all())


@pytest.mark.slow
def test_waiting_for_a_slot_does_not_count_towards_the_timeout(fake: FakeJudge, server: ModelServer) -> None:
    """Ten requests of one second each are sent two at a time, with a timeout of four seconds."""
    fake.latency = 1.0

    replies = ask_at_once(dataclasses.replace(server, timeout=4.0), 10, concurrency=2)

    assert [type(reply) for reply in replies] == [Reply] * 10
    assert fake.max_in_flight == 2


def test_waiting_requests_respect_a_retry_after_header(fake: FakeJudge, server: ModelServer) -> None:
    """Waiting requests fail with the remaining delay and are not sent."""
    fake.outage = Fault("status", status=429, retry_after=30)

    errors = ask_at_once(server, 8, concurrency=2)

    assert len(fake.chat_requests) == 2
    assert {error.reason for error in errors} == {UnscoredReason.JUDGE_RATE_LIMITED}
    assert all(25 < error.retry_after <= 30 for error in errors)


def test_requests_after_the_end_of_retry_after_are_sent(fake: FakeJudge, server: ModelServer) -> None:
    """Otherwise, no probe would reach the server."""
    fake.faults.append(Fault("status", status=429, retry_after=30))

    async def ask_twice() -> Reply:
        judge = OpenAIJudge("fake-judge", server)
        try:
            with pytest.raises(ScoringError):
                await judge.ask(ASKED)
            return await judge.ask(ASKED)
        finally:
            await judge.aclose()

    assert asyncio.run(ask_twice()).texts


def test_usage_meter_counts_judge_and_embedder_usage(fake: FakeJudge, server: ModelServer) -> None:
    """The meter counts requests with and without a reply, and the tokens reported by the server."""
    fake.faults.extend([None, Fault("status", status=503)])
    meter = UsageMeter()

    async def ask_all() -> None:
        judge = CoalescingJudge(OpenAIJudge("fake-judge", server), meter)
        embedder = OpenAIEmbedder("fake-embedder", server, meter=meter)
        await judge.ask([Message("user", "one two three")])
        with pytest.raises(ScoringError):
            await judge.ask([Message("user", "four")])
        await EmbeddingBatcher(embedder).embed(["five six", "seven"])
        await judge.aclose()
        await embedder.aclose()

    asyncio.run(ask_all())

    assert (meter.requests, meter.input_tokens) == (2, 3)
    assert meter.output_tokens > 0
    assert (meter.embedding_requests, meter.embedding_tokens) == (1, 3)


def test_judge_concurrency_limits_do_not_apply_to_user_defined_scorers() -> None:
    """The caller must limit their concurrency."""
    assert not uses_coalescing_judge(object())
