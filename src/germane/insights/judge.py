"""How a judge's scores of the same answers, the anchors, have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from germane import sanitize
from germane.insights.formatting import format_number
from germane.storage import AnchorStatus, ReportedChange, TrackingStore

if TYPE_CHECKING:
    from germane.statistics import JudgeShift

SHOWN_ROUNDS: Final = 10
"""Number of newest rounds that are listed."""
SHOWN_FOR: Final = timedelta(days=14)
"""Time for which pages mention that the judge has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeHistory:
    """The anchors of one scorer, their newest rounds, and the newest change of the judge."""

    status: AnchorStatus
    rounds: Sequence[tuple[datetime, JudgeShift]]
    """The start of each round and its mean difference from the baselines, newest first."""
    change: str
    """The newest change of the judge in a sentence; empty if there was none."""


def load_judge(store: TrackingStore, scorer: str) -> JudgeHistory:
    """Load the history of a scorer that has anchors."""
    import numpy as np

    from germane.statistics import estimate_shift

    found: list[tuple[datetime, JudgeShift]] = []
    rounds = store.anchors.load_rounds(scorer)
    if rounds is not None:
        for at, row in zip(rounds.started_at, rounds.differences, strict=True):
            difference = estimate_shift(np.zeros(len(row)), row, rounds.baseline_counts)
            found += [] if difference is None else [(at, difference)]
    change = store.anchors.load_change(scorer)
    return JudgeHistory(
        status=store.anchors.load_status(scorer),
        rounds=found[: -SHOWN_ROUNDS - 1 : -1],
        change="" if change is None else describe_change(store, scorer, change),
    )


def recent_changes(store: TrackingStore, now: datetime) -> Iterator[str]:
    """Yield a sentence for each scorer whose judge has recently changed."""
    for scorer in store.anchors.list_scorers():
        change = store.anchors.load_change(scorer)
        if change is not None and now - change.at < SHOWN_FOR:
            yield describe_change(store, scorer, change)


def describe_change(store: TrackingStore, scorer: str, change: ReportedChange) -> str:
    """Describe a change of the judge, such as "The new judge scores 0.06 lower (0.03 to 0.09, 50 anchors)."."""
    from germane.statistics import estimate_shift

    pairs = store.anchors.load_pairs(scorer, *change.fingerprints)
    shift = None if pairs is None else estimate_shift(pairs.old, pairs.new, pairs.baseline_counts)
    old, new = (sanitize.line(judge or "unknown", 60) for judge in change.judges)
    models = f"from {old} to {new}" if old != new else f"({new} with another prompt, embedder or parameter)"
    text = f"The judge of {scorer.replace('_', ' ')} changed on {change.at:%Y-%m-%d} {models}"
    if shift is None:
        return f"{text}; it has not scored the anchors yet."
    sign, word = (-1, "lower") if shift.size < 0 else (1, "higher")
    low, high = map(format_number, sorted(sign * end for end in shift.interval))
    return f"{text}. The new judge scores {format_number(abs(shift.size))} {word} ({low} to {high}, {shift.n} anchors)."
