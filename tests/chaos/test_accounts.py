"""The accounts of a database notice each way in which a promise can be broken."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from accounts import Accounts, unbalanced_now

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Decision, Store

NAMES = {"instant": "i1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database in which three exchanges were captured and scored."""
    store = Store(f"sqlite:///{tmp_path / 'kept.db'}")
    store.migrate()
    exchanges = [Exchange.of("How long is the warranty?", f"Two years, says {number}.") for number in range(3)]
    store.add(exchanges)
    store.assign([Decision(one.id, probability=1.0, sampling_reason="drawn") for one in exchanges], NAMES)
    tasks = [task for claim in store.claim("me", NAMES, limit=9, lease=timedelta(minutes=1)) for task in claim.tasks]
    score = Score(scorer="instant", fingerprint="i1", value=0.5, scored_at=datetime.now(UTC))
    store.complete("me", [(task, score) for task in tasks])
    store.close()
    return tmp_path / "kept.db"


def faults(path: Path) -> list[str]:
    """Return what is wrong with it."""
    return Accounts(f"sqlite:///{path}").faults(set())


def test_what_was_scored_once_and_counted_once_is_well(path: Path) -> None:
    """There is nothing to tell."""
    assert faults(path) == []
    assert unbalanced_now(f"sqlite:///{path}") == []


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM score WHERE id = 1", "without its score"),
        ("DELETE FROM scoring_task WHERE id = 1", "never decided on"),
        ("UPDATE scoring_task SET state = 'running' WHERE id = 1", "left open"),
        ("UPDATE scoring_task SET state = 'failed' WHERE id = 1", "without a reason"),
        ("UPDATE tally SET count = count + 1 WHERE outcome = 'scored'", "in the tally"),
        ("UPDATE tally SET count = -1 WHERE outcome = 'pending'", "-1"),
        ("DELETE FROM tally WHERE outcome = 'seen'", "seen 0, parts 3"),
    ],
)
def test_what_is_missing_or_counted_wrongly_is_noticed(path: Path, damage: str, told: str) -> None:
    """Rows and tally are compared to the last count."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()

    assert told in str(faults(path))


def test_an_exchange_that_was_committed_and_is_not_there_is_noticed(path: Path) -> None:
    """Whoever captured it knows its id."""
    assert Accounts(f"sqlite:///{path}").faults({"f" * 32}) == ["lost: exchange " + "f" * 32]
