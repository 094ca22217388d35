"""How tasks that nobody runs any more come to an end: as skipped, or with the score that stands already."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Update, case, func, update

from germane.score import Reason
from germane.storage.counts.tally import Deltas
from germane.storage.db.tables import scoring_task

_HAS_SCORE = func.coalesce(scoring_task.c.scored_as, "") != ""


def expired(said: str | None) -> Update:
    """Return the statement that ends tasks; one that was only to be scored again is done, with the score it has."""
    return update(scoring_task).values(
        state=case((_HAS_SCORE, "done"), else_=Reason.EXPIRED.state),
        reason=case((_HAS_SCORE, None), else_=Reason.EXPIRED.value),
        error=said,
        scored_as=case((_HAS_SCORE, scoring_task.c.scored_as)),
        not_before=None,
        lease_owner=None,
        lease_until=None,
    )


def count_expired(deltas: Deltas, at: datetime, names: tuple[str, str, str], scored_as: str | None) -> None:
    """Count a task that ends so; ``names`` are service, route and scorer."""
    if scored_as:
        deltas.count(at, names, "scored")
    else:
        deltas.count(at, names, Reason.EXPIRED.state, Reason.EXPIRED.value)
