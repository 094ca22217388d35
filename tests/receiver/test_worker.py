"""``germane worker --otlp``: one process receives, recognizes and scores."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx2
import pytest
from tests.conftest import PostgreSQL
from tests.databases import ON_SQLITE, POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import ask, exchanges, exporter, post_span, traced, wait_for

from germane.storage import TrackingStore
from germane.testing import FakeJudge, OTLPReceiver

pytestmark = pytest.mark.slow


@POSTGRESQL_IS_THOROUGH
def test_a_worker_with_a_receiver_receives_and_scores_exchanges(
    store: TrackingStore, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The score is stored, and a carrier span that links to the root span goes to the worker's own backend."""
    monkeypatch.setenv("GERMANE_POLL_INTERVAL", "0.1")
    command = [sys.executable, "-m", "germane", "worker", "--otlp", "--otlp-http", "0", "--otlp-grpc", "0"]
    with FakeJudge() as judge, OTLPReceiver() as backend:
        environment = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
        process = subprocess.Popen(
            [*command, "--database", migrated_url],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, **backend.environment()},
        )
        try:
            assert process.stderr is not None
            address = None
            while address is None:
                line = process.stderr.readline()
                assert line, "the worker ended"
                address = re.search(r"receiving OTLP on (\S+) \(HTTP\)", line)
            with traced(exporter("http", address[1])) as provider:
                trace_id = ask(provider, "How do I pay?", "By card.")
            # Traces wait 10 seconds for further spans.
            (exchange,) = wait_for(lambda: exchanges(store), timeout=40)
            scores = wait_for(lambda: store.answers.get_scores([exchange.id]), timeout=40)
            carrier = backend.wait_for(
                lambda received: next((one for one in received.spans if one.links), None), timeout=40
            )
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert "1 trace: 1 recognized" in err
    assert "answer_relevancy" in {score.scorer for score in scores[exchange.id]}
    assert carrier.attributes["openinference.span.kind"] == "EVALUATOR"
    assert [(link.trace_id, link.span_id) for link in carrier.links] == [(trace_id, exchange.span_id)]


def test_a_worker_asks_clients_to_retry_until_the_tables_exist(postgresql: PostgreSQL) -> None:
    """If it must not create them. Health checks succeed before that; once the tables exist, requests are accepted."""
    url = postgresql.url(postgresql.create())
    command = [sys.executable, "-m", "germane", "worker", "--otlp", "--otlp-http", "0", "--otlp-grpc", "0"]
    with FakeJudge() as judge:
        environment = {f"GERMANE_{name.upper()}": value for name, value in judge.settings().items()}
        environment["GERMANE_AUTO_MIGRATE"] = "false"
        process = subprocess.Popen(
            [*command, "--database", url], stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        try:
            assert process.stderr is not None
            address = re.search(r"receiving OTLP on (\S+) \(HTTP\)", process.stderr.readline())
            assert address is not None
            health = httpx2.get(f"{address[1]}/healthz").status_code
            refused = post_span(address[1]).status_code
            store = TrackingStore(url)
            store.migrate()
            store.close()
            wait_for(lambda: post_span(address[1]).status_code == 200)
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)

    assert (process.returncode, health, refused) == (0, 200, 503), err
    assert "1 spans and log records received" in err


@ON_SQLITE
def test_a_worker_that_receives_spans_cannot_be_limited_to_a_single_run(migrated_url: str) -> None:
    """A receiver runs until it is stopped."""
    command = [sys.executable, "-m", "germane", "worker", "--otlp", "--once", "--database", migrated_url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert "excludes --once and --drain" in " ".join(ended.stderr.split())
