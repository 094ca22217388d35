"""Databases written by earlier revisions are upgraded without losing data.

The newest revision has a sample database too, which shows that the tables have not changed since it was written. See
databases/README.md.
"""

from __future__ import annotations

import json
import runpy
import signal
import sqlite3
import subprocess
import sys
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

from germane.alert import AlertChange
from germane.alerting.drop import DropWatcher
from germane.errors import DatabaseNotMigrated
from germane.score import Score
from germane.settings import Drop
from germane.storage import (
    AlertTransaction,
    DeliveryOutcome,
    SamplerStep,
    SamplingDecision,
    SelectedCandidate,
    TrackingStore,
)
from germane.storage.db.migrate import REVISIONS, VERSION_TABLE
from germane.storage.db.models import metadata
from germane.testing import Clock

DATABASES = Path(__file__).parent / "databases"
FILL = runpy.run_path(str(DATABASES / "fill.py"))
LEASE, NOON, SCORERS, read = (FILL[name] for name in ("LEASE", "NOON", "SCORERS", "read"))
EARLIER = sorted(path.stem for path in DATABASES.glob("*.json"))
WITH_BUDGET = "0004"
"""From this revision on, the databases have candidates and exchanges that the budget has skipped."""
WITH_ALERTS = "0005"
"""From this revision on, the databases have rollups and alerts."""
WITH_RESCORES = "0006"
"""From this revision on, the databases have job runs, and two answers that are being scored again."""
SINCE_ALERTS = pytest.mark.parametrize("revision", [one for one in EARLIER if one >= WITH_ALERTS], indirect=True)

# Names that changed with revision 0007, in the tables and in the code, by the field that contains them.
_REASONS = {"not_drawn": "not_sampled", "capture_limit": "exchange_limit", "drawn": "sampled"}
_RULES = {"floor": "mean_threshold"}
RENAMED_FIELDS = {
    "alert_events": {"what": "type"},
    "alerts": {"kind": "type"},
    "arrivals": {"zero": "is_zero"},
    "baseline": {"keep": "sampling_rate"},
    "candidates": {"draw": "sampling_key"},
    "counts": {"rows": "scores", "unsampled": "undecided"},
    "details": {"carriers": "contributors"},
    "disagreements": {"labelled": "labeled"},
    "exchange": {"draw": "sampling_key"},
    "exchanges": {"draw": "sampling_key"},
    "firing": {"carriers": "contributors"},
    "history": {"text": "content"},
    "lanes": {
        "dead": "undelivered",
        "died_at": "last_undelivered_at",
        "error": "last_undelivered_error",
        "failing": "retry_error",
        "since": "waiting_since",
    },
    "notification": {"what": "type"},
    "open_alerts": {"kind": "type"},
    "sheets": {"works": "tasks"},
    "shifts": {"kind": "dimension"},
    "skipped": _REASONS,
    "skipped_reasons": _REASONS,
    "spending": {"calls": "requests", "picked": "selected"},
    "state": {"lead": "active_fingerprint"},
    "tasks": {"attempts": "claims", "tries": "retries", "since": "waiting_since", "again": "is_rescore"},
    "troubles": {"error": "last_error", "since": "waiting_since", "until": "last_retry_at"},
}
REMOVED_FIELDS = {name: {"evidence"} for name in ("alert", "alerts", "open_alerts")}
RENAMED_VALUES: dict[str, dict[Any, Any]] = {
    "dropped": _REASONS,
    "key": {"580c5e72168fce1d574529d950f3abe6": "17f5a8723dc7786040531aa016b8e47d"},
    "label": {"partly": "partly_relevant"},
    "reason": _REASONS,
    "rule": _RULES,
    "sampling_reason": _REASONS,
    "status": {"dead": "undelivered"},
    "type": _RULES,
    "version": {1: 2},
}


def renamed(value: Any, container: str = "") -> Any:
    """Return the data read by an earlier revision under today's names; ``container`` is the field that contains it."""
    if isinstance(value, dict):
        names = RENAMED_FIELDS.get(container, {})
        new = {names.get(name, name): each for name, each in value.items()}
        kept = new.keys() - REMOVED_FIELDS.get(container, set())
        return {name: renamed(each, name) for name, each in new.items() if name in kept}
    if isinstance(value, list):
        return [renamed(each, container) for each in value]
    return RENAMED_VALUES.get(container, {}).get(value, value)


@pytest.fixture
def clock() -> Clock:
    """A clock that starts when the databases were written."""
    return Clock(NOON)


@pytest.fixture(params=EARLIER)
def revision(request: pytest.FixtureRequest) -> str:
    """A revision of the tables."""
    name: str = request.param
    return name


@pytest.fixture
def earlier(revision: str, database_url: str, postgresql: Any, tmp_path: Path, clock: Clock) -> Iterator[TrackingStore]:
    """A store on a database of that revision, not upgraded yet."""
    kind = database_url.partition(":")[0]
    script = (DATABASES / f"{revision}.{kind}.sql").read_bytes().decode()
    if kind == "sqlite":
        connection = sqlite3.connect(tmp_path / "germane.db")
        connection.executescript(script)
        connection.close()
    else:
        with psycopg.connect(database_url) as line:
            line.execute(script.encode())
    store = TrackingStore(database_url, clock=clock)
    yield store
    store.close()


def test_each_earlier_revision_has_a_sample_database() -> None:
    """Only the newest revision may lack one."""
    assert list(REVISIONS[: len(EARLIER)]) == EARLIER
    assert len(EARLIER) >= max(6, len(REVISIONS) - 1)


@pytest.mark.slow
def test_an_upgraded_database_returns_the_same_data(earlier: TrackingStore, revision: str) -> None:
    """The store returns everything that was returned by the code that wrote the database."""
    earlier.migrate()
    earlier.check()

    before = ordered(renamed(json.loads((DATABASES / f"{revision}.json").read_text())))
    after = ordered(json.loads(json.dumps(read(earlier), default=str)))

    assert {name: within(after[name], before[name]) for name in before} == before
    assert len(before["exchanges"]) == (18 if revision >= WITH_BUDGET else 12)
    assert len(before["scores"]) >= 8


def ordered(known: dict[str, Any]) -> dict[str, Any]:
    """Return the data with scores of equal value in a fixed order, which the store does not guarantee."""
    assert [one["value"] for one in known["scores"]] == sorted(one["value"] for one in known["scores"])
    names = ("value", "exchange_id", "scorer", "fingerprint")
    return known | {"scores": sorted(known["scores"], key=lambda one: [one[name] for name in names])}


def within(now: Any, then: Any) -> Any:
    """Return the part of ``now`` that ``then`` also contains: later revisions return more."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: within(now[name], then[name]) for name in then if name in now}
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [within(new, old) for new, old in zip(now, then, strict=True)]
    return now


KILLED_UPGRADE = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from germane.storage import TrackingStore

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, *_):
    if statement.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

TrackingStore(sys.argv[1]).migrate()
"""


@pytest.mark.slow
@pytest.mark.parametrize("revision", [WITH_RESCORES], indirect=True)
@pytest.mark.parametrize(
    "statement", ["ALTER TABLE rollup_due", "ALTER TABLE exchange", "UPDATE score", "UPDATE germane_version"]
)
def test_a_killed_upgrade_changes_nothing(
    earlier: TrackingStore, revision: str, database_url: str, statement: str
) -> None:
    """The next process upgrades the database without losing data."""
    command = [sys.executable, "-c", KILLED_UPGRADE, database_url, statement]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    with pytest.raises(DatabaseNotMigrated, match=rf"revision {revision}.* older than this version of germane"):
        earlier.check()
    test_an_upgraded_database_returns_the_same_data(earlier, revision)


@pytest.mark.slow
def test_an_upgrade_marks_all_hours_as_dirty(earlier: TrackingStore) -> None:
    """Means and coverage are the same before and after the rollup."""
    earlier.migrate()
    before, covered = earlier.trends.summary(), earlier.trends.coverage()

    assert earlier.rollups.count_dirty_hours() > 0
    earlier.rollups.update(breakdowns=["model"])

    assert earlier.rollups.count_dirty_hours() == 0
    assert [(one.route, one.n, round(one.mean, 9)) for one in earlier.trends.summary()] == [
        (one.route, one.n, round(one.mean, 9)) for one in before
    ]
    assert earlier.trends.coverage() == covered
    with earlier._database.read() as connection:
        hours = "SELECT sum(n) FROM rollup WHERE span = 3600 AND dimension = ''"
        assert connection.execute(text(hours)).scalar() == sum(one.n for one in before)
        raw = connection.execute(text("SELECT sum(count) FROM tally WHERE outcome = 'seen'")).scalar()
        hours = "SELECT sum(count) FROM rollup_count WHERE span = 3600 AND dimension = '' AND outcome = 'seen'"
        assert connection.execute(text(hours)).scalar() == raw


@pytest.mark.slow
def test_tables_of_an_upgraded_database_match_the_models(earlier: TrackingStore) -> None:
    """Alembic finds no difference after an upgrade of tables with rows."""
    earlier.migrate()

    with earlier._database.read() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


@pytest.mark.slow
def test_indexes_of_an_upgraded_database_match_the_models(earlier: TrackingStore) -> None:
    """The comparison includes the indexes' conditions, which Alembic does not compare."""
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


@pytest.mark.parametrize("revision", [WITH_RESCORES], indirect=True)
def test_the_newest_sample_database_has_a_value_in_every_column(earlier: TrackingStore) -> None:
    """Otherwise, a later migration could lose the column's values unnoticed."""
    with earlier._database.read() as connection:
        tables = set(inspect(connection).get_table_names()) - {VERSION_TABLE}
        columns = {(table, one["name"]) for table in tables for one in inspect(connection).get_columns(table)}
        query = 'SELECT count("{1}") FROM {0}'
        empty = {one for one in columns if not connection.execute(text(query.format(*one))).scalar()}

    assert len(columns) > 200
    assert empty == set()


@pytest.mark.slow
def test_unfinished_tasks_are_scored_after_an_upgrade(earlier: TrackingStore, revision: str, clock: Clock) -> None:
    """Pending tasks are claimed, running ones after their lease ends, and candidates once they are selected.

    Afterwards no task is pending, and the counts add up.
    """
    earlier.migrate()
    at_once = done(earlier, clock)
    clock.now += LEASE + timedelta(minutes=1)
    later = done(earlier, clock)

    again = [2, 4] if revision >= WITH_RESCORES else []
    assert [number(one) for one in sorted(at_once)] == [
        *again,
        6,
        9,
        9,
        *([13, 13, 16] if revision >= WITH_BUDGET else []),
    ]
    assert [number(one) for one in sorted(later)] == [7, 7, 8, 8]
    earlier.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in earlier.sampling.list_undecided(9)], SCORERS
    )
    assert len(done(earlier, clock)) == 4
    assert picked(earlier) == ([12] if revision >= WITH_BUDGET else [])
    done(earlier, clock)
    for one in earlier.trends.coverage():
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values())
        assert one.pending == 0


def picked(store: TrackingStore) -> list[int]:
    """Select all candidates; return their numbers."""
    found = [one.id for one in store.sampling.list_candidates(9)]
    assert store.workers.acquire_lease("sampler", "new", ttl=LEASE)
    assert store.sampling.select_candidates(
        SamplerStep("sampler", "new", "next"), [SelectedCandidate(one, 0.5, "uniform") for one in found]
    )
    return [number(one) for one in found]


def number(exchange_id: str) -> int:
    return int(exchange_id, 16) - 1


def done(store: TrackingStore, clock: Clock) -> list[str]:
    """Score all tasks that can be claimed; return their exchanges."""
    tasks = [task for claim in store.queue.claim_tasks("new", SCORERS, limit=99, lease=LEASE) for task in claim.tasks]
    scores = [Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5, scored_at=clock.now) for task in tasks]
    assert store.queue.complete_tasks("new", list(zip(tasks, scores, strict=True))) == list(
        zip(tasks, scores, strict=True)
    )
    return [task.exchange_id for task in tasks]


@pytest.mark.slow
def test_an_upgraded_database_can_be_pruned(earlier: TrackingStore, clock: Clock) -> None:
    """Old text is erased, even in rows from before erasure existed. Later, all exchanges and markers are deleted."""
    earlier.migrate()
    everything = earlier.answers.list_exchanges()
    clock.now += LEASE * 2

    assert earlier.retention.prune(texts_before=clock.now).texts == sum(one.question is not None for one in everything)
    with earlier._database.read() as connection:
        left = connection.execute(text("SELECT count(*) FROM exchange WHERE question IS NOT NULL")).scalar()
    assert left == 0
    assert earlier.retention.prune(before=clock.now).exchanges == len(everything)
    assert earlier.answers.list_exchanges() == []
    assert earlier.trends.list_markers() == []
    assert all(one.is_open for one in earlier.alerts.search())


@pytest.mark.slow
@SINCE_ALERTS
def test_dirty_hours_are_rolled_up_after_an_upgrade(earlier: TrackingStore) -> None:
    """Dirty hours are hours without rollups, and an hour that has changed since its rollup. Trends do not change."""
    earlier.migrate()
    before = trends(earlier)

    assert earlier.rollups.count_dirty_hours() > 3
    earlier.rollups.update()

    assert earlier.rollups.count_dirty_hours() == 0
    assert len(before) == 44
    assert trends(earlier) == before


def trends(store: TrackingStore) -> list[Any]:
    """Return means over time, rounded so that they do not depend on the order of summation."""
    return [one | {"mean": round(one["mean"], 9)} for one in read(store)["trend"]]


@SINCE_ALERTS
def test_detectors_continue_after_an_upgrade(earlier: TrackingStore, clock: Clock) -> None:
    """The detectors process the queued scores, and a firing drop keeps firing."""
    earlier.migrate()
    before = {one.service + one.scorer: one for one in earlier.detectors.list_states()}
    assert [(one.service, one.value) for one in earlier.detectors.list_new_scores(9)] == [("caf\u00e9", 0.5)] * 2
    clock.now += LEASE + timedelta(minutes=1)
    office = ("watcher", "new")
    assert earlier.workers.acquire_lease(*office, ttl=LEASE)

    open_alerts = {one.key: one for one in earlier.alerts.list_open()}
    evaluation = DropWatcher(earlier, [Drop()], holder=office, clock=clock).evaluate(open_alerts)
    assert earlier.alerts.commit(
        AlertTransaction(
            holder=office,
            detector_states=evaluation.detector_states,
            processed_score_ids=evaluation.processed_score_ids,
        )
    )

    bad = [one for one in evaluation.results if one.state == "bad"]
    assert [(open_alerts[one.key].id, one.labels["service"]) for one in bad] == [("a1", "shop")]
    assert earlier.detectors.list_new_scores(9) == []
    after = {one.service + one.scorer: one for one in earlier.detectors.list_states()}
    assert after.keys() == before.keys()
    states = [each["shoprelevancy"].state["detector"] for each in (before, after)]
    assert states[0]["streams"] == states[1]["streams"]
    assert states[1]["firing"].items() <= states[0]["firing"].items()
    evidence = [
        (one["caf\u00e9relevancy"].log_evidence, one["caf\u00e9relevancy"].row_version) for one in (before, after)
    ]
    assert evidence[0][0] != evidence[1][0]
    assert [version for _, version in evidence] == [1, 2]


@SINCE_ALERTS
def test_alerts_continue_after_an_upgrade(earlier: TrackingStore) -> None:
    """Open alerts can be resolved, and at most one alert per key can be open."""
    earlier.migrate()
    known = {one.id: one for one in earlier.alerts.search()}
    assert {name: one.state for name, one in known.items()} == {
        "a1": "firing", "a2": "resolved", "a3": "recovering", "a4": "pending",
    }  # fmt: skip
    again = replace(known["a3"], id="a5")

    assert not earlier.alerts.commit(AlertTransaction(changes=[AlertChange(alert=again)]))
    over = [replace(one, state="resolved", resolved_at=NOON) for one in known.values() if one.is_open]
    assert earlier.alerts.commit(
        AlertTransaction(changes=[AlertChange(alert=one, before=known[one.id]) for one in over])
    )
    assert earlier.alerts.list_open() == []
    assert earlier.alerts.commit(AlertTransaction(changes=[AlertChange(alert=again)]))
    assert earlier.alerts.list_open() == [again]


@SINCE_ALERTS
def test_notifications_are_delivered_after_an_upgrade(earlier: TrackingStore, clock: Clock) -> None:
    """New notifications are delivered immediately, failed ones at their retry time and in order, claimed ones after
    their lease ends, and undelivered ones when they are requeued.
    """
    earlier.migrate()

    assert delivered(earlier) == ["n6"]
    clock.now += timedelta(seconds=5)
    assert delivered(earlier) == ["n1", "n2"]
    clock.now += LEASE
    assert delivered(earlier) == ["n3"]
    assert earlier.notifications.resend() == 1
    assert delivered(earlier) == ["n5"]
    assert {one.status for one in earlier.notifications.search()} == {"sent"}
    assert earlier.notifications.list_channel_queues() == []


def delivered(store: TrackingStore) -> list[str]:
    """Deliver all due notifications; return their ids."""
    found = []
    for channel in ("oncall", "slack", "hook", "pager", "mail"):
        while (taken := store.notifications.claim(channel, "new", lease=LEASE)) is not None:
            assert store.notifications.record_attempt(taken.id, "new", DeliveryOutcome()) == "sent"
            found.append(taken.id)
    return found


@pytest.mark.parametrize("revision", [one for one in EARLIER if one >= WITH_RESCORES], indirect=True)
def test_an_answer_keeps_its_score_until_it_is_rescored(earlier: TrackingStore, clock: Clock) -> None:
    """After rescoring, the answer has a single score. Job runs are deleted with their worker."""
    earlier.migrate()
    assert scored(earlier) == [0.25]
    done(earlier, clock)

    assert scored(earlier) == [0.5, 0.5]
    assert [one.name for one in earlier.workers.list_job_runs()] == ["save", "watch"]
    earlier.workers.deregister_worker("idle")
    assert earlier.workers.list_job_runs() == []


def scored(store: TrackingStore) -> list[float | None]:
    """Return the values of the two rescored answers."""
    ids = [f"{one + 1:032x}" for one in (2, 4)]
    found = store.answers.get_scores(ids)
    return [one.value for id_ in ids for one in found.get(id_, ()) if one.scorer == "relevancy"]
