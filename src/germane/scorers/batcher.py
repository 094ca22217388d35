"""One request for the texts of many exchanges."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import numpy as np

from germane.errors import ScoringError
from germane.scorers.protocols import Embedder, Vectors
from germane.scorers.vectors import unit_rows

Row = Vectors
"""One vector, of length 1."""
_Call = tuple[Sequence[str], asyncio.Future[dict[str, Row]]]


class Batcher:
    """Gathers what arrives within a few milliseconds into one request; equal texts are sent once.

    An embedder by itself, for callers of one event loop. What is wrong with one caller's texts does not reach the
    others: a batch that was refused is asked again caller by caller.
    """

    def __init__(self, embedder: Embedder, *, wait: float = 0.005, most: int = 128, remember: int = 512) -> None:
        """Gather for ``wait`` seconds or until there are ``most`` texts; keep the vectors of ``remember`` questions."""
        self.embedder = embedder
        self.wait = wait
        self.most = most
        self.remember = remember
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: list[_Call] = []
        self._timer: asyncio.TimerHandle | None = None
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
        for text in texts[:keep]:
            self._keep(text, rows[text])
        return unit_rows([rows[text] for text in texts], len(texts))

    async def aclose(self) -> None:
        """Give up what is under way. The embedder itself is its owner's to close."""
        if self._timer is not None:
            self._timer.cancel()
        for _, future in self._calls:
            future.cancel()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _gather(self, texts: Sequence[str]) -> dict[str, Row]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._calls, self._timer = loop, [], None
        future: asyncio.Future[dict[str, Row]] = loop.create_future()
        self._calls.append((texts, future))
        if sum(len(waiting) for waiting, _ in self._calls) >= self.most:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(self.wait, self._send)
        return await future

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._calls = self._calls, []
        self._start(calls)

    def _start(self, calls: list[_Call]) -> None:
        task = asyncio.get_running_loop().create_task(self._ask([text for texts, _ in calls for text in texts]))
        self._sending.add(task)
        task.add_done_callback(partial(self._finish, calls))

    def _finish(self, calls: list[_Call], task: asyncio.Task[dict[str, Row]]) -> None:
        self._sending.discard(task)
        error = None if task.cancelled() else task.exception()
        if len(calls) > 1 and isinstance(error, ScoringError) and error.retry_after is None:
            for call in calls:
                self._start([call])
            return
        for _, future in calls:
            if not future.done():
                _settle(future, task, error)

    async def _ask(self, texts: Sequence[str]) -> dict[str, Row]:
        distinct = list(dict.fromkeys(texts))
        rows: list[Row] = []
        for start in range(0, len(distinct), self.most):
            part = distinct[start : start + self.most]
            rows.extend(unit_rows(await self.embedder.embed(part), len(part)))
        return dict(zip(distinct, rows, strict=True))

    def _keep(self, text: str, row: Row) -> None:
        self._kept[text] = np.array(row)
        self._kept.move_to_end(text)
        while len(self._kept) > self.remember:
            self._kept.popitem(last=False)


def _settle(
    future: asyncio.Future[dict[str, Row]], task: asyncio.Task[dict[str, Row]], error: BaseException | None
) -> None:
    if task.cancelled():
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
