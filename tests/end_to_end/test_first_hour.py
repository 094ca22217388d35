"""The first hour of a new user: programs and commands with common mistakes, and what each of them prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from germane.testing import FakeJudge

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SERVER = "http://127.0.0.1:1/v1"
"""An address on which nothing listens."""
HANDLER = """
import germane
{start}
@germane.observe
def ask(question: str) -> {type}:
    return {answer}

print(ask("Can I pay by invoice?"))
germane.stop(drain_timeout=60)
"""
GOOD = HANDLER.format(start="germane.start()", type="str", answer="'Yes, by invoice within 30 days.'")
ABOVE = """
import germane
from fastapi import FastAPI
from fastapi.testclient import TestClient

germane.start()
app = FastAPI()

@germane.observe
@app.post("/ask")
def ask(question: str) -> str:
    return "Yes, by invoice."

print(TestClient(app).post("/ask?question=Invoice").text)
germane.stop()
"""
ASYNC_SELECTOR = """
import germane

async def text_of(reply: dict) -> str:
    return reply["text"]

@germane.observe(answer=text_of)
def ask(question: str) -> dict:
    return {"text": "Yes."}
"""


TWO_HANDLERS = """
import germane
germane.start()

@germane.observe
def unasked(number: int) -> str:
    return "Yes."

@germane.observe
def unanswered(question: str) -> dict:
    return {"status": 200}

unasked(3)
unanswered("Can I pay by invoice?")
germane.stop()
"""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A program, the command that follows it, and parts of what they print."""

    program: str = GOOD
    variables: Mapping[str, str] = field(default_factory=dict)
    printed: Sequence[str] = ()
    """Parts of the program's output. It ends with 0 unless an error is expected."""
    command: Sequence[str] = ("doctor",)
    folder: str = "."
    code: int = 0
    """Exit code of the command."""
    shown: Sequence[str] = ()
    """Parts of the command's output."""


MISTAKES = {
    "germane was not started": Mistake(
        program=HANDLER.format(start="", type="str", answer="'Yes.'"),
        printed=["an observed handler was called, but germane is not running: nothing is captured"],
        shown=["no observed handler found", "call germane.start() in its process"],
    ),
    "the decorator is above the route": Mistake(
        program=ABOVE,
        code=4,
        shown=["handler ask: is observed, but has not captured any exchanges", "below decorators such as @app.post"],
    ),
    "the answer is in a dict": Mistake(
        program=HANDLER.format(start="germane.start()", type="dict", answer="{'status': 200, 'payload': 3}"),
        printed=["answer of ask: found no answer in dict with status, payload", "(the handler is not affected)"],
        code=4,
        shown=["captured exchanges without answer", '@germane.observe(answer="text")'],
    ),
    "the selector is async": Mistake(
        program=ASYNC_SELECTOR,
        printed=["germane.errors.UsageError: a selector must not be async"],
    ),
    "two handlers are bad in different ways": Mistake(
        program=TWO_HANDLERS,
        code=4,
        shown=[
            "handler unasked: captured exchanges without question: the selectors match nothing ->",
            '@germane.observe(question="body.query"); see',
            "handler unanswered: captured exchanges without answer: the selectors match nothing ->",
            '@germane.observe(answer="text"); see',
        ],
    ),
    "the answer is not awaited": Mistake(
        program=GOOD.replace("def ask", "async def ask"),
        printed=["coroutine 'ask' was never awaited"],
        code=4,
        shown=["handler ask: is observed, but has not captured any exchanges", "or its coroutine was not awaited"],
    ),
    "the stream is not read": Mistake(
        program=GOOD.replace("return", "yield"),
        code=4,
        shown=["handler ask: is observed, but has not captured any exchanges", "its stream was not read"],
    ),
    "the stream is read in part": Mistake(
        program=GOOD.replace("return", "yield").replace("print(ask(", "next(ask("),
        command=("report",),
        shown=["a filter excludes them, or they were cut short. Check filters, and read whole streams."],
    ),
    "the script ends too early": Mistake(
        program=GOOD.replace("germane.stop", "# "),
        command=("report",),
        shown=["none was scored: no worker is running. Run germane worker."],
    ),
    "a value is passed as an unknown argument": Mistake(
        program=GOOD.replace("@germane.observe", "@germane.observe(prompt_version='7')"),
        printed=["observe() has no argument 'prompt_version'; record", "germane.set_attribute('prompt_version', "],
    ),
    "the database may not be migrated": Mistake(
        variables={"GERMANE_AUTO_MIGRATE": "false"},
        printed=["run 'germane db upgrade'; up to 10000 exchanges will wait", "lost 1 exchange that could not"],
        command=("db", "upgrade"),
        shown=["are up to date"],
    ),
    "a variable is misspelled": Mistake(
        variables={"GERMANE_QUEU": "3"},
        printed=["unknown environment variable GERMANE_QUEU; did you mean GERMANE_QUEUE_SIZE?"],
        code=4,
        shown=["did you mean GERMANE_QUEUE_SIZE?"],
    ),
    "the judge is not running": Mistake(
        variables={"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": SERVER},
        printed=["1 answer without a score: judge_unreachable: no connection to http://127.0.0.1:1", "answers stay in"],
        code=4,
        shown=["judge: no connection to http://127.0.0.1:1", "start the judge's server, or correct OPENAI_BASE_URL"],
    ),
    "no judge is configured": Mistake(
        shown=["no judge is configured: answer_relevancy is not scored", "set OPENAI_API_KEY, or OPENAI_BASE_URL"],
    ),
    "the command runs in another folder": Mistake(
        command=("report",), folder="elsewhere", code=5, shown=["no germane.db here; one is in ..: run"]
    ),
    "the database is unsupported": Mistake(
        variables={"GERMANE_DATABASE": "mysql://shop:secret@127.0.0.1/shop"},
        printed=["setting database: must be an SQLAlchemy URL for SQLite or PostgreSQL"],
        command=("report",),
        code=1,
        shown=["setting database: must be an SQLAlchemy URL for SQLite or PostgreSQL"],
    ),
    "the database server is not running": Mistake(
        variables={"GERMANE_DATABASE": "postgresql://shop:secret@127.0.0.1:1/shop"},
        printed=["Yes, by invoice within 30 days."],
        command=("report",),
        code=1,
        shown=["Connection refused; start the server, or correct the host and the port"],
    ),
    "a command is misspelled": Mistake(command=("rapport",), code=2, shown=["Did you mean 'report'?"]),
    "a command does not exist": Mistake(command=("dashboard",), code=2, shown=["The commands are alerts, archive, "]),
    "a worker runs in another folder": Mistake(
        command=("worker", "--drain"), folder="elsewhere", shown=["no germane.db here; one is in ..: run"]
    ),
    "an option has the name of another tool": Mistake(
        command=("report", "--window", "3d"), code=2, shown=["No such option '--window'. Did you mean '--since'?"]
    ),
    "the gate has too few scores": Mistake(
        command=("report", "--fail-under", "0.7"), code=5, shown=["not enough data"]
    ),
    "the dashboard is open to the network": Mistake(
        command=("serve", "--host", "0.0.0.0"), code=2, shown=["requires a token", "set GERMANE_DASHBOARD_TOKEN"]
    ),
}  # fmt: skip
"""Mistakes by description."""


@pytest.fixture
def run(bare: Path) -> Run:
    """Return a function that runs Python in the new user's folder and captures both outputs in order."""

    def start(*arguments: str, folder: str = ".", **variables: str) -> subprocess.CompletedProcess[str]:
        (bare / folder).mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, *arguments], cwd=bare / folder, env={**os.environ, **variables}, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
        )  # fmt: skip

    return start


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_the_error_for_a_common_mistake_names_the_fix(mistake: Mistake, run: Run, bare: Path) -> None:
    """The program or the next command names the mistake and the fix, without a traceback of a command or a secret."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")
    (bare / "app.py").write_text(mistake.program, encoding="utf-8")

    program = run("app.py", **mistake.variables)
    command = run("-m", "germane", *mistake.command, folder=mistake.folder, **mistake.variables)

    assert [part for part in mistake.printed if part not in program.stdout] == [], program.stdout
    assert command.returncode == mistake.code, command.stdout
    flat = " ".join(command.stdout.split())
    assert [part for part in mistake.shown if part not in flat] == [], command.stdout
    assert "Traceback" not in command.stdout
    assert "secret" not in program.stdout + command.stdout


def test_environment_variables_configure_a_program_and_a_report_on_postgresql(
    run: Run, bare: Path, postgresql: Any
) -> None:
    """The first run creates the tables and stores every answer, without a command and without a change of code."""
    variables = {"GERMANE_DATABASE": postgresql.url(postgresql.create()), "GERMANE_SERVICE": "shop"}
    (bare / "app.py").write_text(GOOD.replace("print(", "[").replace('?"))', '?") for _ in range(20)]'), "utf-8")
    with FakeJudge() as judge:
        variables |= {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
        program = run("app.py", **variables)
        worker = run("-m", "germane", "worker", "--drain", **variables)  # scores what a busy machine left
        report = run("-m", "germane", "report", **variables)

    assert (program.returncode, worker.returncode, report.returncode) == (0, 0, 0)
    # A busy machine may need more than ten seconds to create the tables, which jobs wait for, or to score.
    slow = ("waiting for scores: ", "background job 'deliver' ")
    lines = [line for line in program.stdout.splitlines() if not line.startswith(slow)]
    assert lines == []
    assert "ask" in report.stdout
    assert "20 of 20" in report.stdout
