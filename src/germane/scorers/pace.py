"""Waiting for a turn before each request, where requests or tokens a minute are limited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from germane.scorers.protocols import Message, Reply

BYTES_PER_TOKEN = 4
"""Of text, in UTF-8: what is common of English. Where it is not, the real count corrects it after each reply."""
FIRST_GUESS = 100.0
"""Tokens that a judge is expected to write for one choice before it has written any."""
LEARNED = 0.2
"""Weight of the last reply in what is expected of the next."""


class Pace(Protocol):
    """Lets requests start no faster than is allowed."""

    async def admit(self, tokens: float) -> float:
        """Wait for the turn of a request that will take about so many tokens; return how many were reserved for it."""
        ...

    def settle(self, *, requests: float = 0.0, tokens: float = 0.0) -> None:
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

    reserved: float
    """Tokens."""
    sent: int = 0
    """How often it was really sent: clients repeat what breaks off."""
    reply: Reply | None = None


class Paced:
    """A judge's side of its pace: what a request will take, and what it took."""

    def __init__(self, pace: Pace | None) -> None:
        self.pace = pace
        self._output = FIRST_GUESS

    @asynccontextmanager
    async def turn(self, messages: Sequence[Message], choices: int, max_tokens: int) -> AsyncIterator[Turn]:
        """Wait for a turn, and settle afterwards. Without a pace there is nothing to wait for.

        A request without a usable reply has taken what was reserved for it: nobody says what it really took. One that
        never left gives it back.
        """
        if self.pace is None:
            yield Turn(0.0)
            return
        expected = tokens_in(messages) + choices * min(self._output, max_tokens)
        turn = Turn(await self.pace.admit(expected))
        mark = _under_way.set(turn)
        try:
            yield turn
        finally:
            _under_way.reset(mark)
            self._learn(turn.reply, choices)
            self.pace.settle(requests=turn.sent - 1, tokens=_taken(turn) - turn.reserved)

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
        turn.sent += 1


_under_way: ContextVar[Turn | None] = ContextVar("germane_turn", default=None)


def _taken(turn: Turn) -> float:
    reply = turn.reply
    if not turn.sent:
        return 0.0
    if reply is None or reply.input_tokens is None or reply.output_tokens is None:
        return turn.reserved
    return reply.input_tokens + reply.output_tokens
