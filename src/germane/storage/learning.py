"""The part of a store that a detector learns from, goes by, and leaves its progress in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from germane.baseline import Baseline
from germane.storage import arrivals, baselines, detectors, leases
from germane.storage.arrivals import Arrival, Chosen, Past
from germane.storage.baselines import BaselineVersion, Key, Why
from germane.storage.detectors import Progress
from germane.storage.part import Part

Holder = tuple[str, str]
Release = tuple[str | None, str | None]
Made = TypeVar("Made")


class Learning(Part):
    """Scores on their way to the detectors, what they learned, and how far they have come.

    What begins or puts off takes ``holder``, the office and who must hold it: nothing is written where another process
    does.
    """

    def arrivals(self, limit: int, *, attributes: bool = False) -> list[Arrival]:
        """Return up to ``limit`` scores that no detector has seen, in the order of arrival."""
        with self._database.read() as connection:
            return arrivals.waiting(connection, limit, attributes=attributes)

    def past(self, sought: Past, chosen: Chosen = lambda _: True, *, attributes: bool = False) -> list[Arrival]:
        """Return the scores of a time, of exchanges that are chosen, in the order of their arrival then.

        Of exchanges whose sampling had nothing to do with how good they looked, as for :meth:`arrivals`.
        """
        with self._database.read() as connection:
            return arrivals.past(connection, sought, chosen, attributes=attributes)

    def count_past(self, sought: Past) -> int:
        """Return how many scores :meth:`past` would return."""
        with self._database.read() as connection:
            return arrivals.count_past(connection, sought)

    def earliest(self, sought: Past) -> tuple[datetime, datetime] | None:
        """Return when the first of the answers of :meth:`past` was asked for, and when the first score arrived."""
        with self._database.read() as connection:
            return arrivals.earliest(connection, sought)

    def release_of(self, sought: Past) -> Release:
        """Return model and prompt version of the application, as most answers of that time had them."""
        with self._database.read() as connection:
            return arrivals.release_of(connection, sought)

    def baselines(self, *, superseded: bool = False, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:
        """Return what is learned and gone by, and what is no more where that is asked for; the newest of a key last.

        What is ``known`` from an earlier call is not read again where it is as it was.
        """
        with self._database.read() as connection:
            return baselines.versions(connection) if superseded else baselines.current(connection, known)

    def learning(self) -> list[BaselineVersion]:
        """Return what is being learned of the judges that score now: see ``until``."""
        with self._database.read() as connection:
            current = baselines.versions(connection, baselines.is_current())
            used = {one.baseline_id for one in detectors.detectors(connection)}
        followed = {one.key for one in current if one.id in used}
        known = {(key.service, key.scorer) for key in followed}
        learned = [one for one in current if one.status == "learning"]
        return [one for one in learned if one.key in followed or (one.key.service, one.key.scorer) not in known]

    def detectors(self, known: Sequence[Progress] = ()) -> list[Progress]:
        """Return how far the detectors have come; :meth:`advance` moves them on.

        What is ``known`` from an earlier call is not read again where it has not moved on.
        """
        with self._database.read() as connection:
            return detectors.detectors(connection, known)

    def begin_learning(
        self, key: Key, reason: Why, *, since: datetime, until: datetime, holder: Holder | None = None
    ) -> BaselineVersion | None:
        """Begin to learn a baseline; None where that is under way. What is gone by stays so until it is learned."""
        return self._in_office(holder, lambda held, now: baselines.begin(held, key, reason, since, until, now))

    def extend_learning(self, version_id: int, until: datetime, *, holder: Holder | None = None) -> bool:
        """Go on learning until then; False where it is over by now."""
        return bool(self._in_office(holder, lambda held, _: baselines.extend(held, version_id, until)))

    def give_up_learning(self, version_id: int, *, holder: Holder | None = None) -> bool:
        """Learn no more of what does not come any more; False where it is over by now."""
        return bool(self._in_office(holder, lambda held, _: baselines.give_up(held, version_id)))

    def freeze(self, version_id: int, found: Baseline, release: Release) -> bool:
        """Go by what was learned from now on, in place of older versions; False where learning is over by now."""
        return bool(self._in_office(None, lambda held, _: baselines.freeze(held, version_id, found, release)))

    def supersede(self, key: Key, reason: Why, found: Baseline, release: Release) -> BaselineVersion | None:
        """Go by these numbers in place of older versions; None where somebody else was faster."""
        return self._in_office(None, lambda held, now: baselines.put(held, key, reason, found, release, now))

    def learn_anew(self, key: Key, reason: Why, *, since: datetime, until: datetime) -> BaselineVersion | None:
        """Go by no baseline until a new one is learned; None where somebody else was faster."""
        return self._in_office(None, lambda held, now: baselines.start_over(held, key, reason, since, until, now))

    def _in_office(self, holder: Holder | None, work: Callable[[Connection, datetime], Made]) -> Made | None:
        with self._database.write() as connection:
            if holder is not None and not leases.holds(connection, *holder):
                return None
            return work(connection, self._moment(connection))
