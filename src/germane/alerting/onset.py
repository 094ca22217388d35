"""The onset of a drop: the minute at which scores fell, estimated from the answers around it, with a 95% interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from germane import sanitize, statistics
from germane.alert import Alert
from germane.annotation import Marker
from germane.settings import SCORE_RULES
from germane.storage import Bucket, TrendReader

LOOK_BACK: Final = timedelta(days=14)
"""How far back to search for an onset, from now or from where the detector suspects it."""
MARGIN: Final = timedelta(hours=3)
"""Time before and after the hours in which the onset may lie from which answers are read individually, but at most four
times as long around the estimated hour. If the onset is more uncertain, its minute does not matter."""
UNKNOWN: Final = timedelta(hours=24)
"""Assumed error of an onset without an interval."""
MAX_NAME_LENGTH: Final = 100
"""Names in messages are truncated to this many characters."""
_HOUR, _MINUTE, _DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
_SHARES: Final = {"low_score_rate": "low_share", "noncommittal_rate": "noncommittal_share"}
"""The share that rises when quality falls, by the type of the alert. Other alerts are about means."""


@dataclass(frozen=True, slots=True)
class Onset:
    """The estimated onset of a drop."""

    at: datetime
    """The minute of the first answer at the lower level; UTC."""
    interval: tuple[datetime, datetime] | None = None
    """95% interval: the drop began at or after its start, and before its end. None if it is unknown."""
    deploy: str | None = None
    """On which side of the nearest deploy the drop began; see :func:`find_deploy`."""

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """The interval, or an assumed one."""
        return self.interval or (self.at - UNKNOWN, self.at + UNKNOWN)

    def side_of(self, moment: datetime) -> Literal["before", "after", "undecided"]:
        """Return whether something happened before or after the onset, or may have been either."""
        start, end = self.bounds
        return "before" if moment <= start else "after" if moment >= end else "undecided"


class NearestDeploy(NamedTuple):
    """The deploy that an onset is compared with."""

    name: str | None
    """Name of the marker, or None if the drop began before any recorded deploy. Sanitized."""
    words: str
    """On which side of it the drop began: a clause without punctuation."""


def onset_of(alert: Alert) -> Onset | None:
    """Return an alert's onset, or None if it is unknown."""
    return None if alert.onset is None else Onset(alert.onset, alert.onset_interval)


def estimate_onset(
    trends: TrendReader,
    *,
    scorer: str,
    service: str,
    route: str | None,
    fingerprint: str,
    until: datetime,
    suspected: datetime | None = None,
    alert_type: str = "drop",
    matches_route: Callable[[str], bool] = lambda _: True,
) -> Onset | None:
    """Return the onset of the drop that led to the level at the end of a window, or None if there is no clear drop.

    The window does not depend on what a page shows, so that all pages and messages state the same time. The hour is
    found from rollups, and the minute from the answers around that hour.

    ``suspected`` is where the detector suspects the onset. ``alert_type`` decides whether a mean fell or a share rose.
    """

    def load(start: datetime, end: datetime, bucket: timedelta) -> list[statistics.TimedMean]:
        buckets = trends.over_time(
            scorer=scorer, service=service or None, route=route, by="route" if route is None else None,
            since=start, until=end, bucket=bucket, histograms=False, coverage=False,
        )  # fmt: skip
        return [
            _timed_mean(each, bucket, _SHARES.get(alert_type))
            for each in buckets
            if each.fingerprint == fingerprint and matches_route(route or each.group or "")
        ]

    since, end = min(suspected or until, until) - LOOK_BACK, until
    if end - since > 3 * LOOK_BACK and (day := statistics.find_latest_fall(load(since, until, _DAY))):
        since, end = max(since, day.earliest - LOOK_BACK / 2), min(until, day.latest + LOOK_BACK / 2)
    hours = load(since.replace(minute=0, second=0, microsecond=0), end, _HOUR)
    found = statistics.find_latest_fall(hours)
    if found is None:
        return None
    start = max(found.level_since, found.earliest - MARGIN, found.at - 4 * MARGIN)
    end = min(found.latest + MARGIN, found.at + 4 * MARGIN, end)
    before = [hour for hour in hours if found.level_since <= hour.start < start]
    after = [hour for hour in hours if hour.start >= end]
    found = statistics.find_change([*before, *load(start, end, _MINUTE), *after], falls_only=True) or found
    return Onset(found.at, (found.earliest, min(found.latest, until)))


def add_onset(
    trends: TrendReader, alert: Alert, matches_route: Callable[[str], bool], others: Iterable[Alert] = ()
) -> Alert:
    """Return an alert that fires with the onset of its drop. Without a clear drop, the detector's onset is kept.

    Several rules and scorers may notice one drop. If it may have begun with that of another open alert of its routes,
    both have the same onset.
    """
    if alert.type not in SCORE_RULES or alert.scorer is None or alert.fingerprint is None:
        return alert
    found = estimate_onset(
        trends,
        scorer=alert.scorer,
        service=alert.service,
        route=alert.route,
        fingerprint=alert.fingerprint,
        until=alert.evaluated_at,
        suspected=alert.onset,
        alert_type=alert.type,
        matches_route=matches_route,
    )
    if found is None:
        return alert
    for other in others:
        known, same_routes = other.onset_interval, alert.route == other.route or None in {alert.route, other.route}
        is_comparable = alert.scorer != other.scorer or alert.fingerprint == other.fingerprint
        if alert.service != other.service or not same_routes or not is_comparable or known is None:
            continue
        if known[0] < found.bounds[1] and found.bounds[0] < known[1]:
            return replace(alert, onset=other.onset, onset_interval=known)
    return replace(alert, onset=found.at, onset_interval=found.interval)


def find_deploy(trends: TrendReader, service: str, onset: Onset) -> NearestDeploy | None:
    """Return on which side of the nearest deploy a drop began, or None if no deploy is recorded.

    Deploys are markers of the service. One that may be before or after the onset counts more than earlier ones.
    """
    start, end = onset.bounds
    near = trends.list_markers(service=service, since=start, until=end)
    near = [marker for marker in near if onset.side_of(marker.at) == "undecided"]
    if near:
        nearest = min(near, key=lambda marker: abs(marker.at - onset.at))
        return _compared("whether it began before or after {deploy} cannot be decided", nearest)
    earlier = trends.list_markers(service=service, until=start + timedelta(microseconds=1), limit=1)
    if earlier:
        return _compared(f"it began {format_distance(onset.at - earlier[0].at)} after {{deploy}}", earlier[0])
    later = trends.list_markers(service=service, since=end, limit=1)
    return NearestDeploy(None, "it began before any recorded deploy") if later else None


def format_distance(passed: timedelta) -> str:
    """Return a duration in words, such as "80 minutes", or "just" if it is less than a minute."""
    for unit, noun, limit in ((_MINUTE, "minute", 2 * _HOUR), (_HOUR, "hour", 2 * _DAY), (_DAY, "day", passed + _DAY)):
        if passed < limit:
            return sanitize.count_noun(passed // unit, noun) if passed >= unit else "just"
    return ""


def _compared(words: str, marker: Marker) -> NearestDeploy:
    name = sanitize.line(marker.name, MAX_NAME_LENGTH)
    noun = "" if "deploy" in name.casefold() else "the deploy "
    return NearestDeploy(name, words.format(deploy=f'{noun}"{name}"'))


def _timed_mean(bucket: Bucket, length: timedelta, share_name: str | None) -> statistics.TimedMean:
    end, group, n, mean = bucket.start + length, bucket.group or "", bucket.n, bucket.mean
    if share_name is not None:
        share = getattr(bucket, share_name) or 0.0
        return statistics.TimedMean(bucket.start, end, group, n, 1 - share, n * share * (1 - share))
    squares = (n - 1) * (bucket.deviation or 0.0) ** 2
    answered = 1 - (bucket.noncommittal_share or 0.0)
    if answered <= 0:
        return statistics.TimedMean(bucket.start, end, group, 0, 0.0, refusals=n)
    # Refusals score 0.
    squares = max(0.0, squares + n * mean**2 - n * mean**2 / answered)
    return statistics.TimedMean(bucket.start, end, group, n * answered, mean / answered, squares, n * (1 - answered))
