"""A process that scores tells how its jobs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.settings import Settings
from germane.storage import Store


class Quick:
    """Scores at once."""

    name, fingerprint, requires, range = "quick", "f1", frozenset({"answer"}), (0.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        return 0.5


def test_the_heartbeat_carries_the_runs_of_the_jobs(
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Callable[..., None],
) -> None:
    """What ran is in the database with what it took; when the process ends as it should, it is gone."""
    store.add([new_exchange()])
    monitor = start(store, [Quick()], settings=settings(lease=1, tick=0.1))
    until(lambda: {"sample", "watch", "deliver", "roll", "score", "save"} <= {one.name for one in store.jobs()})
    jobs = {one.name: one for one in store.jobs()}
    (worker,) = store.workers()

    assert {one.process for one in jobs.values()} == {worker.id}
    assert (jobs["sample"].every, jobs["score"].every) == (0.1, None)
    assert all(run.problem is None and run.seconds >= 0 for one in jobs.values() for run in one.runs)
    assert all(len(one.runs) <= 50 for one in jobs.values())
    assert monitor.stop(60)
    assert store.jobs() == []


def test_a_run_that_failed_says_why(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], until: Callable[..., None]
) -> None:
    """With type and place, and no text that may be of a user's."""
    broken = Store(store._database.url.render_as_string(hide_password=False))
    monitor = start(broken, [Quick()], settings=settings(lease=1, tick=0.1))
    until(lambda: store.jobs())
    with store._database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE rollup_due RENAME TO elsewhere")
    until(lambda: any(run.problem for one in store.jobs() for run in one.runs if one.name == "roll"))
    with store._database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO rollup_due")
    problems = {run.problem for one in store.jobs() for run in one.runs if run.problem and one.name == "roll"}

    assert all("rollup_due" in str(problem) or "Error" in str(problem) for problem in problems)
    assert monitor.stop(60)
    broken.close()
