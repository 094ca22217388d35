"""Reservation and settlement of judge requests with a rate limiter."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import ClassVar

import pytest
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import PriceList, RequestReservation
from germane.scorers.base.protocols import Reply
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.judge.openai_protocol import parse_reply
from germane.scorers.judge.rate_limit import INITIAL_OUTPUT_TOKENS, RateLimitGuard, RateSlot, count_request
from germane.settings import Price
from germane.testing import FakeJudge, Fault

MESSAGES = [Message("system", "x" * 30), Message("user", "\u00e9" * 5)]
"""Forty bytes, or about ten tokens."""


class Book:
    """Rate limiter that admits every request immediately and records its calls."""

    budget_exhausted_until = None

    def __init__(self, *, repeats: int = 99) -> None:
        self.repeats = repeats
        self.admitted: list[RequestReservation] = []
        self.repeated: list[RequestReservation] = []
        self.settled: list[tuple[float, float, float]] = []

    async def acquire(self, tokens: float, usd: float = 0.0) -> RequestReservation:
        self.admitted.append(RequestReservation(tokens, usd))
        return self.admitted[-1]

    async def reserve_retry(self, place: RequestReservation) -> RequestReservation:
        if len(self.repeated) >= self.repeats:
            raise ScoringError(UnscoredReason.BUDGET, "nothing is left")
        self.repeated.append(place)
        return place

    def settle(
        self, place: RequestReservation, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0
    ) -> None:
        self.settled.append((requests, tokens, usd))

    def stop_waiting(self) -> None:
        """Do nothing, because no request waits."""

    async def aclose(self) -> None:
        """Do nothing, because there is nothing to close."""


def take(paced: RateLimitGuard, reply: Reply | None, *, choices: int = 1, max_tokens: int = 500, sent: int = 1) -> None:
    async def one_turn() -> None:
        async with paced.slot(MESSAGES, choices, max_tokens) as turn:
            for _ in range(sent):
                await count_request(None)
            turn.reply = reply

    asyncio.run(one_turn())


def test_token_usage_is_estimated_from_the_prompt_and_recent_replies() -> None:
    """Output is estimated per choice, up to the token limit."""
    book = Book()
    paced = RateLimitGuard(book)
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50))
    take(paced, None, choices=3)
    take(paced, None, max_tokens=8)

    learned = INITIAL_OUTPUT_TOKENS + 0.2 * (50 - INITIAL_OUTPUT_TOKENS)
    expected = [10 + INITIAL_OUTPUT_TOKENS, 10 + 3 * learned, 10 + 8]
    assert [place.tokens for place in book.admitted] == pytest.approx(expected, abs=1e-9)


def test_actual_usage_replaces_the_reserved_usage() -> None:
    """Actual usage can be higher or lower. For a reply without token counts, the reservation is charged."""
    book = Book()
    paced = RateLimitGuard(book)
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50))
    take(paced, Reply(("yes",)))
    take(paced, None)

    assert book.settled == [pytest.approx((0, 62 - 110, 0)), (0, 0, 0), (0, 0, 0)]


def test_a_retry_is_reserved_before_it_is_sent() -> None:
    """Retries by the client are reserved like the first request. The reply reports the usage of the last request."""
    book = Book()
    take(RateLimitGuard(book), Reply(("yes",), input_tokens=12, output_tokens=50), sent=3)

    assert [place.tokens for place in book.repeated] == [110, 110]
    assert book.settled == [pytest.approx((0, 62 - 110, 0))]


def test_a_retry_without_a_reservation_is_not_sent() -> None:
    """The error passes through the client, and no further request is counted."""
    book = Book(repeats=1)

    with pytest.raises(ScoringError, match="nothing is left") as refused:
        take(RateLimitGuard(book), None, sent=3)

    assert refused.value.reason is UnscoredReason.BUDGET
    assert book.settled == [(0, 0, 0)]


def test_reserved_cost_is_estimated_and_later_replaced_by_the_actual_cost() -> None:
    """The cost in US dollars is the tokens times their price per million, or the cost in the reply."""
    book = Book()
    paced = RateLimitGuard(book, lambda read, written: (2 * read + 8 * written) / 1_000_000)
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50))
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50, cost=0.5))

    assert book.admitted[0].usd == pytest.approx((2 * 10 + 8 * INITIAL_OUTPUT_TOKENS) / 1_000_000, abs=1e-9)
    assert book.settled[0][2] == pytest.approx((2 * 2 - 8 * 50) / 1_000_000, abs=1e-9)
    assert book.settled[1][2] == pytest.approx(0.5 - book.admitted[1].usd, abs=1e-9)


@each("count", [10**9, 10**400, -1, True, 1.5, "12", None])
def test_impossible_token_counts_are_ignored(count: object) -> None:
    """Otherwise, one such reply from a broken gateway would use up a token budget or block a limit forever."""
    reported = SimpleNamespace(prompt_tokens=count, completion_tokens=5)
    choice = SimpleNamespace(message=SimpleNamespace(content="yes"))

    reply = parse_reply(SimpleNamespace(choices=[choice], usage=reported))
    assert (reply.input_tokens, reply.output_tokens) == (None, 5)


def test_the_reservation_of_an_unsent_request_is_refunded() -> None:
    """A request can be cancelled while it waits for the judge."""
    book = Book()
    take(RateLimitGuard(book), None, sent=0)

    assert book.settled == [(-1, pytest.approx(-110, abs=1e-9), 0)]


def test_nothing_is_reserved_without_a_rate_limiter() -> None:
    """There is no rate limiter by default."""

    async def one_turn() -> RateSlot:
        async with RateLimitGuard(None).slot(MESSAGES, 1, 10) as turn:
            await count_request(None)
            return turn

    assert asyncio.run(one_turn()) == RateSlot()


class Gate(Book):
    """Rate limiter that delays only the first request until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def acquire(self, tokens: float, usd: float = 0.0) -> RequestReservation:
        place = await super().acquire(tokens, usd)
        if len(self.admitted) == 1:
            await self.open.wait()
        return place


@pytest.mark.slow
def test_waiting_for_the_rate_limit_takes_no_slot_and_does_not_count_towards_the_timeout(fake: FakeJudge) -> None:
    """In the meantime, another request is sent. The timeout starts when the request is sent."""
    gate = Gate()
    fake.latency = 0.1

    async def ask_two() -> tuple[bool, Reply]:
        server = ModelServer(api_key="test", base_url=fake.base_url, timeout=2.0)
        judge = OpenAIJudge("fake-judge", server, concurrency=1, rate_limiter=gate)
        held = asyncio.create_task(judge.ask(MESSAGES))
        await asyncio.sleep(0)
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + 2.1:
            await judge.ask(MESSAGES)
        still, _ = held.done(), gate.open.set()
        reply = await held
        await judge.aclose()
        return still, reply

    still, reply = asyncio.run(ask_two())
    assert (still, bool(reply.texts)) == (False, True)
    assert fake.max_in_flight == 1


def test_retries_by_the_http_client_are_counted_as_requests(fake: FakeJudge) -> None:
    """A request that failed once is sent twice and counts twice."""
    book = Book()
    fake.faults.extend([Fault("status", status=500), None, Fault("status", status=500), Fault("status", status=500)])

    async def ask_twice() -> None:
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=fake.base_url), rate_limiter=book)
        reply = await judge.ask(MESSAGES)
        assert (reply.input_tokens, reply.output_tokens) != (None, None)
        with pytest.raises(ScoringError):
            await judge.ask(MESSAGES)
        await judge.aclose()

    asyncio.run(ask_twice())
    assert (len(book.admitted), len(book.repeated)) == (2, 2)
    assert [requests for requests, _, _ in book.settled] == [0, 0]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=500),
        Fault("reset"),
        Fault("status", status=400, message="n is not supported"),
    ],
    ids=["server error", "broken connection", "rejected option"],
)
def test_no_request_is_retried_without_a_reservation(fake: FakeJudge, fault: Fault) -> None:
    """Whatever the cause of a retry, the judge gets one request, and the score fails with the reason `budget`."""
    book = Book(repeats=0)
    fake.faults.append(fault)

    async def ask() -> None:
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=fake.base_url), rate_limiter=book)
        try:
            await judge.ask(MESSAGES, n=2)
        finally:
            await judge.aclose()

    with pytest.raises(ScoringError, match="nothing is left"):
        asyncio.run(ask())
    assert len(fake.requests) == 1
    assert book.settled == [(0, 0, 0)]


class _Elsewhere(BaseHTTPRequestHandler):
    """Server that redirects every request to itself."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_response(307)
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_each_redirected_request_needs_a_reservation() -> None:
    """Each redirected request is reserved before it is sent."""
    book, server = Book(repeats=1), ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def ask() -> None:
        judge = OpenAIJudge(
            "m", ModelServer(api_key="test", base_url=f"http://127.0.0.1:{server.server_port}"), rate_limiter=book
        )
        try:
            await judge.ask(MESSAGES)
        finally:
            await judge.aclose()

    try:
        with pytest.raises(ScoringError, match="nothing is left"):
            asyncio.run(ask())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (len(_Elsewhere.asked), len(book.repeated)) == (2, 1)


def test_the_price_of_the_configured_model_applies_if_the_served_name_differs(fake: FakeJudge) -> None:
    """A cost budget must not treat a model as free because its server uses another name."""
    book, fake.model = Book(), "somebody-elses-name"
    prices = PriceList({"fake-judge": Price(input=1_000_000, output=0)})

    async def ask() -> int:
        server = ModelServer(api_key="test", base_url=fake.base_url)
        judge = OpenAIJudge("fake-judge", server, rate_limiter=book, prices=prices)
        await judge.ask(MESSAGES)
        reply = await judge.ask(MESSAGES)
        await judge.aclose()
        assert reply.input_tokens is not None
        return reply.input_tokens

    tokens = asyncio.run(ask())
    assert [place.usd for place in book.admitted] == [10, 10]
    assert book.settled[1][2] == pytest.approx(tokens - 10, abs=1e-9)
