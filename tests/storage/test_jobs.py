"""Job runs reported with heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from germane.storage import JobRun, JobRuns, TrackingStore, WorkerHeartbeat

LEASE = timedelta(seconds=60)
ME = WorkerHeartbeat(id="a", host="h1", pid=7, service="shop", version="1")


def beat(store: TrackingStore, *jobs: JobRuns, process: str = "a") -> None:
    """Write a heartbeat with the job runs of a process."""
    store.workers.heartbeat(replace(ME, id=process, jobs=jobs), [], lease=LEASE)


def runs(clock: Any, count: int) -> Sequence[JobRun]:
    """Return runs, two seconds apart; the last one failed."""
    moments = [clock.now + timedelta(seconds=2 * number) for number in range(count)]
    good = [JobRun(started_at=moment, seconds=0.25) for moment in moments[:-1]]
    return (*good, JobRun(started_at=moments[-1], seconds=1.5, problem="DatabaseUnreachable: away\0"))


def test_job_runs_round_trip_through_the_database(store: TrackingStore, clock: Any) -> None:
    """Times are exact to the millisecond, the error is sanitized, and the time of the next run is kept."""
    reported = runs(clock, 3)
    beat(store, JobRuns(name="watch", every=2.0, runs=reported), JobRuns(name="save", runs=reported[:1]))
    save, watch = store.workers.list_job_runs()

    assert (watch.process, watch.name, watch.every) == ("a", "watch", 2.0)
    assert watch.runs == (*reported[:2], replace(reported[2], problem="DatabaseUnreachable: away\ufffd"))
    assert watch.next_at == reported[2].started_at + timedelta(seconds=2)
    assert (save.runs, save.next_at) == (reported[:1], None)


def test_at_most_fifty_runs_of_a_job_are_kept(store: TrackingStore, clock: Any) -> None:
    """Only the latest runs are kept."""
    reported = runs(clock, 120)
    beat(store, JobRuns(name="watch", runs=reported))
    [watch] = store.workers.list_job_runs()

    assert [one.started_at for one in watch.runs] == [one.started_at for one in reported[-50:]]


def test_a_heartbeat_replaces_the_runs_of_its_jobs(store: TrackingStore, clock: Any) -> None:
    """Jobs that have not run since then keep their runs."""
    reported = runs(clock, 4)
    beat(store, JobRuns(name="watch", runs=reported[:1]), JobRuns(name="save", runs=reported[:1]))
    beat(store, JobRuns(name="watch", runs=reported[:2]))

    assert {one.name: len(one.runs) for one in store.workers.list_job_runs()} == {"watch": 2, "save": 1}


def test_jobs_are_deleted_with_their_worker(store: TrackingStore, clock: Any) -> None:
    """A worker's jobs are deleted when it deregisters, or a day after its last heartbeat. Other jobs are kept."""
    for process in ("a", "b", "c"):
        beat(store, JobRuns(name="watch", runs=runs(clock, 1)), process=process)
    store.workers.deregister_worker("a")
    assert [one.process for one in store.workers.list_job_runs()] == ["b", "c"]

    clock.advance(hours=25)
    beat(store, process="c")
    store.retention.prune()
    assert [one.process for one in store.workers.list_job_runs()] == ["c"]


@pytest.mark.parametrize("jobs", [(), (JobRuns(name="watch"),)])
def test_a_job_without_runs_has_no_next_run(store: TrackingStore, jobs: Sequence[JobRuns]) -> None:
    """If a job has not run, the time of its next run is unknown."""
    beat(store, *jobs)

    assert [(one.name, one.last, one.next_at) for one in store.workers.list_job_runs()] == [
        (one.name, None, None) for one in jobs
    ]
