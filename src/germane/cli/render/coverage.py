"""What became of the exchanges that were seen, in words and in JSON: for the report and the doctor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from germane.cli.core.output import harmless

if TYPE_CHECKING:
    from germane.storage import Coverage, Outstanding

NO_SCORER = "before any scorer was known"


def is_told(found: Coverage) -> bool:
    """Whether there is something to tell; a route that was only declared has seen nothing."""
    return bool(found.scorer or found.seen)


def as_dict(found: Coverage) -> dict[str, Any]:
    """Return it ready for JSON; the scorer is empty for what was dropped before one was known."""
    return {
        "service": found.service,
        "route": found.route,
        "scorer": found.scorer,
        "seen": found.seen,
        "scored": found.scored,
        "pending": found.pending,
        "skipped": dict(found.skipped),
        "failed": dict(found.failed),
    }


def absences(found: Coverage) -> str:
    """Return what has no score, by reason, such as "2 skipped (budget), 1 pending (waiting)"."""
    groups = (("skipped", found.skipped), ("failed", found.failed), ("pending", {"waiting": found.pending}))
    parts = [f"{count} {state} ({reason})" for state, reasons in groups for reason, count in reasons.items() if count]
    return ", ".join(parts)


def line(found: Coverage) -> str:
    """Return one line of the report; empty where nothing is missing."""
    told, scorer = absences(found), harmless(found.scorer, 40) or NO_SCORER
    return f"  {harmless(found.route, 40)}, {scorer}: {told}" if told else ""


def sentence(found: Coverage) -> str:
    """Return all of it in one sentence: "9 seen, 6 scored, 2 skipped (budget), 1 pending (waiting)"."""
    return ", ".join(filter(None, (f"{found.seen} seen", f"{found.scored} scored", absences(found))))


def waiting(left: Outstanding) -> dict[str, Any]:
    """Return what waits now, by scorer and kind, ready for JSON: of all routes, and however old."""
    tasks = [
        {"scorer": one.scorer, "fingerprint": one.fingerprint, "candidates": one.candidates, "ready": one.ready,
         "postponed": one.postponed, "running": one.running}
        for one in left.tasks
    ]  # fmt: skip
    return {"undecided": left.undecided, "tasks": tasks}


def undecided(left: Outstanding) -> Iterable[str]:
    """Say how many exchanges wait for a first look, and how many of each scorer for the end of an interval."""
    if left.undecided:
        yield f"exchanges that no process has looked at yet: {left.undecided}"
    yield from candidates(left)


def candidates(left: Outstanding) -> Iterable[str]:
    """Say how many exchanges of each scorer wait in the pool that a budget picks from."""
    counts: dict[str, int] = {}
    for one in left.tasks:
        counts[one.scorer] = counts.get(one.scorer, 0) + one.candidates
    for scorer, count in counts.items():
        if count:
            yield f"{count} of {harmless(scorer, 40)} are candidates: when their interval ends, the budget picks some"
