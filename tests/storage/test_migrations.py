"""Table migrations, which any process may run at any time."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

import germane.storage.db.migrate as migrating
from germane.errors import DatabaseNotMigrated
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.db.models import metadata
from germane.testing import transaction


@pytest.fixture
def empty(database_url: str) -> Any:
    """A store whose database has no tables."""
    store = TrackingStore(database_url)
    yield store
    store.close()


def test_a_migration_creates_the_tables(empty: TrackingStore) -> None:
    """A second call changes nothing."""
    with pytest.raises(DatabaseNotMigrated, match="run 'germane db upgrade'"):
        empty.check()

    empty.migrate()
    empty.migrate()

    empty.check()
    assert empty.answers.counts().captured == 0


def test_missing_tables_raise_an_error_that_names_the_command(
    empty: TrackingStore, make: Callable[..., Exchange]
) -> None:
    """Every method raises the same error as check()."""
    for work in (lambda: empty.exchanges.add([make()]), empty.answers.counts, lambda: empty.sampling.list_undecided(1)):
        with pytest.raises(DatabaseNotMigrated, match="germane db upgrade"):
            work()


def run_migrations(store: TrackingStore) -> None:
    """Run all migrations, even on SQLite, where a new database is created without them."""
    with transaction(store, migrating=True) as connection:
        migrating._upgrade(connection)


def test_migrated_tables_match_the_models(empty: TrackingStore) -> None:
    """Alembic finds no difference between the classes and a migrated database."""
    run_migrations(empty)
    with transaction(empty, read_only=True) as connection:
        options = {"version_table": migrating.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)

        assert compare_metadata(context, metadata) == []


def test_indexes_match_the_models(empty: TrackingStore) -> None:
    """The comparison includes the conditions of partial indexes, which Alembic does not compare."""
    run_migrations(empty)
    with transaction(empty) as connection:
        migrated = describe_indexes(connection)
        for table in metadata.sorted_tables:
            for index in table.indexes:
                index.drop(connection)
                index.create(connection)
        created = describe_indexes(connection)

    assert migrated == created
    assert sum("_where" in definition for definition in migrated.values()) == 19


def test_new_database_equals_a_migrated_one(database_url: str, tmp_path: Path, postgresql: Any) -> None:
    """Tables, columns, keys, indexes and views are the same, but creating a database does not import Alembic."""
    is_file = database_url.startswith("sqlite")
    other = f"sqlite:///{tmp_path / 'created.db'}" if is_file else postgresql.url(postgresql.create())
    stores = [TrackingStore(database_url), TrackingStore(other)]
    run_migrations(stores[0])
    program = f"import sys; from germane.storage import TrackingStore as s; s({other!r}).migrate()"
    check = "; assert not {'alembic', 'mako'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program + check], check=True)
    migrated, created = map(_describe if is_file else _describe_columns, stores)
    for store in stores:
        store.close()

    assert migrated == created
    assert len(migrated) > len(metadata.tables) + 30


def test_application_tables_do_not_prevent_a_migration(tmp_path: Path) -> None:
    """An application may use the same SQLite file."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'shared.db'}")
    with transaction(store, migrating=True) as connection:
        connection.exec_driver_sql("CREATE TABLE mine (n INTEGER)")
    store.migrate()

    assert store.revision() == migrating.REVISIONS[-1]


def _describe(store: TrackingStore) -> dict[str, Any]:
    """Return the definition of everything in an SQLite database, by name, independent of the order of columns."""
    found: dict[str, Any] = {}
    with transaction(store, read_only=True) as connection:
        for kind, name, table, sql in connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master"):
            if name.startswith("sqlite_"):  # the sequence, and the indexes of keys, which follow from the constraints
                continue
            words = sorted(re.findall(r"[\w.']+", sql)) if kind == "table" else " ".join(sql.split())
            found[name] = (kind, table, words)
        inspector = inspect(connection)
        for name in (*metadata.tables, migrating.VERSION_TABLE):
            columns = connection.exec_driver_sql(f"PRAGMA table_info({name})")
            keys = (inspector.get_pk_constraint(name)["constrained_columns"], inspector.get_unique_constraints(name))
            found[f"columns of {name}"] = (sorted(tuple(column)[1:] for column in columns), keys)
    return found


def _describe_columns(store: TrackingStore) -> dict[str, Any]:
    """Return the definition of everything in a PostgreSQL database, by name, independent of the order of columns."""
    query = (
        "SELECT 'column', table_name || '.' || column_name, "
        "concat(data_type, is_nullable, column_default, is_identity) "
        "FROM information_schema.columns WHERE table_schema = 'public' "
        "UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
        "UNION ALL SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public' "
        "UNION ALL SELECT 'constraint', conrelid::regclass || ' ' || contype::text, "
        "string_agg(pg_get_constraintdef(oid), ' ' ORDER BY pg_get_constraintdef(oid)) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace GROUP BY conrelid, contype"
    )
    with transaction(store, read_only=True) as connection:
        rows = connection.exec_driver_sql(query).all()
    return {f"{kind} {name}": definition for kind, name, definition in rows}


def describe_indexes(connection: Connection) -> dict[str, str]:
    """Return the definition of each index, by name."""
    found = [index for table in metadata.tables for index in inspect(connection).get_indexes(table)]
    return {str(index["name"]): str({**index, "dialect_options": _conditions(index)}) for index in found}


def _conditions(index: Any) -> dict[str, str]:
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


def test_every_migration_is_listed_in_order() -> None:
    """check() compares revisions by their position in the list."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrating.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]

    assert tuple(reversed(revisions)) == migrating.REVISIONS


def test_newer_tables_are_not_migrated(empty: TrackingStore) -> None:
    """During a rolling upgrade, a process of the old version raises an error and changes nothing."""
    empty.migrate()
    _set_version(empty, "9999")

    for work in (empty.check, empty.migrate):
        with pytest.raises(DatabaseNotMigrated, match=r"revision 9999\) are newer than.*upgrade germane"):
            work()


def test_tables_from_before_the_first_release_are_not_migrated(empty: TrackingStore) -> None:
    """The error says how to move the data to a new database."""
    empty.migrate()
    _set_version(empty, "0011")

    for work in (empty.check, empty.migrate):
        with pytest.raises(
            DatabaseNotMigrated, match=r"\(revision 0011\) are from before germane's first release"
        ) as error:
            work()
        assert "'germane export FILE.jsonl' with the checkout that wrote them" in str(error.value)
        assert "new database with 'germane import FILE.jsonl'" in str(error.value)


def test_tables_without_a_version_are_not_migrated(empty: TrackingStore) -> None:
    """An interrupted or modified database is not treated as valid."""
    empty.migrate()
    with transaction(empty) as connection:
        connection.execute(text(f"DELETE FROM {migrating.VERSION_TABLE}"))

    with pytest.raises(DatabaseNotMigrated):
        empty.check()


def _set_version(store: TrackingStore, version: str) -> None:
    with transaction(store) as connection:
        connection.execute(text(f"UPDATE {migrating.VERSION_TABLE} SET version_num = '{version}'"))


KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from germane.storage import TrackingStore

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, *_):
    if statement.strip().startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

TrackingStore(sys.argv[1]).migrate()
"""


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["CREATE TABLE score ", "CREATE VIEW answers", "INSERT INTO germane_version"])
def test_a_killed_migration_changes_nothing(empty: TrackingStore, database_url: str, statement: str) -> None:
    """The next process migrates the database."""
    command = [sys.executable, "-c", KILLED, database_url, statement]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    with transaction(empty, read_only=True) as connection:
        assert inspect(connection).get_table_names() == []
    empty.migrate()
    empty.check()


MIGRATE = """
import sys
from germane.storage import TrackingStore
store = TrackingStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
store.migrate()
store.check()
store.close()
"""


@pytest.mark.slow
def test_concurrent_migrations_by_several_processes_succeed(database_url: str) -> None:
    """One process migrates, and the others wait for it."""
    command = [sys.executable, "-c", MIGRATE, database_url]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()

    assert [worker.communicate(timeout=60)[1] for worker in workers] == [""] * 3
    assert [worker.returncode for worker in workers] == [0] * 3


def test_a_migration_waits_for_a_running_write_transaction(tmp_path: Path) -> None:
    """SQLite does not switch to the write-ahead log during another transaction."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'germane.db'}")
    store.migrate()
    store.close()
    other = sqlite3.connect(tmp_path / "germane.db", isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM lease")
    ending = threading.Timer(0.2, other.execute, ["COMMIT"])
    ending.start()

    store.migrate()

    ending.join()
    other.close()
    with transaction(store, read_only=True) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    store.close()


def test_sqlite_uses_the_write_ahead_log(sqlite_store: TrackingStore) -> None:
    """Readers continue while a transaction writes."""
    with transaction(sqlite_store, read_only=True) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_the_answers_view_has_one_row_per_exchange_and_scorer(
    store: TrackingStore, make: Callable[..., Exchange], clock: Any
) -> None:
    """A row shows the value and weight of a score, or the state of a task without a score."""
    exchange = make()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.25, "uniform")], {"a": "f1", "b": "f2"})
    [claim] = store.queue.claim_tasks("me", {"a": "f1", "b": "f2"}, limit=1, lease=timedelta(seconds=9))
    store.queue.complete_tasks("me", [(claim.tasks[0], Score(scorer="a", fingerprint="f1", value=0.5))])

    with transaction(store, read_only=True) as connection:
        query = text("SELECT scorer, fingerprint, state, value, weight, question FROM answers ORDER BY scorer")
        rows = [tuple(row) for row in connection.execute(query)]
    assert rows == [
        ("a", "f1", "done", 0.5, 4.0, exchange.question),
        ("b", "f2", "running", None, 4.0, exchange.question),
    ]


def test_the_answers_view_uses_the_score_fingerprint(store: TrackingStore, make: Callable[..., Exchange]) -> None:
    """The judge may serve a different model than the configured one: the row contains the score and the score's
    fingerprint."""
    exchange = make()
    store.exchanges.add([exchange])
    for configured in ("f1", "f2"):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "uniform")], {"a": configured})
        [claim] = store.queue.claim_tasks("me", {"a": configured}, limit=1, lease=timedelta(seconds=9))
        score = Score(scorer="a", fingerprint=f"{configured} served", value=0.5)
        store.queue.complete_tasks("me", [(claim.tasks[0], score)])

    with transaction(store, read_only=True) as connection:
        rows = connection.execute(text("SELECT fingerprint, state, value FROM answers ORDER BY fingerprint")).all()
    assert [tuple(row) for row in rows] == [("f1 served", "done", 0.5), ("f2 served", "done", 0.5)]
