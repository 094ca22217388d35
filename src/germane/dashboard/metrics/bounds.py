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
FINGERPRINTS: Final = 4
"""Of one service, route and scorer in one window: the newest."""
LONGEST: Final = 500
"""Characters of a name: a longer one is left out, for cut short it might be another's."""
ALERTS: Final = 200
"""Groups of open alerts: those that began first."""
Place = tuple[str, str]
"""Service and route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is shown, and how much is not."""

    places: frozenset[Place] = frozenset()
    scorers: frozenset[str] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many, of routes and of scorers."""

    def hold(self, found: Coverage | RouteSummary) -> bool:
        """Whether it is of a route and a scorer that are shown; without a scorer an exchange was dropped."""
        return (found.service, found.route) in self.places and (not found.scorer or found.scorer in self.scorers)

    def routes(self, found: Iterable[RouteSummary]) -> list[RouteSummary]:
        """Return of each service, route and scorer that is shown the newest fingerprints."""
        return _newest(filter(self.hold, found), lambda one: (one.service, one.route, one.scorer))

    def services(self, found: Iterable[ServiceSummary]) -> list[ServiceSummary]:
        """Return of each service and scorer that is shown the newest fingerprints."""
        known = {service for service, _ in self.places}
        shown = (one for one in found if one.service in known and one.scorer in self.scorers)
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
    places: Counter[Place] = Counter()
    scorers: Counter[str] = Counter()
    for one in filter(is_told, longest.coverage):
        places[one.service, one.route] += one.seen
        scorers[one.scorer] += one.seen
    scorers.pop("", None)
    shown, known = _most(places, ROUTES), _most(scorers, SCORERS)
    return Bounds(
        places=frozenset(shown),
        scorers=frozenset(known),
        left_out={"routes": len(places) - len(shown), "scorers": len(scorers) - len(known)},
    )


def is_told(found: Coverage) -> bool:
    """Whether there is something to tell: a route that was only declared has seen nothing."""
    return bool(found.scorer or found.seen)


Name = TypeVar("Name", str, Place)
Summary = TypeVar("Summary", "RouteSummary", "ServiceSummary")


def _most(counts: Counter[Name], limit: int) -> list[Name]:
    short = [name for name in counts if len("".join(name)) <= LONGEST]
    return sorted(short, key=lambda name: (-counts[name], name))[:limit]
