"""Daemon threads for blocking calls: a pool for calls from asyncio, and calls with a timeout."""

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


class DaemonThreadPool:
    """A pool of daemon threads. A call that never returns blocks neither the event loop nor interpreter exit."""

    def __init__(self, count: int, *, name: str) -> None:
        self.closed = False
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=_run_calls, args=(self._calls,), name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call ``function`` in a thread, with the caller's context variables, and return its result."""
        context, future = copy_context(), Future[Result]()
        self._calls.put((lambda: context.run(function, *arguments), future))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_close_coroutine)
            raise

    def close(self) -> None:
        """Let the threads exit once they have finished all submitted calls. Do not submit calls afterwards."""
        self.closed = True
        for _ in self._threads:
            self._calls.put(None)

    def join(self, seconds: float) -> bool:
        """Block for up to ``seconds`` in total until the threads exit. Return whether all of them did."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


def run_within(seconds: float, *calls: Callable[[], object]) -> bool:
    """Run calls in parallel. Return whether all of them finished in time and none returned False.

    Use it for calls that can exceed their own timeouts, such as OpenTelemetry exports while a collector is unreachable.
    Calls that take longer than ``seconds`` continue in the background.
    """
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda call=call: results.append(call()), name="germane-stop", daemon=True)
        for call in calls
    ]
    deadline = time.monotonic() + seconds
    started = []
    for thread in threads:
        try:
            thread.start()
            started.append(thread)
        except RuntimeError:  # the interpreter is shutting down and cannot start threads
            thread.run()
    for thread in started:
        thread.join(max(0.0, deadline - time.monotonic()))
    return len(results) == len(calls) and False not in results


def _run_calls(calls: SimpleQueue[Call | None]) -> None:
    while (call := calls.get()) is not None:
        function, future = call
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised in the caller
                future.set_exception(error)
        del call, function, future  # do not keep the result alive until the next call


def _close_coroutine(future: Future[Any]) -> None:
    """Close a coroutine that will never be awaited, to avoid Python's warning."""
    if not future.cancelled() and future.exception() is None and inspect.iscoroutine(coroutine := future.result()):
        coroutine.close()
