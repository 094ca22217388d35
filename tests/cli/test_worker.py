"""`germane worker`: scores beside applications that only capture, and stops when it is told to."""

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

from germane.cli.worker import _without_numbers
from germane.storage import Decision, Store
from germane.testing import FakeJudge, OTLPReceiver

Call = Callable[..., Any]
Process = subprocess.Popen[str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks often."""
    monkeypatch.setenv("GERMANE_TICK", "0.1")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge that the settings name."""
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., Process]]:
    """Starts a worker as a process, with the settings of the test."""
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
    """Waits for what another process is about to do."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
        pause = threading.Event()
        for _ in range(int(seconds * 50)):
            if condition():
                return
            pause.wait(0.02)
        raise AssertionError("it never came true")

    return wait


def captured(store: Store, make: Callable[..., Any], count: int) -> list[Any]:
    """Write exchanges that nobody has decided on, as an application does that captures."""
    exchanges = [make(question=f"How do I pay {number}?", answer=f"By card {number}.") for number in range(count)]
    store.add(exchanges)
    return exchanges


@pytest.fixture
def make() -> Callable[..., Any]:
    """Makes exchanges of just now."""
    from tests.cli.conftest import an_exchange

    return an_exchange


def states(store: Store) -> tuple[int, int, int]:
    """Return how many tasks are done, pending and running."""
    counts = store.counts()
    return counts.done, counts.pending, counts.running


def test_a_worker_scores_until_nothing_is_left(call: Call, judge: FakeJudge, store: Store, make: Any) -> None:
    """It says what it is about to do in one line that tells no secret, scores all of it, and exits with 0."""
    captured(store, make, 25)
    ended = call("worker", "--until-empty", "--concurrency", "4")

    assert (ended.code, ended.out) == (0, "")
    models = "fake-judge and fake-embedder"
    said = f"germane worker scores answer_relevancy with {models}, 4 requests at a time, in {store.name}\n"
    assert ended.err == said
    assert states(store) == (25, 0, 0)
    assert not store.outstanding()


def test_one_round_scores_what_is_ready(call: Call, judge: FakeJudge, store: Store, make: Any) -> None:
    """Candidates of a pool and tasks of others are no part of it; the judge is asked once for each exchange."""
    captured(store, make, 5)
    other = make()
    store.add([other])
    store.assign([Decision(other.id, 1.0, "drawn")], {"theirs": "f9"})
    ended = call("worker", "--once")

    assert ended.code == 0
    assert states(store) == (5, 1, 0)
    assert len(judge.chats) == 5


def test_a_worker_scores_where_the_environment_says_capture(
    call: Call, judge: FakeJudge, store: Store, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One environment serves the applications, which capture, and the worker beside them."""
    monkeypatch.setenv("GERMANE_ROLE", "capture")
    captured(store, make, 2)

    assert call("worker", "--once").code == 0
    assert states(store) == (2, 0, 0)


def test_scorers_of_an_imported_module_run(
    call: Call, store: Store, make: Any, monkeypatch: pytest.MonkeyPatch, bare: Path
) -> None:
    """A module of the current folder that registers a scorer is found, beside those of the setting."""
    for name in ("first", "second"):
        (bare / f"{name}_scorers.py").write_text(
            f"import germane\n\n@germane.scorer\ndef {name}_worker_scorer(exchange):\n    return 0.5\n"
        )
    monkeypatch.setenv("GERMANE_IMPORTS", "first_scorers")
    monkeypatch.setenv("GERMANE_SCORERS", "first_worker_scorer,second_worker_scorer")
    captured(store, make, 3)
    ended = call("worker", "--until-empty", "--import", "second_scorers")

    assert (ended.code, states(store)) == (0, (6, 0, 0)), ended.err
    assert ended.err.startswith("germane worker scores first_worker_scorer, second_worker_scorer, ")


def test_without_a_scorer_there_is_no_worker(call: Call, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to score with ends it at once, with the reason."""
    monkeypatch.setenv("GERMANE_SCORERS", "[]")
    ended = call("worker")

    assert (ended.code, ended.err) == (1, "germane: nothing will be scored: the setting scorers is empty\n")


def test_a_worker_waits_for_what_another_one_holds(
    start: Callable[..., Process], judge: FakeJudge, store: Store, make: Any, tmp_path: Path
) -> None:
    """Until that one is done it says once that it waits, and for what; then it exits."""
    (exchange,) = captured(store, make, 1)
    store.assign([Decision(exchange.id, 1.0, "drawn")], {"theirs": "f9"})
    _tell(tmp_path, "UPDATE scoring_task SET state = 'running', not_before = '2999-01-01', lease_owner = 'another'")
    worker = start("--until-empty")
    assert worker.stderr is not None
    worker.stderr.readline()

    assert worker.stderr.readline() == "waiting for 1 task that others are at work on\n"
    _tell(tmp_path, "UPDATE scoring_task SET state = 'done', not_before = NULL, lease_owner = NULL")
    assert (worker.wait(60), worker.stderr.read()) == (0, "")


def test_one_task_is_no_news_after_two() -> None:
    """What a worker waits for is said again when it is something else, not when it is fewer."""
    several, one = "waiting for 12 tasks that others are at work on", "waiting for 1 task that others are at work on"

    assert _without_numbers(several) == _without_numbers(one)
    assert _without_numbers(one) != _without_numbers("waiting for 1 task to be tried again later")


def _tell(folder: Path, statement: str) -> None:
    """Do to the database what another process does."""
    with closing(sqlite3.connect(folder / "germane.db")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_worker_that_is_told_to_stop_leaves_nothing_half_done(
    number: int, code: int, start: Callable[..., Process], judge: FakeJudge, store: Store, make: Any, until: Any
) -> None:
    """What it holds is finished or handed back, without any use of its tries; the rest waits for the next worker."""
    judge.latency, judge.embedding_latency = 0.3, 0.0
    captured(store, make, 100)
    worker = start("--concurrency", "4")
    until(lambda: store.counts().done)
    worker.send_signal(number)

    assert worker.wait(60) == code
    assert worker.stderr is not None
    assert len(worker.stderr.read().splitlines()) == 1
    done, pending, running = states(store)
    assert (done + pending, running) == (100, 0)
    assert 0 < done < 100
    assert len(judge.chats) == done


def test_a_second_signal_ends_a_worker_at_once(
    start: Callable[..., Process], judge: FakeJudge, store: Store, make: Any, until: Any
) -> None:
    """Whoever does not want to wait for a slow judge asks twice."""
    judge.latency = 300
    captured(store, make, 2)
    worker = start("--grace", "600")
    until(lambda: judge.chats)
    worker.send_signal(signal.SIGTERM)
    until(lambda: signal.SIGTERM not in _caught(worker.pid))
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(60) == -signal.SIGTERM


def _caught(pid: int) -> set[int]:
    """Return the signals that a process handles itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_what_takes_longer_than_the_grace_is_left_to_others(
    start: Callable[..., Process], judge: FakeJudge, store: Store, make: Any, until: Any
) -> None:
    """A stop that was cut short says so, exits with 1, and hands back what it could not finish."""
    judge.latency = 300
    captured(store, make, 2)
    worker = start("--grace", "3")
    until(lambda: judge.chats)
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(60) == 1
    assert worker.stderr is not None
    assert worker.stderr.read().splitlines()[1:] == ["not all was finished in time; others take it up within 60 s"]
    assert states(store) == (0, 2, 0)


def test_a_worker_waits_for_tables_and_says_so_once(
    start: Callable[..., Process], call: Call, judge: FakeJudge, postgresql: Any, make: Any, until: Any
) -> None:
    """A job ends with the error; a lasting worker begins as soon as the tables are there. No line tells a password."""
    url = postgresql.url(postgresql.create()).replace("postgres@", "postgres:hush@")
    ended = call("worker", "--once", "--database", url)
    assert (ended.code, ended.out) == (1, "")
    assert "run 'germane db upgrade'" in ended.err

    worker = start("--database", url)
    assert worker.stderr is not None
    waiting = worker.stderr.readline()
    store = Store(url)
    store.migrate()
    store.add([make()])
    until(lambda: store.counts().done == 1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    store.close()
    begun = worker.stderr.read()

    assert waiting.startswith("waiting for the database: ")
    assert "run 'germane db upgrade'" in waiting
    assert begun.count("\n") == 1
    assert "hush" not in waiting + begun + ended.err


def test_scores_of_a_worker_reach_the_spans_of_the_application(
    call: Call, judge: FakeJudge, store: Store, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span that links to the handler's carries the score, and has left when the worker exits."""
    with OTLPReceiver() as receiver:
        for name, value in receiver.environment().items():
            monkeypatch.setenv(name, value)
        (exchange,) = captured(store, make, 1)
        assert call("worker", "--once").code == 0
        (span,) = receiver.spans

    assert [link.span_id for link in span.links] == [exchange.span_id]
    assert span.attributes["rag.evaluation.answer_relevancy"] == pytest.approx(store.worst()[0].score.value, abs=1e-9)
