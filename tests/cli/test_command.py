"""Tests of the command as a process: exit codes, streams and signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.storage import TrackingStore
from germane.testing import FakeJudge

Call = Callable[..., Any]
GERMANE = [sys.executable, "-m", "germane"]


def test_help_lists_commands_and_exit_codes(call: Call) -> None:
    """Scripts can rely on the exit codes."""
    ended = call("--help")

    assert ended.code == 0
    assert all(verb in ended.out for verb in ("db", "demo", "doctor", "report", "worst"))
    assert "3 threshold violated" in ended.out


def test_a_usage_error_exits_with_2(call: Call, database: str) -> None:
    """The error is reported before any work is done."""
    for arguments in (["rapport"], ["report", "--nonsense"], ["worst", "-n", "0"], ["report", "--fail-under", "high"]):
        ended = call(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert "Error" in ended.err


def test_invalid_settings_exit_with_1(call: Call, monkeypatch: Any) -> None:
    """One line names the setting. With --json, one object is printed."""
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "3")

    ended = call("report")

    assert ended.code == 1
    assert ended.err.startswith("germane: setting sample_rate = '3': ")


@pytest.mark.slow
def test_an_interrupt_exits_with_130(bare: Path, environment: dict[str, str]) -> None:
    """Ctrl-C ends a waiting command without a traceback."""
    with FakeJudge(latency=60) as judge:
        settings = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
        process = subprocess.Popen(
            [*GERMANE, "doctor"],
            env=environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        pause = threading.Event()
        while not judge.requests:
            pause.wait(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)

    assert (process.returncode, out, err.strip()) == (130, "", "")


@pytest.mark.slow
def test_standard_output_contains_only_json_with_the_json_option(
    bare: Path, database: str, store: TrackingStore, scored: Callable[..., Any], environment: dict[str, str]
) -> None:
    """Logs go to standard error. Characters that the encoding lacks are replaced."""
    (bare / "talker.py").write_text("import logging; logging.getLogger('talker').warning('hello')")
    settings = {"GERMANE_DATABASE": database, "GERMANE_SCORERS": "unknown", "PYTHONIOENCODING": "latin-1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*GERMANE, *arguments], env=environment | settings, capture_output=True, text=True, check=False
        )

    doctor = run("doctor", "--json", "--import", "talker")
    assert json.loads(doctor.stdout)["schema_version"] == 1
    assert doctor.stdout.count("\n") == 1
    assert doctor.returncode == 4
    assert doctor.stderr == "WARNING talker: hello\n"
    assert "no observed handler found" in doctor.stdout
    scored(store, [0.1], answer="\u4ef7\u683c \U0001f600")
    worst = run("worst")
    assert (worst.returncode, worst.stderr) == (0, "")
    assert "answer    ?? ?" in worst.stdout
