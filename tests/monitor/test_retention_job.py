"""The retention job: one process deletes old data."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.jobs.maintenance import RetentionJob, RetentionSchedule
from germane.settings import Retention
from germane.storage import OutgoingRequest, ReceivedItem, SamplingDecision, TrackingStore, WorkerHeartbeat
from germane.storage.db.batches import BATCH_SIZE
from germane.testing import Clock, engine_of

Make = Callable[..., Exchange]
Until = Callable[..., None]
OFTEN = RetentionSchedule(initial_delay=timedelta(seconds=0.05), interval=timedelta(seconds=0.1))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAYS_30 = Retention(text_days=30, score_days=400)


@pytest.fixture
def clock() -> Clock:
    """A clock that shows noon."""
    return Clock(NOON)


@pytest.fixture
def old(new_exchange: Make) -> Make:
    """Create exchanges a number of days before noon."""
    return lambda days, **given: new_exchange(started_at=NOON - timedelta(days=days), **given)


def make_job(store: TrackingStore, owner: str, clock: Clock, retention: Retention = DAYS_30) -> RetentionJob:
    return RetentionJob(store, retention, owner=owner, schedule=RetentionSchedule(), clock=clock)


def run(*jobs: RetentionJob) -> None:
    async def one_after_the_other() -> None:
        for job in jobs:
            await job.run()
            job.close()

    asyncio.run(one_after_the_other())


def has_text(store: TrackingStore) -> list[bool]:
    return [one.question is not None for one in store.answers.list_exchanges()]


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_the_retention_job_runs_without_a_scorer(
    url: str, start: Callable[..., Monitor], settings: Callable[..., Any], new_exchange: Make, until: Until
) -> None:
    """The job runs repeatedly: data that has become old in the meantime is also deleted."""
    store = TrackingStore(url)
    now = datetime.now(UTC)
    aged = new_exchange(started_at=now - timedelta(days=3))
    store.exchanges.add([aged, new_exchange(started_at=now)])
    monitor = start(store, settings=settings(retention={"text_days": 2, "score_days": 9}), retention_schedule=OFTEN)

    until(lambda: has_text(store) == [True, False])
    store.exchanges.add([new_exchange(started_at=now - timedelta(days=10))])
    until(lambda: store.answers.counts().captured == 2)

    until(lambda: monitor.status().jobs["retention"].last_run)
    assert monitor.status().jobs["retention"].problem is None
    assert monitor.stop(60)
    store.close()


def test_data_is_not_deleted_early_if_the_clock_of_a_host_is_ahead(
    store: TrackingStore, old: Make, clock: Clock
) -> None:
    """The database's clock also counts, so a host whose clock is a year ahead deletes nothing."""
    timed = TrackingStore(engine_of(store).url.render_as_string(hide_password=False), clock=clock)
    ahead = Clock(NOON)
    ahead.now += timedelta(days=365)
    timed.exchanges.add([old(1), old(31)])

    run(make_job(timed, "me", ahead))

    assert has_text(timed) == [True, False]
    timed.close()


def test_only_one_process_runs_the_retention_job(
    store: TrackingStore, other_store: TrackingStore, old: Make, clock: Clock
) -> None:
    """Another process takes over after the first has exited."""
    first, second = make_job(store, "first", clock), make_job(other_store, "second", clock)
    run(first)
    store.exchanges.add([old(31)])

    run(second)
    assert has_text(store) == [True]

    first.leader.release()
    run(make_job(other_store, "second", clock))
    assert has_text(store) == [False]


def test_a_retention_round_is_logged_in_one_line(
    store: TrackingStore, old: Make, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A round that removes nothing is not logged."""
    caplog.set_level(logging.INFO, "germane.monitor")
    store.exchanges.add([old(31), old(32), old(401)])

    run(make_job(store, "me", clock))
    run(make_job(store, "me", clock))

    assert [record.getMessage() for record in caplog.records] == ["retention: 2 texts erased, 1 exchange deleted"]
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_the_deletion_of_requests_that_were_acknowledged_but_not_forwarded_is_a_warning(
    store: TrackingStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """So is that of traces that no receiver has finished."""
    timed = TrackingStore(engine_of(store).url.render_as_string(hide_password=False), clock=clock)
    item = ReceivedItem("a" * 32, "b" * 16, False, "shop", "scope", b"text", 0.0)
    for items, requests in (([item], []), ([], [OutgoingRequest("traces", b"text")])):
        timed.received.stage(items, max_wait=1.0, requests=requests, target="there")
        clock.advance(days=31)
        run(make_job(timed, "w1", clock))
        clock.advance(hours=2)
    timed.close()

    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert logged == [
        ("WARNING", "retention: 1 unfinished trace deleted"), ("WARNING", "retention: 1 unsent request deleted")
    ]  # fmt: skip


def test_tasks_for_scorers_that_no_process_runs_expire(store: TrackingStore, old: Make, clock: Clock) -> None:
    """Only registered processes count."""
    timed = TrackingStore(engine_of(store).url.render_as_string(hide_password=False), clock=clock)
    exchange = old(1)
    timed.exchanges.add([exchange])
    timed.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"gone": "f1", "there": "f2"})
    presence = WorkerHeartbeat(id="w", host="h", pid=1, service="s", version="1", scorers={"there": "f2"})
    timed.workers.heartbeat(presence, (), lease=timedelta(minutes=1))
    clock.now += timedelta(hours=2)
    timed.workers.heartbeat(presence, (), lease=timedelta(minutes=1))

    run(make_job(timed, "me", clock))

    assert {one.scorer: (one.pending, dict(one.skipped)) for one in timed.trends.coverage()} == {
        "gone": (0, {"expired": 1}),
        "there": (1, {}),
    }
    timed.close()


def test_stopping_interrupts_a_retention_round_between_transactions(
    store: TrackingStore, old: Make, clock: Clock
) -> None:
    """The next round deletes the remaining data."""
    store.exchanges.add([old(31 + number / 1000) for number in range(BATCH_SIZE + 50)])
    job = make_job(store, "me", clock)

    class Lease:
        """A lease that stops the job after its first transactions."""

        def acquire(self) -> bool:
            job.stopping = not all(has_text_of_all(store))
            return not job.stopping

    job.leader = Lease()  # type: ignore[assignment]  # it has the one method that is called
    run(job)
    assert sum(has_text_of_all(store)) == 50

    run(make_job(store, "me", clock))
    assert sum(has_text_of_all(store)) == 0


def has_text_of_all(store: TrackingStore) -> list[bool]:
    return [one.question is not None for one in store.answers.list_exchanges(limit=1000)]


def test_a_stopping_retention_job_does_not_start_another_run(store: TrackingStore, old: Make, clock: Clock) -> None:
    """It does not create a thread."""
    store.exchanges.add([old(31)])
    job = make_job(store, "me", clock)
    job.stopping = True

    run(job)

    assert has_text(store) == [True]


def test_an_exceeded_maximum_size_is_logged_once(
    store: TrackingStore, new_exchange: Make, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A second line is logged when the size is within the limit again."""
    caplog.set_level(logging.INFO, "germane.monitor")
    store.exchanges.add([new_exchange(started_at=datetime.now(UTC))])
    tight = DAYS_30.model_copy(update={"max_size": 1})
    job = make_job(store, "me", clock, tight)

    asyncio.run(twice(job))
    job._retention = tight.model_copy(update={"max_size": 10**9})
    asyncio.run(twice(job))
    job.close()

    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[0].endswith("but the remaining data is too recent to delete")
    assert messages[1] == "the database is within retention.max_size again"
    assert has_text(store) == [True]


async def twice(job: RetentionJob) -> None:
    await job.run()
    await job.run()


def test_text_is_erased_after_the_last_score_of_an_exchange(
    url: str, start_judged: Callable[..., Monitor], judge: Any, new_exchange: Make, attached: Any, until: Until
) -> None:
    """End to end: the spans contain the text, and the database does not."""
    store = TrackingStore(url, erase_after_scoring=True)
    exchange = new_exchange()
    store.exchanges.add([exchange])
    start_judged(store, judge, scorers=["answer_relevancy"])

    until(lambda: attached.scores)
    until(lambda: has_text(store) == [False])
    [score] = store.answers.get_scores([exchange.id])[exchange.id]
    [shown] = attached.scores
    assert score.value == pytest.approx(shown.value, abs=1e-9)
    assert attached.calls[0][0] == exchange
    assert shown.details["questions"][0]["text"]
    assert "text" not in score.details["questions"][0]
    assert replace(exchange, question=None, answer=None) == store.answers.list_exchanges()[0]
    store.close()
