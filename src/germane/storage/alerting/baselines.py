"""Versions of baselines, and detector states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.baseline import Baseline, RouteBaseline
from germane.storage.cluster import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean_json, clean_text
from germane.storage.db.tables import baseline, detector
from germane.storage.queue import detector_inbox as arrivals
from germane.storage.queue.detector_inbox import DetectorScore, DetectorScoreQuery, ExchangePredicate

Status = Literal["learning", "active", "superseded"]
BaselineReason = Literal["first", "judge_changed", "route_joined", "accepted", "imported"]
"""Why a version was created."""
CURRENT: Final = ("learning", "active")


class BaselineKey(NamedTuple):
    """The stream of scores that a baseline describes."""

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
    """Starts at 1."""
    status: Status
    reason: BaselineReason
    since: datetime
    """Start of the learning window; UTC."""
    until: datetime
    """End of the learning window; in the future while learning."""
    baseline: Baseline | None
    """None while learning."""
    model: str | None
    """Most common model of the application in the learning window."""
    prompt_version: str | None
    created_at: datetime


def load_versions(connection: Connection, *conditions: ColumnElement[bool]) -> list[BaselineVersion]:
    """Return versions sorted by key, the newest of a key last."""
    columns = (baseline.c.service, baseline.c.scorer, baseline.c.fingerprint, baseline.c.scope, baseline.c.version)
    return [_version_of(row) for row in connection.execute(select(baseline).where(*conditions).order_by(*columns))]


def load_current_versions(connection: Connection, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:
    """Return active and learning baselines. Unchanged versions in ``known`` are not fetched again."""
    before = {(version.id, version.status, version.until): version for version in known}
    query = select(baseline.c.id, baseline.c.status, baseline.c.until).where(is_current())
    there = {(row.id, row.status, row.until) for row in connection.execute(query)}
    new = [place[0] for place in there if place not in before]
    found = [one for place, one in before.items() if place in there]
    for some in batched(new):
        found += load_versions(connection, baseline.c.id.in_(some))
    return sorted(found, key=lambda version: (version.key, version.number))


def is_current() -> ColumnElement[bool]:
    """Return the condition for active and learning versions."""
    return baseline.c.status.in_(CURRENT)


def is_of(key: BaselineKey) -> ColumnElement[bool]:
    """Return the condition for the versions of a key."""
    return (
        (baseline.c.service == key.service)
        & (baseline.c.scorer == key.scorer)
        & (baseline.c.fingerprint == key.fingerprint)
        & (baseline.c.scope == key.scope)
    )


def begin_learning(
    connection: Connection, key: BaselineKey, reason: BaselineReason, since: datetime, until: datetime, now: datetime
) -> BaselineVersion | None:
    """Start learning; return None if a version is being learned. The active version stays active meanwhile."""
    if any(version.status == "learning" for version in load_versions(connection, is_of(key), is_current())):
        return None
    return _insert(connection, key, _to_learn(reason, since, until, now))


def extend_learning(connection: Connection, version_id: int, until: datetime) -> bool:
    """Extend learning; return False if it has ended."""
    return _change(connection, version_id, until=until)


def cancel_learning(connection: Connection, version_id: int) -> bool:
    """Cancel learning because no scores arrive; return False if it has ended."""
    return _change(connection, version_id, status="superseded")


def activate_version(
    connection: Connection, version_id: int, found: Baseline, release: tuple[str | None, str | None]
) -> bool:
    """Finish learning and replace the active version; return False if learning has ended."""
    key = load_versions(connection, baseline.c.id == version_id)[0].key
    if not _change(connection, version_id, **_numbers(found, release), status="active"):
        return False
    _supersede_older(connection, key, version_id)
    return True


def insert_active_version(
    connection: Connection,
    key: BaselineKey,
    reason: BaselineReason,
    found: Baseline,
    release: tuple[str | None, str | None],
    now: datetime,
) -> BaselineVersion | None:
    """Insert a known baseline as the active version; return None if another process wrote first."""
    window = {"since": found.since, "until": found.until, "created_at": now}
    made = _insert(connection, key, {**_numbers(found, release), **window, "status": "active", "reason": reason})
    if made is not None:
        _supersede_older(connection, key, made.id)
    return made


def restart_learning(
    connection: Connection, key: BaselineKey, reason: BaselineReason, since: datetime, until: datetime, now: datetime
) -> BaselineVersion | None:
    """Start learning without an active version; return None if another process wrote first."""
    made = _insert(connection, key, _to_learn(reason, since, until, now))
    if made is not None:
        _supersede_older(connection, key, made.id)
    return made


def _to_learn(reason: BaselineReason, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    window = {"since": since, "until": until, "n": 0, "numbers": dict[str, Any]()}
    return {"status": "learning", "reason": reason, "created_at": now, **window}


def _supersede_older(connection: Connection, key: BaselineKey, newest: int) -> None:
    older = update(baseline).where(is_of(key), is_current(), baseline.c.id != newest)
    connection.execute(older.values(status="superseded"))


def _change(connection: Connection, version_id: int, **values: Any) -> bool:
    """Update a learning version; return False if learning has ended."""
    statement = update(baseline).where(baseline.c.id == version_id, baseline.c.status == "learning")
    return connection.execute(statement.values(values)).rowcount == 1


def _insert(connection: Connection, key: BaselineKey, values: Mapping[str, Any]) -> BaselineVersion | None:
    query = select(func.coalesce(func.max(baseline.c.version), 0)).where(is_of(key))
    number = int(connection.execute(query).scalar_one()) + 1
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    names = {name: clean_text(value) for name, value in key._asdict().items()}
    statement = make(baseline).values({**values, **names, "version": number}).on_conflict_do_nothing()
    found = connection.execute(statement.returning(baseline.c.id)).scalar_one_or_none()
    return None if found is None else load_versions(connection, baseline.c.id == found)[0]


def _numbers(found: Baseline, release: tuple[str | None, str | None]) -> dict[str, Any]:
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


def _version_of(row: Row[Any]) -> BaselineVersion:
    key = BaselineKey(row.service, row.scorer, row.fingerprint, row.scope)
    return BaselineVersion(
        id=row.id,
        key=key,
        number=row.version,
        status=row.status,
        reason=row.reason,
        since=row.since,
        until=row.until,
        baseline=_baseline_of(row, key) if row.numbers else None,
        model=row.model,
        prompt_version=row.prompt_version,
        created_at=row.created_at,
    )


def _baseline_of(row: Row[Any], key: BaselineKey) -> Baseline:
    numbers = row.numbers
    return Baseline(
        service=key.service,
        scorer=key.scorer,
        fingerprint=key.fingerprint,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorState:
    """The state of the detector of one rule, service and scorer.

    Written in one transaction with the alerts that follow from it: see :meth:`AlertStore.commit`.
    """

    rule: str
    service: str
    scorer: str
    parameters: str
    """Hash of the rule's settings. If they change, the detector starts over."""
    baseline_id: int
    """Id of the baseline version in use."""
    state: Mapping[str, Any]
    """JSON. Floats are stored exactly."""
    log_evidence: float | None = None
    """None before the first score."""
    seen_at: datetime | None = None
    """Arrival time of the last processed score; UTC."""
    row_version: int = 0
    """Number of writes at the time of reading; 0 for a new state."""

    def write(self, connection: Connection, now: datetime) -> bool:  # noqa: ARG002 - interface of ConditionalWrite
        """Write the state; return False if another process changed it since it was read."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "row_version": self.row_version + 1
        }
        if not self.row_version:
            make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
            statement = make(detector).values(values).on_conflict_do_nothing().returning(detector.c.rule)
            return connection.execute(statement).first() is not None
        key = (detector.c.rule == self.rule, detector.c.service == self.service, detector.c.scorer == self.scorer)
        moved = update(detector).where(*key, detector.c.row_version == self.row_version).values(values)
        return connection.execute(moved).rowcount == 1


def load_detector_states(connection: Connection, known: Sequence[DetectorState] = ()) -> list[DetectorState]:
    """Return all detector states. Unchanged states in ``known`` are not fetched again."""
    before = {(_key(state), state.row_version): state for state in known}
    there = [(tuple(row[:3]), row.row_version) for row in connection.execute(_VERSIONS)]
    new = [key for key, version in there if (key, version) not in before]
    found: dict[Any, DetectorState] = {}
    for some in batched(new):
        rows = connection.execute(select(detector).where(tuple_(*_NAMES).in_(some))).mappings()
        found |= {_key(state): state for state in (DetectorState(**row) for row in rows)}
    kept = [found.get(key) or before.get((key, version)) for key, version in there]
    return [state for state in kept if state is not None]


_NAMES = (detector.c.rule, detector.c.service, detector.c.scorer)
_VERSIONS = select(*_NAMES, detector.c.row_version).order_by(*_NAMES)


def _key(one: DetectorState) -> tuple[str, str, str]:
    return one.rule, one.service, one.scorer


Holder = tuple[str, str]
"""A lease and its required owner."""
Release = tuple[str | None, str | None]
"""Model and prompt version of the application."""
Made = TypeVar("Made")


class BaselineStore(StoreComponent):
    """Versions of baselines.

    With a ``holder``, methods write nothing if another process holds the lease.
    """

    def list_versions(
        self, *, superseded: bool = False, known: Sequence[BaselineVersion] = ()
    ) -> list[BaselineVersion]:
        """Return active and learning baselines; the newest version of a key last.

        Args:
            superseded: Also return superseded versions.
            known: Result of an earlier call. Unchanged versions are not fetched again.
        """
        with self._database.read() as connection:
            return load_versions(connection) if superseded else load_current_versions(connection, known)

    def list_learning(self) -> list[BaselineVersion]:
        """Return the learning baselines of current judges. Learning ends at ``until``."""
        with self._database.read() as connection:
            current = load_versions(connection, is_current())
            used_ids = {state.baseline_id for state in load_detector_states(connection)}
        followed = {version.key for version in current if version.id in used_ids}
        watched = {(key.service, key.scorer) for key in followed}
        return [
            version
            for version in current
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
        holder: Holder | None = None,
    ) -> BaselineVersion | None:
        """Start to learn a baseline; the active one stays active meanwhile. Return None if one is being learned."""
        return self._write_as(
            holder, lambda connection, now: begin_learning(connection, key, reason, since, until, now)
        )

    def extend_learning(self, version_id: int, until: datetime, *, holder: Holder | None = None) -> bool:
        """Extend learning; return False if it has ended."""
        return bool(self._write_as(holder, lambda connection, _: extend_learning(connection, version_id, until)))

    def cancel_learning(self, version_id: int, *, holder: Holder | None = None) -> bool:
        """Cancel learning, because no scores arrive; return False if it has ended."""
        return bool(self._write_as(holder, lambda connection, _: cancel_learning(connection, version_id)))

    def activate_baseline(self, version_id: int, found: Baseline, release: Release) -> bool:
        """Finish learning and replace the active version; return False if learning has ended."""
        return bool(
            self._write_as(None, lambda connection, _: activate_version(connection, version_id, found, release))
        )

    def replace_baseline(
        self, key: BaselineKey, reason: BaselineReason, found: Baseline, release: Release
    ) -> BaselineVersion | None:
        """Activate a known baseline as the newest version; return None if another process wrote first."""
        return self._write_as(
            None, lambda connection, now: insert_active_version(connection, key, reason, found, release, now)
        )

    def restart_learning(
        self, key: BaselineKey, reason: BaselineReason, *, since: datetime, until: datetime
    ) -> BaselineVersion | None:
        """Discard the active version and learn a new one; return None if another process wrote first."""
        return self._write_as(
            None, lambda connection, now: restart_learning(connection, key, reason, since, until, now)
        )

    def _write_as(self, holder: Holder | None, work: Callable[[Connection, datetime], Made]) -> Made | None:
        with self._database.write() as connection:
            if holder is not None and not leases.lock_lease(connection, *holder):
                return None
            return work(connection, self._context.now(connection))


class DetectorStore(StoreComponent):
    """Scores for the detectors, and the state of the detectors."""

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:
        """Return up to ``limit`` scores that no detector has processed, in order of arrival."""
        with self._database.read() as connection:
            return arrivals.load_new_scores(connection, limit, attributes=attributes)

    def list_past_scores(
        self, sought: DetectorScoreQuery, chosen: ExchangePredicate = lambda _: True, *, attributes: bool = False
    ) -> list[DetectorScore]:
        """Return past scores in order of arrival.

        Like :meth:`list_new_scores`, only scores whose sampling did not depend on how good the answer looked.

        Args:
            sought: Stream and window.
            chosen: Selects exchanges by id.
            attributes: Whether to return the attributes of the exchanges.
        """
        with self._database.read() as connection:
            return arrivals.load_past_scores(connection, sought, chosen, attributes=attributes)

    def count_past_scores(self, sought: DetectorScoreQuery) -> int:
        """Return the number of scores that :meth:`list_past_scores` returns."""
        with self._database.read() as connection:
            return arrivals.count_past_scores(connection, sought)

    def first_score_times(self, sought: DetectorScoreQuery) -> tuple[datetime, datetime] | None:
        """Return the earliest answer time and the earliest arrival time of past scores; None without scores."""
        with self._database.read() as connection:
            return arrivals.first_score_times(connection, sought)

    def most_common_release(self, sought: DetectorScoreQuery) -> Release:
        """Return the model and prompt version of the application that most answers of the window had."""
        with self._database.read() as connection:
            return arrivals.most_common_release(connection, sought)

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:
        """Return the states of all detectors; ``alerts.commit`` writes them.

        Args:
            known: Result of an earlier call. Unchanged states are not fetched again.
        """
        with self._database.read() as connection:
            return load_detector_states(connection, known)
