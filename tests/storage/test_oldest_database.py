"""The oldest databases that germane upgrades, see ``oldest_database.py``, are upgraded without losing data."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from tests.deliveries import Courier
from tests.storage.oldest_database import DIRECTORY, HOUR, NOON, REVISION, SCORERS, complete, read
from tests.storage.test_migrations import describe_indexes

import germane.storage.db.migrate as migrating
from germane.errors import DatabaseNotMigrated
from germane.storage import SamplerStep, SamplingDecision, SelectedCandidate, TrackingStore
from germane.storage.db.migrate import REVISIONS, VERSION_TABLE
from germane.storage.db.models import metadata
from germane.testing import Clock, transaction


@pytest.fixture
def clock() -> Clock:
    """A clock that starts when the databases were written."""
    return Clock(NOON)


@pytest.fixture
def oldest(database_url: str, tmp_path: Path, clock: Clock) -> Iterator[TrackingStore]:
    """A store on the oldest database, not upgraded yet."""
    kind = database_url.partition(":")[0]
    script = (DIRECTORY / f"{REVISION}.{kind}.sql").read_bytes()
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "germane.db")) as connection:
            connection.executescript(script.decode())
    else:
        with psycopg.connect(database_url) as line:
            line.execute(script)
    with closing(TrackingStore(database_url, clock=clock)) as store:
        yield store


def test_an_upgraded_database_returns_the_same_data(oldest: TrackingStore) -> None:
    """The store returns everything that was returned by the code that wrote the database."""
    assert oldest.revision() == REVISION == REVISIONS[0]
    oldest.migrate()
    oldest.check()

    before = [json.loads(line) for line in (DIRECTORY / f"{REVISION}.jsonl").read_text().split("\n") if line]
    assert within(read(oldest), before) == before


NEXT_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision = "0.2.0"
down_revision = "0.1.0"

def upgrade():
    op.add_column("exchange", sa.Column("region", sa.Text(), nullable=False, server_default="eu"))
"""


def test_the_next_migration_upgrades_the_database(
    oldest: TrackingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then, the error names the command. Existing rows are kept."""
    shutil.copytree(migrating._SCRIPTS, tmp_path / "migrations")
    (tmp_path / "migrations" / "versions" / "v0_2_0.py").write_text(NEXT_MIGRATION)
    monkeypatch.setattr(migrating, "_SCRIPTS", tmp_path / "migrations")
    monkeypatch.setattr(migrating, "REVISIONS", (REVISION, "0.2.0"))
    before = read(oldest)
    with pytest.raises(DatabaseNotMigrated, match=r"revision 0\.1\.0\) are older than .* run 'germane db upgrade'"):
        oldest.check()

    oldest.migrate()

    oldest.check()
    assert oldest.revision() == "0.2.0"
    assert read(oldest) == before
    with transaction(oldest, read_only=True) as connection:
        assert connection.execute(text("SELECT count(*) FROM exchange WHERE region = 'eu'")).scalar() == 10


def within(now: Any, then: Any) -> Any:
    """Return the part of ``now`` that ``then`` also contains: later versions return more."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: within(now[name], then[name]) for name in then if name in now}
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [within(new, old) for new, old in zip(now, then, strict=True)]
    return now


def test_tables_of_an_upgraded_database_match_the_models(oldest: TrackingStore) -> None:
    """Alembic finds no difference. After a change to the tables: python -m tests.storage.oldest_database."""
    oldest.migrate()

    with transaction(oldest) as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        indexes = describe_indexes(connection)
        for table in metadata.sorted_tables:
            for index in table.indexes:
                index.drop(connection)
                index.create(connection)
        assert indexes == describe_indexes(connection)


def test_the_oldest_database_has_a_value_in_every_column(oldest: TrackingStore) -> None:
    """Otherwise, a migration could lose the column's values unnoticed."""
    with transaction(oldest, read_only=True) as connection:
        tables = set(inspect(connection).get_table_names()) - {VERSION_TABLE}
        columns = {(table, one["name"]) for table in tables for one in inspect(connection).get_columns(table)}
        query = 'SELECT count("{1}") FROM {0}'
        empty = {one for one in columns if not connection.execute(text(query.format(*one))).scalar()}

    assert tables == metadata.tables.keys()
    assert empty == set()


def test_work_continues_after_an_upgrade(oldest: TrackingStore, clock: Clock) -> None:
    """Pending tasks are claimed, running ones after their lease ends, and candidates once they are selected. Then no
    task is pending, and the counts add up. Notifications are delivered when they are due.
    """
    oldest.migrate()
    assert delivered(oldest) == ["waiting"]
    assert complete(oldest, "new") == [1]
    clock.now += HOUR + timedelta(minutes=1)
    assert delivered(oldest) == ["busy", "claimed"]
    assert complete(oldest, "new") == [4, 4, 5]
    undecided = [SamplingDecision(one.id, 1.0, "sampled") for one in oldest.sampling.list_undecided(9)]
    oldest.sampling.assign_tasks(undecided, SCORERS)
    candidates = [SelectedCandidate(one.id, 0.5, "uniform") for one in oldest.pool.list_candidates(9)]
    assert oldest.workers.acquire_lease("sampler", "new", ttl=HOUR)
    assert oldest.pool.select_candidates(SamplerStep("sampler", "new", "next"), candidates)
    assert complete(oldest, "new") == [6, 6, 7, 7]

    for one in oldest.trends.coverage():
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values())
        assert one.pending == 0


def delivered(store: TrackingStore) -> list[str]:
    """Deliver all due notifications; return their ids."""
    found = []
    for channel in ("busy", "claimed", "waiting"):
        courier = Courier(store, channel, "new")
        while (taken := courier.deliver()) is not None:
            found.append(taken)
    return found
