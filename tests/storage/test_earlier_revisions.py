"""A database that an earlier revision's code wrote is read and worked on as if it had always been of this one.

The newest revision's is among them: it shows that the tables are still what they were when it was written.
How these databases were made is told in databases/README.md.
"""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from germane.alert import Change
from germane.alerting.drop import Watch
from germane.score import Score
from germane.settings import Drop
from germane.storage import Advance, Decision, Outcome, Pick, Step, Store
from germane.storage.db.migrate import REVISIONS, VERSION_TABLE
from germane.storage.db.tables import metadata

DATABASES = Path(__file__).parent / "databases"
FILL = runpy.run_path(str(DATABASES / "fill.py"))
LEASE, NOON, SCORERS, read = (FILL[name] for name in ("LEASE", "NOON", "SCORERS", "read"))
EARLIER = sorted(path.stem for path in DATABASES.glob("*.json"))
FLEET = "0004"
"""From this revision on there are more exchanges: some in the pool of a budget, or taken out of it."""
WATCHED = "0005"
"""From this revision on there are rollups, and what watches has its place: alerts, and what is told of them."""
PAGED = "0006"
"""From this revision on jobs are told of, and two answers are being scored again."""
SINCE_WATCHED = pytest.mark.parametrize("revision", [one for one in EARLIER if one >= WATCHED], indirect=True)


class Clock:
    """Shows when the databases were written, and what comes after when it is told to."""

    now = NOON

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that shows the moment at which the databases were written."""
    return Clock()


@pytest.fixture(params=EARLIER)
def revision(request: pytest.FixtureRequest) -> str:
    """A revision of the tables."""
    name: str = request.param
    return name


@pytest.fixture
def earlier(revision: str, database_url: str, postgresql: Any, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """A store on such a database, not migrated yet."""
    kind = database_url.partition(":")[0]
    script = (DATABASES / f"{revision}.{kind}.sql").read_bytes().decode()
    if kind == "sqlite":
        connection = sqlite3.connect(tmp_path / "germane.db")
        connection.executescript(script)
        connection.close()
    else:
        with psycopg.connect(database_url) as line:
            line.execute(script.encode())
    store = Store(database_url, clock=clock)
    yield store
    store.close()


def test_each_earlier_revision_has_its_databases() -> None:
    """So that none can be forgotten; the newest one may still be in the making."""
    assert list(REVISIONS[: len(EARLIER)]) == EARLIER
    assert len(EARLIER) >= max(6, len(REVISIONS) - 1)


def test_everything_reads_the_same(earlier: Store, revision: str) -> None:
    """Exchanges, scores, coverage, means, labels, the pool, what was spent, as the code that wrote them read them."""
    earlier.migrate()
    earlier.check()

    before = ordered(json.loads((DATABASES / f"{revision}.json").read_text()))
    after = ordered(json.loads(json.dumps(read(earlier), default=str)))

    assert {name: within(after[name], before[name]) for name in before} == before
    assert len(before["exchanges"]) == (18 if revision >= FLEET else 12)
    assert len(before["scores"]) >= 8


def ordered(known: dict[str, Any]) -> dict[str, Any]:
    """Return it with scores of one value in an order of their own: that of equal ones was nobody's promise."""
    assert [one["value"] for one in known["scores"]] == sorted(one["value"] for one in known["scores"])
    names = ("value", "exchange_id", "scorer", "fingerprint")
    return known | {"scores": sorted(known["scores"], key=lambda one: [one[name] for name in names])}


def within(now: Any, then: Any) -> Any:
    """Return of what is read now what was known then: later revisions know more."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: within(now[name], then[name]) for name in then if name in now}
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [within(new, old) for new, old in zip(now, then, strict=True)]
    return now


def test_what_was_there_is_rolled_up(earlier: Store) -> None:
    """All its hours are due, and the means are the same before and after."""
    earlier.migrate()
    before, covered = earlier.summary(), earlier.coverage()

    assert earlier.due() > 0
    earlier.roll(trend_by=["model"])

    assert earlier.due() == 0
    assert [(one.route, one.n, round(one.mean, 9)) for one in earlier.summary()] == [
        (one.route, one.n, round(one.mean, 9)) for one in before
    ]
    assert earlier.coverage() == covered
    with earlier._database.read() as connection:
        hours = "SELECT sum(n) FROM rollup WHERE span = 3600 AND dimension = ''"
        assert connection.execute(text(hours)).scalar() == sum(one.n for one in before)
        raw = connection.execute(text("SELECT sum(count) FROM tally WHERE outcome = 'seen'")).scalar()
        hours = "SELECT sum(count) FROM rollup_count WHERE span = 3600 AND dimension = '' AND outcome = 'seen'"
        assert connection.execute(text(hours)).scalar() == raw


def test_the_tables_are_those_of_a_new_database(earlier: Store) -> None:
    """Alembic finds no difference between the classes and what was migrated with rows in it."""
    earlier.migrate()

    with earlier._database.read() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def test_so_are_the_indexes(earlier: Store) -> None:
    """With their conditions, which Alembic does not compare."""
    earlier.migrate()

    with earlier._database.write() as connection:
        migrated = indexes(connection)
        for table in metadata.sorted_tables:
            for index in table.indexes:
                index.drop(connection)
                index.create(connection)
        assert migrated == indexes(connection)


def indexes(connection: Connection) -> dict[str, str]:
    found = [index for table in metadata.tables for index in inspect(connection).get_indexes(table)]
    return {str(index["name"]): str({**index, "dialect_options": conditions(index)}) for index in found}


def conditions(index: Any) -> dict[str, str]:
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


@pytest.mark.parametrize("revision", EARLIER[-1:], indirect=True)
def test_the_last_one_has_something_in_every_column(earlier: Store) -> None:
    """What it has nothing of, no later migration could be seen to lose."""
    with earlier._database.read() as connection:
        tables = set(inspect(connection).get_table_names()) - {VERSION_TABLE}
        columns = {(table, one["name"]) for table in tables for one in inspect(connection).get_columns(table)}
        query = 'SELECT count("{1}") FROM {0}'
        empty = {one for one in columns if not connection.execute(text(query.format(*one))).scalar()}

    assert len(columns) > 200
    assert empty == set()


def test_what_was_left_to_do_is_done(earlier: Store, revision: str, clock: Clock) -> None:
    """What waits is claimed, what runs is left until its lease ends, what is in the pool until it is picked.

    Then everything has its score, and counts hold.
    """
    earlier.migrate()
    at_once = done(earlier, clock)
    clock.now += LEASE + timedelta(minutes=1)
    later = done(earlier, clock)

    again = [2, 4] if revision >= PAGED else []
    assert [number(one) for one in sorted(at_once)] == [*again, 6, 9, 9, *([13, 13, 16] if revision >= FLEET else [])]
    assert [number(one) for one in sorted(later)] == [7, 7, 8, 8]
    earlier.assign([Decision(one.id, 1.0, "drawn") for one in earlier.unsampled(9)], SCORERS)
    assert len(done(earlier, clock)) == 4
    assert picked(earlier) == ([12] if revision >= FLEET else [])
    done(earlier, clock)
    for one in earlier.coverage():
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values())
        assert one.pending == 0


def picked(store: Store) -> list[int]:
    """Pick all that is in the pool; return what was."""
    found = [one.id for one in store.candidates(9)]
    assert store.elect("sampler", "new", ttl=LEASE)
    assert store.pick(Step("sampler", "new", "next"), [Pick(one, 0.5, "uniform") for one in found])
    return [number(one) for one in found]


def number(exchange_id: str) -> int:
    return int(exchange_id, 16) - 1


def done(store: Store, clock: Clock) -> list[str]:
    """Score what can be claimed; return the exchanges."""
    tasks = [task for claim in store.claim("new", SCORERS, limit=99, lease=LEASE) for task in claim.tasks]
    scores = [Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5, scored_at=clock.now) for task in tasks]
    assert store.complete("new", list(zip(tasks, scores, strict=True))) == list(zip(tasks, scores, strict=True))
    return [task.exchange_id for task in tasks]


def test_it_can_be_pruned(earlier: Store, clock: Clock) -> None:
    """Rows that were written before text could be erased are found by their age, and those that have none left are not.

    All of them go later.
    """
    earlier.migrate()
    everything = earlier.exchanges()
    clock.now += LEASE * 2

    assert earlier.prune(texts_before=clock.now).texts == sum(one.question is not None for one in everything)
    with earlier._database.read() as connection:
        left = connection.execute(text("SELECT count(*) FROM exchange WHERE question IS NOT NULL")).scalar()
    assert left == 0
    assert earlier.prune(before=clock.now).exchanges == len(everything)
    assert earlier.exchanges() == []
    assert earlier.marks() == []
    assert all(one.is_open for one in earlier.alerts())


@SINCE_WATCHED
def test_hours_that_were_due_are_rolled_up(earlier: Store) -> None:
    """Those that were never rolled up, and one that had changed since: trends are the same before and after."""
    earlier.migrate()
    before = trends(earlier)

    assert earlier.due() > 3
    earlier.roll()

    assert earlier.due() == 0
    assert len(before) == 44
    assert trends(earlier) == before


def trends(store: Store) -> list[Any]:
    """Return means over time, to as many digits as do not depend on the order of sums."""
    return [one | {"mean": round(one["mean"], 9)} for one in read(store)["trend"]]


@SINCE_WATCHED
def test_detectors_go_on_where_they_were(earlier: Store, clock: Clock) -> None:
    """Scores that had arrived are taken by the detectors in turn, and what fires goes on to."""
    earlier.migrate()
    before = {one.service + one.scorer: one for one in earlier.detectors()}
    assert [(one.service, one.value) for one in earlier.arrivals(9)] == [("caf\u00e9", 0.5)] * 2
    clock.now += LEASE + timedelta(minutes=1)
    office = ("watcher", "new")
    assert earlier.elect(*office, ttl=LEASE)

    open_alerts = {one.key: one for one in earlier.open_alerts()}
    look = Watch(earlier, [Drop()], holder=office, clock=clock).look(open_alerts)
    assert earlier.advance(Advance(holder=office, progress=look.progress, consumed=look.consumed))

    bad = [one for one in look.verdicts if one.state == "bad"]
    assert [(open_alerts[one.key].id, one.labels["service"]) for one in bad] == [("a1", "shop")]
    assert earlier.arrivals(9) == []
    after = {one.service + one.scorer: one for one in earlier.detectors()}
    assert after.keys() == before.keys()
    assert after["shoprelevancy"] == before["shoprelevancy"]
    evidence = [
        (one["caf\u00e9relevancy"].log_evidence, one["caf\u00e9relevancy"].row_version) for one in (before, after)
    ]
    assert evidence[0][0] != evidence[1][0]
    assert [version for _, version in evidence] == [1, 2]


@SINCE_WATCHED
def test_alerts_go_on_where_they_were(earlier: Store) -> None:
    """Of one key none can be open beside another, and what is open is moved on."""
    earlier.migrate()
    known = {one.id: one for one in earlier.alerts()}
    assert {name: one.state for name, one in known.items()} == {
        "a1": "firing", "a2": "resolved", "a3": "recovering", "a4": "pending",
    }  # fmt: skip
    again = replace(known["a3"], id="a5")

    assert not earlier.advance(Advance(changes=[Change(alert=again)]))
    over = [replace(one, state="resolved", resolved_at=NOON) for one in known.values() if one.is_open]
    assert earlier.advance(Advance(changes=[Change(alert=one, before=known[one.id]) for one in over]))
    assert earlier.open_alerts() == []
    assert earlier.advance(Advance(changes=[Change(alert=again)]))
    assert earlier.open_alerts() == [again]


@SINCE_WATCHED
def test_notifications_are_delivered(earlier: Store, clock: Clock) -> None:
    """What is new at once, what failed once its time has come and before what waits behind it, what is being sent
    when its lease has ended, and what is dead when it is asked for.
    """
    earlier.migrate()

    assert delivered(earlier) == ["n6"]
    clock.now += timedelta(seconds=5)
    assert delivered(earlier) == ["n1", "n2"]
    clock.now += LEASE
    assert delivered(earlier) == ["n3"]
    assert earlier.resend() == 1
    assert delivered(earlier) == ["n5"]
    assert {one.status for one in earlier.notifications()} == {"sent"}
    assert earlier.lanes() == []


def delivered(store: Store) -> list[str]:
    """Take and settle all that is due; return the ids."""
    found = []
    for channel in ("oncall", "slack", "hook", "pager", "mail"):
        while (taken := store.take_notification(channel, "new", lease=LEASE)) is not None:
            assert store.settle_notification(taken.id, "new", Outcome()) == "sent"
            found.append(taken.id)
    return found


@pytest.mark.parametrize("revision", [one for one in EARLIER if one >= PAGED], indirect=True)
def test_what_is_scored_again_keeps_its_score_until_then(earlier: Store, clock: Clock) -> None:
    """And has one score afterwards; jobs go with the process that told of them."""
    earlier.migrate()
    assert scored(earlier) == [0.25]
    done(earlier, clock)

    assert scored(earlier) == [0.5, 0.5]
    assert [one.name for one in earlier.jobs()] == ["save", "watch"]
    earlier.dismiss("idle")
    assert earlier.jobs() == []


def scored(store: Store) -> list[float | None]:
    """Return the values of what is, or was, scored again."""
    ids = [f"{one + 1:032x}" for one in (2, 4)]
    found = store.scores_of(ids)
    return [one.value for id_ in ids for one in found.get(id_, ()) if one.scorer == "relevancy"]
