"""Baselines as they are kept: by version, each of numbers that never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.baseline import Baseline, RouteBaseline
from germane.storage.rows import batched
from germane.storage.tables import baseline
from germane.storage.text import clean, tidy

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
