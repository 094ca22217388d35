"""Several processes of one application, sharing a database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from germane.storage import TrackingStore
from germane.testing import FakeJudge, OTLPReceiver

QUESTIONS = 90
MIN_SHARE = 0.9
SCORE = "evaluations.0.evaluation.score"


@contextmanager
def gunicorn(*options: str, environment: dict[str, str]) -> Iterator[str]:
    """Run the application in three processes; yield its URL. Ends with a graceful shutdown."""
    command = [sys.executable, "-m", "gunicorn", "--workers", "3", "--threads", "4", "--bind", "127.0.0.1:0", *options]
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


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["fork first", "preload"])
def test_scores_are_added_to_the_original_spans(migrated_url: str, options: tuple[str, ...]) -> None:
    """At least 90 % do, because a process scores its own exchanges while their spans wait."""
    with FakeJudge() as judge, OTLPReceiver() as receiver, closing(TrackingStore(migrated_url)) as store:
        judge.latency = 0.3
        settings = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
        environment = {**settings, **receiver.environment(), "GERMANE_DATABASE": migrated_url}
        with gunicorn(*options, environment=environment) as address:

            def send(number: int) -> None:
                with urllib.request.urlopen(f"{address}/?How%20do%20I%20pay%20{number}%3F") as reply:
                    assert reply.status == 200

            with ThreadPoolExecutor(6) as clients:
                list(clients.map(send, range(QUESTIONS)))
            deadline = time.monotonic() + 200
            while store.answers.counts().scores < QUESTIONS:
                assert time.monotonic() < deadline
                time.sleep(0.1)

        spans = receiver.wait_for(lambda received: len(received.spans) >= QUESTIONS and received.spans)
        original = [span for span in spans if SCORE in span.attributes and not span.links]
        workers = {exchange.span_holder for exchange in store.answers.list_exchanges(limit=QUESTIONS)}
    assert len(workers) > 1
    assert len(original) >= MIN_SHARE * QUESTIONS
