"""One request for the texts of many exchanges."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from germane.errors import ScoringError
from germane.scorers.base.protocols import Embedder, Vectors
from germane.scorers.base.vectors import unit_rows

Row = Vectors
"""One vector, of length 1."""
_Call = tuple[Sequence[str], asyncio.Future[dict[str, Row]]]
ENOUGH = 16
"""Callers for whom a request is worth it: fewer wait a while for others."""
LONGEST_GATHERING = 0.2
"""Seconds for which they wait at most, once the last reply is there."""
SLOW = 2.0
"""Seconds that callers wait at most behind a request that is under way."""
BYTES = 800_000
"""Of the texts of one request: about 200,000 tokens. Servers take 300,000 and more."""


class Batcher:
    """Gathers texts into few requests; equal texts are sent once.

    With no request under way, or just back, it gathers for a few milliseconds. With one, until that returns, and then
    for as long as there are only a few callers, up to twice as long as that one took.

    An embedder by itself, for callers of one event loop at a time. What is wrong with one caller's texts does not reach
    the others: a batch that was refused is asked again caller by caller.
    """

    def __init__(
        self, embedder: Embedder, *, wait: float = 0.005, most: int = 512, remember: int = 512, slow: float = SLOW
    ) -> None:
        """Gather for ``wait`` seconds or until there are ``most`` texts; keep the vectors of ``remember`` questions.

        After ``slow`` seconds behind a request that is under way texts have one of their own.
        """
        self.embedder = embedder
        self.wait = wait
        self.most = most
        self.remember = remember
        self.slow = slow
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: list[_Call] = []
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_from = 0.0
        self._sending: set[asyncio.Task[dict[str, Row]]] = set()
        self._kept: OrderedDict[str, Row] = OrderedDict()

    @property
    def model(self) -> str:
        """Name of the embedder's model."""
        return self.embedder.model

    async def embed(self, texts: Sequence[str], *, keep: int = 0) -> Vectors:
        """Return one row of length 1 per text. The first ``keep`` are remembered: questions come again, answers do not.

        Raises:
            ScoringError: with reason ``embedder_error``.
        """
        known = {text: self._kept[text] for text in texts if text in self._kept}
        absent = [text for text in dict.fromkeys(texts) if text not in known]
        rows = {**known, **(await self._gather(absent) if absent else {})}
        if len({row.shape for row in rows.values()}) > 1:  # another model answers under the same name
            self._kept.clear()
            rows = await self._gather(list(dict.fromkeys(texts)))
        for text in texts[:keep]:
            self._keep(text, rows[text])
        return unit_rows([rows[text] for text in texts], len(texts))

    async def aclose(self) -> None:
        """Give up what is under way. The embedder itself is its owner's to close."""
        self._stop_timer()
        calls, self._calls = self._calls, []
        for _, future in calls:
            future.cancel()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _gather(self, texts: Sequence[str]) -> dict[str, Row]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._calls, self._timer, self._quiet_from, self._sending = loop, [], None, 0.0, set()
        future: asyncio.Future[dict[str, Row]] = loop.create_future()
        self._calls.append((texts, future))
        self._plan(loop)
        return await future

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send what waits now, or say when."""
        if sum(len(waiting) for waiting, _ in self._calls) >= self.most:
            self._send()
        elif self._sending:
            self._send_in(loop, self.slow)
        elif len(self._calls) >= ENOUGH:
            self._send_in(loop, self.wait)
        elif self._calls:
            self._send_in(loop, max(self.wait, self._quiet_from - loop.time()))

    def _send_in(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Send in so many seconds, unless it is sent sooner anyway."""
        if self._timer is None or self._timer.when() > loop.time() + seconds:
            self._stop_timer()
            self._timer = loop.call_later(seconds, self._send)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self) -> None:
        self._stop_timer()
        calls, self._calls = [call for call in self._calls if not call[1].done()], []
        if calls:
            self._start(calls)

    def _start(self, calls: list[_Call]) -> None:
        loop = asyncio.get_running_loop()
        texts = [text for waiting, _ in calls for text in waiting]
        task: asyncio.Task[dict[str, Row]] = loop.create_task(self._ask(texts))
        self._sending.add(task)
        task.add_done_callback(partial(self._finish, calls, loop.time()))

    def _finish(self, calls: list[_Call], began: float, task: asyncio.Task[dict[str, Row]]) -> None:
        self._sending.discard(task)
        error = None if task.cancelled() else task.exception()
        if len(calls) > 1 and isinstance(error, ScoringError) and _is_about_texts(error):
            for call in calls:
                self._start([call])
            return
        for _, future in calls:
            if not future.done():
                _settle(future, task, error)
        self._follow(task.get_loop(), began, len(calls))

    def _follow(self, loop: asyncio.AbstractEventLoop, began: float, callers: int) -> None:
        """Plan what comes after a request that took from ``began`` until now. Who is alone waits for nobody."""
        now = loop.time()
        self._quiet_from = now + (min(2 * (now - began), LONGEST_GATHERING) if callers > 1 else 0.0)
        if loop is self._loop and not self._sending:
            self._stop_timer()
            self._plan(loop)

    async def _ask(self, texts: Sequence[str]) -> dict[str, Row]:
        distinct = list(dict.fromkeys(texts))
        rows: list[Row] = []
        for part in _parts(distinct, self.most):
            rows.extend(unit_rows(await self.embedder.embed(part), len(part)))
        return dict(zip(distinct, rows, strict=True))

    def _keep(self, text: str, row: Row) -> None:
        self._kept[text] = np.array(row)
        self._kept.move_to_end(text)
        while len(self._kept) > self.remember:
            self._kept.popitem(last=False)


def _parts(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Return the texts in their order, at most so many and so many bytes at a time."""
    part: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if part and (len(part) == most or size + length > BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += length
    yield part


def _is_about_texts(error: ScoringError) -> bool:
    """Return whether fewer texts may fare better: it is neither an outage nor a refusal of them all."""
    return error.retry_after is None and not error.rejected


def _settle(
    future: asyncio.Future[dict[str, Row]], task: asyncio.Task[dict[str, Row]], error: BaseException | None
) -> None:
    if task.cancelled():
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
