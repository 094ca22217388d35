"""Tests of `germane worker --metrics`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cases import each
from tests.cli.conftest import an_exchange
from tests.dashboard.scrape import MetricSamples, parse_metrics

from germane.storage import TrackingStore
from germane.testing import FakeJudge

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
Process = subprocess.Popen[str]
TOKEN = "correct-horse-battery"
SHOWN = re.compile(r"(?:serving the dashboard on|serving metrics on) (http://[^/\s]+)(?:/metrics)?\n")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge configured in the settings, with workers that poll often."""
    monkeypatch.setenv("GERMANE_POLL_INTERVAL", "0.1")
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", value)
        yield running


@pytest.fixture
def start(judge: FakeJudge) -> Iterator[Callable[..., tuple[Process, str]]]:
    """A function that starts a command as a process, and returns it and the URL of its metrics."""
    started: list[Process] = []

    def verb(*arguments: str) -> tuple[Process, str]:
        command = [sys.executable, "-m", "germane", *arguments]
        process = subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        found = SHOWN.fullmatch(line)
        assert found, line + (process.stderr.read() if process.poll() is not None else "")
        return process, f"{found[1]}/metrics"

    yield verb
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for a change made by another process. Return the result."""
    pause = threading.Event()
    for _ in range(int(seconds * 20)):
        if found := condition():
            return found
        pause.wait(0.05)
    raise AssertionError("the condition was not met in time")


def read(url: str, **headers: str) -> MetricSamples:
    """Return one scrape."""
    answer = httpx2.get(url, headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text
    return parse_metrics(answer.text)


def test_worker_metrics_include_process_and_database(start: Any, store: TrackingStore) -> None:
    """The page has counters and histograms of the process, and gauges by answer time."""
    store.exchanges.add([an_exchange(question=f"How do I pay {number}?") for number in range(25)])
    worker, url = start("worker", "--metrics", "0")
    runs = {"gen_ai_evaluation_name": "answer_relevancy", "gen_ai_workflow_name": "ask", "outcome": "scored"}

    def once(name: str, total: int, **labels: str) -> MetricSamples | None:
        found = read(url)
        return found if sum(found.all(name, **labels).values()) == total else None

    assert url.startswith("http://127.0.0.1:")
    until(lambda: store.answers.counts().done == 25)
    found = until(lambda: once("germane_evaluation_score_count", 25, gen_ai_workflow_name="ask"))
    assert found.one("germane_evaluation_runs_total", **runs) == 25
    assert found.kinds["germane_evaluation_duration_seconds"] == "histogram"
    window = {
        part: datetime.fromtimestamp(found.one(f"germane_window_{end}_timestamp_seconds", window="24h"), UTC)
        for part, end in (("since", "begin"), ("until", "end"))
    }
    (one,) = store.trends.summary(**window)
    assert found.one("germane_score_mean", window="24h") == pytest.approx(one.mean, abs=1e-9)
    assert found.one("germane_scores", window="24h") == one.n == 25

    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    with pytest.raises(httpx2.TransportError):
        httpx2.get(url, timeout=5)


def test_a_dashboard_with_a_worker_serves_the_metrics_of_the_worker(start: Any, store: TrackingStore) -> None:
    """A process that only serves the dashboard exposes only gauges."""
    store.exchanges.add([an_exchange()])
    _, with_worker = start("serve", "--port", "0", "--with-worker")
    _, alone = start("serve", "--port", "0")

    until(lambda: read(with_worker).all("germane_evaluation_runs_total", outcome="scored"))
    found = read(alone)
    assert found.one("germane_up") == 1
    assert not [name for name in found.samples if name.startswith(("germane_evaluation", "germane_capture"))]


def test_worker_metrics_show_a_missing_database(start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """germane_up is 0 until the database exists."""
    monkeypatch.setenv("GERMANE_DATABASE", f"sqlite:///{tmp_path / 'not yet' / 'germane.db'}")
    worker, url = start("worker", "--metrics", "localhost:0")

    assert read(url).one("germane_up") == 0
    (tmp_path / "not yet").mkdir()
    assert until(lambda: read(url).one("germane_up"))
    worker.send_signal(signal.SIGINT)
    assert worker.wait(60) == 130


def test_worker_metrics_on_a_public_address_require_a_token(
    start: Any, call: Call, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a public address, the worker refuses to start without a token."""
    refused = call("worker", "--metrics", "0.0.0.0:0")
    assert refused.code == 2
    assert "GERMANE_DASHBOARD_TOKEN" in refused.err

    monkeypatch.setenv("GERMANE_DASHBOARD_TOKEN", TOKEN)
    _, url = start("worker", "--metrics", "0.0.0.0:0")
    url = url.replace("0.0.0.0", "127.0.0.1")
    shown = {
        shown: httpx2.get(url, headers=headers, timeout=30).status_code
        for shown, headers in {
            "none": {},
            "wrong": {"Authorization": "Bearer wrong-horse-battery"},
            "right": {"Authorization": f"Bearer {TOKEN}", "Host": "germane-worker.example.com"},
        }.items()
    }
    assert shown == {"none": 401, "wrong": 401, "right": 200}


def test_a_worker_exits_if_its_metrics_cannot_be_served(call: Call, judge: FakeJudge, database: str) -> None:
    """Nothing is scored."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = call("worker", "--once", "--metrics", str(taken.getsockname()[1]))

    assert ended.code == 1
    assert "cannot listen on 127.0.0.1 port" in ended.err


@each("given", ["", ":9464", "port", "99999", "-1", "::1:9464", "host:", "1.2.3.4:٣"])
def test_an_invalid_metrics_address_is_rejected(given: str, call: Call, database: str) -> None:
    """Invalid addresses lack a port, have an invalid port, or are IPv6 addresses without brackets."""
    ended = call("worker", "--metrics", given)

    assert ended.code == 2
    assert "is not an address such as 9464" in ended.err
