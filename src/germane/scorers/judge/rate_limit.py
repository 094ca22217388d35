"""Waiting for a turn before each request, where requests or tokens a minute are limited, or a budget is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from germane.scorers.base.protocols import Message, Reply

BYTES_PER_TOKEN = 4
"""Of text, in UTF-8: what is common of English. Where it is not, the real count corrects it after each reply."""
FIRST_GUESS = 100.0
"""Tokens that a judge is expected to write for one choice before it has written any."""
LEARNED = 0.2
"""Weight of the last reply in what is expected of the next."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is reserved for one request."""

    tokens: float = 0.0
    usd: float = 0.0
    day: date | None = None
    """Whose budget has it; None where there is no budget."""


class Pace(Protocol):
    """Lets requests start no faster than is allowed, and no more of them than are paid for."""

    @property
    def spent_until(self) -> datetime | None:
        """Until when a request was not paid for, in UTC; None while there is room, or without a budget."""
        ...

    async def admit(self, tokens: float, usd: float = 0.0) -> Place:
        """Wait for the turn of a request that will take about so much; return what was reserved for it.

        Raises:
            ScoringError: ``budget``, nothing is left; ``judge_rate_limited``, nobody may wait any more.
        """
        ...

    async def repeat(self, place: Place) -> Place:
        """Reserve as much once more, for a request that is about to be sent again.

        Raises:
            ScoringError: as :meth:`admit`; then it must not be sent.
        """
        ...

    def settle(self, place: Place, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0) -> None:
        """Book what was taken more than was reserved; below 0 what was taken less."""
        ...

    def give_up(self) -> None:
        """Let nobody wait any more, now or later: :meth:`admit` raises.

        It raises a :class:`germane.errors.ScoringError`, ``judge_rate_limited``.
        """
        ...

    async def aclose(self) -> None:
        """Give up, and book what is left."""
        ...


@dataclass(slots=True)
class Turn:
    """One request that may start."""

    pace: Pace | None = None
    place: Place = Place()
    """What is reserved for the sending that is under way, or for the first one."""
    sent: int = 0
    """How often it was really sent: clients repeat what breaks off, and follow where they are redirected."""
    reply: Reply | None = None

    async def count(self) -> None:
        """Count a sending that begins now.

        Each has to have its place before it leaves, or a budget of calls would be exceeded by what broke off. The one
        place where all of them pass is the client's hook. To forbid the client its repetitions would not do: options
        that a server refuses and redirections lead to further requests as well.

        Raises:
            ScoringError: it must not be sent again.
        """
        if self.sent and self.pace is not None:
            self.place = await self.pace.repeat(self.place)
        self.sent += 1


def _for_nothing(_input_tokens: float, _output_tokens: float) -> float:
    return 0.0


class Paced:
    """A judge's side of its pace: what a request will take, and what it took."""

    def __init__(self, pace: Pace | None, cost: Callable[[float, float], float] = _for_nothing) -> None:
        """Keep to the pace; ``cost`` says what tokens read and written cost, in US dollars."""
        self.pace = pace
        self._cost = cost
        self._output = FIRST_GUESS

    @asynccontextmanager
    async def turn(self, messages: Sequence[Message], choices: int, max_tokens: int) -> AsyncIterator[Turn]:
        """Wait for a turn, and settle afterwards. Without a pace there is nothing to wait for.

        A request without a usable reply has taken what was reserved for it: nobody says what it really took. One that
        never left gives it back.

        Raises:
            ScoringError: there is none; see :meth:`Pace.admit`.
        """
        if self.pace is None:
            yield Turn()
            return
        read, written = tokens_in(messages), choices * min(self._output, max_tokens)
        turn = Turn(self.pace, await self.pace.admit(read + written, self._cost(read, written)))
        mark = _under_way.set(turn)
        try:
            yield turn
        finally:
            _under_way.reset(mark)
            self._learn(turn.reply, choices)
            tokens, usd = self._taken(turn)
            requests = 0.0 if turn.sent else -1.0
            place = turn.place
            self.pace.settle(place, requests=requests, tokens=tokens - place.tokens, usd=usd - place.usd)

    def _taken(self, turn: Turn) -> tuple[float, float]:
        """Return the tokens and the US dollars that the last sending took."""
        reply = turn.reply
        if not turn.sent:
            return 0.0, 0.0
        if reply is None or reply.input_tokens is None or reply.output_tokens is None:
            return turn.place.tokens, turn.place.usd
        cost = self._cost(reply.input_tokens, reply.output_tokens) if reply.cost is None else reply.cost
        return reply.input_tokens + reply.output_tokens, cost

    def _learn(self, reply: Reply | None, choices: int) -> None:
        if reply is not None and reply.output_tokens is not None:
            self._output += LEARNED * (reply.output_tokens / choices - self._output)


def tokens_in(messages: Sequence[Message]) -> float:
    """Return about how many tokens the messages are."""
    return sum(len(message.text.encode("utf-8", "replace")) for message in messages) / BYTES_PER_TOKEN


async def count_request(_request: Any) -> None:
    """Count a request of the turn under way: a hook for the client, which repeats some by itself."""
    turn = _under_way.get()
    if turn is not None:
        await turn.count()


_under_way: ContextVar[Turn | None] = ContextVar("germane_turn", default=None)
