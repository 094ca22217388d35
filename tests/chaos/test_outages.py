"""A database outage while an application is running."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from audit import DatabaseAudit
from stoppable_databases import LockableFile, PostgreSQLServer, Stoppable

import germane
from germane.process import current_runtime
from germane.storage import TrackingStore
from germane.storage.db import engine
from germane.testing import FakeJudge

OUTAGE = float(os.environ.get("OUTAGE_SECONDS", "2"))
"""The length of the outage in seconds: OUTAGE_SECONDS=30 make test ARGS=tests/chaos."""
Until = Callable[..., None]
LogLines = Callable[[], list[str]]


@germane.observe
def ask(question: str) -> str:
    """Return an answer that contains the question."""
    return f"By card, at counter {question.rpartition(' ')[2].rstrip('?')}."


def ask_all(who: str, count: int = 20) -> None:
    """Ask different questions. The state of the database does not affect callers."""
    for number in range(count):
        assert ask(f"How do I pay at {who}{number}?") == f"By card, at counter {who}{number}."


def depth() -> int:
    """Return the number of exchanges that are waiting in memory."""
    running = current_runtime()
    assert running is not None
    return running.writer.depth


def all_jobs_succeed() -> bool:
    """Return whether the last run of each job succeeded. Failed heartbeats are retried once a second."""
    running = current_runtime()
    assert running is not None
    assert running.monitor is not None
    return not any(job.problem for job in running.monitor.status().jobs.values())


@pytest.fixture(params=["sqlite", "postgresql"])
def stoppable(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stoppable]:
    """A migrated database that can be stopped: a server, or a file that is locked for longer than any timeout."""
    monkeypatch.setattr(engine, "BUSY_TIMEOUT", min(1.0, OUTAGE / 2))
    if request.param == "postgresql":
        request.getfixturevalue("postgresql")  # skips the test if no server can run here
    database: Stoppable = LockableFile(tmp_path) if request.param == "sqlite" else PostgreSQLServer()
    store = TrackingStore(database.url)
    store.migrate()
    store.close()
    yield database
    germane.stop()
    database.close()


@pytest.mark.usefixtures("stopped")
def test_no_exchange_or_score_is_lost_in_a_database_outage(
    stoppable: Stoppable, judge: FakeJudge, until: Until, logged: LogLines
) -> None:
    """Exchanges wait in memory, and scores in progress are saved later without another request. The outage and its end
    are logged once each."""
    judge.latency = 0.3
    store = TrackingStore(stoppable.url)
    germane.start(**judge.settings(), database=stoppable.url, poll_interval=0.05)
    ask_all("first")
    until(lambda: judge.in_flight)

    stoppable.stop()
    ask_all("then")
    until(lambda: "queued and retried" in str(logged()))
    threading.Event().wait(OUTAGE)  # the outage must last as long as the log reports
    assert depth() == 20
    stoppable.start()
    ask_all("last")
    until(lambda: store.answers.counts().scores == 60)
    until(all_jobs_succeed)

    assert germane.stop()
    store.close()
    audit = DatabaseAudit(stoppable.url)
    assert (len(audit.exchanges), audit.violations(set())) == (60, [])
    assert len(judge.chat_requests) == 2 * 60  # one for the questions, one for the rating
    assert_logged_once(logged())


def assert_logged_once(lines: list[str]) -> None:
    """Check that the writer and the background jobs each log one line for the outage and one for the recovery."""
    failed = Counter(line.split("is failing:")[0].strip() for line in lines if "is failing:" in line)
    again = Counter(line.removesuffix("has recovered").strip() for line in lines if line.endswith("has recovered"))
    assert failed == again, lines
    assert set(failed.values()) == {1}, lines
    assert sum("queued and retried" in line for line in lines) == 1, lines
    assert sum(line.endswith("is accepting exchanges again") for line in lines) == 1, lines
