"""Processes that are killed at the worst moment: what was found is told, under the same key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.monitor.channels.conftest import Answer, Receiver

from germane.monitor import Monitor
from germane.storage import Store

ROOT = Path(__file__).parents[3]
OFF = [{"kind": kind, "enabled": False} for kind in ("drop", "no_data", "scorer_error", "budget_exhausted")]
HOOK = {"hook": {"kind": "webhook", "url": "env:HOOK_URL"}}
WRITES = """
import os, signal
from datetime import UTC, datetime
from germane.alert import Change, Event, Notification
from germane.storage import Advance, Store
from tests.monitor.channels.conftest import an_alert

store, alert, now = Store(os.environ["DATABASE"]), an_alert(), datetime.now(UTC)
assert store.elect("watcher", "me", ttl=__import__("datetime").timedelta(minutes=1))
step = Advance(
    holder=("watcher", "me"),
    changes=[Change(alert=alert, event=Event(id="e1", alert_id=alert.id, at=now, what="fired", after="firing"))],
    notifications=[
        Notification(id="n1", channel="hook", idempotency_key="the-key", what="firing", alerts=(alert,),
                     event_ids=("e1",), created_at=now)
    ],
)
assert store.advance(step)
"""
DIES = WRITES + "os.kill(os.getpid(), signal.SIGKILL)\n"
DELIVERS = (
    WRITES
    + """
from germane.monitor import Monitor
from germane.settings import load

off = [{"kind": kind, "enabled": False} for kind in ("drop", "no_data", "scorer_error", "budget_exhausted")]
hook = {"hook": {"kind": "webhook", "url": "env:HOOK_URL"}}
settings = load(tick=0.05, lease=1, rules=off, channels=hook)
Monitor(store, [], settings, attach=lambda exchange, scores: "carrier").start()
signal.pause()
"""
)


@pytest.fixture
def begin(url: str, receiver: Receiver) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start a program on the same database, with the same receiver; it is killed at the latest with the test."""
    processes = []

    def begin(program: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "DATABASE": url, "HOOK_URL": receiver.url, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], env=environment, cwd=ROOT)
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def next_process(start: Any, settings: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start the process that comes after."""
    monkeypatch.setenv("HOOK_URL", receiver.url)

    def next_process(store: Store) -> Monitor:
        started: Monitor = start(store, settings=settings(rules=OFF, lease=1, channels=HOOK))
        return started

    return next_process


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_kill_between_the_change_and_its_delivery_still_delivers(
    store: Store, begin: Any, next_process: Any, receiver: Receiver, until: Any
) -> None:
    """The alert fires in the database, nobody was told: whoever comes next tells."""
    assert begin(DIES).wait(60) == -signal.SIGKILL
    (alert,) = store.open_alerts()
    assert (alert.state, receiver.posts) == ("firing", [])

    next_process(store)
    until(lambda: store.notifications(status="sent"))

    assert receiver.keys == ["the-key"]


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_kill_in_the_middle_of_a_delivery_delivers_again_under_the_same_key(
    store: Store, begin: Any, next_process: Any, receiver: Receiver, until: Any, hold: threading.Event
) -> None:
    """Nobody knows whether it arrived: the receiver can tell, and after one lease the next process has sent it."""
    receiver.answers = [Answer(after=hold)]
    process = begin(DELIVERS)
    until(lambda: receiver.posts)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    hold.set()

    next_process(store)
    until(lambda: store.notifications(status="sent"))

    assert receiver.keys == ["the-key"] * 2
    assert receiver.posts[0].body == receiver.posts[1].body
