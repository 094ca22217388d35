"""What a judge tells its pace: what a request will take, and what it took."""

from __future__ import annotations

import asyncio

import pytest

from germane.errors import ScoringError
from germane.scorers import OpenAIJudge, Server
from germane.scorers.pace import FIRST_GUESS, Paced, Turn, count_request
from germane.scorers.protocols import Message, Reply
from germane.testing import FakeJudge, Fault

MESSAGES = [Message("system", "x" * 30), Message("user", "\u00e9" * 5)]
"""Forty bytes: about ten tokens."""


class Book:
    """A pace that admits at once, and notes what it is told."""

    def __init__(self) -> None:
        self.admitted: list[float] = []
        self.settled: list[tuple[float, float]] = []

    async def admit(self, tokens: float) -> float:
        self.admitted.append(tokens)
        return tokens

    def settle(self, *, requests: float = 0.0, tokens: float = 0.0) -> None:
        self.settled.append((requests, tokens))

    def give_up(self) -> None:
        """Nobody waits."""

    async def aclose(self) -> None:
        """Nothing is kept."""


def take(paced: Paced, reply: Reply | None, *, choices: int = 1, max_tokens: int = 500, sent: int = 1) -> None:
    async def one_turn() -> None:
        async with paced.turn(MESSAGES, choices, max_tokens) as turn:
            for _ in range(sent):
                await count_request(None)
            turn.reply = reply

    asyncio.run(one_turn())


def test_input_is_guessed_from_its_bytes_and_output_from_the_last_replies() -> None:
    """Per choice, and never more than the judge may write."""
    book = Book()
    paced = Paced(book)
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50))
    take(paced, None, choices=3)
    take(paced, None, max_tokens=8)

    learned = FIRST_GUESS + 0.2 * (50 - FIRST_GUESS)
    assert book.admitted == pytest.approx([10 + FIRST_GUESS, 10 + 3 * learned, 10 + 8], abs=1e-9)


def test_what_was_really_taken_is_settled() -> None:
    """More or less than was reserved; a request without counts has taken what was reserved."""
    book = Book()
    paced = Paced(book)
    take(paced, Reply(("yes",), input_tokens=12, output_tokens=50))
    take(paced, Reply(("yes",)))
    take(paced, None)

    assert book.settled == [pytest.approx((0, 62 - 110)), (0, 0), (0, 0)]


def test_repeated_requests_count() -> None:
    """What the client sends again by itself takes a place as well."""
    book = Book()
    take(Paced(book), None, sent=3)

    assert book.settled == [(2, 0)]


def test_a_request_that_never_left_gives_all_back() -> None:
    """It may have been given up while it waited for the judge."""
    book = Book()
    take(Paced(book), None, sent=0)

    assert book.settled == [(-1, pytest.approx(-110, abs=1e-9))]


def test_without_a_pace_nothing_waits_and_nothing_is_counted() -> None:
    """The usual case."""

    async def one_turn() -> Turn:
        async with Paced(None).turn(MESSAGES, 1, 10) as turn:
            await count_request(None)
            return turn

    assert asyncio.run(one_turn()) == Turn(0.0)


class Gate(Book):
    """A pace that holds the first request until it is let, and no other."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def admit(self, tokens: float) -> float:
        self.admitted.append(tokens)
        if len(self.admitted) == 1:
            await self.open.wait()
        return tokens


def test_who_waits_for_a_turn_holds_no_place_and_no_time(fake: FakeJudge) -> None:
    """Another request is made meanwhile, and the time-out begins with the request itself."""
    gate = Gate()
    fake.latency = 0.1

    async def ask_two() -> tuple[bool, Reply]:
        server = Server(api_key="test", base_url=fake.base_url, timeout=2.0)
        judge = OpenAIJudge("fake-judge", server, concurrency=1, pace=gate)
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
    assert fake.most_in_flight == 1


def test_what_the_client_repeats_is_settled(fake: FakeJudge) -> None:
    """A request that met an error is sent twice, and takes two places."""
    book = Book()
    fake.faults.extend([Fault("status", status=500), None, Fault("status", status=500), Fault("status", status=500)])

    async def ask_twice() -> None:
        judge = OpenAIJudge("fake-judge", Server(api_key="test", base_url=fake.base_url), pace=book)
        reply = await judge.ask(MESSAGES)
        assert (reply.input_tokens, reply.output_tokens) != (None, None)
        with pytest.raises(ScoringError):
            await judge.ask(MESSAGES)
        await judge.aclose()

    asyncio.run(ask_twice())
    assert [requests for requests, _ in book.settled] == [1, 1]
