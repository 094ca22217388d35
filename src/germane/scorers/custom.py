"""Scorers of users, out of a function."""

from __future__ import annotations

import dataclasses
import inspect
from functools import cached_property
from typing import Any, Final

from germane.exchange import Exchange
from germane.registry import Declaration, qualified_name
from germane.score import Score
from germane.scorers.fingerprint import fingerprint
from germane.threads import Threads

THREADS: Final = 4
"""Threads of one scorer: as many exchanges it looks at side by side, and as many calls may hang."""


class CustomScorer:
    """A function of an exchange as a scorer.

    A plain function is called in one of a few threads that are the scorer's own, so that it delays nobody else; an
    ``async`` function is called on the event loop.
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.requires = declaration.requires
        self.range = declaration.range

    def __repr__(self) -> str:
        return f"CustomScorer({self.name!r}, {self.declaration.origin})"

    @cached_property
    def fingerprint(self) -> str:
        """Of name, version, qualified name, range and requirements.

        The module counts for nothing: run as a script it has another name than in a worker that imports it.
        """
        declaration = self.declaration
        return fingerprint(
            scorer=self.name,
            version=declaration.version,
            parameters={
                "function": qualified_name(declaration.function),
                "range": list(self.range),
                "requires": sorted(self.requires),
            },
        )

    async def score(self, exchange: Exchange) -> Score | float:
        """Return what the function returns; a score of it stands under this scorer's name.

        Raises:
            Exception: whatever the function raises.
        """
        result = await self._call(exchange)
        if isinstance(result, Score):
            return dataclasses.replace(result, scorer=self.name)
        return result  # type: ignore[no-any-return]  # the boundary looks at what it is

    async def aclose(self) -> None:
        """Let the threads end, without waiting for a call that hangs."""
        if "_threads" in self.__dict__:
            self._threads.close()

    async def _call(self, exchange: Exchange) -> Any:
        try:
            result = self._started(exchange) if self._is_async else await self._threads.run(self._started, exchange)
            return await result if inspect.isawaitable(result) else result
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error}") from error  # it would end the loop of all the others

    def _started(self, exchange: Exchange) -> Any:
        try:
            return self.declaration.function(exchange)
        except StopIteration as error:
            raise RuntimeError("StopIteration") from error  # no future can hold it

    @cached_property
    def _is_async(self) -> bool:
        function = self.declaration.function
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - of an object that can be called, this is the function
        )

    @cached_property
    def _threads(self) -> Threads:
        return Threads(THREADS, name=f"germane-{self.name}")
