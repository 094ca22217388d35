"""What is still to be decided on and to be scored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from germane.storage.tables import exchange, scoring_task


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTasks:
    """How many tasks of one scorer and fingerprint are not done."""

    scorer: str
    fingerprint: str
    candidates: int = 0
    """In the pool that a budget picks from, when its interval ends."""
    ready: int = 0
    """Free to be claimed."""
    postponed: int = 0
    """Tried in vain, to be claimed later."""
    running: int = 0
    """Claimed by a process, which may be gone."""


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What is left to be done."""

    undecided: int
    """Exchanges that no sampler has looked at."""
    tasks: tuple[OpenTasks, ...]

    def __bool__(self) -> bool:
        return bool(self.undecided or self.tasks)


def outstanding(connection: Connection, now: datetime) -> Outstanding:
    """Return what is left to be done, and of what kind."""
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    return Outstanding(int(connection.execute(undecided).scalar_one()), _open_tasks(connection, now))


def _open_tasks(connection: Connection, now: datetime) -> tuple[OpenTasks, ...]:
    kind = case(
        (scoring_task.c.state == "running", "running"),
        (scoring_task.c.not_before.is_(None), "candidates"),
        (scoring_task.c.not_before <= now, "ready"),
        else_="postponed",
    ).label("kind")
    names = (scoring_task.c.scorer, scoring_task.c.fingerprint)
    query = select(*names, kind, func.count().label("n")).where(scoring_task.c.state.in_(("pending", "running")))
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in connection.execute(query.group_by(*names, kind)):
        found.setdefault((row.scorer, row.fingerprint), {})[row.kind] = int(row.n)
    return tuple(OpenTasks(scorer=key[0], fingerprint=key[1], **kinds) for key, kinds in sorted(found.items()))
