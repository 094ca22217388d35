"""Stored versions of baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select, update

from germane.baseline import Baseline, RouteBaseline
from germane.sanitize import clean_text
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean_json
from germane.storage.db.tables import baseline, detector
from germane.storage.db.upsert import insert_into
from germane.storage.workers import lock_lease

LeaseHolder = tuple[str, str]
"""A lease name and its required owner."""
Release = tuple[str | None, str | None]
"""The application's model and prompt version."""
Status = Literal["learning", "active", "superseded"]
BaselineReason = Literal[
    "first",
    "judge_changed",
    "route_joined",
    "traffic_changed",
    "extended",
    "accepted",
    "imported",
    "provisional",
    "carried_over",
]
"""The reason for creating a version. A provisional version is in use until learning is complete."""


class BaselineKey(NamedTuple):
    """Identifies the stream of scores that a baseline describes."""

    service: str
    scorer: str
    fingerprint: str
    scope: str = ""
    """Attribute patterns that select the exchanges, as JSON with sorted names; empty for all exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineVersion:
    """One version of a baseline."""

    id: int
    key: BaselineKey
    number: int
    """Version number, starting at 1 for each key."""
    status: Status
    reason: BaselineReason
    since: datetime
    """Start of the learning window; UTC."""
    until: datetime
    """End of the learning window; in the future while the baseline is being learned."""
    baseline: Baseline | None
    """None while the baseline is being learned."""
    model: str | None
    """The application's most common model in the learning window."""
    prompt_version: str | None
    created_at: datetime
    accepted_by: str | None = None
    """Name of the person who accepted the version."""
    provisional: Baseline | None = None
    """For a learning version: the provisional baseline in use until learning is complete."""

    @property
    def is_provisional(self) -> bool:
        """Whether the version is in use only until learning is complete."""
        return self.reason == "provisional"


class BaselineStore(StoreComponent):
    """Reads and writes baseline versions.

    Methods that take a ``holder`` write nothing if another process holds that lease.
    """

    def list_versions(
        self, *, superseded: bool = False, known: Sequence[BaselineVersion] = ()
    ) -> list[BaselineVersion]:
        """Return the active and learning versions, sorted by key and version number.

        ``known`` is the result of an earlier call; unchanged versions are not fetched again.
        """
        before = {(version.id, version.status, version.until): version for version in known}
        states = select(baseline.c.id, baseline.c.status, baseline.c.until).where(_IS_CURRENT)
        with self._database.read() as connection:
            if superseded:
                return _load_versions(connection)
            current = {(row.id, row.status, row.until) for row in connection.execute(states)}
            versions = [version for state, version in before.items() if state in current]
            for ids in batched([state[0] for state in current if state not in before]):
                versions += _load_versions(connection, baseline.c.id.in_(ids))
        return _with_provisional(sorted(versions, key=lambda version: (version.key, version.number)))

    def list_learning(self) -> list[BaselineVersion]:
        """Return the versions that are being learned for current judges, each with its provisional baseline, if any.

        Learning ends at the version's ``until``.
        """
        with self._database.read() as connection:
            current = _load_versions(connection, _IS_CURRENT)
            used_ids = set(connection.execute(select(detector.c.baseline_id).order_by(detector.c.rule)).scalars())
        followed = {version.key for version in current if version.id in used_ids}
        watched = {(key.service, key.scorer) for key in followed}
        return [
            version
            for version in _with_provisional(current)
            if version.status == "learning"
            and (version.key in followed or (version.key.service, version.key.scorer) not in watched)
        ]

    def begin_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        holder: LeaseHolder | None = None,
    ) -> BaselineVersion | None:
        """Start learning a baseline. The active version stays active. Return None if learning has already started."""
        with self._database.write() as connection:
            if holder is not None and not lock_lease(connection, *holder):
                return None
            if any(version.status == "learning" for version in _load_versions(connection, _is_of(key), _IS_CURRENT)):
                return None
            return _insert_version(connection, key, _learning(reason, since, until, self._context.now(connection)))

    def extend_learning(self, version_id: int, until: datetime, *, holder: LeaseHolder | None = None) -> bool:
        """Extend learning until a given time. Return False if learning has already ended."""
        with self._database.write() as connection:
            is_leading = holder is None or lock_lease(connection, *holder)
            return is_leading and _update_learning(connection, version_id, until=until)

    def cancel_learning(self, version_id: int, *, holder: LeaseHolder | None = None) -> bool:
        """Cancel learning because no scores are arriving. Return False if learning has already ended."""
        with self._database.write() as connection:
            is_leading = holder is None or lock_lease(connection, *holder)
            return is_leading and _update_learning(connection, version_id, status="superseded")

    def activate_provisional(
        self, learning: BaselineVersion, found: Baseline, release: Release, *, holder: LeaseHolder | None = None
    ) -> BaselineVersion | None:
        """Activate a provisional baseline, and continue learning as the returned version, if any."""
        with self._database.write() as connection:
            if holder is not None and not lock_lease(connection, *holder):
                return None
            window = {"since": found.since, "until": found.until}
            values = {**_numbers(found, release), **window, "status": "active", "reason": "provisional"}
            if not _update_learning(connection, learning.id, **values):
                return None
            now = self._context.now(connection)
            return _insert_version(
                connection, learning.key, _learning(learning.reason, learning.since, learning.until, now)
            )

    def activate_baseline(self, version_id: int, found: Baseline, release: Release) -> bool:
        """Finish learning and replace the active version. Return False if learning has already ended."""
        with self._database.write() as connection:
            key = _load_versions(connection, baseline.c.id == version_id)[0].key
            if not _update_learning(connection, version_id, **_numbers(found, release), status="active"):
                return False
            _supersede_older(connection, key, version_id)
            return True

    def replace_baseline(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        found: Baseline,
        release: Release,
        *,
        replaces: int | None = None,
        by: str | None = None,
    ) -> BaselineVersion | None:
        """Store and activate a baseline as the newest version.

        ``replaces`` is the id of the version that must still be active; None if any version may be replaced. ``by`` is
        the name of the person who accepted the baseline.

        Returns:
            The new version, or None if another process changed the baseline first.
        """
        with self._database.write() as connection:
            window = {"since": found.since, "until": found.until, "created_at": self._context.now(connection)}
            values = {**_numbers(found, release), **window, "status": "active", "reason": reason}
            values["accepted_by"] = clean_text(by) if by else None
            return _supersede(connection, key, values, replaces)

    def restart_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        replaces: int | None = None,
        by: str | None = None,
    ) -> BaselineVersion | None:
        """Supersede the active version and start learning a new one.

        ``replaces`` and the return value are the same as for :meth:`replace_baseline`.
        """
        with self._database.write() as connection:
            values = _learning(reason, since, until, self._context.now(connection))
            values["accepted_by"] = clean_text(by) if by else None
            return _supersede(connection, key, values, replaces)


_IS_CURRENT: Final = baseline.c.status.in_(("learning", "active"))


def _is_of(key: BaselineKey) -> ColumnElement[bool]:
    """Return the SQL condition that selects the versions with this key."""
    return and_(*matching(baseline, **key._asdict()))


def _load_versions(connection: Connection, *conditions: ColumnElement[bool]) -> list[BaselineVersion]:
    """Return the matching versions, sorted by key and version number."""
    columns = (baseline.c.service, baseline.c.scorer, baseline.c.fingerprint, baseline.c.scope, baseline.c.version)
    return [_version_of(row) for row in connection.execute(select(baseline).where(*conditions).order_by(*columns))]


def _with_provisional(versions: Sequence[BaselineVersion]) -> list[BaselineVersion]:
    """Return the versions, with ``provisional`` set on each version that is being learned."""
    provisional = {version.key: version.baseline for version in versions if version.is_provisional}
    return [
        replace(version, provisional=provisional.get(version.key)) if version.status == "learning" else version
        for version in versions
    ]


def _version_of(row: Row[Any]) -> BaselineVersion:
    numbers = row.numbers
    return BaselineVersion(
        id=row.id,
        key=BaselineKey(row.service, row.scorer, row.fingerprint, row.scope),
        number=row.version,
        status=row.status,
        reason=row.reason,
        since=row.since,
        until=row.until,
        baseline=Baseline(
            service=row.service,
            scorer=row.scorer,
            fingerprint=row.fingerprint,
            since=datetime.fromisoformat(numbers["since"]),
            until=datetime.fromisoformat(numbers["until"]),
            n=row.n,
            mean=row.mean,
            deviation=row.deviation,
            scores_per_day=numbers["scores_per_day"],
            committed_per_day=numbers["committed_per_day"],
            sampling_rate=numbers["keep"],
            routes={name: RouteBaseline(**route) for name, route in sorted(numbers["routes"].items())},
            pooled=frozenset(numbers["pooled"]),
        )
        if numbers
        else None,
        model=row.model,
        prompt_version=row.prompt_version,
        accepted_by=row.accepted_by,
        created_at=row.created_at,
    )


def _learning(reason: BaselineReason, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    window = {"since": since, "until": until, "n": 0, "numbers": dict[str, Any]()}
    return {"status": "learning", "reason": reason, "created_at": now, **window}


def _update_learning(connection: Connection, version_id: int, **values: Any) -> bool:
    """Update a version that is being learned. Return False if learning has already ended."""
    statement = update(baseline).where(baseline.c.id == version_id, baseline.c.status == "learning")
    return connection.execute(statement.values(values)).rowcount == 1


def _insert_version(connection: Connection, key: BaselineKey, values: Mapping[str, Any]) -> BaselineVersion | None:
    """Insert a version with the next number. Return None if another process wrote first."""
    query = select(func.coalesce(func.max(baseline.c.version), 0)).where(_is_of(key))
    number = int(connection.execute(query).scalar_one()) + 1
    names = {name: clean_text(value) for name, value in key._asdict().items()}
    statement = (
        insert_into(baseline, connection.dialect.name)
        .values({**values, **names, "version": number})
        .on_conflict_do_nothing()
    )
    version_id = connection.execute(statement.returning(baseline.c.id)).scalar_one_or_none()
    return None if version_id is None else _load_versions(connection, baseline.c.id == version_id)[0]


def _supersede(
    connection: Connection, key: BaselineKey, values: Mapping[str, Any], replaces: int | None
) -> BaselineVersion | None:
    """Insert a version and supersede all others. Return None if another process has changed the baseline."""
    if replaces is not None:
        # The update locks the row: of two processes that replace the same version, the second finds it superseded.
        is_active = (baseline.c.id == replaces) & (baseline.c.status == "active")
        if connection.execute(update(baseline).where(is_active).values(status="active")).rowcount != 1:
            return None
    version = _insert_version(connection, key, values)
    if version is not None:
        _supersede_older(connection, key, version.id)
    return version


def _supersede_older(connection: Connection, key: BaselineKey, newest: int) -> None:
    older = update(baseline).where(_is_of(key), _IS_CURRENT, baseline.c.id != newest)
    connection.execute(older.values(status="superseded"))


def _numbers(found: Baseline, release: Release) -> dict[str, Any]:
    numbers = {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "scores_per_day": found.scores_per_day,
        "committed_per_day": found.committed_per_day,
        "keep": found.sampling_rate,
        "routes": {name: asdict(route) for name, route in found.routes.items()},
        "pooled": sorted(found.pooled),
    }
    model, prompt_version = release
    sums = {"n": found.n, "mean": found.mean, "deviation": found.deviation}
    return {
        **sums,
        "numbers": clean_json(numbers),
        "model": clean_text(model),
        "prompt_version": clean_text(prompt_version),
    }
