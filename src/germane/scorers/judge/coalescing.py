"""A judge that is asked the same thing once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from germane.scorers.base.protocols import Judge, Message, Reply
from germane.scorers.judge.prices import Meter


class ClosableJudge(Judge, Protocol):
    """A judge with connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@dataclass
class _Asked:
    """A request under way, and for how many."""

    task: asyncio.Task[Any]
    waiting: int = 0
    paid: bool = False
    """Whether somebody has the reply with what it took."""


class SharedJudge:
    """Joins requests that are equal, options included, while they are under way, and counts what all of them take.

    One of those who wait has the reply with its tokens and its cost; the others have the same texts for 0 tokens and
    nothing, so that sums over scores are what was paid. A request is given up when nobody waits for it any more.
    """

    def __init__(self, judge: ClosableJudge, meter: Meter | None = None) -> None:
        self.judge = judge
        self.meter = meter or Meter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: dict[Hashable, _Asked] = {}

    def __repr__(self) -> str:
        return repr(self.judge)

    @property
    def model(self) -> str:
        """Name of the model, as it was configured."""
        return self.judge.model

    async def identify(self) -> str:
        """Return the model as its server names it; see :meth:`Judge.identify`. Many who ask at once ask once."""
        asked = self._asked("identify", self.judge.identify)
        name: str = await self._wait("identify", asked)
        return name

    async def aclose(self) -> None:
        """Close the judge's connections."""
        await self.judge.aclose()

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
        """Return the reply to this request, or to an equal one that is under way; see :meth:`Judge.ask`.

        Raises:
            ScoringError: as the judge.
        """

        def ask() -> Coroutine[Any, Any, Reply]:
            return self.judge.ask(
                messages, n=n, temperature=temperature, max_tokens=max_tokens, stop=stop, schema=schema,
                top_tokens=top_tokens,
            )  # fmt: skip

        form = None if schema is None else json.dumps(schema)
        key = (tuple(messages), n, temperature, max_tokens, tuple(stop), form, top_tokens)
        asked = self._asked(key, lambda: self._counted(ask))
        reply: Reply = await self._wait(key, asked)
        paid, asked.paid = asked.paid, True
        return _for_nothing(reply) if paid else reply

    def _asked(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, Any]]) -> _Asked:
        """Return the request of that key that is under way, else a new one."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._under_way = loop, {}
        if key not in self._under_way:
            self._under_way[key] = _Asked(loop.create_task(ask()))
        return self._under_way[key]

    async def _counted(self, ask: Callable[[], Coroutine[Any, Any, Reply]]) -> Reply:
        self.meter.requests += 1
        reply = await ask()
        self.meter.count(reply)
        return reply

    async def _wait(self, key: Hashable, asked: _Asked) -> Any:
        asked.waiting += 1
        try:
            return await asyncio.shield(asked.task)
        finally:
            asked.waiting -= 1
            if asked.waiting == 0:
                asked.task.cancel()
            if self._under_way.get(key) is asked and (asked.task.done() or asked.waiting == 0):
                del self._under_way[key]  # whoever comes now asks anew


def asks_judge(scorer: object) -> bool:
    """Return whether a scorer asks a judge that keeps to the number of requests in flight by itself."""
    return isinstance(getattr(scorer, "judge", None), SharedJudge)


def _for_nothing(reply: Reply) -> Reply:
    """Return the reply as those have it for whom another has paid."""
    return replace(
        reply,
        input_tokens=None if reply.input_tokens is None else 0,
        output_tokens=None if reply.output_tokens is None else 0,
        cost=None if reply.cost is None else 0.0,
    )
