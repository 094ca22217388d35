"""What a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from germane.cli.render import baseline, comparison
from germane.cli.render import coverage as covered
from germane.cli.render.comparison import ENOUGH
from germane.sanitize import harmless

if TYPE_CHECKING:
    from germane.annotation import Mark
    from germane.calibration import Calibration
    from germane.storage import BaselineVersion, Comparisons, Coverage, Outstanding, RouteSummary, Store


@dataclass(frozen=True, slots=True)
class Of:
    """What is shown; None for all."""

    service: str | None
    route: str | None

    def holds(self, found: Coverage | RouteSummary) -> bool:
        """Whether it is shown."""
        return self.service in {None, found.service} and self.route in {None, found.route}


@dataclass(frozen=True, slots=True)
class Found:
    """What a report is made of."""

    of: Of
    since: datetime
    summaries: list[RouteSummary]
    coverage: list[Coverage]
    calibrations: list[Calibration]
    left: Outstanding
    learning: list[BaselineVersion]
    now: datetime
    """When it was read."""
    until: datetime
    """The window is since <= time of the answer < until."""
    comparisons: Comparisons | None = None
    """With the time before, where that was asked for."""
    mark: Mark | None = None
    """What was compared since."""


def read(store: Store, since: datetime, of: Of, until: datetime | None = None) -> Found:
    """Read all of it but a comparison."""
    window: dict[str, Any] = {"since": since, "until": until}
    summaries = [found for found in store.summary(**window, histograms=False) if of.holds(found)]
    coverage = [found for found in store.coverage(**window) if of.holds(found) and covered.is_told(found)]
    learning = [found for found in store.learning() if of.service in {None, found.key.service}]
    calibrations, now = _calibrations(store, summaries, since), store.now()
    return Found(of, since, summaries, coverage, calibrations, store.outstanding(), learning, now, until or now)


def window(found: Found) -> str:
    """Return "since 2026-11-19 10:30 UTC", with the end where that is not now."""
    end = "" if found.until == found.now else f" and before {found.until:%Y-%m-%d %H:%M} UTC"
    return f"since {found.since:%Y-%m-%d %H:%M} UTC{end}"


def _calibrations(store: Store, summaries: list[RouteSummary], since: datetime) -> list[Calibration]:
    """Return the floors by which labels of these scorers go now: those of the embedder of the newest scores."""
    floors = {(one.embedder, one.scorer): one for one in store.calibrations()}
    found: dict[str, Calibration] = {}
    for one in summaries if floors else ():
        if one.newest:
            newest = store.worst(scorer=one.scorer, fingerprint=one.fingerprint, since=since, limit=1)
            known = [floors.get((scored.score.embedder or "", one.scorer)) for scored in newest]
            found |= {floor.scorer: floor for floor in known if floor}
    return list(found.values())


def as_dict(found: Found) -> dict[str, Any]:
    """Return it ready for JSON."""
    return {
        "since": found.since,
        "until": found.until,
        "enough": ENOUGH,
        "routes": [_route(one) for one in found.summaries],
        "coverage": [covered.as_dict(one) for one in found.coverage],
        "calibrations": [asdict(one) for one in found.calibrations],
        "waiting": covered.waiting(found.left),
        "learning": baseline.as_dicts(found.learning),
        **({} if found.comparisons is None else {"comparison": comparison.as_dict(found.comparisons, found.mark)}),
    }


def _route(found: RouteSummary) -> dict[str, Any]:
    return {
        "service": found.service,
        "route": found.route,
        "scorer": found.scorer,
        "fingerprint": found.fingerprint,
        "newest": found.newest,
        "n": found.n,
        "enough": found.n >= ENOUGH,
        "mean": found.mean,
        "interval": found.interval,
        "correlation": found.correlation,
        "low_share": found.low_share,
        "noncommittal_share": found.noncommittal_share,
        "coverage": covered.as_dict(found.coverage),
    }


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
