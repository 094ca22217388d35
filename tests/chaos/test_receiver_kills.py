"""Receivers are killed during traffic: every acknowledged span is part of exactly one exchange."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.receiver.conftest import exchanges, wait_for
from tests.receiver.messages import chain, model_call, span, trace_request

from germane.storage import TrackingStore
from germane.testing import OTLPReceiver

TRACES = 120
KILLS = 12
HEADERS = {"Content-Type": "application/x-protobuf"}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


class KilledReceiver:
    """A receiver on fixed ports that is killed and started again."""

    def __init__(self, url: str, *options: str) -> None:
        self._http, self._grpc, self._url, self._options = free_port(), free_port(), url, options
        self.endpoint = f"http://127.0.0.1:{self._http}/v1/traces"
        self.start()

    def start(self) -> None:
        """Start a process, and wait until it listens."""
        command = [sys.executable, "-m", "germane", "receive", "--database", self._url, "--trace-wait", "0.5"]
        ports = ["--http", str(self._http), "--grpc", str(self._grpc)]
        self._process = subprocess.Popen(
            [*command, *ports, *self._options], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert "receiving OTLP" in line, line + self._process.stderr.read()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


def spans_of(number: int) -> list[Span]:
    """Return the four spans of one answer, in the order in which they end."""
    question, answer = f"Question {number:04}?", f"Answer {number:04}."
    root = chain(question, answer)
    retrievers = [
        span(
            name="Retriever",
            parent=root,
            attributes={
                "openinference.span.kind": "RETRIEVER",
                "retrieval.documents.0.document.content": f"Document {number:04} {part}",
            },
        )
        for part in "ab"
    ]
    return [*retrievers, model_call(question, answer, parent=root), root]


def deliver(endpoint: str, body: bytes) -> int:
    """Send a request until it is acknowledged, as OTLP says. Return the number of attempts."""
    deadline = time.monotonic() + 120
    for attempt in range(1, 10_000):
        try:
            status = httpx2.post(endpoint, content=body, headers=HEADERS, timeout=5).status_code
        except httpx2.TransportError:
            status = 503
        if status == 200:
            return attempt
        assert status in {429, 503}
        assert time.monotonic() < deadline
        time.sleep(0.05)
    raise AssertionError("no acknowledgment")


def test_exchanges_are_neither_lost_nor_duplicated_when_receivers_are_killed(
    bare: Path, store: TrackingStore, migrated_url: str
) -> None:
    """Clients repeat what was not acknowledged, so spans arrive twice, and each trace yields one complete exchange."""
    dice = random.Random(7)
    receiver, done = KilledReceiver(migrated_url), threading.Event()
    attempts: list[int] = []

    def send(numbers: range) -> None:
        for number in numbers:
            parts = spans_of(number)
            cut = dice.randrange(1, 4)
            for batch in (parts[:cut], parts[cut:]):
                attempts.append(deliver(receiver.endpoint, trace_request(*batch, service="shop").SerializeToString()))
                if dice.random() < 0.2:  # a client whose acknowledgment was lost
                    deliver(receiver.endpoint, trace_request(*batch, service="shop").SerializeToString())

    clients = [threading.Thread(target=send, args=(range(first, TRACES, 4),)) for first in range(4)]
    for client in clients:
        client.start()
    for _ in range(KILLS):
        done.wait(dice.uniform(0.2, 1.2))
        receiver.kill()
        receiver.start()
    for client in clients:
        client.join(120)
        assert not client.is_alive()
    wait_for(lambda: store.received.measure().traces == 0, timeout=200)  # claims of killed processes end after a while
    receiver.kill()

    found = exchanges(store)
    assert [one.question for one in found] == [f"Question {number:04}?" for number in range(TRACES)]
    for number, one in enumerate(found):
        assert one.answer == f"Answer {number:04}."
        assert sorted(context.text for context in one.contexts) == [f"Document {number:04} {part}" for part in "ab"]
    assert len(attempts) == 2 * TRACES


def test_killed_receivers_forward_each_span_with_its_scores(
    bare: Path, store: TrackingStore, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span reaches the target with the scores that were attached to it, or without any, but never both."""
    monkeypatch.setenv("GERMANE_MAX_SPAN_DELAY", "3")
    dice, scored, done = random.Random(7), dict[str, bool](), threading.Event()

    def score() -> None:
        """Score two of three exchanges, as a worker does."""
        while not done.wait(0.1):
            for found in store.answers.list_exchanges(limit=1000):
                if found.span_id not in scored and int(found.span_id, 16) % 3:
                    scored[found.span_id] = store.forwarding.attach(found.id, {"score": int(found.span_id, 16) / 2**64})

    with OTLPReceiver() as target:
        receiver = KilledReceiver(migrated_url, "--forward", target.endpoint)
        sent = {number: spans_of(number) for number in range(40)}

        def send() -> None:
            for parts in sent.values():
                body = trace_request(*parts, service="shop").SerializeToString()
                for _ in range(2 if dice.random() < 0.3 else 1):
                    deliver(receiver.endpoint, body)

        threads = [threading.Thread(target=work) for work in (send, score)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            done.wait(dice.uniform(0.3, 1.2))
            receiver.kill()
            receiver.start()
        threads[0].join(120)
        wait_for(lambda: store.received.measure().traces == 0, timeout=200)
        wait_for(lambda: store.forwarding.measure() == 0, timeout=200)
        done.set()
        threads[1].join(60)
        receiver.kill()

    roots = {spans[-1].span_id.hex() for spans in sent.values()}
    arrived: dict[str, set[float | None]] = {span_id: set() for span_id in roots}
    for each in target.spans:
        if each.span_id in roots:
            arrived[each.span_id].add(each.attributes.get("score"))
    expected = {span_id: {int(span_id, 16) / 2**64 if scored.get(span_id) else None} for span_id in roots}
    assert arrived == expected
    assert any(scored.values())
    assert {each.span_id for each in target.spans} == {part.span_id.hex() for parts in sent.values() for part in parts}
