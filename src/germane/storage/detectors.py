"""How far detectors have come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.rows import batched
from germane.storage.tables import detector


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the detector of one rule, service and scorer has come.

    It is written together with what follows from it, or not at all: see :meth:`Store.advance`.
    """

    rule: str
    service: str
    scorer: str
    parameters: str
    """Hash of the rule's settings: with others it begins anew."""
    baseline_id: int
    """The version that it goes by."""
    state: Mapping[str, Any]
    """JSON; floats come back as they went."""
    log_evidence: float | None = None
    """None before there is any."""
    seen_at: datetime | None = None
    """Arrival of the last score that it has seen; UTC."""
    row_version: int = 0
    """How often it was written when it was read; 0: never."""

    def write(self, connection: Connection, now: datetime) -> bool:  # noqa: ARG002 - as all that is written with it
        """Write it; False where somebody else has moved it on since it was read."""
        values = {one.name: getattr(self, one.name) for one in fields(self)} | {"row_version": self.row_version + 1}
        if not self.row_version:
            make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
            statement = make(detector).values(values).on_conflict_do_nothing().returning(detector.c.rule)
            return connection.execute(statement).first() is not None
        key = (detector.c.rule == self.rule, detector.c.service == self.service, detector.c.scorer == self.scorer)
        moved = update(detector).where(*key, detector.c.row_version == self.row_version).values(values)
        return connection.execute(moved).rowcount == 1


def detectors(connection: Connection, known: Sequence[Progress] = ()) -> list[Progress]:
    """Return how far all have come; what is ``known`` and has not moved on since is not read again."""
    before = {(_key(one), one.row_version): one for one in known}
    there = [(tuple(row[:3]), row.row_version) for row in connection.execute(_VERSIONS)]
    new = [key for key, version in there if (key, version) not in before]
    found: dict[Any, Progress] = {}
    for some in batched(new):
        rows = connection.execute(select(detector).where(tuple_(*_NAMES).in_(some))).mappings()
        found |= {_key(one): one for one in (Progress(**row) for row in rows)}
    kept = [found.get(key) or before.get((key, version)) for key, version in there]
    return [one for one in kept if one is not None]


_NAMES = (detector.c.rule, detector.c.service, detector.c.scorer)
_VERSIONS = select(*_NAMES, detector.c.row_version).order_by(*_NAMES)


def _key(one: Progress) -> tuple[str, str, str]:
    return one.rule, one.service, one.scorer
