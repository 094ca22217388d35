"""Two stretches of time beside each other, for people, for JSON, and as an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from germane.cli.commands.mark import as_dict as mark_as_dict
from germane.cli.core.output import harmless, print_table

if TYPE_CHECKING:
    from datetime import datetime

    from germane.annotation import Mark
    from germane.storage import Comparison, Comparisons, Estimate

ENOUGH = 20
"""Fewer scores than this are not enough data to judge by."""
DROPPED = 3
NOT_ENOUGH_DATA = 5
HEADINGS = ("route", "scorer", "before", "after", "difference", "95 % interval", "effect", "")


def code(found: Comparisons) -> int:
    """Return 3 when something dropped for sure, 5 when nothing could be compared, else 0."""
    if found.dropped:
        return DROPPED
    return 0 if found.compared else NOT_ENOUGH_DATA


def show(found: Comparisons, mark: Mark | None) -> None:
    """Print the table, and what it comes to."""
    click.echo(f"\n{title(found, mark)}\n")
    if lines := rows(found):
        print_table(HEADINGS, lines)
        click.echo()
    click.echo("\n".join(verdict(found)))


def title(found: Comparisons, mark: Mark | None) -> str:
    """Say which stretches are beside each other."""
    at = f" (mark {harmless(mark.name, 60)!r})" if mark is not None else ""
    return f"Before: {_stretch(found.before)}; after: {_stretch(found.after)}{at}"


def rows(found: Comparisons) -> list[tuple[str, ...]]:
    """Return the table under :data:`HEADINGS`; the names in it are harmless in a terminal, and nowhere else."""
    return [_row(line, found) for line in (*found.services, *found.routes)]


def _stretch(window: tuple[datetime, datetime]) -> str:
    return " to ".join(f"{moment:%Y-%m-%d %H:%M}" for moment in window) + " UTC"


def _row(line: Comparison, found: Comparisons) -> tuple[str, ...]:
    names = _name(line, found), _scorer(line, found), _side(line.before), _side(line.after)
    if line.difference is None or line.interval is None:
        return *names, "-", "-", "-", _said(line, found)
    effect = "-" if line.effect is None else f"{line.effect:+.2f} {line.effect_name}"
    low, high = map(_signed, line.interval)
    return *names, _signed(line.difference), f"{low} to {high}", effect, _said(line, found)


def _signed(value: float) -> str:
    """Return it with its sign; what is nothing has none of its own."""
    return f"{round(value, 3) + 0.0:+.3f}"


def _name(line: Comparison, found: Comparisons) -> str:
    """Return the route, and its service where there are several; a service says how much of its traffic it is of."""
    several = len({one.service for one in found.routes}) > 1
    service = f" ({harmless(line.service, 40)})" if several else ""
    if line.route is not None:
        return harmless(line.route, 40) + service
    part = "" if line.share is None or line.share > 0.995 else f", {line.share:.0%} of it"
    return f"all routes, by traffic before{part}{service}"


def _scorer(line: Comparison, found: Comparisons) -> str:
    """Return the scorer, and its fingerprint where there are several."""
    several = len({one.fingerprint for one in found.routes if one.scorer == line.scorer}) > 1
    return harmless(line.scorer, 40) + (f" {harmless(line.fingerprint, 40)}" if several else "")


def _side(one: Estimate | None) -> str:
    if one is None:
        return "-"
    return f"{one.mean:.3f} (n={one.n})" if one.enough else f"- (n={one.n})"


def _said(line: Comparison, found: Comparisons) -> str:
    by = f" by more than {found.min_drop:g}" if found.min_drop else ""
    return {
        "dropped": "dropped",
        "lower": f"lower, but not for sure{by}",
        "higher": "higher",
        "unclear": "",
        "not_enough_data": f"not enough data (need {ENOUGH} on both sides)",
        "judge_changed": "the judge changed: not comparable",
    }[line.finding]


def verdict(found: Comparisons) -> Iterator[str]:
    """Say what it comes to, a line for each drop."""
    for line in found.dropped:
        low, high = line.interval or (0.0, 0.0)
        effect = "" if line.effect_name is None else f", a {line.effect_name} effect"
        name = f"{_name(line, found)}, {_scorer(line, found)}"
        yield f"Dropped for sure: {name} by {-(line.difference or 0):.3f} ({-high:.3f} to {-low:.3f}){effect}"
    if not found.compared:
        yield f"Nothing could be compared: nothing has {ENOUGH} scores of the same fingerprint on both sides."
    elif not found.dropped:
        more = f" by more than {found.min_drop:g}" if found.min_drop else ""
        yield f"Nothing dropped for sure{more}."


def as_dict(found: Comparisons, mark: Mark | None) -> dict[str, Any]:
    """Return it ready for JSON."""
    return {
        "mark": None if mark is None else mark_as_dict(mark),
        "before": _window(found.before),
        "after": _window(found.after),
        "min_drop": found.min_drop,
        "compared": found.compared,
        "dropped": bool(found.dropped),
        "services": [_line(line) for line in found.services],
        "routes": [_line(line) for line in found.routes],
    }


def _window(window: tuple[datetime, datetime]) -> Mapping[str, datetime]:
    return {"since": window[0], "until": window[1]}


def _line(line: Comparison) -> dict[str, Any]:
    return {
        "service": line.service,
        "route": line.route,
        "scorer": line.scorer,
        "fingerprint": line.fingerprint,
        "finding": line.finding,
        "difference": line.difference,
        "interval": line.interval,
        "effect": line.effect,
        "effect_name": line.effect_name,
        "share": line.share,
        "before": _estimate(line.before),
        "after": _estimate(line.after),
    }


def _estimate(one: Estimate | None) -> dict[str, Any] | None:
    names = ("n", "enough", "mean", "interval", "deviation", "low_share", "noncommittal_share")
    return None if one is None else {name: getattr(one, name) for name in names}
