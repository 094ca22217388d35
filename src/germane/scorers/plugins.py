"""Scorers of other packages: the entry points of the group ``germane.scorers``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from germane.daemon_pool import Threads
from germane.errors import SettingsError, UsageError
from germane.exchange import Exchange
from germane.registry import (
    Declaration,
    checked_inputs,
    checked_range,
    declaration_of,
    declare,
    qualified_name,
    takes_an_exchange,
)
from germane.score import Score
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Scorer

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


GROUP: Final = "germane.scorers"
PARTS: Final = ("name", "fingerprint", "requires", "range", "score")
"""What makes an object a scorer."""


def plugin_names() -> list[str]:
    """Return the names of all installed plugins; none is loaded."""
    return sorted(entry_points(group=GROUP).names)


def plugin(name: str) -> Scorer | None:
    """Return the scorer of an installed package; None where no package has one of that name.

    Raises:
        SettingsError: it cannot be loaded, is no scorer, or has another name; or several packages have one.
    """
    found = list(entry_points(group=GROUP, name=name))
    if len({entry.value for entry in found}) > 1:
        raise SettingsError(f"setting scorers: {name!r} is of several packages: {', '.join(map(_package, found))}")
    return _scorer_of(found[0]) if found else None


def flaw_of(candidate: Any) -> str | None:
    """Return why an object is no scorer; None where it is one."""
    if absent := [part for part in PARTS if not hasattr(candidate, part)]:
        return f"it has no {', no '.join(absent)}"
    try:
        checked_inputs(candidate.requires)
        checked_range(candidate.range)
    except (UsageError, TypeError) as error:
        return str(error)
    return None


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else '?'} ({entry.value})"


def _scorer_of(entry: EntryPoint) -> Scorer:
    where = f"setting scorers: {entry.name!r} of the package {_package(entry)}"
    try:
        made: Scorer = _made(entry.load(), entry.name)
        flaw = flaw_of(made)
    # The code of other packages, as scorers themselves are: whatever it raises is told with its name.
    except Exception as error:
        raise SettingsError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if flaw:
        raise SettingsError(f"{where} is no scorer: {flaw}")
    if made.name != entry.name:
        raise SettingsError(f"{where} gives a scorer of another name, {made.name!r}")
    return made


def _made(loaded: Any, name: str) -> Any:
    """Return a scorer out of a function, a scorer, or a class or function that makes one."""
    if not callable(loaded) or (hasattr(loaded, "score") and not inspect.isclass(loaded)):
        return loaded
    if known := declaration_of(loaded):
        return CustomScorer(known)
    if inspect.isclass(loaded) or not takes_an_exchange(loaded):
        return _called(loaded)
    return CustomScorer(declare(loaded, name=name))


def _called(factory: Callable[[], Any]) -> Any:
    made = factory()
    if inspect.iscoroutine(made):
        made.close()
        raise UsageError("what makes a scorer cannot be async")
    return made


def import_modules(names: Iterable[str]) -> None:
    """Import the modules, in their order. What one raises, other than that an import failed, is raised as it is.

    Raises:
        SettingsError: there is no module of that name, or it imports what is not there.
    """
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise SettingsError(f"setting imports: {name!r} is not a module's name, such as myapp.germane_setup")
        try:
            import_module(name)
        except ImportError as error:
            raise SettingsError(f"setting imports: {name!r} cannot be imported: {error}") from error
