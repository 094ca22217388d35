"""The page about job queues and serverless shows the examples, which ``make queues`` runs with real workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, of

import germane

EXAMPLES = ROOT / "examples" / "job_queues"
SHOWN = [block.text for block in of("python") if block.page.name == "job-queues.md"]
CALLER = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from lambda_function import handler
for line in sys.stdin:
    print(handler({"question": line.strip()}, None)["answer"], flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)  # freezes the environment
"""


def test_the_page_shows_each_example_whole() -> None:
    """The page omits nothing but the import of annotations."""
    examples = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
    whole = {re.sub(r"from __future__ import annotations\n\n", "", code) for code in examples.values()}

    assert set(SHOWN) == whole


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot freeze a process")
def test_the_lambda_function_can_be_frozen_after_each_call(bare: Path) -> None:
    """A process that is frozen after the handler, and never continued after the last one, has written everything."""
    command = [sys.executable, "-c", CALLER, str(EXAMPLES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=bare) as frozen:
        assert frozen.stdin is not None
        assert frozen.stdout is not None
        for number in range(4):
            frozen.stdin.write(f"question {number}\n")
            frozen.stdin.flush()
            frozen.send_signal(signal.SIGCONT)
            assert f"question {number}" in frozen.stdout.readline()
            os.waitid(os.P_PID, frozen.pid, os.WSTOPPED)
            with germane.Store() as store:
                assert store.answers.counts().captured == number + 1
        frozen.kill()
