"""What a process does again and again is told with its signs of life."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from germane.storage import JobRuns, Presence, Run, Store

LEASE = timedelta(seconds=60)
ME = Presence(id="a", host="h1", pid=7, service="shop", version="1")


def beat(store: Store, *jobs: JobRuns, process: str = "a") -> None:
    """Have a process tell of its jobs."""
    store.beat(replace(ME, id=process, jobs=jobs), [], lease=LEASE)


def runs(clock: Any, count: int) -> Sequence[Run]:
    """Return runs, two seconds apart; the last one failed."""
    moments = [clock.now + timedelta(seconds=2 * number) for number in range(count)]
    good = [Run(started_at=moment, seconds=0.25) for moment in moments[:-1]]
    return (*good, Run(started_at=moments[-1], seconds=1.5, problem="DatabaseUnreachable: away\0"))


def test_the_last_runs_of_a_job_are_read_as_they_were_told(store: Store, clock: Any) -> None:
    """To the millisecond, with what went wrong as a column takes it, and when it is due again."""
    told = runs(clock, 3)
    beat(store, JobRuns(name="watch", every=2.0, runs=told), JobRuns(name="save", runs=told[:1]))
    save, watch = store.jobs()

    assert (watch.process, watch.name, watch.every) == ("a", "watch", 2.0)
    assert watch.runs == (*told[:2], replace(told[2], problem="DatabaseUnreachable: away\ufffd"))
    assert watch.next_at == told[2].started_at + timedelta(seconds=2)
    assert (save.runs, save.next_at) == (told[:1], None)


def test_no_more_than_fifty_runs_are_kept(store: Store, clock: Any) -> None:
    """However many are told."""
    told = runs(clock, 120)
    beat(store, JobRuns(name="watch", runs=told))
    [watch] = store.jobs()

    assert [one.started_at for one in watch.runs] == [one.started_at for one in told[-50:]]


def test_what_was_told_takes_the_place_of_what_was(store: Store, clock: Any) -> None:
    """A job that did not run since stays as it was told."""
    told = runs(clock, 4)
    beat(store, JobRuns(name="watch", runs=told[:1]), JobRuns(name="save", runs=told[:1]))
    beat(store, JobRuns(name="watch", runs=told[:2]))

    assert {one.name: len(one.runs) for one in store.jobs()} == {"watch": 2, "save": 1}


def test_the_jobs_of_a_process_go_with_it(store: Store, clock: Any) -> None:
    """When it ends as it should, and a day after it fell silent; those of others stay."""
    for process in ("a", "b", "c"):
        beat(store, JobRuns(name="watch", runs=runs(clock, 1)), process=process)
    store.dismiss("a")
    assert [one.process for one in store.jobs()] == ["b", "c"]

    clock.advance(hours=25)
    beat(store, process="c")
    store.prune()
    assert [one.process for one in store.jobs()] == ["c"]


@pytest.mark.parametrize("jobs", [(), (JobRuns(name="watch"),)])
def test_a_job_that_never_ran_is_no_trouble(store: Store, jobs: Sequence[JobRuns]) -> None:
    """Nobody can say when it is due."""
    beat(store, *jobs)

    assert [(one.name, one.last, one.next_at) for one in store.jobs()] == [(one.name, None, None) for one in jobs]
