"""In-memory baselines of a backtest: those that were active at the time, and those that the backtest learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from germane.baseline import Baseline
from germane.storage import BaselineKey, BaselineReason, BaselineVersion

SET_BY_PEOPLE: Final = ("accepted", "imported")
"""Reasons of versions that people set."""


class BaselineHistory:
    """Starts with the baselines of the time and follows the changes that people made to them.

    Baselines of fingerprints that had none, and routes that join, are learned during the backtest.

    Args:
        versions: All stored versions, including superseded ones.
        since: Start of the backtest.
        clock: Current time of the backtest.
    """

    def __init__(self, versions: Sequence[BaselineVersion], since: datetime, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._versions: dict[int, BaselineVersion] = {}
        self._upcoming: list[tuple[datetime, BaselineVersion]] = []
        self.learned_ids: set[int] = set()
        """Ids of the versions that the backtest started to learn."""
        for key in {version.key for version in versions}:
            self._add_key([version for version in versions if version.key == key], since)
        self._upcoming.sort(key=lambda upcoming: upcoming[0])

    def list_versions(self, *, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:  # noqa: ARG002 - all in memory
        """Return active and learning baselines."""
        while self._upcoming and self._upcoming[0][0] <= self._clock():
            self._put(self._upcoming.pop(0)[1])
        return [version for version in self.list_all() if version.status != "superseded"]

    def list_all(self) -> list[BaselineVersion]:
        """Return all versions up to now, those of one key together, oldest first."""
        return sorted(self._versions.values(), key=lambda version: (version.key, version.number))

    def max_sampling_rate(self, names: tuple[str, str, str]) -> float:
        """Return the highest sampling rate of a stream's stored baselines; 0 without any."""
        versions = [*self._versions.values(), *(version for _, version in self._upcoming)]
        rates = [
            version.baseline.sampling_rate for version in versions if version.baseline and version.key[:3] == names
        ]
        return max(rates, default=0.0)

    def begin_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        holder: tuple[str, str] | None = None,  # noqa: ARG002 - one process
    ) -> BaselineVersion | None:
        """Start to learn a baseline; None if one is being learned."""
        versions = [version for version in self._versions.values() if version.key == key]
        if any(version.status == "learning" for version in versions):
            return None
        started = BaselineVersion(
            id=-1 - len(self.learned_ids),
            key=key,
            number=1 + max((version.number for version in versions), default=0),
            status="learning",
            reason=reason,
            since=since,
            until=until,
            baseline=None,
            model=None,
            prompt_version=None,
            created_at=self._clock(),
        )
        self.learned_ids.add(started.id)
        self._versions[started.id] = started
        return started

    def extend_learning(self, version_id: int, until: datetime, *, holder: tuple[str, str] | None = None) -> bool:  # noqa: ARG002
        """Extend learning."""
        self._versions[version_id] = replace(self._versions[version_id], until=until)
        return True

    def cancel_learning(self, version_id: int, *, holder: tuple[str, str] | None = None) -> bool:  # noqa: ARG002
        """Cancel learning."""
        self._versions[version_id] = replace(self._versions[version_id], status="superseded")
        return True

    def activate_baseline(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Finish learning and replace the active version."""
        model, prompt_version = release
        learned = replace(self._versions[version_id], status="active", baseline=found)
        self._put(replace(learned, model=model, prompt_version=prompt_version))
        return True

    def _add_key(self, versions: Sequence[BaselineVersion], since: datetime) -> None:
        """Add the versions of one key as they were at ``since``, and queue later changes."""
        existing = [version for version in versions if version.created_at <= since]
        for version in existing:  # newest last
            if version.baseline is not None and _active_from(version) <= since:
                self._put(replace(version, status="active"))
            elif version.until > since and (version.baseline is not None or version.status == "learning"):
                self._versions[version.id] = replace(version, status="learning", baseline=None)
        for version in existing:
            if version.baseline is not None and _active_from(version) > since:
                self._upcoming.append((_active_from(version), replace(version, status="active")))
        for version in versions:
            if version.created_at <= since or version.reason not in SET_BY_PEOPLE:
                continue
            if version.baseline and version.until <= version.created_at:
                self._upcoming.append((version.created_at, replace(version, status="active")))
            else:  # a person restarted learning
                self._upcoming.append((version.created_at, replace(version, status="learning", baseline=None)))

    def _put(self, newest: BaselineVersion) -> None:
        """Add a version that supersedes all others of its key."""
        for version in list(self._versions.values()):
            if version.key == newest.key and version.id != newest.id:
                self._versions[version.id] = replace(version, status="superseded")
        self._versions[newest.id] = newest


def _active_from(version: BaselineVersion) -> datetime:
    return max(version.until, version.created_at)
