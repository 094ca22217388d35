"""Checks of service, route and scorer names on the command line against those in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import click

from germane import sanitize

if TYPE_CHECKING:
    from germane.storage import TrackingStore

MAX_NAMES_SHOWN: Final = 8
_PARAMETERS: Final[Mapping[str, str]] = {
    "service": "service", "route": "route", "scorer": "scorer", "scorers": "scorer",
}  # fmt: skip
"""Kind of name by command parameter."""
MAY_BE_NEW: Final = frozenset({"alerts silence", "baseline import", "mark"})
"""Commands that also accept names without answers. If such a name resembles an existing one, they print a warning,
because it may be a typo or a new service.
"""


def check_names(context: click.Context, store: TrackingStore) -> None:
    """Check each name that was passed to the command, so that a typo is not reported as missing data.

    Raises:
        click.BadParameter: The database has names of this kind, but not this one.
    """
    for parameter in context.command.params:
        kind = _PARAMETERS.get(parameter.name or "")
        given: Any = context.params.get(parameter.name or "")
        if kind is None or not given:
            continue
        for name in (given,) if isinstance(given, str) else given:
            _check_name(context, parameter, name, _known_names(store, kind, name))


def _matches(name: str, known: Iterable[str]) -> bool:
    return any(fnmatchcase(existing, name) or existing == name for existing in known)


def _known_names(store: TrackingStore, kind: str, wanted: str) -> set[str]:
    """Return the names with answers and, unless one matches ``wanted``, those with only scores or markers."""
    names = {str(getattr(coverage, kind)) for coverage in store.trends.coverage()} - {""}
    if not _matches(wanted, names):
        names |= {str(getattr(summary, kind)) for summary in store.trends.summary(histograms=False)}
        names |= {marker.service for marker in store.trends.list_markers()} if kind == "service" else set()
    return names


def _check_name(context: click.Context, parameter: click.Parameter, name: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if not names or _matches(name, names):
        return
    command = context.command_path.partition(" ")[2]
    similar = get_close_matches(name, names, n=1)
    shown = sanitize.line(name, 60)
    if similar:
        hint = f"did you mean {sanitize.line(similar[0], 60)!r}?"
    else:
        more = ", ..." if len(names) > MAX_NAMES_SHOWN else ""
        hint = f"there are {', '.join(sanitize.line(existing, 40) for existing in names[:MAX_NAMES_SHOWN])}{more}"
    message = f"no {_PARAMETERS[str(parameter.name)]} {shown!r} in this database; {hint}"
    if command not in MAY_BE_NEW:
        raise click.BadParameter(message, context, parameter)
    if similar:
        click.echo(f"Warning: {message}", err=True)
