"""Scorers of other packages: the entry points of the group ``germane.scorers``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from germane.errors import SettingsError, UsageError
from germane.registry import checked_inputs, checked_range, declaration_of, declare, takes_an_exchange
from germane.scorers.custom import CustomScorer
from germane.scorers.protocols import Scorer

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
