"""The last 24 hours of one service and scorer, beside the time before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.insights.baseline_level import baseline_of, frozen
from germane.insights.context import Desk
from germane.insights.defaults import known, scorer_on_show, second_scorer, service_on_show
from germane.insights.situation import DAY, Before
from germane.insights.window import View
from germane.settings import Drop, Settings
from germane.storage import (
    BaselineVersion,
    Comparisons,
    Coverage,
    Overall,
    RouteSummary,
    ServiceSummary,
    comparisons,
)

WEEK: Final = timedelta(days=7)
HOUR: Final = timedelta(hours=1)
LEAST: Final = HOUR
"""A shorter time before is none to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """What is known of the last 24 hours."""

    service: str | None
    """None where there is no exchange."""
    scorer: str | None
    """None where nothing is scored."""
    lately: Overall
    """All services and scorers."""
    wide: Overall
    """The same; where nothing was scored in the last day, the window of the view."""
    before: Before | None = None
    """What it is compared with; None without a score."""
    earlier: Overall | None = None
    """What that says."""

    @property
    def services(self) -> list[str]:
        """Names of all services."""
        return sorted({*(one.service for one in self.wide.services), *(one.service for one in self.wide.coverage)})

    @property
    def scorers(self) -> list[str]:
        """Names of those that scored this service."""
        return sorted({one.scorer for one in self.wide.services if one.service == self.service})

    @property
    def fingerprints(self) -> list[ServiceSummary]:
        """The service as a whole, by fingerprint."""
        return [one for one in self.lately.services if (one.service, one.scorer) == (self.service, self.scorer)]

    @property
    def current(self) -> ServiceSummary | None:
        """The service as a whole, by the newest fingerprint."""
        return next((one for one in self.fingerprints if one.newest), None)

    @property
    def usual(self) -> ServiceSummary | None:
        """The same before."""
        found = () if self.earlier is None or self.current is None else self.earlier.services
        return next((one for one in found if self.current and one.fingerprint == self.current.fingerprint), None)

    @property
    def routes(self) -> list[RouteSummary]:
        """Its routes, by fingerprint."""
        return [one for one in self.lately.routes if (one.service, one.scorer) == (self.service, self.scorer)]

    @property
    def comparisons(self) -> Comparisons | None:
        """The routes beside what they were before."""
        if self.earlier is None:
            return None
        windows = (self.earlier.since, self.earlier.until), (self.lately.since, self.lately.until)
        return comparisons(self.earlier.routes, self.routes, windows)

    @property
    def second(self) -> ServiceSummary | None:
        """What another scorer says of the service."""
        mine = [one for one in self.lately.services if one.service == self.service]
        name = second_scorer(mine, self.scorer)
        return next((one for one in mine if one.scorer == name and one.newest), None)

    @property
    def coverage(self) -> list[Coverage]:
        """What became of the service's exchanges, by route and scorer."""
        return [one for one in self.lately.coverage if one.service == self.service]


def recent_of(desk: Desk, view: View, now: datetime) -> Recent:
    """Read the last day, and what it is compared with: in two snapshots, three where there is no score."""
    lately = wide = desk.store.overall(since=now - DAY, until=now)
    if not lately.services:
        wide = desk.store.overall(since=view.since, until=view.until)
    named: list[ServiceSummary | Coverage] = [*wide.services, *wide.coverage]
    asked = known(view.service, (one.service for one in named))
    service = service_on_show(wide.services, asked) or next((one.service for one in wide.coverage), None)
    asked = known(view.scorer, (one.scorer for one in named if one.service == service))
    scorer = scorer_on_show((one for one in wide.services if one.service == service), asked)
    found = Recent(service=service, scorer=scorer, lately=lately, wide=wide)
    before, earlier = (None, None) if found.current is None else _earlier(desk, view, found.current, now)
    return Recent(service=service, scorer=scorer, lately=lately, wide=wide, before=before, earlier=earlier)


def _earlier(desk: Desk, view: View, current: ServiceSummary, now: datetime) -> tuple[Before | None, Overall | None]:
    """Return the time that the baseline in force was learned from and what it says, else the time before."""
    version = baseline_of(desk.store.baselines(), current.service, current.scorer, current.fingerprint)
    for before in _times(view, version, now):
        names = {"service": current.service, "scorer": current.scorer}
        found = desk.store.overall(since=before.since, until=before.until, **names)
        told = any(one.enough for one in found.services if one.fingerprint == current.fingerprint)
        # The scores of a baseline that was imported are not here, and those of an old one may be deleted by now.
        if before.baseline is None:
            return before, found
        if told and version is not None and version.baseline is not None:
            return before, frozen(found, version.baseline)
    return None, None


def _times(view: View, version: BaselineVersion | None, now: datetime) -> Sequence[Before]:
    """Return the times to compare with, the best first: of whole hours, which are read much faster than parts."""
    until = (now - DAY).replace(minute=0, second=0, microsecond=0)
    usual = Before(since=_up(view.since if view.since <= until - LEAST else now - WEEK), until=until)
    if version is None:
        return [usual]
    learned = Before(since=_up(version.since), until=min(_up(version.until), until), baseline=version.number)
    return [learned, usual] if learned.until - learned.since >= LEAST else [usual]


def _up(moment: datetime) -> datetime:
    """Return the next whole hour."""
    floor = moment.replace(minute=0, second=0, microsecond=0)
    return floor if floor == moment else floor + HOUR


def rule_of(settings: Settings, scorer: str | None) -> Drop | None:
    """Return the rule ``drop`` that is in force for a scorer and looks at all answers."""
    drops = (one for one in settings.watched if isinstance(one, Drop) and not one.attributes)
    return next((one for one in drops if one.scorer in {None, scorer}), None)
