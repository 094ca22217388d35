"""Tests of `germane db upgrade` and `rollup`, and of missing databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.storage import TrackingStore
from germane.testing import transaction

Call = Callable[..., Any]


def test_upgrading_the_database_twice_changes_nothing(call: Call, database_url: str) -> None:
    """The command is safe to run at each deployment, on both databases."""
    for _ in range(2):
        ended = call("db", "upgrade", "--database", database_url)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.endswith(" are up to date.\n")

    assert call("report", "--database", database_url).code == 0
    assert call("db", "upgrade", "--database", database_url, "--json").content["up_to_date"] is True


READING = [
    ["alerts"], ["baseline", "show"], ["mark", "v2"], ["report"], ["trend"], ["worst"], ["doctor", "--offline"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_the_error_for_a_missing_database_explains_how_to_create_it(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Nothing has failed, so the exit code is not 1, and no empty file is left."""
    (bare / "project" / "app").mkdir(parents=True)
    monkeypatch.chdir(bare / "project" / "app")

    ended = call(*arguments)

    if arguments[0] != "doctor":  # which also reports handlers that other tests have left in this process
        assert ended.code == 5
    assert "no germane.db here yet" in ended.out + ended.err
    assert "germane.start() creates the database" in ended.out + ended.err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize(
    ("place", "shown"), [("../app", "../app"), ("service", "service"), ("..", ".."), ("../..", "../..")]
)
def test_the_error_for_a_missing_database_names_a_nearby_database(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], place: str, shown: str
) -> None:
    """The message names the nearby directory that has a database."""
    here = bare / "project" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    Path(place).mkdir(exist_ok=True)
    store = TrackingStore(f"sqlite:///{Path(place).resolve() / 'germane.db'}")
    store.migrate()
    store.close()

    ended = call(*arguments)

    if arguments[0] != "doctor":  # which also reports handlers that other tests have left in this process
        assert ended.code == 5
    assert f"no germane.db here; one is in {shown}\n" in (ended.out + ended.err).replace(": run this", "\n")
    assert not (here / "germane.db").exists()


def test_reading_commands_do_not_create_a_database(bare: Path) -> None:
    """Reading raises an error that names the command, and does not create a file."""
    from germane.errors import DatabaseNotMigrated

    store = TrackingStore(f"sqlite:///{bare}/germane.db")
    with pytest.raises(DatabaseNotMigrated, match="germane db upgrade"):
        store.answers.list_exchanges()
    store.close()

    assert list(bare.iterdir()) == []


@each(
    ("url", "message"),
    [
        ("sqlite:////nowhere/at/all/germane.db", "make sure that its directory exists"),
        ("postgresql://app:hunter2@127.0.0.1:9/app", "start the server"),
        ("mysql://app:hunter2@127.0.0.1/app", "must be an SQLAlchemy URL"),
        ("postgresql://app:hunter2@host:port/app", "invalid database URL"),
    ],
)
def test_database_errors_are_reported_on_one_line(call: Call, url: str, message: str) -> None:
    """The line states the cause and the fix, without a traceback or the password."""
    ended = call("report", "--json", "--database", url)

    assert ended.code == 1
    assert ended.err == f"germane: {ended.content['error']}\n"
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert "hunter2" not in ended.out + ended.err


def test_a_database_newer_than_the_code_is_rejected(call: Call, database: str, store: TrackingStore) -> None:
    """The command reports an error, because the tables are newer than the code."""
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE germane_version SET version_num = '9999'")

    for arguments in (["report"], ["db", "upgrade"]):
        ended = call(*arguments)
        assert ended.code == 1
        assert "newer than this version of germane" in ended.err


def test_db_rollup_reports_the_number_of_updated_hours(call: Call, store: TrackingStore, database: str) -> None:
    """Each hour is updated once after a change."""
    store.exchanges.count_dropped({("shop", "ask"): 1}, ["relevancy"])

    results = [call("db", "rollup", "--database", database) for _ in range(2)]

    assert [one.code for one in results] == [0, 0]
    assert results[0].out.startswith("Updated the rollups for 1 hour in ")
    assert results[1].out.startswith("Updated the rollups for 0 hours in ")
    assert call("db", "rollup", "--database", database, "--json").content["hours"] == 0


def test_quick_applies_to_check_alone(call: Call) -> None:
    """An option of another action is a usage error."""
    assert "--quick applies to 'germane db check'" in call("db", "vacuum", "--quick").err
