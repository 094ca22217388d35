"""Tests of `germane db check`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each
from tests.cli.conftest import write

from germane.storage import TrackingStore
from germane.storage.db.models import metadata
from germane.testing import transaction

Call = Callable[..., Any]


def statuses(content: dict[str, Any]) -> dict[str, str]:
    """Return the worst status of each subject."""
    order = ("ok", "warning", "error")
    found: dict[str, str] = {}
    for finding in content["findings"]:
        about = finding["subject"]
        found[about] = max(found.get(about, "ok"), finding["level"], key=order.index)
    return found


def test_an_intact_database_passes_the_check(call: Call, migrated_url: str) -> None:
    """The file, tables, counts, rollups and disk usage are ok on both databases."""
    with closing(TrackingStore(migrated_url)) as store:
        write(store, [0.9, 0.8, 0.7])
        store.rollups.update()

    ended = call("db", "check", "--database", migrated_url, "--json")

    assert (ended.code, ended.err) == (0, "")
    assert statuses(ended.content) == dict.fromkeys(("database", "tables", "counts", "rollups", "disk usage"), "ok")
    found = ended.content["integrity"]
    assert (found["dirty_hours"], len(found["recomputed_hours"]), found["wrong_hours"], found["counted"]) == (
        0,
        1,
        [],
        1,
    )
    assert ended.content["disk_usage"]["rows"] > 0
    result = call("db", "check", "--database", migrated_url)
    assert all(line.startswith("ok       ") for line in result.out.splitlines())


@pytest.mark.parametrize(
    ("statement", "about", "expected"),
    [
        ("UPDATE tally SET count = count + 1 WHERE outcome = 'seen'", "counts rollups", "4 seen, but 3 scored"),
        ("UPDATE rollup SET sum_wy = sum_wy + 1 WHERE span = 3600", "rollups", "does not match its rows"),
        ("DELETE FROM rollup WHERE span = 3600", "rollups", "does not match its rows"),
        ("DROP INDEX {index}", "tables", "index {index} of score is missing"),
        ("DROP VIEW answers", "tables", "view answers is missing"),
        ("DROP TABLE marker", "tables", "table marker is missing"),
    ],
)
def test_inconsistent_rows_are_errors(call: Call, database_url: str, statement: str, about: str, expected: str) -> None:
    """Each error has a fix, and the exit code is 4, on both databases."""
    index = min(str(one.name) for one in metadata.tables["score"].indexes)
    with closing(TrackingStore(database_url)) as store:
        store.migrate()
        write(store, [0.9, 0.8, 0.7])
        store.rollups.update()
        with transaction(store) as connection:
            connection.exec_driver_sql(statement.format(index=index))

    ended = call("db", "check", "--database", database_url, "--json")

    assert ended.code == 4
    assert [name for name, status in statuses(ended.content).items() if status == "error"] == about.split()
    faults = [finding for finding in ended.content["findings"] if finding["level"] == "error"]
    assert expected.format(index=index) in faults[0]["message"]
    assert all(finding["fix"] for finding in faults)


def test_a_damaged_database_file_is_reported(call: Call, database: str, store: TrackingStore, tmp_path: Path) -> None:
    """The output contains SQLite's message and a fix, without a traceback."""
    write(store, [0.5] * 300, answer="x" * 500)
    store.close()
    path = tmp_path / "germane.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 8192] = bytes(8192)
    path.write_bytes(bytes(content))

    ended = call("db", "check", "--json")

    assert ended.code == 4
    assert statuses(ended.content)["database"] == "error"
    assert "Traceback" not in ended.out + ended.err


@each(
    ("url", "expected"),
    [
        ("sqlite:////nowhere/at/all/germane.db", "make sure that its directory exists"),
        ("postgresql://app:hunter2@127.0.0.1:9/app", "start the server"),
    ],
)
def test_the_check_reports_an_unreachable_database_as_an_error(call: Call, url: str, expected: str) -> None:
    """The password is hidden."""
    ended = call("db", "check", "--database", url, "--json")

    assert ended.code == 4
    assert expected in ended.content["findings"][0]["message"]
    assert "hunter2" not in ended.out + ended.err


def test_the_check_reports_missing_tables_as_an_error(call: Call, bare: Path) -> None:
    """The check does not create a file, but names the command that does."""
    ended = call("db", "check", "--database", f"sqlite:///{bare}/germane.db")

    assert ended.code == 4
    assert "germane db upgrade" in ended.out
    assert list(bare.iterdir()) == []


def test_outdated_rollups_are_a_warning_of_the_check(call: Call, database: str, store: TrackingStore) -> None:
    """Trends are still correct, and the exit code is 0."""
    now = datetime.now(UTC)
    for hours in range(30):
        store.exchanges.count_dropped({("shop", "ask"): 1}, ["answer_relevancy"], at=now - timedelta(hours=hours))

    ended = call("db", "check")

    assert ended.code == 0
    assert "warning  rollups: 30 hours without" in ended.out
    assert "-> run 'germane db rollup'" in ended.out


def test_captured_names_in_check_results_are_sanitized(call: Call, database: str, store: TrackingStore) -> None:
    """Escapes, right-to-left, wide and very long names do not affect the terminal."""
    write(store, [0.5], route="\x1b[2J\u202e" + "x" * 10_000)
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE tally SET count = count + 1 WHERE outcome = 'seen'")

    ended = call("db", "check")

    assert ended.code == 4
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert max(map(len, ended.out.splitlines())) < 1200
