"""Exits and forks of real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.testing import FakeJudge, OTLPReceiver

pytestmark = pytest.mark.slow

Query = Callable[[str], list[Any]]
Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[..., tuple[str, str]]
Until = Callable[..., None]

HANDLER = """
import os, sys, threading, time
import germane

@germane.observe
def ask(question: str) -> str:
    return f"By card, at counter {question.removeprefix('How do I pay ')[:-1]}."

def ask_all(who, count):
    for number in range(count):
        ask(f"How do I pay {who} {number}?")
"""


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def start_and_drain(judge: FakeJudge, database: str) -> None:
    """Score the exchanges of an earlier process."""
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    assert germane.stop(drain_timeout=30)


def test_no_exchange_is_lost_when_the_program_exits_immediately(
    run: Run, judge: FakeJudge, database: str, query: Query
) -> None:
    """The exchange is stored without an error, and the next start scores it. At most, the log says so."""
    judge.latency = 0.3
    printed, logged = run(HANDLER + "germane.start()\nask_all('now', 40)\ntime.sleep(0.4)\nask_all('then', 40)", judge)

    assert printed == ""
    assert re.fullmatch(
        r"(stopped before \d+ scores could be computed; the next start or another worker computes them\n)?", logged
    )
    assert query("SELECT count(*) FROM exchange") == [80]
    assert set(query("SELECT state FROM scoring_task")) <= {"pending", "done"}
    assert query("SELECT count(*) FROM scoring_task WHERE lease_owner IS NOT NULL AND state = 'running'") == [0]

    judge.latency = 0
    start_and_drain(judge, database)
    assert query("SELECT count(*) FROM score") == [80]
    assert query("SELECT DISTINCT state FROM scoring_task") == ["done"]


def test_local_scores_do_not_fail_at_interpreter_exit(run: Run, query: Query) -> None:
    """Exchanges in progress are scored or stay pending, even though threads can no longer be started."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")
    code = """
germane.start(scorers=["question_answer_similarity"])
ask_all('local', 400)
store = germane.Store()
while not store.answers.counts().scores:
    time.sleep(0.01)
"""
    printed, logged = run(HANDLER + code)

    assert (printed, logged) == ("", "")
    assert query("SELECT count(*) FROM exchange") == [400]
    assert set(query("SELECT state FROM scoring_task")) <= {"pending", "done"}


def test_threads_that_outlive_the_main_thread_are_captured(run: Run, judge: FakeJudge, query: Query) -> None:
    """Other threads continue after the main thread has ended, and their exchanges are stored."""
    code = """
def last():
    threading.main_thread().join()
    ask_all('thread', 5)

germane.start()
threading.Thread(target=last).start()
"""
    assert run(HANDLER + code, judge) == ("", "")

    assert query("SELECT count(*) FROM exchange") == [5]


def test_exchanges_that_a_terminated_process_has_written_are_kept(
    program: Start, judge: FakeJudge, database: str, query: Query, until: Until
) -> None:
    """An unhandled SIGTERM ends the process. Exchanges that were written are scored later."""
    process = program(
        HANDLER + "germane.start(role='capture')\nask_all('term', 5)\nprint(1, flush=True)\ninput()", judge
    )
    assert process.stdout is not None
    process.stdout.readline()
    until(lambda: query("SELECT count(*) FROM exchange") == [5])
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == -signal.SIGTERM
    start_and_drain(judge, database)
    assert query("SELECT count(*) FROM score") == [5]


def test_processes_that_only_capture_import_no_scoring_libraries(run: Run, query: Query) -> None:
    """An application that leaves scoring to workers does not load scoring libraries."""
    code = """
germane.start(role='capture')
ask_all('light', 3)
germane.stop()
print({name.partition('.')[0] for name in sys.modules} & {'openai', 'apscheduler', 'httpx2', 'onnxruntime', 'numpy'})
"""
    assert run(HANDLER + code) == ("set()\n", "")
    assert query("SELECT count(*) FROM exchange") == [3]


def test_parent_and_children_of_a_forking_server_capture_exchanges(run: Run, judge: FakeJudge, query: Query) -> None:
    """Each exchange is stored and scored once."""
    code = """
germane.start()
ask_all('before', 5)
children, ends = [], []
for number in range(2):
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(theirs)
        ask_all(f'child {number}', 5)
        os.read(ours, 1)
        ask_all(f'late child {number}', 5)  # the parent has stopped: nobody else scores these
        sys.exit(0 if germane.stop(drain_timeout=30) else 1)
    os.close(ours)
    children.append(child)
    ends.append(theirs)
ask_all('parent', 5)
stopped = germane.stop(drain_timeout=30)
for end in ends:
    os.close(end)
print(stopped, [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    assert run(HANDLER + code, judge) == ("True [0, 0]\n", "")

    assert query("SELECT count(*), count(DISTINCT question) FROM exchange") == [(30, 30)]
    assert query("SELECT count(*) FROM score") == [30]
    assert query("SELECT DISTINCT state FROM scoring_task") == ["done"]
    asked = Counter(str(request.body["messages"]) for request in judge.chat_requests)
    assert sum(asked.values()) == 2 * 30  # one for the questions, one for the rating that determines the label


def test_a_child_that_ends_soon_starts_no_background_work(run: Run, judge: FakeJudge, query: Query) -> None:
    """Servers for a job or a request fork children that live for less than a second. They only write what they
    captured.
    """
    code = """
germane.start()
started = set()
child = os.fork()
if not child:
    threading.setprofile(lambda *_: started.add(threading.current_thread().name))
    ask_all('child', 3)
    print(germane.stop(), any('monitor' in name for name in started), 'germane-starter' in started, flush=True)
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, germane.stop(drain_timeout=30))
"""
    output, _ = run(HANDLER + code, judge)

    assert output == "True False True\n0 True\n"
    assert query("SELECT count(*) FROM exchange") == [3]


def test_a_forked_worker_can_call_start(run: Run, judge: FakeJudge, query: Query) -> None:
    """A server's post-fork hook may do this. No process exports another process's spans."""
    code = """
germane.start(service='parent')
ask_all('before', 3)
child = os.fork()
if not child:
    germane.start(service='child')
    ask_all('child', 3)
    sys.exit(0 if germane.stop(drain_timeout=30) else 1)
ask_all('parent', 3)
print(germane.stop(drain_timeout=30), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with OTLPReceiver() as receiver:
        assert run(HANDLER + code, judge, **receiver.environment()) == ("True 0\n", "")
        spans = [span for span in receiver.spans if span.attributes["openinference.span.kind"] == "CHAIN"]

    assert query("SELECT service, count(*) FROM exchange GROUP BY 1 ORDER BY 1") == [("child", 3), ("parent", 6)]
    assert query("SELECT count(*) FROM score") == [9]
    assert sorted(span.span_id for span in spans) == sorted(query("SELECT span_id FROM exchange"))


def test_a_fork_waits_for_imports_in_other_threads(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Otherwise, a module that is being imported during the fork would stay locked in the child."""
    (tmp_path / "slow.py").write_text("import time\nbegun.set()\ntime.sleep(0.5)\n")
    code = """
import builtins, importlib
builtins.begun = threading.Event()
germane.start()
thread = threading.Thread(target=importlib.import_module, args=('slow',))
thread.start()
begun.wait()
child = os.fork()
if not child:
    import slow
    os._exit(7)
deadline = time.monotonic() + 60
while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
    time.sleep(0.01)
print(ended[0] and os.waitstatus_to_exitcode(ended[1]))
thread.join()
if not ended[0]:
    os.kill(child, 9)
"""
    assert run(HANDLER + code, judge) == ("7\n", "")


def test_multiprocessing_children_write_their_exchanges(run: Run, judge: FakeJudge, query: Query) -> None:
    """Forked children skip `atexit` callbacks but lose nothing."""
    code = """
import multiprocessing

def spawned():
    germane.start()
    ask_all('spawned', 5)

if __name__ == '__main__':
    germane.start()
    for method, target, args in [('fork', ask_all, ('forked', 5)), ('spawn', spawned, ()), ('forkserver', spawned, ())]:
        child = multiprocessing.get_context(method).Process(target=target, args=args)
        child.start()
        child.join()
        print(child.exitcode)
    ask_all('parent', 5)
"""
    assert run(HANDLER + code, judge) == ("0\n0\n0\n", "")

    assert query("SELECT count(*) FROM exchange") == [20]


def test_no_score_is_lost_when_the_judge_process_is_killed(database: str, query: Query, until: Until) -> None:
    """The judge is killed during requests. All rows are stored, none gets a false score, and a new judge scores all."""
    command = [sys.executable, "-m", "germane.testing.judge", "--latency"]
    with subprocess.Popen([*command, "30"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        address = first.stdout.readline().strip()
        germane.start(
            base_url=address, judge="fake-judge", embedder="fake-embedder", database=database, poll_interval=0.05
        )
        for number in range(10):
            ask(f"How do I pay {number}?")
        running = germane.process.current_runtime()
        assert running is not None
        assert running.monitor is not None
        monitor = running.monitor
        until(lambda: monitor.status().in_flight == 10)
        first.kill()
    port = address.removesuffix("/v1").rpartition(":")[2]
    until(lambda: monitor.status().in_flight == 0)
    assert query("SELECT count(*) FROM exchange") == [10]
    assert query("SELECT count(*) FROM score") == [0]
    with subprocess.Popen([*command, "0", "--port", port], stdout=subprocess.PIPE, text=True) as second:
        assert second.stdout is not None
        assert second.stdout.readline().strip() == address
        assert germane.stop(drain_timeout=40)
        second.kill()

    assert query("SELECT count(*) FROM score") == [10]
    assert query("SELECT DISTINCT state FROM scoring_task") == ["done"]


def test_an_unreachable_collector_does_not_delay_the_exit(run: Run, judge: FakeJudge, query: Query) -> None:
    """Stopping does not exceed its timeout, and the scores are stored."""
    code = """
germane.start()
ask_all('lost', 5)
print(germane.stop(timeout=1, drain_timeout=3600))
"""
    printed, logged = run(HANDLER + code, judge, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")

    assert printed == "False\n"
    assert "germane" not in logged
    assert query("SELECT count(*) FROM score") == [5]
