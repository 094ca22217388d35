"""Result types of trend queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from germane.storage.counts.tally import Coverage
from germane.storage.stats.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Estimate):
    """The scores of one fingerprint in one time bucket."""

    start: datetime
    """UTC, a multiple of the bucket length since 1970."""
    fingerprint: str
    judge_changed: bool = False
    """Whether this bucket is the first one of a fingerprint that replaced another: the judge changed here."""
    group: str | None = None
    """The route, service or label of the scores; None without a breakdown."""
    coverage: Coverage | None = None
    """Coverage of all exchanges of the bucket, across fingerprints; None if not counted: for labels, and for buckets
    that are not a multiple of one minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMean(Estimate):
    """The scores of one service, route, scorer and fingerprint."""

    service: str
    route: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether the latest score of this service, route and scorer has this fingerprint."""
    latest: datetime
    """Time of the latest scored answer; UTC."""
    label: str | None = None
    """Label of the requested dimension; None without a breakdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSummary(RouteMean):
    """A mean with the coverage of the same service, route and scorer."""

    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSummary(Estimate):
    """The scores of one service, scorer and fingerprint over all routes, with the coverage."""

    service: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether the latest score of this service and scorer has this fingerprint."""
    latest: datetime
    """Time of the latest scored answer; UTC."""
    coverage: Coverage
    """Coverage of all routes; its ``route`` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSummary:
    """Means and coverage of one window, read from one snapshot."""

    since: datetime
    """UTC; the window is since <= started_at < until."""
    until: datetime
    routes: Sequence[RouteSummary]
    services: Sequence[ServiceSummary]
    coverage: Sequence[Coverage]
    """Coverage by service, route and scorer, including those without scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageBucket(Coverage):
    """Coverage of one time bucket."""

    start: datetime
    """UTC, a multiple of the bucket length since 1970."""
