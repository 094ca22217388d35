"""Baselines as they were, and as they become on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from germane.baseline import Baseline
from germane.storage import BaselineVersion, Key, Why

PUT: Final = ("accepted", "imported")
"""Versions that a person put in the place of others."""


class Shelf:
    """Begins with the baselines that were there, and takes what a person has put in their place when its time comes.

    Of a judge for which nothing was there by then, and of routes that join, it is learned on the way.

    Args:
        versions: all that were ever learned.
        since: when it begins.
        clock: tells the time.
    """

    def __init__(self, versions: Sequence[BaselineVersion], since: datetime, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._shelved: dict[int, BaselineVersion] = {}
        self._coming: list[tuple[datetime, BaselineVersion]] = []
        self.made: set[int] = set()
        """Ids of those that were begun on the way."""
        for key in {one.key for one in versions}:
            self._put([one for one in versions if one.key == key], since)
        self._coming.sort(key=lambda coming: coming[0])

    def current(self) -> list[BaselineVersion]:
        """Return what is learned or gone by now."""
        while self._coming and self._coming[0][0] <= self._clock():
            self._replace(self._coming.pop(0)[1])
        found = [one for one in self._shelved.values() if one.status != "superseded"]
        return sorted(found, key=lambda one: (one.key, one.number))

    def gone_by(self) -> list[BaselineVersion]:
        """Return all that was learned or gone by so far, the first first."""
        return sorted(self._shelved.values(), key=lambda one: (one.key, one.number))

    def keep(self, names: tuple[str, str, str]) -> float:
        """Return the largest probability of reaching a detector by the versions that are there; 0 without any."""
        shelved = [*self._shelved.values(), *(one for _, one in self._coming)]
        return max((one.baseline.keep for one in shelved if one.baseline and one.key[:3] == names), default=0.0)

    def begin(self, key: Key, reason: Why, since: datetime, until: datetime) -> BaselineVersion | None:
        """Begin to learn; None where that is under way."""
        mine = [one for one in self._shelved.values() if one.key == key]
        if any(one.status == "learning" for one in mine):
            return None
        made = BaselineVersion(
            id=-1 - len(self.made),
            key=key,
            number=1 + max((one.number for one in mine), default=0),
            status="learning",
            reason=reason,
            since=since,
            until=until,
            baseline=None,
            model=None,
            prompt_version=None,
            created_at=self._clock(),
        )
        self.made.add(made.id)
        self._shelved[made.id] = made
        return made

    def extend(self, version_id: int, until: datetime) -> bool:
        """Go on learning until then."""
        self._shelved[version_id] = replace(self._shelved[version_id], until=until)
        return True

    def give_up(self, version_id: int) -> bool:
        """Learn no more."""
        self._shelved[version_id] = replace(self._shelved[version_id], status="superseded")
        return True

    def freeze(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Go by what was learned."""
        model, prompt_version = release
        learned = replace(self._shelved[version_id], status="active", baseline=found)
        self._replace(replace(learned, model=model, prompt_version=prompt_version))
        return True

    def _put(self, versions: Sequence[BaselineVersion], since: datetime) -> None:
        """Put those of one key where they belong."""
        there = [one for one in versions if one.created_at <= since]
        for one in there:  # the newest last
            if one.baseline is not None and _in_force_from(one) <= since:
                self._replace(replace(one, status="active"))
            elif one.until > since and (one.baseline is not None or one.status == "learning"):
                self._shelved[one.id] = _to_learn(one)
        later = [one for one in versions if one not in there and one.reason in PUT]
        begun = [one for one in there if one.baseline is not None and _in_force_from(one) > since]
        self._coming += [(_in_force_from(one), replace(one, status="active")) for one in begun]
        self._coming += [(one.created_at, self._as_put(one)) for one in later]

    @staticmethod
    def _as_put(one: BaselineVersion) -> BaselineVersion:
        """Return what a person put there: numbers, or the wish to learn anew."""
        return replace(one, status="active") if one.baseline and one.until <= one.created_at else _to_learn(one)

    def _replace(self, newest: BaselineVersion) -> None:
        for one in list(self._shelved.values()):
            if one.key == newest.key and one.id != newest.id:
                self._shelved[one.id] = replace(one, status="superseded")
        self._shelved[newest.id] = newest


def _in_force_from(one: BaselineVersion) -> datetime:
    return max(one.until, one.created_at)


def _to_learn(one: BaselineVersion) -> BaselineVersion:
    return replace(one, status="learning", baseline=None)
