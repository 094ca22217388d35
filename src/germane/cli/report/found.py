"""What a report is made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane.cli import compared, covered, learned
from germane.cli.compared import ENOUGH

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
        "learning": learned.as_dicts(found.learning),
        **({} if found.comparisons is None else {"comparison": compared.as_dict(found.comparisons, found.mark)}),
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
