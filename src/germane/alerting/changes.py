"""What changed in an application around the onset of a problem: markers, and new models and prompt versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from germane import sanitize
from germane.alert import Alert
from germane.alerting.onset import MAX_NAME_LENGTH, find_deploy, format_distance, onset_of
from germane.storage import TrendReader

MARKERS: Final = "markers"
"""Key in an alert's details: names and times of the markers around the onset, such as deploys."""
RELEASE: Final = "release"
"""Key in an alert's details: the models and prompt versions that changed since the baseline, as old and new value."""
RELEASE_TIMES: Final = "release_times"
"""Key in an alert's details: the time of the first answer with each new model and prompt version, if it is known."""
DEPLOY: Final = "deploy"
"""Key in an alert's details: the nearest deploy's name, and on which side of it the problem began, in words."""
NEAR: Final = timedelta(hours=24)
"""Changes up to this long before or after an onset are around that time. With little traffic, it may be hours off."""
MAX_MARKERS: Final = 3
_SEARCHED: Final = timedelta(days=7)
"""How far before an onset to search for the first answer with a new model or prompt version."""
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Change:
    """A change in the application."""

    name: str
    """Such as "index v42" or "prompt version 6 → 7". Sanitized."""
    at: datetime

    def is_near(self, onset: datetime) -> bool:
        """Return whether the change happened close to an onset."""
        return abs(self.at - onset) <= NEAR

    def distance(self, onset: datetime) -> str:
        """Return the time between the change and an onset in words, such as "80 minutes before"."""
        return f"{format_distance(abs(self.at - onset))} {'before' if self.at <= onset else 'after'}"


def around(onset: datetime) -> Callable[[datetime], tuple[bool, timedelta]]:
    """Return a sort key for times around an onset: earlier times first, the latest of them first, then later times."""
    return lambda at: (at > onset, abs(at - onset))


def list_changes(alert: Alert, onset: datetime) -> list[Change]:
    """Return an alert's changes: first those before the onset, latest first, then those after it.

    A model or prompt version without a time is omitted. It was in use all along, and only became the most common one.
    """
    details = alert.details
    times: Mapping[str, str] = details.get(RELEASE_TIMES) or {}
    changes = [
        Change(sanitize.line(marker["name"], MAX_NAME_LENGTH), datetime.fromisoformat(marker["at"]))
        for marker in details.get(MARKERS) or ()
    ]
    for name, (before, after) in (details.get(RELEASE) or {}).items():
        if name in times:
            words = sanitize.line(f"{before or 'none'} \u2192 {after}", MAX_NAME_LENGTH)
            changes.append(Change(f"{name.replace('_', ' ')} {words}", datetime.fromisoformat(times[name])))
    key = around(onset)
    return sorted(changes, key=lambda change: key(change.at))


def find_changes(trends: TrendReader, alert: Alert, onset: datetime, until: datetime | None = None) -> dict[str, Any]:
    """Return the details of an alert that describe what changed.

    Args:
        trends: Markers and scores.
        alert: The alert. Its detail ``release`` names the new model and prompt version.
        onset: The onset of the problem.
        until: In a backtest, the point in time at which data is read.
    """
    details: dict[str, Any] = {}
    end = min(onset + NEAR, until or onset + NEAR)
    markers = trends.list_markers(service=alert.service, since=onset - NEAR, until=end)
    key = around(onset)
    nearest = sorted(markers, key=lambda marker: key(marker.at))[:MAX_MARKERS]
    if nearest:
        details[MARKERS] = [{"name": marker.name, "at": marker.at.isoformat()} for marker in nearest]
    estimated = onset_of(alert)
    deploy = None if estimated is None else find_deploy(trends, alert.service, estimated)
    if deploy is not None:
        details[DEPLOY] = deploy._asdict()
    times = {
        name: began.isoformat()
        for name, (_, after) in (alert.details.get(RELEASE) or {}).items()
        if alert.scorer is not None
        and (began := first_answer_with(trends, name, after, alert.scorer, alert.service, onset - _SEARCHED, end))
    }
    return details | ({RELEASE_TIMES: times} if times else {})


def first_answer_with(
    trends: TrendReader, by: str, label: str, scorer: str, service: str, since: datetime, until: datetime
) -> datetime | None:
    """Return the minute of the first scored answer with a model or prompt version, or None if it is unknown.

    It is unknown if no answer has the label, or if the label was already in use at the start of the window.
    """
    # Whole hours are fast, because most of them are rolled up.
    start, end = since.replace(minute=0, second=0, microsecond=0), until
    for bucket in (_HOUR, _MINUTE):
        buckets = trends.over_time(
            scorer=scorer, service=service, by=by, bucket=bucket, since=start, until=end, histograms=False
        )
        first = min((one.start for one in buckets if one.group == label), default=None)
        if first is None or (bucket is _HOUR and first <= min(one.start for one in buckets)):
            return None
        start, end = first, min(first + _HOUR, until)
    return start
