"""Heartbeats report the runs of background jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.testing import engine_of, transaction


class Quick:
    """A scorer that returns immediately."""

    name, fingerprint, requires, range = "quick", "f1", frozenset({"answer"}), (0.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        return 0.5


def test_heartbeats_report_job_runs(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Callable[..., None],
) -> None:
    """Runs and their durations are kept in the database until the process stops."""
    store.exchanges.add([new_exchange()])
    monitor = start(store, [Quick()], settings=settings(task_lease=1, poll_interval=0.1))
    until(
        lambda: (
            {"sample", "evaluate", "deliver", "rollup", "score", "save"}
            <= {one.name for one in store.workers.list_job_runs()}
        )
    )
    jobs = {one.name: one for one in store.workers.list_job_runs()}
    (worker,) = store.workers.list_workers()

    assert {one.process for one in jobs.values()} == {worker.id}
    assert (jobs["sample"].every, jobs["score"].every) == (0.1, None)
    assert all(run.problem is None and run.seconds >= 0 for one in jobs.values() for run in one.runs)
    assert all(len(one.runs) <= 50 for one in jobs.values())
    assert monitor.stop(60)
    assert store.workers.list_job_runs() == []


@pytest.mark.slow
def test_heartbeats_report_the_error_of_a_failed_run(
    store: TrackingStore, start: Callable[..., Monitor], settings: Callable[..., Settings], until: Callable[..., None]
) -> None:
    """The report contains the error's type and location, but no text that may come from users."""
    broken = TrackingStore(engine_of(store).url.render_as_string(hide_password=False))
    monitor = start(broken, [Quick()], settings=settings(task_lease=1, poll_interval=0.1))
    until(lambda: store.workers.list_job_runs())
    with transaction(store) as connection:
        connection.exec_driver_sql("ALTER TABLE rollup_dirty_hour RENAME TO elsewhere")
    until(lambda: any(run.problem for one in store.workers.list_job_runs() for run in one.runs if one.name == "rollup"))
    with transaction(store) as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO rollup_dirty_hour")
    problems = {
        run.problem for one in store.workers.list_job_runs() for run in one.runs if run.problem and one.name == "rollup"
    }

    assert all("rollup_dirty_hour" in str(problem) or "Error" in str(problem) for problem in problems)
    assert monitor.stop(60)
    broken.close()
