"""``stop(drain_timeout=...)``: what a script prints while it waits for scores, and when it stops to wait."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import drain
from germane.testing import FakeJudge, Fault

Query = Callable[[str], list[Any]]
Warnings = Callable[[], list[str]]
FOREVER = 3600
"""A drain timeout that would exceed pytest's time limit."""
SCRIPT = """
import germane
germane.start(scorers=["answer_relevancy"])

@germane.observe
def ask(question: str) -> str:
    return "By card."

for number in range(4):
    ask(f"How do I pay {number}?")
germane.stop(drain_timeout=3600)
"""


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def ask_all(count: int, **settings: Any) -> None:
    """Start germane and ask several different questions."""
    germane.start(poll_interval=0.05, **{"scorers": ("answer_relevancy",)} | settings)
    for number in range(count):
        ask(f"How do I pay {number}?")


FAULTS = {
    "rejected key": Fault("status", status=401, message="Incorrect API key"),
    "used quota": Fault("status", status=429, code="insufficient_quota"),
    "unknown model": Fault("status", status=404, message="unknown model"),
}
OTHERS = ("used quota", "unknown model")


@pytest.mark.parametrize("name", ["rejected key", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_draining_ends_when_the_server_rejects_every_request(
    name: str, judge: FakeJudge, database: str, query: Query, warnings: Warnings
) -> None:
    """One line names the number of answers without a score, the reason, and what becomes of them."""
    judge.outage = FAULTS[name]
    ask_all(5, **judge.settings(), database=database)

    assert germane.stop(drain_timeout=FOREVER)

    assert query("SELECT count(*) FROM exchange") == [5]
    last = warnings()[-1]
    assert last.startswith("5 answers without a score: judge_rejected: HTTP ")
    assert "run 'germane doctor'. Unscored answers stay in sqlite:///" in last
    assert last.endswith("the next start, or a worker, scores them")


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 20])
def test_draining_ends_when_no_server_answers(count: int, database: str, warnings: Warnings) -> None:
    """The port is wrong. A single answer, too, is not waited for until the timeout."""
    ask_all(count, base_url="http://127.0.0.1:9/v1", embedder="unreachable", database=database)

    assert germane.stop(drain_timeout=FOREVER)

    last, number = warnings()[-1], "1 answer" if count == 1 else "20 answers"
    assert last.startswith(f"{number} without a score: judge_unreachable: no connection to http://127.0.0.1:9/v1")


def test_draining_goes_on_while_the_judge_may_recover(judge: FakeJudge, database: str, query: Query) -> None:
    """A busy server is waited for, and its answers are scored."""
    judge.faults.extend([Fault("status", status=503)] * 8)
    ask_all(3, **judge.settings(), database=database)

    assert germane.stop(drain_timeout=FOREVER)

    assert query("SELECT count(*) FROM score") == [3]


def test_a_scorer_that_can_work_is_waited_for(
    judge: FakeJudge, database: str, query: Query, warnings: Warnings
) -> None:
    """Scores that need no judge are complete before the wait for the others ends."""

    @germane.scorer(name="shortness")
    def shortness(exchange: germane.Exchange) -> float:
        return 1.0

    judge.outage = FAULTS["rejected key"]
    ask_all(5, **judge.settings(), database=database, scorers=("answer_relevancy", "shortness"))

    assert germane.stop(drain_timeout=FOREVER)

    assert query("SELECT scorer, count(*) FROM score GROUP BY scorer") == [("shortness", 5)]
    assert "5 answers without a score" in warnings()[-1]


def test_the_end_of_the_timeout_is_logged_with_the_number_of_answers(
    judge: FakeJudge, database: str, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The progress is logged at an interval, and the last line says that the time was too short."""
    monkeypatch.setattr(drain, "LOG_INTERVAL", 0.2)
    judge.outage = Fault("status", status=503)
    ask_all(3, **judge.settings(), database=database)

    assert germane.stop(drain_timeout=1)

    *_, progress, last = warnings()
    assert re.fullmatch(r"waiting for scores: 3 answers left after [01] s of at most 1 s.*", progress)
    assert "3 answers without a score: scoring takes longer than the drain timeout of 1 s; raise it" in last


def test_a_terminal_is_updated_at_an_interval(judge: FakeJudge, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update counts all waiting answers, which is expensive if there are many."""
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(drain, "SHOWN_INTERVAL", 0.4)
    judge.outage = Fault("status", status=503)
    ask_all(3, **judge.settings(), database=database)

    assert germane.stop(drain_timeout=1)

    assert 1 <= terminal.getvalue().count("waiting for scores") <= 2


@pytest.mark.slow
def test_a_terminal_shows_the_progress_on_one_line(bare: Path, judge: FakeJudge) -> None:
    """The line is updated in place and erased at the end. Nothing else is printed."""
    judge.latency = 2.0
    (bare / "app.py").write_text(SCRIPT, encoding="utf-8")
    variables = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
    reader, writer = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "app.py"], env=os.environ | variables, stdout=writer, stderr=writer
    ) as script:
        os.close(writer)
        printed = b""
        try:
            while chunk := os.read(reader, 4096):
                printed += chunk
        except OSError:  # the end of a terminal, on Linux
            pass
    os.close(reader)

    assert script.returncode == 0
    lines = [line for line in printed.decode().split("\r\x1b[K") if line]
    assert lines
    assert [line for line in lines if not re.match(r"waiting for scores: \d+ answers? left after \d+ s", line)] == []
    assert printed.endswith(b"\r\x1b[K")
