"""Whether the judge explains a drop: its scores of the same answers, the anchors, fell as well."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane.alert import Alert, Cause
from germane.alerting.drop.watcher import is_drop
from germane.alerting.evidence import JUDGE
from germane.storage import AnchorRounds, TrackingStore

if TYPE_CHECKING:
    from germane.statistics import JudgeShift

EARLIER_ROUNDS: Final = 5
"""Number of rounds before the onset whose mean is compared with the rounds since."""
MAX_ROUND_AGE: Final = timedelta(days=3)
"""Time without a round before the onset after which nobody waits for another one, such as if anchors are turned off."""
MIN_SHARE: Final = 0.5
"""Share of the drop that the judge has to explain. The rest would be smaller than what it explains."""


def onset_bounds(alert: Alert) -> tuple[datetime, datetime]:
    """Return the earliest and the latest time at which a drop may have begun."""
    earliest, latest = alert.onset_interval or (alert.onset or alert.starts_at,) * 2
    return earliest, min(latest, alert.fired_at or alert.starts_at)


def check_judge(store: TrackingStore, alert: Alert) -> Alert:
    """Return an open drop alert with the newest comparison, and with the judge as its cause if that explains the drop.

    Other alerts, and those for which the judge is already the cause, do not change.
    """
    if not (is_drop(alert) and alert.is_open and alert.scorer) or alert.cause == "judge_drift":
        return alert
    rounds = store.anchors.load_rounds(alert.scorer)
    if rounds is None or rounds.fingerprint != alert.fingerprint:
        return alert
    newest, (earliest, latest) = rounds.started_at[-1], onset_bounds(alert)
    if newest < latest - MAX_ROUND_AGE:
        return alert
    cause: Cause | None = alert.cause
    found: dict[str, Any] = {}
    if newest > earliest:
        before, start = (sum(at <= end for at in rounds.started_at) for end in (earliest, latest))
        # Comparing each new round alone would sooner or later find a change by chance.
        shift = _compare(rounds, before, min(start, len(rounds.started_at) - 1))
        if shift is not None and alert.baseline is not None and alert.current is not None and shift.interval[1] < 0:
            found = {"size": shift.size, "interval": list(shift.interval)}
            cause = "judge_drift" if -shift.size > MIN_SHARE * (alert.baseline.mean - alert.current.mean) else cause
    # A round from the time in which the drop may have begun can show a change of the judge, but not its absence.
    found["round"] = newest.isoformat() if cause == "judge_drift" or newest > latest else None
    return replace(alert, cause=cause, details={**alert.details, JUDGE: found})


def _compare(rounds: AnchorRounds, before: int, start: int) -> JudgeShift | None:
    """Return how the rounds from ``start`` differ from the last of the ``before`` first ones, or from the baselines."""
    import numpy as np

    from germane.statistics import estimate_shift

    rows = rounds.differences[max(0, before - EARLIER_ROUNDS) : before]
    if not len(rows):
        return estimate_shift(np.zeros(rows.shape[1]), rounds.differences[start:], rounds.baseline_counts)
    counts = (~np.isnan(rows)).sum(axis=0).astype(float)
    means = np.divide(np.nansum(rows, axis=0), counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return estimate_shift(means, rounds.differences[start:], counts)
