"""Baselines that people set: accepted levels, and imports from history or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from germane.alerting.detector import ScoreBatch, sampling_rate
from germane.alerting.drop.history import DAY, first_arrival, learn_from_batch, learn_from_store, score_query
from germane.alerting.drop.learner import LEARNING_PERIOD
from germane.baseline import Baseline
from germane.errors import UsageError
from germane.storage import BaselineKey, BaselineVersion, TrackingStore

MIN_BASELINE_SPAN: Final = timedelta(days=3)
"""Scores of a shorter time do not show how days differ from each other."""
ASSUMED_WANDER: Final = 0.01
"""Day-to-day wander of a steady service, used for scores without timestamps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineExample:
    """A score from elsewhere."""

    route: str
    value: float
    zero: bool
    """Whether the answer is noncommittal."""
    at: datetime | None = None


def firing_onset(store: TrackingStore, version: BaselineVersion) -> datetime | None:
    """Return the estimated start of the earliest drop that fires against a baseline, or None."""
    states = [
        progress.state["detector"] for progress in store.detectors.list_states() if progress.baseline_id == version.id
    ]
    onsets = [state["firing"]["onset"] for state in states if state and state["firing"]]
    return datetime.fromtimestamp(min(onsets), UTC) if onsets else None


def accept_baseline(
    store: TrackingStore, version: BaselineVersion, since: datetime, now: datetime
) -> BaselineVersion | None:
    """Accept the scores since a moment as normal and end the drop that fires.

    With less than three days of scores, or too few of them, a new baseline is learned from that moment on. No drop is
    detected until it is complete.

    Returns:
        The new version, or None if another process changed the baseline first.
    """
    since = first_arrival(store, version.key, since, now)
    if now - since >= MIN_BASELINE_SPAN:
        baseline = learn_from_store(store, version.key, since, now)
        if baseline.routes:
            release = store.detectors.most_common_release(score_query(version.key, since, now))
            return store.baselines.replace_baseline(version.key, "accepted", baseline, release)
    until = max(since + LEARNING_PERIOD, now + DAY)
    return store.baselines.restart_learning(version.key, "accepted", since=since, until=until)


def import_baseline_from_history(
    store: TrackingStore, key: BaselineKey, since: datetime, now: datetime
) -> BaselineVersion | None:
    """Set a baseline from stored scores instead of learning it from new ones.

    Raises:
        UsageError: There are too few scores, or they span less than three days.
    """
    since = first_arrival(store, key, since, now)
    baseline = learn_from_store(store, key, since, now)
    _require_routes(baseline)
    if now - since < MIN_BASELINE_SPAN:
        raise UsageError(
            "the scores span less than three days, which does not show how days differ from each other: "
            "wait for more scores, or import a file"
        )
    return store.baselines.replace_baseline(
        key, "imported", baseline, store.detectors.most_common_release(score_query(key, since, now))
    )


def import_baseline_from_examples(
    store: TrackingStore, key: BaselineKey, examples: Sequence[BaselineExample], *, per_day: float | None, now: datetime
) -> BaselineVersion | None:
    """Set a baseline from scores made elsewhere.

    Args:
        store: Where to write the baseline.
        key: What the baseline describes.
        examples: The scores.
        per_day: Scores per day of the service; required if the examples have no timestamps.
        now: Current time, UTC.

    Raises:
        UsageError: There are too few examples, or their rate is unknown.
    """
    baseline = learn_from_examples(key, examples, per_day=per_day, now=now)
    _require_routes(baseline)
    return store.baselines.replace_baseline(key, "imported", baseline, (None, None))


def learn_from_examples(
    key: BaselineKey, examples: Sequence[BaselineExample], *, per_day: float | None, now: datetime
) -> Baseline:
    """Learn a baseline from scores made elsewhere.

    Raises:
        UsageError: Only some examples have timestamps, their timestamps span less than three days, or none has one and
            ``per_day`` is missing.
    """
    dates = [example.at for example in examples if example.at is not None]
    if dates:
        if len(dates) < len(examples):
            raise UsageError(f"{len(examples) - len(dates)} of {len(examples)} rows have no timestamp (at)")
        since, until = min(dates), max(dates) + timedelta(seconds=1)
        times = [date.timestamp() for date in dates]
        if until - since < MIN_BASELINE_SPAN:
            raise UsageError("the rows span less than three days: omit their timestamps and pass the scores per day")
    elif per_day is None:
        raise UsageError("the rows have no timestamps (at): pass the number of scores per day")
    else:
        since, until = now - timedelta(days=len(examples) / per_day), now
        times = np.linspace(since.timestamp(), now.timestamp(), len(examples), endpoint=False).tolist()
    batch = ScoreBatch(
        [example.route for example in examples],
        np.array([example.value for example in examples], dtype=np.float64),
        np.array([example.zero for example in examples], dtype=np.bool_),
        np.array(times, dtype=np.float64),
    )
    rate = sampling_rate(len(examples) / ((until - since) / DAY))
    baseline = learn_from_batch(key, batch, since, until, rate)
    wander: dict[str, Any] = {} if dates else {"committed_wander": ASSUMED_WANDER, "zero_wander": ASSUMED_WANDER}
    routes = {
        name: replace(
            route,
            scores_per_day=rate * route.scores_per_day,
            committed_per_day=rate * route.committed_per_day,
            **wander,
        )
        for name, route in baseline.routes.items()
    }
    # All examples count for the baseline, but the detector will only process a sample.
    return replace(
        baseline,
        scores_per_day=rate * baseline.scores_per_day,
        committed_per_day=rate * baseline.committed_per_day,
        routes=routes,
    )


def _require_routes(baseline: Baseline) -> None:
    if not baseline.routes:
        raise UsageError(f"{baseline.n} scores are too few for a baseline: at least 30 of one route are needed")
