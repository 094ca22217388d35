"""Baselines that are not learned by waiting: accepted, or imported from history or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from germane.alerting.detector import Seen, thinning
from germane.alerting.drop.history import DAY, first_of, learned, learned_from, past_of
from germane.alerting.drop.learner import LEARN_FOR
from germane.baseline import Baseline, RouteBaseline
from germane.errors import UsageError
from germane.storage import BaselineVersion, Key, Store

LEAST_TO_ACCEPT: Final = timedelta(days=3)
"""What began more recently says nothing yet of how one day differs from another: it is learned anew from there on."""
ASSUMED_WANDER: Final = 0.01
"""Of scores without times, which show no day-to-day wander: that of a calm service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A score from elsewhere."""

    route: str
    value: float
    zero: bool
    """Noncommittal."""
    at: datetime | None = None


def onset_of(store: Store, version: BaselineVersion) -> datetime | None:
    """Return when the earliest drop that fires by a baseline is likely to have begun; None where none does."""
    states = [one.state["detector"] for one in store.detectors() if one.baseline_id == version.id]
    onsets = [state["firing"]["onset"] for state in states if state and state["firing"]]
    return datetime.fromtimestamp(min(onsets), UTC) if onsets else None


def accept(store: Store, version: BaselineVersion, since: datetime, now: datetime) -> BaselineVersion | None:
    """Take what came since then for normal, and what fires for over.

    With less than three days of it, or with too few scores, a baseline is learned anew from there on: nothing is
    noticed until then.

    Returns:
        The new version; None where somebody else was faster.
    """
    since = first_of(store, version.key, since, now)
    if now - since >= LEAST_TO_ACCEPT:
        found = learned(store, version.key, since, now)
        if found.routes:
            return store.supersede(version.key, "accepted", found, _release(store, version.key, since, now))
    until = max(since + LEARN_FOR, now + DAY)
    return store.learn_anew(version.key, "accepted", since=since, until=until)


def adopt_history(store: Store, key: Key, since: datetime, now: datetime) -> BaselineVersion | None:
    """Learn from the scores that are stored, instead of waiting for others.

    Raises:
        UsageError: there are too few, or they are of less than three days.
    """
    since = first_of(store, key, since, now)
    found = learned(store, key, since, now)
    _require(found)
    if now - since < LEAST_TO_ACCEPT:
        short = "the scores are of less than three days, which do not show how one day differs from another"
        raise UsageError(f"{short}: wait for more, or import a file")
    return store.supersede(key, "imported", found, _release(store, key, since, now))


def adopt(
    store: Store, key: Key, examples: Sequence[Example], *, per_day: float | None, now: datetime
) -> BaselineVersion | None:
    """Learn from scores of elsewhere.

    Args:
        per_day: scores a day of the service, where the examples do not say when they were made.

    Raises:
        UsageError: there are too few, or nobody says how many a day there are.
    """
    found = learned_from_examples(key, examples, per_day=per_day, now=now)
    _require(found)
    return store.supersede(key, "imported", found, (None, None))


def learned_from_examples(key: Key, examples: Sequence[Example], *, per_day: float | None, now: datetime) -> Baseline:
    """Return what scores of elsewhere say of how a service behaves.

    Raises:
        UsageError: some say when they were made and others do not; or none does, and ``per_day`` is not given.
    """
    moments = [one.at for one in examples if one.at is not None]
    if moments and len(moments) < len(examples):
        raise UsageError(f"{len(examples) - len(moments)} of {len(examples)} rows do not say when they were made")
    since, until, times = _dated(moments) if moments else _spread(len(examples), per_day, now)
    seen = Seen(
        [one.route for one in examples],
        np.array([one.value for one in examples], dtype=np.float64),
        np.array([one.zero for one in examples], dtype=np.bool_),
        np.array(times, dtype=np.float64),
    )
    keep = thinning(len(examples) / ((until - since) / DAY))
    found = learned_from(key, seen, since, until, keep)
    return _changed(found, keep, None if moments else ASSUMED_WANDER)


def _dated(moments: Sequence[datetime]) -> tuple[datetime, datetime, list[float]]:
    since, until = min(moments), max(moments) + timedelta(seconds=1)
    if until - since < LEAST_TO_ACCEPT:
        raise UsageError("the rows are of less than three days: leave their times out and say how many a day there are")
    return since, until, [one.timestamp() for one in moments]


def _spread(count: int, per_day: float | None, now: datetime) -> tuple[datetime, datetime, list[float]]:
    if per_day is None:
        raise UsageError("the rows do not say when they were made (at): say how many scores a day there are")
    since = now - timedelta(days=count / per_day)
    return since, now, np.linspace(since.timestamp(), now.timestamp(), count, endpoint=False).tolist()


def _changed(found: Baseline, keep: float, wander: float | None) -> Baseline:
    """Return a baseline as if its scores had been thinned, and with a wander where the scores show none."""

    def changed(route: RouteBaseline) -> RouteBaseline:
        kept = replace(
            route, scores_per_day=keep * route.scores_per_day, committed_per_day=keep * route.committed_per_day
        )
        return kept if wander is None else replace(kept, committed_wander=wander, zero_wander=wander)

    return replace(
        found,
        scores_per_day=keep * found.scores_per_day,
        committed_per_day=keep * found.committed_per_day,
        routes={name: changed(route) for name, route in found.routes.items()},
    )


def _require(found: Baseline) -> None:
    if not found.routes:
        raise UsageError(f"{found.n} scores are too few to learn a baseline from: it takes 30 of one route")


def _release(store: Store, key: Key, since: datetime, until: datetime) -> tuple[str | None, str | None]:
    return store.release_of(past_of(key, since, until))
