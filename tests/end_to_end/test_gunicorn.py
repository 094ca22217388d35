"""Several processes of one application, sharing a database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from germane.storage import TrackingStore
from germane.testing import FakeJudge, OTLPReceiver

WORKERS = 3
THREADS = 4
QUESTIONS, MAX_QUESTIONS = 96, 600
WAVE = WORKERS * THREADS
MIN_SHARE = 0.9
SCORE = "evaluations.0.evaluation.score"


@contextmanager
def gunicorn(*options: str, environment: dict[str, str]) -> Iterator[str]:
    """Run the application in several processes, and yield its URL. Ends with a graceful shutdown.

    A process whose threads are all busy accepts no connections, so the other processes get the next requests.
    """
    sizes = {"workers": WORKERS, "threads": THREADS, "worker-connections": THREADS}
    limits = [f"--{name}={value}" for name, value in sizes.items()]
    command = [sys.executable, "-m", "gunicorn", *limits, "--bind", "127.0.0.1:0", *options]
    with subprocess.Popen(
        [*command, "wsgi_application:application"],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        addresses = (re.search(r"Listening at: (http://\S+)", line) for line in server.stderr)
        address = next(match[1] for match in addresses if match)
        try:
            yield address
        finally:
            server.terminate()
            server.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition. The time limit is far longer than even a busy machine needs."""
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["fork first", "preload"])
def test_scores_are_attached_to_the_original_spans(migrated_url: str, options: tuple[str, ...]) -> None:
    """At least 90% of the scores are attached this way, because a process scores its own exchanges while their spans
    wait.

    Each process answers while others are idle: a wave of questions begins when all earlier questions are scored.
    """
    with FakeJudge() as judge, OTLPReceiver() as receiver, closing(TrackingStore(migrated_url)) as store:
        judge.latency = 0.3
        settings = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
        environment = {**settings, **receiver.environment(), "GERMANE_DATABASE": migrated_url}
        asked, answered_by = 0, Counter[str]()
        with gunicorn(*options, environment=environment) as address, ThreadPoolExecutor(WAVE) as clients:

            def ask(number: int) -> str:
                with urllib.request.urlopen(f"{address}/?How%20do%20I%20pay%20{number}%3F") as reply:
                    assert reply.status == 200
                    return str(reply.headers["X-Process"])

            while len(answered_by) < WORKERS or asked < QUESTIONS:
                assert asked < MAX_QUESTIONS, f"only {len(answered_by)} of {WORKERS} processes answered"
                answered_by.update(clients.map(ask, range(asked, asked + WAVE)))
                asked += WAVE
                wait_until(lambda: store.answers.counts().scores >= asked)  # noqa: B023 - called in this iteration

        spans = receiver.wait_for(lambda received: len(received.spans) >= asked and received.spans)
        original = [span for span in spans if SCORE in span.attributes and not span.links]
        holders = {exchange.span_holder for exchange in store.answers.list_exchanges(limit=asked)}
    assert len(holders) == WORKERS
    assert len(original) >= MIN_SHARE * asked, f"{len(original)} of {asked}, answered by {dict(answered_by)}"
