"""User-defined scorers: scoring functions, entry points in the ``germane.scorers`` group, and modules to import."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from germane.daemon_pool import DaemonThreadPool
from germane.errors import SettingsError, UsageError
from germane.exchange import Exchange
from germane.registry import (
    BUILTIN_SCORER_NAMES,
    NameConflict,
    ScorerDeclaration,
    accepts_one_argument,
    build_declaration,
    declaration_of_function,
    declared_name_conflicts,
    qualified_name,
    validate_range,
    validate_requires,
)
from germane.score import Score
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Scorer

ENTRY_POINT_GROUP: Final = "germane.scorers"
SCORER_ATTRIBUTES: Final = ("name", "fingerprint", "requires", "range", "score")
"""The attributes of the :class:`Scorer` protocol."""
THREADS_PER_SCORER: Final = 4
"""Number of exchanges that a synchronous function scores concurrently. If this many calls hang, the scorer is blocked.
"""


class FunctionScorer:
    """A scorer that calls a scoring function with the exchange.

    Synchronous functions run in a small thread pool per scorer, so that they do not delay other scorers. ``async``
    functions run on the event loop.
    """

    def __init__(self, declaration: ScorerDeclaration) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.requires = declaration.requires
        self.range = declaration.range
        function = declaration.function
        # The function of a callable object is its __call__ method.
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )

    def __repr__(self) -> str:
        return f"FunctionScorer({self.name!r}, {self.declaration.origin})"

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the scorer's name, version, qualified function name, range and required inputs.

        The module name is not included, because it differs between a script and a worker that imports the script.
        """
        return fingerprint(
            scorer=self.name,
            version=self.declaration.version,
            parameters={
                "function": qualified_name(self.declaration.function),
                "range": list(self.range),
                "requires": sorted(self.requires),
            },
        )

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the function's result. A :class:`Score` is stored under this scorer's name.

        Raises:
            Exception: any exception that the function raises.
        """
        try:
            call = self._call(exchange) if self._is_async else await self._threads.run(self._call, exchange)
            result = await call if inspect.isawaitable(call) else call
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error}") from error  # SystemExit would end the event loop
        return dataclasses.replace(result, scorer=self.name) if isinstance(result, Score) else result

    async def aclose(self) -> None:
        """Stop the threads, without waiting for calls in progress."""
        if "_threads" in self.__dict__:
            self._threads.close()

    @cached_property
    def _threads(self) -> DaemonThreadPool:
        return DaemonThreadPool(THREADS_PER_SCORER, name=f"germane-{self.name}")

    def _call(self, exchange: Exchange) -> Any:
        try:
            return self.declaration.function(exchange)
        except StopIteration as error:
            raise RuntimeError("StopIteration") from error  # futures cannot hold StopIteration


def plugin_names() -> list[str]:
    """Return the names of all installed entry points, without loading them."""
    return sorted(entry_points(group=ENTRY_POINT_GROUP).names)


def find_name_conflicts() -> list[NameConflict]:
    """Return the user-defined functions and entry points that have the same name as a built-in scorer."""
    plugins = [entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.name in BUILTIN_SCORER_NAMES]
    return [*declared_name_conflicts(), *(NameConflict(entry.name, _describe_package(entry)) for entry in plugins)]


def load_plugin(name: str) -> Scorer | None:
    """Load a scorer from an installed package. Return None if no package has an entry point with this name.

    The entry point refers to a scoring function, a scorer, or a class or function that creates a scorer.

    Raises:
        SettingsError: several packages have a scorer with this name, or the entry point cannot be loaded, does not
            provide a scorer, or provides a scorer with a different name.
    """
    entries = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if not entries:
        return None
    if len({entry.value for entry in entries}) > 1:
        packages = ", ".join(map(_describe_package, entries))
        raise SettingsError(f"setting scorers: several packages have a scorer {name!r}: {packages}")
    what = f"setting scorers: {name!r} from the package {_describe_package(entries[0])}"
    try:
        scorer: Scorer = _make_scorer(entries[0].load(), name)
        defect = scorer_defect(scorer)
    except Exception as error:  # code from other packages may raise any exception
        raise SettingsError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if defect:
        raise SettingsError(f"{what} is not a scorer: {defect}")
    if scorer.name != name:
        raise SettingsError(f"{what} creates a scorer with a different name, {scorer.name!r}")
    return scorer


def scorer_defect(candidate: Any) -> str | None:
    """Return the reason an object does not satisfy the :class:`Scorer` protocol; None if it does."""
    if absent := [name for name in SCORER_ATTRIBUTES if not hasattr(candidate, name)]:
        return f"it has no {', no '.join(absent)}"
    try:
        validate_requires(candidate.requires)
        validate_range(candidate.range)
    except (UsageError, TypeError) as error:
        return str(error)
    return None


def import_modules(names: Iterable[str]) -> None:
    """Import the named modules in order. Exceptions other than ``ImportError`` propagate.

    Raises:
        SettingsError: a module does not exist, or one of its imports fails.
    """
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise SettingsError(
                f"setting imports: invalid module name {name!r}; use a name such as myapp.germane_setup"
            )
        try:
            import_module(name)
        except ImportError as error:
            raise SettingsError(f"setting imports: {name!r} cannot be imported: {error}") from error


def _make_scorer(loaded: Any, name: str) -> Any:
    if not callable(loaded) or (hasattr(loaded, "score") and not inspect.isclass(loaded)):
        return loaded
    if declaration := declaration_of_function(loaded):
        return FunctionScorer(declaration)
    if not inspect.isclass(loaded) and accepts_one_argument(loaded):
        return FunctionScorer(build_declaration(loaded, name=name))
    made = loaded()
    if inspect.iscoroutine(made):
        made.close()
        raise UsageError("a function that creates a scorer cannot be async")
    return made


def _describe_package(entry: EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else '?'} ({entry.value})"
