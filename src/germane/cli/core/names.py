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
MAY_BE_NEW: Final = frozenset({"alerts respond", "baseline import", "mark"})
"""Commands that also accept names that have no answers yet. If such a name resembles an existing one, they print a
warning, because it may be a typo.
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
            names = {str(getattr(coverage, kind)) for coverage in store.trends.coverage()} - {""}
            if not _matches(name, names):  # it may have only scores or markers
                names |= {str(getattr(summary, kind)) for summary in store.trends.summary(histograms=False)}
                names |= {marker.service for marker in store.trends.list_markers()} if kind == "service" else set()
            if not names or _matches(name, names):
                continue
            known = sorted(names)
            similar = get_close_matches(name, known, n=1)
            if similar:
                hint = f"did you mean {sanitize.line(similar[0], 60)!r}?"
            else:
                more = ", ..." if len(known) > MAX_NAMES_SHOWN else ""
                hint = f"there are {', '.join(sanitize.line(each, 40) for each in known[:MAX_NAMES_SHOWN])}{more}"
            message = f"no {kind} {sanitize.line(name, 60)!r} in this database; {hint}"
            if context.command_path.partition(" ")[2] not in MAY_BE_NEW:
                raise click.BadParameter(message, context, parameter)
            if similar:
                click.echo(f"Warning: {message}", err=True)


def _matches(name: str, known: Iterable[str]) -> bool:
    return any(fnmatchcase(existing, name) or existing == name for existing in known)
