"""What is read of scores: means over time, by route and by group, beside what was not scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from germane.storage.counts.tally import Coverage
from germane.storage.stats.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Estimate):
    """The scores of one fingerprint whose answers were given within one stretch of time."""

    start: datetime
    """UTC, a whole multiple of the stretch since 1970."""
    fingerprint: str
    begins: bool = False
    """Whether this is the first bucket of a fingerprint that came after another one: the judge changed here."""
    group: str | None = None
    """The route, service or label that these are the scores of; None where they are not broken down."""
    coverage: Coverage | None = None
    """What became of all exchanges of the bucket, whatever the fingerprint; None where it is not counted: of labels,
    and of buckets that are not of whole minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMean(Estimate):
    """The scores of one service, route and fingerprint."""

    service: str
    route: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether it is the fingerprint of the latest answer of this service, route and scorer."""
    latest: datetime
    """When its latest answer was given; UTC."""
    label: str | None = None
    """Of the dimension that was asked for; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSummary(RouteMean):
    """A mean, beside what became of all exchanges of the same service, route and scorer."""

    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSummary(Estimate):
    """The scores of one service and fingerprint over all its routes, beside what became of all exchanges."""

    service: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether it is the fingerprint of the latest answer of this service and scorer."""
    latest: datetime
    """When its latest answer was given; UTC."""
    coverage: Coverage
    """Of all routes; its own route is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """All that one window says, of one moment."""

    since: datetime
    """UTC; the window is since <= started_at < until."""
    until: datetime
    routes: Sequence[RouteSummary]
    services: Sequence[ServiceSummary]
    coverage: Sequence[Coverage]
    """Also of what has no score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageBucket(Coverage):
    """What became of the exchanges of one stretch of time."""

    start: datetime
    """UTC, a whole multiple of the stretch since 1970."""
