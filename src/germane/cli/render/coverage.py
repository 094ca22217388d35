"""Coverage and backlog as text and JSON: what became of the exchanges that were seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize

if TYPE_CHECKING:
    from germane.storage import Coverage, OutstandingWork

NO_SCORER: Final = "before any scorer was known"
"""In place of a scorer for exchanges dropped by processes that only capture."""


def has_data(coverage: Coverage) -> bool:
    """Return whether anything was seen. Routes that were only declared have no data."""
    return bool(coverage.scorer or coverage.seen)


def coverage_as_dict(coverage: Coverage) -> dict[str, Any]:
    """Return coverage for JSON. The scorer is empty for exchanges dropped before a scorer was known."""
    return {
        "service": coverage.service,
        "route": coverage.route,
        "scorer": coverage.scorer,
        "seen": coverage.seen,
        "scored": coverage.scored,
        "pending": coverage.pending,
        "skipped": dict(coverage.skipped),
        "failed": dict(coverage.failed),
    }


def describe_unscored(coverage: Coverage) -> str:
    """List exchanges without a score by reason, such as "2 skipped (budget), 1 pending"."""
    parts = [
        f"{count} {state} ({reason})"
        for state, reasons in (("skipped", coverage.skipped), ("failed", coverage.failed))
        for reason, count in reasons.items()
        if count
    ]
    return ", ".join([*parts, *([f"{coverage.pending} pending"] if coverage.pending else [])])


def describe_coverage(coverage: Coverage) -> str:
    """Summarize coverage, such as "9 seen, 6 scored, 2 skipped (budget), 1 pending"."""
    return ", ".join(filter(None, (f"{coverage.seen} seen", f"{coverage.scored} scored", describe_unscored(coverage))))


def describe_missing_scores(coverages: Iterable[Coverage], backlog: OutstandingWork) -> list[str]:
    """Return one line per route and scorer with unscored exchanges, then the exchanges waiting to be sampled."""
    lines = [
        f"{sanitize.line(coverage.route, 40)}, {sanitize.line(coverage.scorer, 40) or NO_SCORER}: {unscored}"
        for coverage in coverages
        if (unscored := describe_unscored(coverage))
    ]
    if backlog.undecided:
        lines.append(f"exchanges not yet sampled: {backlog.undecided}")
    return [*lines, *describe_candidates(backlog)]


def describe_candidates(backlog: OutstandingWork) -> list[str]:
    """Return one line per scorer with exchanges that the budget may select."""
    counts: Counter[str] = Counter()
    for tasks in backlog.tasks:
        counts[tasks.scorer] += tasks.candidates
    return [
        f"{sanitize.count_noun(count, 'candidate')} for {sanitize.line(scorer, 40)}: the budget selects some at the "
        "end of the interval"
        for scorer, count in counts.items()
        if count
    ]


def backlog_as_dict(backlog: OutstandingWork) -> dict[str, Any]:
    """Return the current backlog of all routes for JSON."""
    tasks = [
        {
            "scorer": tasks.scorer,
            "fingerprint": tasks.fingerprint,
            "candidates": tasks.candidates,
            "ready": tasks.ready,
            "retrying": tasks.postponed,
            "running": tasks.running,
        }
        for tasks in backlog.tasks
    ]
    return {"unsampled": backlog.undecided, "tasks": tasks}
