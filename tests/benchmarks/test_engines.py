"""The benchmark of the engines on a small scale, without throughput."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("bare", "postgresql"),  # without PostgreSQL, the tests are skipped
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the processes that score"),
]
ENGINES = Path(__file__).parents[2] / "benchmarks" / "engines.py"


def test_the_benchmark_scores_every_exchange_once_while_processes_are_killed() -> None:
    """A scorer that fails on the benchmark's own exchanges would otherwise be noticed only after an hour."""
    run = subprocess.run(
        [sys.executable, ENGINES, "exactly-once", "--count=8000", "--kills=1", "--interval=0.3", "--engines=local"],
        capture_output=True,
        text=True,
    )

    assert "1 processes killed" in run.stdout, run.stdout + run.stderr
    assert "rows 8,000, scored 8,000, failed 0, checksums equal: True" in run.stdout
