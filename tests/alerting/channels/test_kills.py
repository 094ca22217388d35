"""Processes that are killed around a delivery."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerProcess
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, an_alert

from germane.alert import AlertChange, AlertEvent, Notification
from germane.monitor import Monitor, MonitorConfig
from germane.settings import load_settings
from germane.storage import AlertTransaction, TrackingStore

Program = Callable[[str, str], None]
OFF = [
    {"type": kind, "enabled": False} for kind in ("drop", "no_data", "scorer_error", "budget_exhausted", "judge_drift")
]
HOOK = {"hook": {"type": "webhook", "url": "env:HOOK_URL"}}
FORKED = multiprocessing.get_context("forkserver")
"""Creates child processes, which do not have to import everything again."""
FORKED.set_forkserver_preload(["tests.alerting.channels.test_kills", "germane.monitor.service"])


def fires(url: str, key: str = "the-key", **fields: Any) -> TrackingStore:
    """Write a notification, as the evaluator does."""
    store, alert, now = TrackingStore(url), an_alert(**fields), datetime.now(UTC)
    assert store.workers.acquire_lease("watcher", "me", ttl=timedelta(minutes=1))
    event = AlertEvent(id=f"e{key}", alert_id=alert.id, at=now, type="fired", after="firing")
    notification = Notification(
        id=f"n{key}", channel="hook", idempotency_key=key, type="firing", alerts=(alert,), event_ids=(event.id,),
        created_at=now,
    )  # fmt: skip
    changes = [AlertChange(alert=alert, event=event)]
    assert store.alerts.commit(
        AlertTransaction(holder=("watcher", "me"), changes=changes, notifications=[notification])
    )
    return store


def works(url: str, hook: str) -> None:
    """Deliver until this process is killed."""
    os.environ["HOOK_URL"] = hook
    # The lease is longer than a busy machine delays a renewal: after an expired lease, a notification is sent again.
    settings = load_settings(poll_interval=0.05, task_lease=5, rules=OFF, channels=HOOK)
    config = MonitorConfig(TrackingStore(url), [], settings, attach=lambda _exchange, _scores: "carrier")
    Monitor(config).start()
    signal.pause()


@pytest.fixture
def begin(url: str, receiver: Receiver) -> Iterator[Callable[[Program], ForkServerProcess]]:
    """Start a process on the same database and receiver; it is killed at the end of the test."""
    processes = []

    def begin(program: Program) -> ForkServerProcess:
        process = FORKED.Process(target=program, args=(url, receiver.url))
        process.start()
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.join()
        process.close()


def status_of(process: ForkServerProcess) -> int | None:
    """Wait for a process and return its exit status."""
    process.join(60)
    return process.exitcode


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_no_notification_is_lost_when_two_workers_are_killed(
    url: str,
    store: TrackingStore,
    begin: Any,
    receiver: Receiver,
    until: Any,
    hold: threading.Event,
) -> None:
    """Two workers share the database. Twice, both are killed during a delivery and replaced."""
    keys = [f"key-{number}" for number in range(8)]
    for key in keys:
        labels = {"service": "shop", "scorer": "relevancy", "route": key}
        fires(url, key, id=key, labels=labels).close()
    receiver.answers = [Answer(), Answer(after=hold), Answer(), Answer(after=hold)]
    for count in (2, 4):
        workers = [begin(works), begin(works)]
        until(lambda count=count: len(receiver.posts) >= count)
        for worker in workers:
            worker.kill()
            assert status_of(worker) == -signal.SIGKILL
    begin(works)
    begin(works)
    hold.set()
    until(lambda: len(store.notifications.search(status="sent", limit=100)) == len(keys))

    assert set(receiver.keys) == set(keys)
    assert len({(key, post.body) for key, post in zip(receiver.keys, receiver.posts, strict=True)}) == len(keys)
    # Each of the four killed workers had at most one notification in progress.
    assert len(receiver.posts) <= len(keys) + 2 * 2
