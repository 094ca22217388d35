"""The part of a store that a budget's sampler uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from germane.score import Reason
from germane.storage.cluster import leases
from germane.storage.db.component import Part
from germane.storage.queue import candidates as pool
from germane.storage.queue.candidates import Candidate, Pick, Step
from germane.storage.quota import traffic_forecast
from germane.storage.quota.traffic_forecast import HourCount


class Picking(Part):
    """The pool of candidates, which one process at a time draws from: the one that holds the sampler's office.

    What writes is given the step that it is part of. Where another process holds the office by now, it
    writes nothing and returns False.
    """

    def cursor(self, office: str) -> str | None:
        """Return how far the holder of an office has come; None before its first step."""
        with self._database.read() as connection:
            return leases.cursor(connection, office)

    def move(self, step: Step) -> bool:
        """Note how far the holder of an office has come."""
        with self._database.write() as connection:
            return leases.move(connection, step.office, step.owner, step.cursor)

    def candidates(self, limit: int, *, after: Candidate | None = None) -> list[Candidate]:
        """Return up to ``limit`` candidates without their texts, oldest first, beginning behind ``after``."""
        with self._database.read() as connection:
            return pool.candidates(connection, limit, after)

    def pick(self, step: Step, picks: Sequence[Pick]) -> bool:
        """Have candidates scored, and count them as picked; what is no candidate any more stays as it is."""
        with self._database.write() as connection:
            return pool.release(connection, step, picks, self._moment(connection))

    def pass_over(self, step: Step, passed: Mapping[str, float | None], reason: Reason) -> bool:
        """Skip candidates for one reason; ``passed`` has by id how probable it was that each would be picked."""
        with self._database.write() as connection:
            closed = pool.pass_over(connection, self._process, step, passed, reason)
            self._erase_closed(connection, closed or ())
        return closed is not None

    def under_way(self) -> int:
        """Return how many exchanges are to be scored that are not done, those in the pool left out."""
        with self._database.read() as connection:
            return pool.under_way(connection)

    def traffic_by_hour(self, *, since: datetime, until: datetime) -> list[HourCount]:
        """Return what was seen in whole hours, oldest first; empty ones are left out."""
        with self._database.read() as connection:
            return traffic_forecast.by_hour(connection, since, until)
