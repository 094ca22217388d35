"""What a visitor looks at: a window of time, a scorer and a service, all of it in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.requests import Request

SPANS: Mapping[str, timedelta] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
"""Windows to choose from."""
USUAL = "7d"
_BUCKETS = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 72, 168))
"""Whole hours, days and weeks are read fastest."""
POINTS = 40
"""A chart has at most so many."""
ZONE_COOKIE = "germane_zone"
YEARS = (1971, 2999)
"""First and last year of a window: beyond them some zone's clock cannot be computed any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One window: since <= started_at < until."""

    span: str
    """A name of SPANS; empty where the ends are given."""
    since: datetime
    until: datetime
    scorer: str | None = None
    service: str | None = None
    zone: ZoneInfo | None = None
    """The visitor's; without one times are shown in that of this machine."""
    query: Mapping[str, str] = field(default_factory=dict)
    """As the address has it."""

    @property
    def bucket(self) -> timedelta:
        """How much time one point of a chart stands for."""
        length = self.until - self.since
        return next((one for one in _BUCKETS if length <= one * POINTS), _BUCKETS[-1])

    def link(self, path: str, **changes: str | None) -> str:
        """Return the address of ``path`` with what is looked at; a change to None takes a part out."""
        parts = {**self.query, **changes}
        query = urlencode({name: value for name, value in parts.items() if value})
        return f"{path}{'&' if '?' in path else '?'}{query}" if query else path

    def local(self, moment: datetime) -> datetime:
        """Return the moment in the visitor's zone."""
        return moment.astimezone(self.zone)


_KEPT = ("window", "since", "until", "scorer", "service")


def view_of(request: Request, now: datetime, usual: str = USUAL) -> View:
    """Return what the address asks for; what cannot be read is taken as not given."""
    asked = request.query_params
    query = {name: asked[name] for name in _KEPT if asked.get(name) and "\0" not in asked[name]}
    span = query.get("window", usual)
    span = span if span in SPANS else usual
    begin, end = _moment(query.get("since")), _moment(query.get("until"))
    until = end or now
    since = begin or until - SPANS[span]
    given = (begin or end) is not None and since < until
    return View(
        span="" if given else span,
        since=since if given else now - SPANS[span],
        until=until if given else now,
        scorer=query.get("scorer"),
        service=query.get("service"),
        zone=_zone(request.cookies.get(ZONE_COOKIE)),
        query=query,
    )


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if found is None or not YEARS[0] <= found.year <= YEARS[1]:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
