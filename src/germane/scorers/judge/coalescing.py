"""A judge wrapper that coalesces identical requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack

from germane.exchange import Message
from germane.scorers.base.protocols import DEFAULT_JUDGE_OPTIONS, Judge, JudgeOptions, Reply
from germane.scorers.judge.prices import UsageMeter


class ClosableJudge(Judge, Protocol):
    """A judge with connections to close."""

    async def aclose(self) -> None:
        """Close the connections."""


@dataclass
class _InFlightRequest:
    task: asyncio.Task[Any]
    waiters: int = 0
    is_paid: bool = False
    """Whether one of the callers has received the reply with its tokens and cost."""


class CoalescingJudge:
    """Sends identical concurrent requests once, and meters all requests.

    One caller receives the reply with its tokens and cost. The others receive the same texts with 0 tokens and a cost
    of 0, so that the scores' costs add up to the actual cost. A request is canceled once no caller is waiting for it.
    """

    def __init__(self, judge: ClosableJudge, meter: UsageMeter | None = None) -> None:
        self.judge = judge
        self.meter = meter or UsageMeter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_flight: dict[Hashable, _InFlightRequest] = {}

    def __repr__(self) -> str:
        return repr(self.judge)

    @property
    def model(self) -> str:
        """The configured model name."""
        return self.judge.model

    async def identify(self) -> str:
        """Return the model name that the server reports; see :meth:`Judge.identify`."""
        name: str = await self._wait("identify", self._join("identify", self.judge.identify))
        return name

    async def aclose(self) -> None:
        """Close the judge's connections."""
        await self.judge.aclose()

    async def ask(self, messages: Sequence[Message], **options: Unpack[JudgeOptions]) -> Reply:
        """Return the reply to this request, or to an identical in-flight request; see :meth:`Judge.ask` for the
        options.

        An omitted option is equivalent to its default.

        Raises:
            ScoringError: the judge failed.
        """

        async def send() -> Reply:
            self.meter.requests += 1
            reply = await self.judge.ask(messages, **options)
            self.meter.record_reply(reply)
            return reply

        key = (tuple(messages), json.dumps({**DEFAULT_JUDGE_OPTIONS, **options}))
        request = self._join(key, send)
        reply: Reply = await self._wait(key, request)
        if not request.is_paid:
            request.is_paid = True
            return reply
        return replace(
            reply,
            input_tokens=None if reply.input_tokens is None else 0,
            output_tokens=None if reply.output_tokens is None else 0,
            cost=None if reply.cost is None else 0.0,
        )

    def _join(self, key: Hashable, send: Callable[[], Coroutine[Any, Any, Any]]) -> _InFlightRequest:
        """Return the in-flight request for this key. If there is none, start one."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._in_flight = loop, {}
        if key not in self._in_flight:
            self._in_flight[key] = _InFlightRequest(loop.create_task(send()))
        return self._in_flight[key]

    async def _wait(self, key: Hashable, request: _InFlightRequest) -> Any:
        request.waiters += 1
        try:
            return await asyncio.shield(request.task)
        finally:
            request.waiters -= 1
            if request.waiters == 0:
                request.task.cancel()
            if self._in_flight.get(key) is request and (request.task.done() or request.waiters == 0):
                del self._in_flight[key]  # the next caller sends a new request


def uses_coalescing_judge(scorer: object) -> bool:
    """Return whether a scorer uses the shared judge, which limits concurrency itself."""
    return isinstance(getattr(scorer, "judge", None), CoalescingJudge)


def uses_judge(scorer: object) -> bool:
    """Return whether a scorer, or a part of a composite scorer, uses the shared judge."""
    parts = getattr(scorer, "scorers", None)
    return uses_coalescing_judge(scorer) or (isinstance(parts, Mapping) and any(map(uses_judge, parts.values())))
