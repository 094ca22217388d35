"""Where calls that block are made, so that the event loop never waits for one."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")
Call = tuple[Callable[[], Any], "Future[Any]"]


class Threads:
    """A few daemon threads: a call that hangs keeps neither the loop nor the program from ending."""

    def __init__(self, count: int, *, name: str) -> None:
        self.closed = False
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=_work, args=(self._calls,), name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call ``function`` in one of the threads, with the caller's context variables; return what it returns."""
        context, future = copy_context(), Future[Result]()
        self._calls.put((lambda: context.run(function, *arguments), future))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_discard)
            raise

    def close(self) -> None:
        """Let the threads end once the calls made so far are done. None may be made after that."""
        self.closed = True
        for _ in self._threads:
            self._calls.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for their end, not longer than ``seconds`` in all; return whether they have ended. Blocks."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


def _work(calls: SimpleQueue[Call | None]) -> None:
    while (call := calls.get()) is not None:
        function, future = call
        if future.set_running_or_notify_cancel():
            _answer(function, future)
        del call, function, future


def _answer(function: Callable[[], Any], future: Future[Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - not swallowed: it is raised where the call was made
        future.set_exception(error)


def _discard(future: Future[Any]) -> None:
    """Close a coroutine that nobody will await any more: Python would complain of it."""
    if not future.cancelled() and future.exception() is None and inspect.iscoroutine(coroutine := future.result()):
        coroutine.close()
