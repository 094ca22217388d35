"""A command whose output cannot be written reports this in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from germane.storage import TrackingStore

COMMANDS = [
    "report",
    "trend",
    "worst --json",
    "doctor --offline",
    "baseline show",
    "config",
    "grafana --print rules",
]


def run(command: str, database: str, output: str = os.devnull) -> subprocess.CompletedProcess[str]:
    """Run a command with its standard output redirected to a file."""
    germane = Path(sys.executable).with_name("germane")
    environment = {**os.environ, "GERMANE_DATABASE": database}
    with Path(output).open("w", encoding="utf-8") as target:
        return subprocess.run(
            [germane, *command.split()], env=environment, stdout=target, stderr=subprocess.PIPE, text=True, check=False
        )


@pytest.fixture
def database(tmp_path: Path) -> str:
    """The URL of a database without exchanges."""
    url = f"sqlite:///{tmp_path}/germane.db"
    store = TrackingStore(url)
    store.migrate()
    store.close()
    return url


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_reported_in_one_line(command: str, database: str) -> None:
    """The exit code is 1, and there is no traceback."""
    ended = run(command, database, "/dev/full")

    assert (ended.returncode, ended.stderr) == (1, "germane: cannot write the output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["grafana /proc/x", "grafana /dev/full/x", "report --output /proc/x", "export /proc/x.jsonl"]
)
def test_an_output_file_that_cannot_be_written_is_reported(command: str, database: str) -> None:
    """The exit code is 1, and there is no traceback."""
    ended = run(command, database)

    path = command.split()[-1]
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"germane: cannot write {path}: ")
    assert ended.stderr.count("\n") == 1
