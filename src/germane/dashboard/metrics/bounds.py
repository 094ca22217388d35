"""How many series there may be: each route, scorer and fingerprint is one for good in the memory of who scrapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from germane.dashboard.metrics.readings import Readings

if TYPE_CHECKING:
    from germane.storage import Coverage, RouteSummary, ServiceSummary

ROUTES: Final = 200
"""Of all services together: those with most exchanges in the longest window."""
SCORERS: Final = 20
"""Those with most exchanges in the longest window."""
LINES: Final = 600
"""Routes of scorers, each with some fifty samples."""
FINGERPRINTS: Final = 2
"""Of one line in one window: the newest, and the one before."""
LONGEST: Final = 500
"""Characters of a name: a longer one is left out, for cut short it might be another's."""
ALERTS: Final = 200
"""Groups of open alerts: those that began first."""
Place = tuple[str, str]
"""Service and route."""
Line = tuple[str, str, str]
"""Service, route and scorer; an empty scorer where exchanges were dropped before one was known."""


Name = TypeVar("Name", bound=tuple[str, ...])
Summary = TypeVar("Summary", "RouteSummary", "ServiceSummary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is shown, and how much is not."""

    lines: frozenset[Line] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many, of routes, of scorers, and of routes of scorers."""

    def hold(self, found: Coverage | RouteSummary) -> bool:
        """Whether it is of a route and a scorer that are shown."""
        return (found.service, found.route, found.scorer) in self.lines

    def routes(self, found: Iterable[RouteSummary]) -> list[RouteSummary]:
        """Return of each service, route and scorer that is shown the newest fingerprints."""
        return _newest(filter(self.hold, found), lambda one: (one.service, one.route, one.scorer))

    def services(self, found: Iterable[ServiceSummary]) -> list[ServiceSummary]:
        """Return of each service and scorer that is shown the newest fingerprints."""
        known = {(service, scorer) for service, _, scorer in self.lines}
        shown = (one for one in found if (one.service, one.scorer) in known)
        return _newest(shown, lambda one: (one.service, one.scorer))


def _newest(found: Iterable[Summary], named: Callable[[Summary], tuple[str, ...]]) -> list[Summary]:
    groups: dict[tuple[str, ...], list[Summary]] = {}
    for one in found:
        groups.setdefault(named(one), []).append(one)
    ordered = (sorted(group, key=lambda one: (one.newest, one.latest), reverse=True) for group in groups.values())
    return [one for group in ordered for one in islice(group, FINGERPRINTS)]


def bounds_of(readings: Readings) -> Bounds:
    """Return what is shown of these readings; equally busy ones go by name, so that the next scrape shows the same."""
    longest = list(readings.windows.values())[-1]
    lines: Counter[Line] = Counter()
    for one in filter(is_told, longest.coverage):
        lines[one.service, one.route, one.scorer] += one.seen
    for mean in longest.routes:  # also where exchanges are not counted
        lines[mean.service, mean.route, mean.scorer] += 0
    places = _most(_sums(lines, lambda line: line[:2]), ROUTES)
    scorers = _most(_sums(lines, lambda line: line[2:]), SCORERS)
    both = Counter({line: lines[line] for line in lines if line[:2] in places[0] and line[2:] in scorers[0]})
    shown = _most(both, LINES)
    out = {"routes": places[1], "scorers": scorers[1], "routes_of_scorers": len(lines) - len(shown[0])}
    return Bounds(lines=shown[0], left_out=out)


def is_told(found: Coverage) -> bool:
    """Whether there is something to tell: a route that was only declared has seen nothing."""
    return bool(found.scorer or found.seen)


def _sums(lines: Mapping[Line, int], named: Callable[[Line], Name]) -> Counter[Name]:
    found: Counter[Name] = Counter()
    for line, seen in lines.items():
        found[named(line)] += seen
    return found


def _most(counts: Mapping[Name, int], limit: int) -> tuple[frozenset[Name], int]:
    """Return the busiest, and how many are left out."""
    short = [name for name in counts if len("".join(name)) <= LONGEST]
    shown = sorted(short, key=lambda name: (-counts[name], name))[:limit]
    return frozenset(shown), len(counts) - len(shown)
