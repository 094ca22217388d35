"""`germane db upgrade`, and databases that are not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.storage import Store

Call = Callable[..., Any]


def test_upgrading_makes_the_tables_and_may_be_repeated(call: Call, database_url: str) -> None:
    """It is safe to run at each deployment, on both databases."""
    for _ in range(2):
        ended = call("db", "upgrade", "--database", database_url)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.endswith(" are up to date.\n")

    assert call("report", "--database", database_url).code == 0
    assert call("db", "upgrade", "--database", database_url, "--json").content["up_to_date"] is True


@pytest.mark.parametrize("verb", ["report", "worst", "doctor"])
def test_reading_brings_no_file_into_being(call: Call, bare: Path, verb: str) -> None:
    """A wrong path is told, with the command that makes a database, and leaves no empty file behind."""
    ended = call(verb, "--database", f"sqlite:///{bare}/germane.db")

    assert ended.code == (4 if verb == "doctor" else 1)
    assert "germane db upgrade" in ended.out + ended.err
    assert list(bare.iterdir()) == []


def test_a_store_brings_no_file_into_being_by_reading(bare: Path) -> None:
    """The same holds for `germane.Store`."""
    from germane.errors import DatabaseNotMigrated

    store = Store(f"sqlite:///{bare}/germane.db")
    with pytest.raises(DatabaseNotMigrated, match="germane db upgrade"):
        store.exchanges()
    store.close()

    assert list(bare.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////nowhere/at/all/germane.db", "make sure that its directory exists"),
        ("postgresql://app:hunter2@127.0.0.1:9/app", "start the server"),
        ("mysql://app:hunter2@127.0.0.1/app", "must be an SQLAlchemy URL"),
        ("postgresql://app:hunter2@host:port/app", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_database_is_one_line(call: Call, url: str, said: str) -> None:
    """Cause and remedy, without a traceback and without the password."""
    ended = call("report", "--json", "--database", url)

    assert ended.code == 1
    assert ended.err == f"germane: {ended.content['error']}\n"
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert "hunter2" not in ended.out + ended.err


def test_tables_of_a_newer_germane_are_left_alone(call: Call, database: str, store: Store) -> None:
    """An old program says so and changes nothing."""
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE germane_version SET version_num = '9999'")

    for arguments in (["report"], ["db", "upgrade"]):
        ended = call(*arguments)
        assert ended.code == 1
        assert "newer than this germane" in ended.err


def test_rolling_up_says_how_many_hours(call: Call, store: Store, database: str) -> None:
    """Once for what changed; then there is nothing left to do."""
    store.count_dropped({("shop", "ask"): 1}, ["relevancy"])

    told = [call("db", "roll", "--database", database) for _ in range(2)]

    assert [one.code for one in told] == [0, 0]
    assert told[0].out.startswith("1 hour of ")
    assert told[1].out.startswith("0 hours of ")
    assert call("db", "roll", "--database", database, "--json").content["hours"] == 0
