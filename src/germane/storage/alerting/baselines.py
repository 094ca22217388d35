"""The part of a store that a detector learns from, goes by, and leaves its progress in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.baseline import Baseline, RouteBaseline
from germane.storage.cluster import leases
from germane.storage.db.component import Part
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean, tidy
from germane.storage.db.tables import baseline, detector
from germane.storage.queue import detector_inbox as arrivals
from germane.storage.queue.detector_inbox import Arrival, Chosen, Past

Status = Literal["learning", "active", "superseded"]
Why = Literal["first", "judge_changed", "route_joined", "accepted", "imported"]
"""Why a version is there."""
CURRENT: Final = ("learning", "active")


class Key(NamedTuple):
    """What a baseline is of."""

    service: str
    scorer: str
    fingerprint: str
    scope: str = ""
    """Patterns of attributes that its exchanges fit, as JSON with sorted names; empty of all exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineVersion:
    """One version of a baseline."""

    id: int
    key: Key
    number: int
    """From 1 on."""
    status: Status
    reason: Why
    since: datetime
    """UTC: beginning of what it is learned from."""
    until: datetime
    """Its end; while it is learned, when it will be."""
    baseline: Baseline | None
    """None while it is learned."""
    model: str | None
    """Of the application, as most of these answers had it."""
    prompt_version: str | None
    created_at: datetime


def versions(connection: Connection, *conditions: ColumnElement[bool]) -> list[BaselineVersion]:
    """Return versions, those of one key together, the newest of them last."""
    columns = (baseline.c.service, baseline.c.scorer, baseline.c.fingerprint, baseline.c.scope, baseline.c.version)
    return [_version_of(row) for row in connection.execute(select(baseline).where(*conditions).order_by(*columns))]


def current(connection: Connection, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:
    """Return what is learned or gone by; what is ``known`` and is as it was is not read again."""
    before = {(one.id, one.status, one.until): one for one in known}
    query = select(baseline.c.id, baseline.c.status, baseline.c.until).where(is_current())
    there = {(row.id, row.status, row.until) for row in connection.execute(query)}
    new = [place[0] for place in there if place not in before]
    found = [one for place, one in before.items() if place in there]
    for some in batched(new):
        found += versions(connection, baseline.c.id.in_(some))
    return sorted(found, key=lambda one: (one.key, one.number))


def is_current() -> ColumnElement[bool]:
    """Return the condition of what is learned or gone by now."""
    return baseline.c.status.in_(CURRENT)


def is_of(key: Key) -> ColumnElement[bool]:
    """Return the condition of one key's versions."""
    return (
        (baseline.c.service == key.service)
        & (baseline.c.scorer == key.scorer)
        & (baseline.c.fingerprint == key.fingerprint)
        & (baseline.c.scope == key.scope)
    )


def begin(
    connection: Connection, key: Key, reason: Why, since: datetime, until: datetime, now: datetime
) -> BaselineVersion | None:
    """Begin to learn; None where that is under way. What is active stays so until it is learned."""
    if any(one.status == "learning" for one in versions(connection, is_of(key), is_current())):
        return None
    return _insert(connection, key, _to_learn(reason, since, until, now))


def extend(connection: Connection, version_id: int, until: datetime) -> bool:
    """Go on learning until then; False where that is over by now."""
    return _change(connection, version_id, until=until)


def give_up(connection: Connection, version_id: int) -> bool:
    """Learn no more: nothing came that one could learn from; False where it is over by now."""
    return _change(connection, version_id, status="superseded")


def freeze(connection: Connection, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
    """End learning: from now on it is what is normal. False where that is over by now."""
    key = versions(connection, baseline.c.id == version_id)[0].key
    if not _change(connection, version_id, **_numbers(found, release), status="active"):
        return False
    _supersede(connection, key, version_id)
    return True


def put(
    connection: Connection,
    key: Key,
    reason: Why,
    found: Baseline,
    release: tuple[str | None, str | None],
    now: datetime,
) -> BaselineVersion | None:
    """Make numbers that are known the newest version; None where somebody else was faster."""
    window = {"since": found.since, "until": found.until, "created_at": now}
    made = _insert(connection, key, {**_numbers(found, release), **window, "status": "active", "reason": reason})
    if made is not None:
        _supersede(connection, key, made.id)
    return made


def start_over(
    connection: Connection, key: Key, reason: Why, since: datetime, until: datetime, now: datetime
) -> BaselineVersion | None:
    """Learn anew, and go by nothing meanwhile; None where somebody else was faster."""
    made = _insert(connection, key, _to_learn(reason, since, until, now))
    if made is not None:
        _supersede(connection, key, made.id)
    return made


def _to_learn(reason: Why, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    window = {"since": since, "until": until, "n": 0, "numbers": dict[str, Any]()}
    return {"status": "learning", "reason": reason, "created_at": now, **window}


def _supersede(connection: Connection, key: Key, newest: int) -> None:
    older = update(baseline).where(is_of(key), is_current(), baseline.c.id != newest)
    connection.execute(older.values(status="superseded"))


def _change(connection: Connection, version_id: int, **values: Any) -> bool:
    """Change what is being learned."""
    statement = update(baseline).where(baseline.c.id == version_id, baseline.c.status == "learning")
    return connection.execute(statement.values(values)).rowcount == 1


def _insert(connection: Connection, key: Key, values: Mapping[str, Any]) -> BaselineVersion | None:
    query = select(func.coalesce(func.max(baseline.c.version), 0)).where(is_of(key))
    number = int(connection.execute(query).scalar_one()) + 1
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    names = {name: clean(value) for name, value in key._asdict().items()}
    statement = make(baseline).values({**values, **names, "version": number}).on_conflict_do_nothing()
    found = connection.execute(statement.returning(baseline.c.id)).scalar_one_or_none()
    return None if found is None else versions(connection, baseline.c.id == found)[0]


def _numbers(found: Baseline, release: tuple[str | None, str | None]) -> dict[str, Any]:
    numbers = {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "scores_per_day": found.scores_per_day,
        "committed_per_day": found.committed_per_day,
        "keep": found.keep,
        "routes": {name: asdict(route) for name, route in found.routes.items()},
        "pooled": sorted(found.pooled),
    }
    model, prompt_version = release
    sums = {"n": found.n, "mean": found.mean, "deviation": found.deviation}
    return {**sums, "numbers": tidy(numbers), "model": clean(model), "prompt_version": clean(prompt_version)}


def _version_of(row: Row[Any]) -> BaselineVersion:
    key = Key(row.service, row.scorer, row.fingerprint, row.scope)
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


def _baseline_of(row: Row[Any], key: Key) -> Baseline:
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
        keep=numbers["keep"],
        routes={name: RouteBaseline(**route) for name, route in sorted(numbers["routes"].items())},
        pooled=frozenset(numbers["pooled"]),
    )


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
            return versions(connection) if superseded else current(connection, known)

    def learning(self) -> list[BaselineVersion]:
        """Return what is being learned of the judges that score now: see ``until``."""
        with self._database.read() as connection:
            current = versions(connection, is_current())
            used = {one.baseline_id for one in detectors(connection)}
        followed = {one.key for one in current if one.id in used}
        known = {(key.service, key.scorer) for key in followed}
        learned = [one for one in current if one.status == "learning"]
        return [one for one in learned if one.key in followed or (one.key.service, one.key.scorer) not in known]

    def detectors(self, known: Sequence[Progress] = ()) -> list[Progress]:
        """Return how far the detectors have come; :meth:`advance` moves them on.

        What is ``known`` from an earlier call is not read again where it has not moved on.
        """
        with self._database.read() as connection:
            return detectors(connection, known)

    def begin_learning(
        self, key: Key, reason: Why, *, since: datetime, until: datetime, holder: Holder | None = None
    ) -> BaselineVersion | None:
        """Begin to learn a baseline; None where that is under way. What is gone by stays so until it is learned."""
        return self._in_office(holder, lambda held, now: begin(held, key, reason, since, until, now))

    def extend_learning(self, version_id: int, until: datetime, *, holder: Holder | None = None) -> bool:
        """Go on learning until then; False where it is over by now."""
        return bool(self._in_office(holder, lambda held, _: extend(held, version_id, until)))

    def give_up_learning(self, version_id: int, *, holder: Holder | None = None) -> bool:
        """Learn no more of what does not come any more; False where it is over by now."""
        return bool(self._in_office(holder, lambda held, _: give_up(held, version_id)))

    def freeze(self, version_id: int, found: Baseline, release: Release) -> bool:
        """Go by what was learned from now on, in place of older versions; False where learning is over by now."""
        return bool(self._in_office(None, lambda held, _: freeze(held, version_id, found, release)))

    def supersede(self, key: Key, reason: Why, found: Baseline, release: Release) -> BaselineVersion | None:
        """Go by these numbers in place of older versions; None where somebody else was faster."""
        return self._in_office(None, lambda held, now: put(held, key, reason, found, release, now))

    def learn_anew(self, key: Key, reason: Why, *, since: datetime, until: datetime) -> BaselineVersion | None:
        """Go by no baseline until a new one is learned; None where somebody else was faster."""
        return self._in_office(None, lambda held, now: start_over(held, key, reason, since, until, now))

    def _in_office(self, holder: Holder | None, work: Callable[[Connection, datetime], Made]) -> Made | None:
        with self._database.write() as connection:
            if holder is not None and not leases.holds(connection, *holder):
                return None
            return work(connection, self._moment(connection))
