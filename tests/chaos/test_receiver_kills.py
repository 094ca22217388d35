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

from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.testing import OTLPReceiver

HEADERS = {"Content-Type": "application/x-protobuf"}
RECEIVE = """
from datetime import timedelta
from germane.cli import main
from germane.receiver import finishing, forwarding

# What a killed process has claimed is free after ten seconds instead of 60 and 90.
finishing.CLAIM_LEASE = forwarding.LEASE = timedelta(seconds=10)
forwarding.BATCH_TIME = 3.0
main()
"""


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
        command = [sys.executable, "-c", RECEIVE, "receive", "--database", self._url, "--trace-wait", "0.5"]
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


def deliver(client: httpx2.Client, endpoint: str, body: bytes) -> None:
    """Send a request until it is acknowledged, as OTLP says."""
    deadline = time.monotonic() + 120
    while True:
        try:
            status = client.post(endpoint, content=body, headers=HEADERS).status_code
        except httpx2.TransportError:
            status = 503
        if status == 200:
            return
        assert status in {429, 503}
        assert time.monotonic() < deadline
        time.sleep(0.05)


Sent = dict[int, list[Span]]
"""The spans of each trace, in the order in which they end."""


def send(endpoint: str, sent: Sent, dice: random.Random) -> None:
    """Send traces in two parts each, some of them twice."""
    with httpx2.Client(timeout=5) as client:
        for parts in sent.values():
            cut = dice.randrange(1, 4)
            for batch in (parts[:cut], parts[cut:]):
                body = trace_request(*batch, service="shop").SerializeToString()
                for _ in range(2 if dice.random() < 0.25 else 1):  # a client whose acknowledgment was lost
                    deliver(client, endpoint, body)


def score_of(span_id: str) -> float:
    """Return the score that the test attaches to a span."""
    return int(span_id, 16) / 2**64


def score(store: TrackingStore, scored: dict[str, bool], done: threading.Event) -> None:
    """Score two of three exchanges, as a worker does. Note whether the score will be on the forwarded span."""
    while not done.wait(0.3):
        for found in store.answers.list_exchanges(limit=1000):
            if found.span_id not in scored and int(found.span_id, 16) % 3:
                scored[found.span_id] = store.forwarding.attach(found.id, {"score": score_of(found.span_id)})


@pytest.mark.parametrize("kills", [6, pytest.param(40, marks=[pytest.mark.thorough, pytest.mark.timeout(900)])])
def test_exchanges_are_neither_lost_nor_duplicated_when_receivers_are_killed(
    bare: Path, store: TrackingStore, migrated_url: str, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    """Each trace yields one complete exchange, although clients repeat what was not acknowledged.

    Each span is forwarded with the scores that were attached to it, or without any, but never both.
    """
    monkeypatch.setenv("GERMANE_MAX_SPAN_DELAY", "3")
    dice, scored, done = random.Random(7), dict[str, bool](), threading.Event()
    sent = {number: spans_of(number) for number in range(20 * kills)}
    with OTLPReceiver() as target:
        receiver = KilledReceiver(migrated_url, "--forward", target.endpoint)
        clients = [
            threading.Thread(
                target=send, args=(receiver.endpoint, {n: sent[n] for n in range(first, len(sent), 4)}, dice)
            )
            for first in range(4)
        ]
        scorer = threading.Thread(target=score, args=(store, scored, done))
        for thread in (*clients, scorer):
            thread.start()
        for _ in range(kills):
            done.wait(dice.uniform(0.2, 1.2))
            receiver.kill()
            receiver.start()
        for client in clients:
            client.join(300)
            assert not client.is_alive()
        # Claims of killed processes end after a while.
        wait_for(lambda: store.received.measure().traces == 0, timeout=200)
        wait_for(lambda: store.forwarding.measure() == 0, timeout=200)
        done.set()
        scorer.join(60)
        receiver.kill()

    assert_complete(exchanges(store), sent)
    assert any(scored.values())
    assert_forwarded(target, sent, scored)


def assert_complete(found: list[Exchange], sent: Sent) -> None:
    """Check that each trace has one exchange with its answer and both documents."""
    assert [one.question for one in found] == [f"Question {number:04}?" for number in sent]
    for number, one in enumerate(found):
        assert one.answer == f"Answer {number:04}."
        assert sorted(context.text for context in one.contexts) == [f"Document {number:04} {part}" for part in "ab"]


def assert_forwarded(target: OTLPReceiver, sent: Sent, scored: dict[str, bool]) -> None:
    """Check that all spans arrived, and each root span always with its score or always without one."""
    assert {each.span_id for each in target.spans} == {part.span_id.hex() for parts in sent.values() for part in parts}
    arrived: dict[str, set[float | None]] = {spans[-1].span_id.hex(): set() for spans in sent.values()}
    for each in target.spans:
        if each.span_id in arrived:
            arrived[each.span_id].add(each.attributes.get("score"))
    assert arrived == {span_id: {score_of(span_id) if scored.get(span_id) else None} for span_id in arrived}


PRIVACY = """
def first(text):
    return "first " + text

def second(text):
    return "second " + text
"""


@pytest.mark.parametrize("kills", [6, pytest.param(24, marks=[pytest.mark.thorough, pytest.mark.timeout(900)])])
def test_receivers_that_share_a_database_keep_to_their_own_options_and_targets(
    bare: Path, store: TrackingStore, migrated_url: str, monkeypatch: pytest.MonkeyPatch, kills: int, tmp_path: Path
) -> None:
    """Receivers with different redactions and targets are killed in any order. The target of one is dead.

    Each trace is stored as the receiver that got it says. Its requests reach the target of this receiver and no other.
    The dead target delays only the requests that were sent to its receiver.
    """
    (tmp_path / "privacy.py").write_text(PRIVACY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GERMANE_MAX_SPAN_DELAY", "3")
    dice, dead = random.Random(11), f"http://127.0.0.1:{free_port()}"
    with OTLPReceiver() as one, OTLPReceiver() as other:
        targets = [("first", one.endpoint), ("second", other.endpoint), ("second", dead)]
        receivers = [
            KilledReceiver(migrated_url, "--redact", f"privacy:{redact}", "--forward", target)
            for redact, target in targets
        ]
        sent = {number: spans_of(number) for number in range(15 * kills)}
        own = [{number: spans for number, spans in sent.items() if number % 3 == place} for place in range(3)]
        clients = [
            threading.Thread(target=send, args=(receiver.endpoint, of_receiver, random.Random(place)))
            for place, (receiver, of_receiver) in enumerate(zip(receivers, own, strict=True))
        ]
        for client in clients:
            client.start()
        for _ in range(kills):
            threading.Event().wait(dice.uniform(0.2, 1.2))
            killed = dice.choice(receivers)
            killed.kill()
            killed.start()
        for client in clients:
            client.join(300)
            assert not client.is_alive()
        wait_for(lambda: store.received.measure().traces == 0, timeout=200)
        wait_for(lambda: [queue.target for queue in store.forwarding.list_targets()] == [dead], timeout=200)
        for receiver in receivers:
            receiver.kill()

    answers = {each.trace_id: each.answer for each in store.answers.list_exchanges(limit=10_000)}
    assert answers == {
        spans[0].trace_id.hex(): f"{targets[number % 3][0]} Answer {number:04}." for number, spans in sent.items()
    }
    for target, of_receiver in ((one, own[0]), (other, own[1])):
        expected = {span.span_id.hex() for spans in of_receiver.values() for span in spans}
        assert {span.span_id for span in target.spans} == expected
