"""The judge behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.body import post
from germane.scorers.pace import Pace, Paced
from germane.scorers.prices import Prices
from germane.scorers.protocols import Message, Reply, Token
from germane.scorers.server import Server, reason_of, said_by
from germane.scorers.slots import Slots
from germane.scorers.text import clean, shorten

if TYPE_CHECKING:
    import openai

_OPTIONS = ("response_format", "logprobs", "max_tokens", "temperature", "stop", "n")
"""What some servers and models refuse with HTTP 400, in the order in which they are suspected."""
_OPTIONAL = frozenset({"response_format", "logprobs", "n"})
"""Those that are suspected although the server does not name them."""
CONCURRENCY = 64
"""Requests in flight, where nothing else is said."""
CONNECTIONS = 4
"""Of one client."""
FEW_TOKENS = 8
"""What a judge may write that is only asked who it is."""


@dataclass(frozen=True, slots=True)
class _Busy:
    """A server asked to be left alone."""

    since: float
    until: float
    """Of the monotonic clock, seconds."""
    error: ScoringError


class OpenAIJudge:
    """Asks a chat model, so many requests at a time. What its server turns out not to take is left out from then on."""

    def __init__(
        self,
        model: str,
        server: Server,
        *,
        concurrency: int = CONCURRENCY,
        prices: Prices | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Ask ``model`` at ``server``, no faster than the pace allows; by default only list prices are known."""
        self.model = model
        self.server = server
        self._prices = prices or Prices()
        self._paced = Paced(pace)
        self._slots = Slots(concurrency)
        self._busy: _Busy | None = None
        self._clients = [server.connect()]
        self._refused: frozenset[str] = frozenset()
        self._taken: frozenset[str] = frozenset()
        self._served: str | None = None
        self._identifying = asyncio.Lock()

    def __repr__(self) -> str:
        return f"OpenAIJudge({self.model!r})"

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
        """Return ``n`` choices, or fewer where the server ignores ``n``.

        A request may wait for its turn; that does not count for its time-out. When the server asks to be left alone
        meanwhile, it is not made.

        Raises:
            ScoringError: ``judge_timeout``, ``judge_rate_limited`` (with ``retry_after`` where the server names it),
                ``judge_rejected`` (key, quota, model), ``judge_unreachable``, ``judge_refused`` or ``unparsable``.
        """
        options = {"n": n, "temperature": temperature, "max_tokens": max_tokens}
        wanted: dict[str, Any] = {name: value for name, value in options.items() if not (name == "n" and n == 1)}
        if stop:
            wanted["stop"] = list(stop)
        if schema is not None:
            wanted["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)},
            }
        if top_tokens:
            wanted |= {"logprobs": True, "top_logprobs": top_tokens}
        turns = [{"role": message.role, "content": message.text} for message in messages]
        came = time.monotonic()
        async with self._paced.turn(messages, n, max_tokens) as turn:
            async with self._slots.one() as slot:
                self._heed(came)
                turn.reply = self._priced(await self._send(self._client(slot), turns, wanted))
            return turn.reply

    async def identify(self) -> str:
        """Return the model as the server named it last, before any reply by a tiny request.

        Raises:
            ScoringError: as :meth:`ask`.
        """
        async with self._identifying:
            if self._served is None:
                await self._introduce()
        return self._served or self.model

    async def _introduce(self) -> None:
        try:
            await self.ask([Message("user", "Reply with: ok")], max_tokens=FEW_TOKENS)
        except ScoringError as error:
            if error.reason is not Reason.UNPARSABLE:  # one that thinks first says nothing within a few tokens
                raise
        self._served = self._served or self.model

    async def aclose(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.close()

    def _heed(self, came: float) -> None:
        """Raise what the server said to others, if it asked to be left alone while this request waited."""
        busy = self._busy
        if busy is not None and busy.since >= came and (left := busy.until - time.monotonic()) > 0:
            raise ScoringError(busy.error.reason, str(busy.error), retry_after=left)

    def _client(self, slot: int) -> openai.AsyncOpenAI:
        """Return the client of a slot: one looks at all its connections at each request, so they have few each."""
        number = slot // CONNECTIONS
        while len(self._clients) <= number:
            self._clients.append(self.server.connect())
        return self._clients[number]

    async def _send(self, client: openai.AsyncOpenAI, turns: list[dict[str, str]], wanted: dict[str, Any]) -> Reply:
        try:
            async with self.server.request():
                completion = await self._complete(client, turns, wanted)
                self._served = _served(completion) or self._served
                return _reply(completion)
        except ScoringError as error:
            if error.retry_after:
                now = time.monotonic()
                self._busy = _Busy(now, now + error.retry_after, error)
            raise

    def _priced(self, reply: Reply) -> Reply:
        cost = self._prices.cost(self.model, reply.model, reply.input_tokens, reply.output_tokens)
        return replace(reply, cost=cost)

    async def _complete(self, client: openai.AsyncOpenAI, turns: list[dict[str, str]], wanted: dict[str, Any]) -> Any:
        """Ask; where the server refuses an option, ask again without it. Only what helped is remembered."""
        import openai

        refused = self._refused
        while True:
            sent = _without(wanted, refused)
            try:
                body = {"model": self.model, "messages": turns, **sent}
                completion = await post(client, "/chat/completions", body)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                suspect = self._suspect(error, wanted, refused)
                if suspect is None:
                    raise
                refused |= {suspect}
            else:
                self._refused |= refused
                self._taken |= wanted.keys() - refused
                return completion

    def _suspect(self, error: openai.APIStatusError, wanted: Mapping[str, Any], refused: frozenset[str]) -> str | None:
        """Return the option that the server may have refused: the one it names, else one it never took yet."""
        left = [name for name in _OPTIONS if name in wanted and name not in refused]
        if reason_of(error) is Reason.JUDGE_REFUSED or error.code == "model_not_found":
            return None
        said = f"{error.param} {said_by(error)}"
        named = [name for name in left if name in said.split() or f"'{name}'" in said or f'"{name}"' in said]
        unproven = [name for name in left if name in _OPTIONAL - self._taken]
        return next(iter(named + unproven), None)


def _without(wanted: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    refused |= {"top_logprobs"} if "logprobs" in refused else set()
    sent = {name: value for name, value in wanted.items() if name not in refused}
    if "max_tokens" in refused and "max_tokens" in wanted:
        sent["max_completion_tokens"] = wanted["max_tokens"]
    return sent


def _reply(completion: Any) -> Reply:
    """Read a completion. Nobody has checked it: any JSON may stand in its place."""
    choices: Any = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ScoringError(Reason.UNPARSABLE, "the reply holds no choice")
    texts = tuple(_text(choice) for choice in choices)
    if not any(text.strip() for text in texts):
        raise _nothing_said(choices)
    usage = getattr(completion, "usage", None)
    tokens = _tokens(choices[0])
    return Reply(
        texts=texts,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_written(_count(usage, "completion_tokens"), texts),
        model=_served(completion),
        first_token=tokens[0].likeliest if tokens else {},
        tokens=tokens,
    )


def _served(completion: Any) -> str | None:
    return shorten(clean(str(getattr(completion, "model", None) or "")), 200) or None


def _tokens(choice: Any) -> tuple[Token, ...]:
    """Return the tokens of a choice, and what stood to choose; none where the server does not tell."""
    told = getattr(getattr(choice, "logprobs", None), "content", None)
    if not isinstance(told, list):
        return ()
    return tuple(Token(str(getattr(each, "token", "")), _likeliest(each)) for each in told)


def _likeliest(told: Any) -> dict[str, float]:
    pairs = ((getattr(each, "token", None), getattr(each, "logprob", None)) for each in _top(told))
    return {
        token: math.exp(min(logprob, 0.0))
        for token, logprob in pairs
        if isinstance(token, str) and isinstance(logprob, (int, float)) and not math.isnan(logprob)
    }


def _top(told: Any) -> list[Any]:
    top = getattr(told, "top_logprobs", None)
    return top if isinstance(top, list) else []


def _text(choice: Any) -> str:
    message = getattr(choice, "message", None)
    content = getattr(message, "content", None)
    return content if isinstance(content, str) and not _refuses(choice) else ""


def _refuses(choice: Any) -> bool:
    refusal = getattr(getattr(choice, "message", None), "refusal", None)
    return bool(refusal) or getattr(choice, "finish_reason", None) == "content_filter"


def _nothing_said(choices: Sequence[Any]) -> ScoringError:
    if any(_refuses(choice) for choice in choices):
        return ScoringError(Reason.JUDGE_REFUSED, "the judge refused to answer, or its filter did")
    if any(getattr(choice, "finish_reason", None) == "length" for choice in choices):
        return ScoringError(Reason.UNPARSABLE, "the judge's reply is empty: it thought until its tokens were used up")
    return ScoringError(Reason.UNPARSABLE, "the judge's reply is empty")


def _count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _written(counted: int | None, texts: Sequence[str]) -> int | None:
    """Return the tokens written. With ``n`` over 1 some servers count one choice only: never fewer than words."""
    return None if counted is None else max(counted, sum(len(text.split()) for text in texts))
