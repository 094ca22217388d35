"""Processes that are killed while they deliver: nothing is lost, and what is sent twice was in progress."""

from __future__ import annotations

import asyncio
import gzip
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from sqlalchemy import event, func, select
from tests.alerting.channels.conftest import an_alert

from germane.alert import Notification
from germane.alerting.channels.webhook import Webhook
from germane.annotation import RecordedScore
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryContext, DeliveryWorker
from germane.exchange import Exchange
from germane.monitor.jobs.delivery import ChannelTarget, NotificationContext
from germane.otlp import compress_request
from germane.receiver.forwarding import ForwardTarget, OTLPTarget
from germane.settings.channels import WebhookSettings
from germane.settings.sinks import WebhookSinkSettings
from germane.sinks.target import SinkTarget
from germane.sinks.webhook import WebhookSink
from germane.storage import AlertTransaction, OutgoingRequest, TrackingStore
from germane.storage.db.tables import delivery
from germane.testing import engine_of, transaction

pytestmark = pytest.mark.slow
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.delivery.test_kills"])
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)
ITEMS = 12
BATCH = 3
"""Number of exchanges per request to a sink."""
CALLS = 3
"""Each process is killed after this many more statements and commits than the one before it."""


class Endpoint:
    """An HTTP server that accepts everything, except that each seventh response is that it is busy."""

    def __init__(self) -> None:
        self.posts: list[str] = []
        self.requests = 0
        self.accepted: list[str] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_request = self.headers["Content-Encoding"] == "gzip"
                if self.path == "/sink":
                    content = [f"item {int(item['exchange_id'], 16):02}" for item in json.loads(body)["items"]]
                else:
                    content = [gzip.decompress(body).decode() if is_request else self.headers["Idempotency-Key"]]
                endpoint.posts += content
                endpoint.requests += 1
                is_busy = endpoint.requests % 7 == 0
                endpoint.accepted += [] if is_busy else content
                self.send_response(503 if is_busy else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    opened = Endpoint()
    yield opened
    opened.server.shutdown()
    opened.server.server_close()
    opened.thread.join()


def queue_notifications(store: TrackingStore, url: str) -> None:
    """Queue notifications about one alert, which are therefore sent in order."""
    for number in range(ITEMS):
        key = f"item {number:02}"
        notification = Notification(
            id=key, channel="hook", idempotency_key=key, type="firing", alerts=(an_alert(),), event_ids=(),
            created_at=NOON + timedelta(seconds=number),
        )  # fmt: skip
        assert store.alerts.commit(AlertTransaction(notifications=[notification]))


def queue_requests(store: TrackingStore, url: str) -> None:
    """Queue requests for one target, which are therefore sent in order."""
    bodies = [compress_request(f"item {number:02}".encode()) for number in range(ITEMS)]
    requests = [OutgoingRequest("traces", body) for body in bodies]
    store.received.stage([], max_wait=1.0, requests=requests, target=ForwardTarget(url=url).name)


def queue_scores(store: TrackingStore, url: str) -> None:
    """Store exchanges with scores, whose sink has items without an order."""
    numbers = range(ITEMS)
    store.exchanges.add(
        [
            Exchange(
                id=f"{number:032x}", trace_id="1" * 32, span_id="2" * 16, service="shop", route="docs", question="?",
                answer="!", started_at=NOON,
            )
            for number in numbers
        ]
    )  # fmt: skip
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=f"{number:032x}", name="tone", value=0.5, recorded_at=NOON) for number in numbers]
    )


@pytest.mark.parametrize("kind", ["notifications", "requests", "scores"])
def test_killed_processes_lose_nothing(
    store: TrackingStore, migrated_url: str, endpoint: Endpoint, kind: str, tmp_path: Any
) -> None:
    """Whatever a process was about to do when it was killed, others deliver its items, in order."""
    queues = {"notifications": queue_notifications, "requests": queue_requests, "scores": queue_scores}
    with closing(TrackingStore(migrated_url, clock=lambda: NOON, sinks=["bridge"])) as frozen:
        queues[kind](frozen, endpoint.url)
    kills, started = 0, 0
    while count_waiting(store):
        process = FORKED.Process(
            target=deliver_until_killed, args=(migrated_url, endpoint.url, kind, kills * CALLS + 3, started)
        )
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        kills, started = kills + (process.exitcode != 0), started + 1

    assert kills >= 5
    expected = [f"item {number:02}" for number in range(ITEMS)]
    first = list(dict.fromkeys(endpoint.accepted))
    assert (sorted(first) if kind == "scores" else first) == expected
    in_progress = BATCH if kind == "scores" else 1  # in each killed process
    assert len(endpoint.accepted) <= ITEMS + kills * in_progress


def count_waiting(store: TrackingStore) -> int:
    """Return the number of items that must still be delivered."""
    with transaction(store, read_only=True) as connection:
        return connection.execute(select(func.count()).where(delivery.c.due_at.is_not(None))).scalar_one()


def deliver_until_killed(database: str, url: str, kind: str, calls: int, started: int) -> None:
    """Deliver what is due, and kill this process right before one of its statements or commits."""
    left = calls

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    # The leases of the killed processes have expired, and all retries are due.
    store = TrackingStore(database, clock=lambda: NOON + (started + 1) * LEASE)
    event.listen(engine_of(store), "before_cursor_execute", count)
    event.listen(engine_of(store), "commit", count)
    options: dict[str, Any] = {"store": store, "owner": f"process-{started}", "lease": LEASE}
    options |= {"threads": DaemonThreadPool(2, name="test"), "backoff": Backoff(maximum=1.0)}

    async def deliver() -> None:
        async with httpx2.AsyncClient() as client:
            if kind == "requests":
                target: Any = OTLPTarget(ForwardTarget(url=url), client)
                await DeliveryWorker(target, DeliveryContext(**options)).deliver_due()
            elif kind == "scores":
                os.environ["BRIDGE"] = f"{url}/sink"
                sink = WebhookSink("bridge", WebhookSinkSettings(type="webhook", url="env:BRIDGE"))
                sink.batch_size = BATCH
                target = SinkTarget(sink, store, options["threads"])
                await DeliveryWorker(target, DeliveryContext(**options)).deliver_due()
            else:
                os.environ["HOOK"] = url
                channel = Webhook(WebhookSettings(type="webhook", url="env:HOOK", allow_private_networks=True))
                context = NotificationContext(**options, clock=lambda: NOON)
                await DeliveryWorker(ChannelTarget("hook", channel, context), context).deliver_due()

    asyncio.run(deliver())
    store.close()
