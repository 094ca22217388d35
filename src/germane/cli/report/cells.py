"""The table of routes that each report has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from germane.cli.compared import ENOUGH
from germane.shown import harmless

if TYPE_CHECKING:
    from germane.storage import RouteSummary

HEADINGS: Final = ("route", "scorer", "n", "mean", "95 % interval", "low", "refused", "scored of seen")

CORRECTED: Final = (
    "corrected: by a free local score of all answers, which goes with the scores as r says; "
    "the view answers has the mean of the scores alone."
)
"""Said where a mean is."""


def cells(found: RouteSummary, summaries: Sequence[RouteSummary]) -> tuple[str, ...]:
    """Return one row; the names in it are harmless in a terminal, and nowhere else."""
    name, scorer = _name(found, summaries), _scorer(found, summaries)
    seen = f"{found.coverage.scored} of {found.coverage.seen}"
    if found.n < ENOUGH:
        return name, scorer, str(found.n), "-", f"not enough data (n={found.n}, need {ENOUGH})", "-", "-", seen
    interval = "-" if found.interval is None else f"{found.interval[0]:.3f} to {found.interval[1]:.3f}"
    interval += "" if found.correlation is None else f", corrected (r={found.correlation:.2f})"
    shares = f"{found.low_share:.0%}", f"{found.noncommittal_share:.0%}"
    return name, scorer, str(found.n), f"{found.mean:.3f}", interval, *shares, seen


def _name(found: RouteSummary, summaries: Sequence[RouteSummary]) -> str:
    """Return the route, and its service where another service has a route of that name."""
    services = {other.service for other in summaries if other.route == found.route}
    service = f" ({harmless(found.service, 40)})" if len(services) > 1 else ""
    return harmless(found.route, 40) + service


def _scorer(found: RouteSummary, summaries: Sequence[RouteSummary]) -> str:
    """Return the scorer, and its fingerprint where the same route was measured in more than one way."""
    key = (found.service, found.route, found.scorer)
    ways = [other for other in summaries if (other.service, other.route, other.scorer) == key]
    way = f" {harmless(found.fingerprint)}{' (newest)' if found.newest else ''}" if len(ways) > 1 else ""
    return harmless(found.scorer, 40) + way
