"""Tests of `germane worker`."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from germane.cli.worker import strip_counts
from germane.storage import SamplingDecision, TrackingStore
from germane.testing import FakeJudge, OTLPReceiver

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
Process = subprocess.Popen[str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers poll often."""
    monkeypatch.setenv("GERMANE_POLL_INTERVAL", "0.1")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge configured in the settings."""
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., Process]]:
    """A function that starts a worker as a process, with the settings of the test."""
    started: list[Process] = []

    def worker(*arguments: str) -> Process:
        command = [sys.executable, "-m", "germane", "worker", *arguments]
        process = subprocess.Popen(
            command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield worker
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], None]:
    """A function that waits for a change made by another process."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
        pause = threading.Event()
        for _ in range(int(seconds * 50)):
            if condition():
                return
            pause.wait(0.02)
        raise AssertionError("the condition was not met in time")

    return wait


def captured(store: TrackingStore, make: Callable[..., Any], count: int) -> list[Any]:
    """Write exchanges without a sampling decision, as a capturing application does."""
    exchanges = [make(question=f"How do I pay {number}?", answer=f"By card {number}.") for number in range(count)]
    store.exchanges.add(exchanges)
    return exchanges


@pytest.fixture
def make() -> Callable[..., Any]:
    """A function that creates exchanges at the current time."""
    from tests.cli.conftest import an_exchange

    return an_exchange


def states(store: TrackingStore) -> tuple[int, int, int]:
    """Return the numbers of done, pending and running tasks."""
    counts = store.answers.counts()
    return counts.done, counts.pending, counts.running


def test_worker_with_the_drain_option_scores_the_backlog_and_exits(
    call: Call, judge: FakeJudge, store: TrackingStore, make: Any
) -> None:
    """The first line describes the worker without secrets, and the exit code is 0."""
    captured(store, make, 25)
    ended = call("worker", "--drain", "--concurrency", "4")

    assert (ended.code, ended.out) == (0, "")
    models = "fake-judge and fake-embedder"
    expected = f"germane worker: scorers answer_relevancy with {models}, 4 concurrent requests, database {store.name}\n"
    assert ended.err == expected
    assert states(store) == (25, 0, 0)
    assert not store.backlog.load_outstanding()


def test_worker_with_the_once_option_scores_ready_tasks_and_exits(
    call: Call, judge: FakeJudge, store: TrackingStore, make: Any
) -> None:
    """Candidates and tasks for other scorers are not included. Each exchange takes two requests."""
    captured(store, make, 5)
    other = make()
    store.exchanges.add([other])
    store.sampling.assign_tasks([SamplingDecision(other.id, 1.0, "sampled")], {"theirs": "f9"})
    ended = call("worker", "--once")

    assert ended.code == 0
    assert states(store) == (5, 1, 0)
    assert len(judge.chat_requests) == 2 * 5


def test_a_worker_scores_even_if_the_role_setting_is_capture(
    call: Call, judge: FakeJudge, store: TrackingStore, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Applications and workers may share one environment."""
    monkeypatch.setenv("GERMANE_ROLE", "capture")
    captured(store, make, 2)

    assert call("worker", "--once").code == 0
    assert states(store) == (2, 0, 0)


def test_a_worker_runs_scorers_from_imported_modules(
    call: Call, store: TrackingStore, make: Any, monkeypatch: pytest.MonkeyPatch, bare: Path
) -> None:
    """Modules from --import are added to the modules in the setting."""
    for name in ("first", "second"):
        (bare / f"{name}_scorers.py").write_text(
            f"import germane\n\n@germane.scorer\ndef {name}_worker_scorer(exchange):\n    return 0.5\n"
        )
    monkeypatch.setenv("GERMANE_IMPORTS", "first_scorers")
    monkeypatch.setenv("GERMANE_SCORERS", "first_worker_scorer,second_worker_scorer")
    captured(store, make, 3)
    ended = call("worker", "--drain", "--import", "second_scorers")

    assert (ended.code, states(store)) == (0, (6, 0, 0)), ended.err
    assert ended.err.startswith("germane worker: scorers first_worker_scorer, second_worker_scorer, ")


def test_a_worker_requires_a_scorer(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, it exits immediately with the reason."""
    monkeypatch.setenv("GERMANE_SCORERS", "[]")
    ended = call("worker")

    assert (ended.code, ended.err) == (1, "germane: nothing will be scored: the scorers setting is empty\n")


def test_draining_waits_for_tasks_in_other_workers(
    start: Callable[..., Process], judge: FakeJudge, store: TrackingStore, make: Any, tmp_path: Path
) -> None:
    """The worker logs once what it is waiting for, and exits when the tasks are done."""
    (exchange,) = captured(store, make, 1)
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"theirs": "f9"})
    _tell(tmp_path, "UPDATE scoring_task SET state = 'running', due_at = '2999-01-01', lease_owner = 'another'")
    worker = start("--drain")
    assert worker.stderr is not None
    worker.stderr.readline()

    assert worker.stderr.readline() == "waiting for 1 task in progress in other processes\n"
    _tell(tmp_path, "UPDATE scoring_task SET state = 'done', due_at = NULL, lease_owner = NULL")
    assert (worker.wait(60), worker.stderr.read()) == (0, "")


def test_a_progress_message_is_not_logged_again_if_only_counts_changed() -> None:
    """A different reason is logged."""
    several, one = (
        "waiting for 12 tasks in progress in other processes",
        "waiting for 1 task in progress in other processes",
    )

    assert strip_counts(several) == strip_counts(one)
    assert strip_counts(one) != strip_counts("waiting for 1 task to be retried later")


def _tell(folder: Path, statement: str) -> None:
    """Change the database as another process does."""
    with closing(sqlite3.connect(folder / "germane.db")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_shutdown_of_a_worker_leaves_no_task_in_progress(
    number: int, code: int, start: Callable[..., Process], judge: FakeJudge, store: TrackingStore, make: Any, until: Any
) -> None:
    """Tasks are finished or released without using up retries."""
    judge.latency, judge.embedding_latency = 0.3, 0.0
    captured(store, make, 100)
    worker = start("--concurrency", "4")
    until(lambda: store.answers.counts().done)
    worker.send_signal(number)

    assert worker.wait(60) == code
    assert worker.stderr is not None
    assert len(worker.stderr.read().splitlines()) == 1
    done, pending, running = states(store)
    assert (done + pending, running) == (100, 0)
    assert 0 < done < 100
    assert len(judge.chat_requests) == 2 * done


def test_a_second_signal_ends_the_worker_immediately(
    start: Callable[..., Process], judge: FakeJudge, store: TrackingStore, make: Any, until: Any
) -> None:
    """It does not wait for a slow judge."""
    judge.latency = 300
    captured(store, make, 2)
    worker = start("--shutdown-timeout", "600")
    until(lambda: judge.chat_requests)
    worker.send_signal(signal.SIGTERM)
    until(lambda: signal.SIGTERM not in _caught(worker.pid))
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(60) == -signal.SIGTERM


def _caught(pid: int) -> set[int]:
    """Return the signals that a process handles itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_tasks_are_released_at_the_shutdown_timeout_of_a_worker(
    start: Callable[..., Process], judge: FakeJudge, store: TrackingStore, make: Any, until: Any
) -> None:
    """The worker reports it and exits with 1."""
    judge.latency = 300
    captured(store, make, 2)
    worker = start("--shutdown-timeout", "3")
    until(lambda: judge.chat_requests)
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(60) == 1
    assert worker.stderr is not None
    assert worker.stderr.read().splitlines()[1:] == [
        (
            "WARNING germane.monitor: stopped before 2 scores could be computed; "
            "the next start or another worker computes them"
        ),
        "shutdown timed out after 3 s; other workers claim tasks that were not released within 60 s",
    ]
    assert states(store) == (0, 2, 0)


def test_a_worker_waits_until_the_tables_exist(
    start: Callable[..., Process],
    call: Call,
    judge: FakeJudge,
    postgresql: Any,
    make: Any,
    until: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With --drain, it exits with an error. Otherwise, it starts once the tables exist. Passwords are not logged."""
    url = postgresql.url(postgresql.create()).replace("postgres@", "postgres:hush@")
    monkeypatch.setenv("GERMANE_AUTO_MIGRATE", "false")
    ended = call("worker", "--once", "--database", url)
    assert (ended.code, ended.out) == (1, "")
    assert "run 'germane db upgrade'" in ended.err

    worker = start("--database", url)
    assert worker.stderr is not None
    waiting = worker.stderr.readline()
    store = TrackingStore(url)
    store.migrate()
    store.exchanges.add([make()])
    until(lambda: store.answers.counts().done == 1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    store.close()
    begun = worker.stderr.read()

    assert waiting.startswith("waiting for the database: ")
    assert "run 'germane db upgrade'" in waiting
    assert begun.count("\n") == 1
    assert "hush" not in waiting + begun + ended.err


def test_scores_from_a_worker_reach_the_spans_of_the_application(
    call: Call, judge: FakeJudge, store: TrackingStore, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linked span carries the score, and is exported before the worker exits."""
    with OTLPReceiver() as receiver:
        for name, value in receiver.environment().items():
            monkeypatch.setenv(name, value)
        (exchange,) = captured(store, make, 1)
        assert call("worker", "--once").code == 0
        (span,) = receiver.spans

    assert [link.span_id for link in span.links] == [exchange.span_id]
    assert span.attributes["germane.evaluation.answer_relevancy"] == pytest.approx(
        store.answers.worst()[0].score.value, abs=1e-9
    )
