"""The audit reports every violated guarantee."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from audit import DatabaseAudit, find_current_imbalances

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

NAMES = {"instant": "i1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database in which three exchanges were captured and scored."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'kept.db'}")
    store.migrate()
    exchanges = [Exchange.from_texts("How long is the warranty?", f"Two years, says {number}.") for number in range(3)]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, probability=1.0, sampling_reason="sampled") for one in exchanges], NAMES
    )
    tasks = [
        task
        for claim in store.queue.claim_tasks("me", NAMES, limit=9, lease=timedelta(minutes=1))
        for task in claim.tasks
    ]
    score = Score(scorer="instant", fingerprint="i1", value=0.5, scored_at=datetime.now(UTC))
    store.queue.complete_tasks("me", [(task, score) for task in tasks])
    store.close()
    return tmp_path / "kept.db"


def violations(path: Path) -> list[str]:
    """Return the violations."""
    return DatabaseAudit(f"sqlite:///{path}").violations(set())


def test_a_consistent_database_has_no_violations(path: Path) -> None:
    """Neither the audit nor the tally check reports anything."""
    assert violations(path) == []
    assert find_current_imbalances(f"sqlite:///{path}") == []


@pytest.mark.parametrize(
    ("damage", "violation"),
    [
        ("DELETE FROM score WHERE id = 1", "done task without a score"),
        ("DELETE FROM scoring_task WHERE id = 1", "without a sampling decision"),
        ("UPDATE scoring_task SET state = 'running' WHERE id = 1", "unfinished"),
        ("UPDATE scoring_task SET state = 'failed' WHERE id = 1", "without a reason"),
        ("UPDATE tally SET count = count + 1 WHERE outcome = 'scored'", "in the tally"),
        ("UPDATE tally SET count = -1 WHERE outcome = 'pending'", "-1"),
        ("DELETE FROM tally WHERE outcome = 'seen'", "seen 0, parts 3"),
    ],
)
def test_the_audit_reports_missing_rows_and_wrong_counts(path: Path, damage: str, violation: str) -> None:
    """The rows and the tally must match exactly."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()

    assert violation in str(violations(path))


def test_the_audit_reports_a_lost_exchange_as_a_violation(path: Path) -> None:
    """The application has recorded the ids of committed exchanges."""
    assert DatabaseAudit(f"sqlite:///{path}").violations({"f" * 32}) == ["lost: exchange " + "f" * 32]
