"""Expiring tasks: they end as skipped, or as done if they have a score already."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Update, case, func, update

from germane.score import UnscoredReason
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.tables import scoring_task

_HAS_SCORE = func.coalesce(scoring_task.c.scored_as, "") != ""


def expire_tasks_statement(explanation: str | None) -> Update:
    """Return the statement that expires tasks. A task that was only to be rescored becomes done with its old score."""
    return update(scoring_task).values(
        state=case((_HAS_SCORE, "done"), else_=UnscoredReason.EXPIRED.state),
        reason=case((_HAS_SCORE, None), else_=UnscoredReason.EXPIRED.value),
        error=explanation,
        scored_as=case((_HAS_SCORE, scoring_task.c.scored_as)),
        not_before=None,
        lease_owner=None,
        lease_until=None,
    )


def count_expired(
    tally_changes: TallyChanges, at: datetime, names: tuple[str, str, str], scored_as: str | None
) -> None:
    """Count an expired task; ``names`` are service, route and scorer."""
    if scored_as:
        tally_changes.add(at, names, "scored")
    else:
        tally_changes.add(at, names, UnscoredReason.EXPIRED.state, UnscoredReason.EXPIRED.value)
