"""How exchanges are sampled and kept in fact, whatever the settings of any one process say: by the newest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from germane.storage.tables import exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Exchanges that were decided on for one reason."""

    reason: str
    """Such as drawn, not_drawn, uniform, suspicion, route_floor, always; empty of what nobody has decided on."""
    n: int
    lowest: float | None
    """Probability of being scored; None where nothing was drawn."""
    highest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What the newest exchanges tell."""

    n: int
    """Exchanges that were looked at."""
    since: datetime | None
    """When the oldest of them began; UTC."""
    sampled: Sequence[Sampled]
    """The most common first."""
    without_text: int
    """Of which neither question nor answer was kept."""
    erased: int
    """Of which the text was kept, and has gone."""


def manner(connection: Connection, newest: int) -> Manner:
    """Return how the newest exchanges were sampled and kept."""
    columns = exchange.c
    hidden = columns.question.is_(None) & columns.answer.is_(None) & columns.erased_at.is_(None)
    wanted = (
        columns.started_at,
        func.coalesce(columns.sampling_reason, "").label("reason"),
        columns.sampling_probability.label("probability"),
        case((hidden, 1), else_=0).label("hidden"),
        case((columns.erased_at.is_not(None), 1), else_=0).label("erased"),
    )
    first = select(*wanted).order_by(columns.started_at.desc()).limit(newest).subquery("first").c
    sums = (func.count().label("n"), func.min(first.probability), func.max(first.probability))
    others = (func.min(first.started_at), func.sum(first.hidden), func.sum(first.erased))
    rows = connection.execute(select(first.reason, *sums, *others).group_by(first.reason)).all()
    found = [Sampled(reason=row[0], n=int(row[1]), lowest=row[2], highest=row[3]) for row in rows]
    return Manner(
        n=sum(one.n for one in found),
        since=min((row[4] for row in rows), default=None),
        sampled=sorted(found, key=lambda one: (-one.n, one.reason)),
        without_text=sum(int(row[5]) for row in rows),
        erased=sum(int(row[6]) for row in rows),
    )
