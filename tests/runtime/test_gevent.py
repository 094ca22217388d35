"""Processes whose threads are greenlets. ``make frameworks ARGS=handlers`` runs these tests with gevent."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from germane.testing import FakeJudge

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("gevent") is None, reason="gevent is installed by make frameworks"),
]
START = """
from gevent import monkey; monkey.patch_all()
import asyncio, json, os, sys, threading, time
import gevent, germane
from germane.errors import UsageError
died = []
threading.excepthook = lambda error: died.append(str(error.exc_value))
settings = json.loads(sys.argv[1])
rows = [{"question": "How?", "answer": "By card."}]

@germane.observe
def ask(question: str) -> str:
    gevent.sleep(.01)
    return f"By card, as for {question!r}."

def wait(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        gevent.sleep(.1)
"""
SCORE = """
germane.start(**settings)
for number in range(8):
    ask(f"How {number} of {os.getpid()}?")
germane.flush()
store = germane.Store(settings["database"])
wait(lambda: store.answers.counts().scores == 16)
print(json.dumps({"died": died, "stopped": germane.stop(timeout=20)}))
"""
EVALUATE = """
def evaluate():
    try:
        return [score.state for score in germane.evaluate(rows, "intent_match", progress=False, **settings).scores]
    except UsageError as error:
        return str(error)

tasks = [gevent.spawn(evaluate) for _ in range(2)]
gevent.joinall(tasks, raise_error=True)
print(json.dumps([task.value for task in tasks]))
"""
OWN_LOOP = """
async def main():
    germane.start(**settings)
    wait(lambda: len(records))
    return germane.stop(timeout=5)

import logging
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
logging.getLogger("germane.monitor").addHandler(handler)
asyncio.run(main())
print(json.dumps({"died": died, "logged": records}))
"""


def start(program: str, **settings: Any) -> subprocess.Popen[str]:
    """Start a program in a process patched by gevent."""
    command = [sys.executable, "-c", START + program, json.dumps(settings)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result_of(process: subprocess.Popen[str]) -> Any:
    """Return what a process printed."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(output.splitlines()[-1])


def test_two_gevent_workers_score_nothing_twice(tmp_path: Path) -> None:
    """Their heartbeats extend the leases of tasks, although the judge takes longer than a lease."""
    with FakeJudge(latency=2.5) as judge:
        settings = {"database": f"sqlite:///{tmp_path}/germane.db", "scorers": ["intent_match"], "task_lease": 1}
        workers = [start(SCORE, **judge.settings() | settings | {"concurrency": 2}) for _ in range(2)]
        assert [result_of(worker) for worker in workers] == [{"died": [], "stopped": True}] * 2
        asked = len(judge.chat_requests)

    with closing(sqlite3.connect(tmp_path / "germane.db")) as database:
        (scores,) = database.execute("SELECT count(*) FROM score WHERE value IS NOT NULL").fetchone()
        (workers_left,) = database.execute("SELECT count(*) FROM worker").fetchone()
    assert (scores, asked, workers_left) == (16, 16, 0)


def test_a_second_evaluation_in_another_greenlet_is_refused_by_name() -> None:
    """The first one is not affected."""
    with FakeJudge(latency=0.5) as judge:
        first, second = result_of(start(EVALUATE, **judge.settings()))

    assert first == ["scored"]
    assert "gevent" in second


def test_scoring_beside_an_event_loop_of_the_application_is_refused_by_name(tmp_path: Path) -> None:
    """The log says what to run instead, and no thread dies."""
    with FakeJudge() as judge:
        settings = {"database": f"sqlite:///{tmp_path}/germane.db"}
        outcome = result_of(start(OWN_LOOP, **judge.settings() | settings))

    assert outcome["died"] == []
    assert any("gevent" in line and "germane worker" in line for line in outcome["logged"])
