"""Fixtures of the runtime tests: a judge, programs that run as processes, and queries of their database."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.testing import FakeJudge


@pytest.fixture(autouse=True)
def stopped(bare: Path) -> Iterator[None]:
    """Stop germane after each test."""
    yield
    germane.stop()


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A fake judge in this process."""
    with FakeJudge() as running:
        yield running


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'germane.db'}"


@pytest.fixture
def query(tmp_path: Path) -> Callable[[str], list[Any]]:
    """Return a function that queries the SQLite file. A row with one column is returned as its value."""

    def run_query(statement: str) -> list[Any]:
        with closing(sqlite3.connect(tmp_path / "germane.db")) as connection:
            rows = connection.execute(statement).fetchall()
        return [row[0] if len(row) == 1 else row for row in rows]

    return run_query


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts code as a process, with a judge's settings in its environment."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, judge: FakeJudge | None = None, **variables: str) -> subprocess.Popen[str]:
        path = tmp_path / f"program{len(started)}.py"
        path.write_text(code)
        settings = {} if judge is None else judge.settings()
        ours = {f"GERMANE_{name.upper()}": value for name, value in settings.items()}
        environment = {**os.environ, **ours, "GERMANE_POLL_INTERVAL": "0.1", **variables}
        process = subprocess.Popen(
            [sys.executable, str(path)],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait until a program exits with code 0; return its standard output and standard error."""
    printed, logged = process.communicate(timeout=250)
    assert process.returncode == 0, logged
    return printed, logged


@pytest.fixture
def run(program: Start) -> Callable[..., tuple[str, str]]:
    """Return a function that runs code as a process and returns its standard output and standard error."""
    return lambda *arguments, **variables: finished(program(*arguments, **variables))


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], None]:
    """Return a function that waits for a condition that another thread or process fulfills."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
        pause = threading.Event()
        for _ in range(int(seconds * 50)):
            if condition():
                return
            pause.wait(0.02)
        raise AssertionError("the condition was never met")

    return wait


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return a function that returns the warnings that germane has logged so far."""

    def logged() -> list[str]:
        ours = [record for record in caplog.records if record.name.startswith("germane")]
        return [record.getMessage() for record in ours if record.levelno >= logging.WARNING]

    return logged


@pytest.fixture
def judge_process() -> Iterator[str]:
    """The URL of a fake judge in its own process."""
    command = [sys.executable, "-m", "germane.testing.judge"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()
