"""Processes that are killed while they archive: nothing is lost, and nothing is counted twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event
from tests.storage.archiving import OLD, Make, archive, fill
from tests.storage.s3_server import client, s3_server
from tests.storage.test_archive import archived_counts, counts

from germane.storage import TrackingStore
from germane.testing import engine_of

pytestmark = pytest.mark.slow
FORKED = multiprocessing.get_context("forkserver")
# Importing what archiving needs takes longer than archiving. pyarrow imports pandas if it is installed.
FORKED.set_forkserver_preload(
    [
        "tests.storage.archiving",
        "germane.storage.retention.archiving",
        "duckdb",
        "pandas",
        "pyarrow.fs",
        "pyarrow.parquet",
    ]
)
CALLS = 17
"""Each process is killed after this many more statements, commits and changes of files than the one before it."""


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty archive in a folder or on S3."""
    if request.param == "folder":
        yield str(tmp_path / "archive")
        return
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        bucket = uuid4().hex
        client(environment).create_bucket(Bucket=bucket)
        yield f"s3://{bucket}/germane"


@pytest.mark.parametrize(
    ("migrated_url", "location"),
    [
        ("sqlite", "folder"),
        ("postgresql", "s3"),
        pytest.param("sqlite", "s3", marks=pytest.mark.thorough),
        pytest.param("postgresql", "folder", marks=pytest.mark.thorough),
    ],
    indirect=True,
)
def test_killed_processes_lose_nothing(store: TrackingStore, make: Make, location: str, migrated_url: str) -> None:
    """After each kill, trends are complete. In the end, the archive has each row exactly once."""
    fill(store, make, count=24, days=2)
    rows, means = counts(store), means_of(store)
    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    kills = 0
    while True:
        process = FORKED.Process(
            target=archive_until_killed, args=(migrated_url, location, kills * CALLS + 5, environment)
        )
        process.start()
        process.join()
        assert means_of(store) == pytest.approx(means)
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1

    assert kills >= 3
    assert not any(counts(store).values())
    assert archived_counts(store) == rows
    assert store.archive.verify() == {}
    assert not any(day.has_stale_files for day in store.archive.list_days())


def means_of(store: TrackingStore) -> dict[str, float]:
    """Return numbers of scores and exchanges, and sums, over all time."""
    found: dict[str, float] = {}
    for summary in store.trends.summary():
        found[f"{summary.route} n"] = summary.n
        found[f"{summary.route} mean"] = summary.mean
        found[f"{summary.route} seen"] = summary.coverage.seen if summary.coverage else 0
    return found


def archive_until_killed(url: str, location: str, calls: int, environment: dict[str, str]) -> None:
    """Archive, and kill this process right before one of its calls."""
    os.environ.update(environment)
    left = calls

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name in {"os.rename", "os.remove"} or (name == "open" and ".tmp-" in str(arguments[0])):
            count()

    # Each process starts when the lease of the killed one has expired.
    store = TrackingStore(url, clock=lambda: OLD + calls * timedelta(minutes=1))
    event.listen(engine_of(store), "before_cursor_execute", count)
    event.listen(engine_of(store), "commit", count)
    sys.addaudithook(audit)
    archive(store, location)
    store.close()
