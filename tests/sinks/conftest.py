"""A Langfuse server that fails as told, and exchanges whose scores are written to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.alerting.channels.conftest import Receiver

from germane.annotation import RecordedScore
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryContext, DeliveryWorker
from germane.exchange import Exchange
from germane.settings.sinks import LangfuseSettings
from germane.sinks.client import SinkClient
from germane.sinks.langfuse import LangfuseSink
from germane.sinks.target import SinkTarget
from germane.storage import TrackingStore
from germane.testing import Clock

NAME = "langfuse"
Score = Mapping[str, Any]


class Backend:
    """A server that stores scores by id, like Langfuse. Its next responses can be scripted."""

    def __init__(self) -> None:
        self.stored: dict[str, Score] = {}
        """The scores by id."""
        self.requests: list[list[Score]] = []
        self.paths: list[str] = []
        self.authorizations: list[str] = []
        self.script: list[Callable[[list[Score]], tuple[int, Mapping[str, str], bytes]]] = []
        """What the next requests get instead of being accepted."""
        self.is_append_only = False
        """Whether no score can be deleted."""
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                scores = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                backend.requests.append(scores)
                backend.authorizations.append(self.headers["Authorization"])
                respond = backend.script.pop(0) if backend.script else backend.accept
                status, headers, body = respond(scores)
                if not status:  # the client gets no response
                    return
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.headers["Content-Length"] = "2"
                backend.paths.append(self.path)
                self.rfile = type("Empty", (), {"read": lambda *_: b"[]", "close": lambda *_: None})()
                self.do_POST()

            def do_DELETE(self) -> None:
                backend.paths.append(self.path)
                code = 405 if backend.is_append_only else 202 if backend.stored.get(self.path[-36:]) else 404
                if code == 202:
                    del backend.stored[self.path[-36:]]
                self.send_response(code)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def accept(self, scores: Sequence[Score]) -> tuple[int, Mapping[str, str], bytes]:
        """Store scores. One that has the id of an earlier one replaces it."""
        self.stored |= {score["id"]: score for score in scores}
        return 207, {}, json.dumps({"successes": [{"id": score["id"]} for score in scores], "errors": []}).encode()

    def accept_silently(self, scores: Sequence[Score]) -> tuple[int, Mapping[str, str], bytes]:
        """Store scores, but do not respond."""
        self.accept(scores)
        return 0, {}, b""

    def reject_half(self, scores: Sequence[Score]) -> tuple[int, Mapping[str, str], bytes]:
        """Store every other score, and say that the others failed for now."""
        self.accept(scores[::2])
        errors = [{"id": score["id"], "status": 500, "message": "busy"} for score in scores[1::2]]
        return 207, {}, json.dumps({"successes": [], "errors": errors}).encode()

    def values(self) -> dict[tuple[str, str], float]:
        """Return the stored values by span id and name. Fails if a span has two scores of a name."""
        keys = [(score["observationId"], score["name"]) for score in self.stored.values()]
        assert len(keys) == len(set(keys))
        return {(score["observationId"], score["name"]): score["value"] for score in self.stored.values()}


def status(code: int, body: bytes = b"{}", **headers: str) -> Callable[[list[Score]], Any]:
    """Return a response with a status, which stores nothing."""
    return lambda _: (code, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    monkeypatch.setenv("PUBLIC", "pk-test")
    monkeypatch.setenv("SECRET", "sk-test")
    opened = Backend()
    yield opened
    opened.server.shutdown()
    opened.server.server_close()
    opened.thread.join()


def langfuse(url: str, *, timeout: float = 5.0) -> LangfuseSink:
    """Return a sink for a server."""
    settings = LangfuseSettings(type="langfuse", url=url, public_key="env:PUBLIC", secret_key="env:SECRET")
    return LangfuseSink(NAME, settings, client=SinkClient(timeout=timeout))


class Bench:
    """A store whose sink is a backend, a frozen clock, and the worker between them."""

    def __init__(self, store: TrackingStore, backend: Backend, clock: Clock, *, timeout: float = 5.0) -> None:
        self.store, self.backend, self.clock = store, backend, clock
        self.sink: Any = langfuse(backend.url, timeout=timeout)
        self.pool = DaemonThreadPool(2, name="test-sinks")
        self.numbers = iter(range(1, 10_000))

    def add(self, count: int, **values: Any) -> list[Exchange]:
        """Store exchanges, without scores."""
        added = [
            Exchange(
                id=f"{number:032x}", trace_id=f"{number:032x}", span_id=f"{number:016x}", service="shop", route="docs",
                question="QUESTION", answer="ANSWER", started_at=self.clock(), **values,
            )
            for number in (next(self.numbers) for _ in range(count))
        ]  # fmt: skip
        self.store.exchanges.add(added)
        return added

    def score(self, exchanges: Sequence[Exchange], value: float = 0.5, name: str = "tone") -> None:
        """Record a score for each exchange."""
        self.store.exchanges.record_scores(
            [RecordedScore(exchange_id=each.id, name=name, value=value, recorded_at=self.clock()) for each in exchanges]
        )

    def deliver(self, *, times: int = 1, minutes: float = 10.0) -> None:
        """Deliver what is due, several times with pauses in between, with a single worker."""

        async def run() -> None:
            context = DeliveryContext(
                store=self.store, owner="me", threads=self.pool, lease=timedelta(minutes=1),
                backoff=Backoff(initial=1e-6, maximum=1e-6, max_retry_after=3600.0),
            )  # fmt: skip
            worker = DeliveryWorker(SinkTarget(self.sink, self.store, self.pool), context)
            for number in range(times):
                if number:
                    self.clock.advance(minutes=minutes)
                await worker.deliver_due()

        asyncio.run(run())

    def waiting(self) -> int:
        """Return the number of exchanges that wait."""
        return sum(queue.waiting for queue in self.store.outbox.list_queues("sink"))

    def undelivered(self) -> list[Any]:
        """Return the exchanges that were given up."""
        return self.store.sinks.list_undelivered()


@pytest.fixture
def bench(migrated_url: str, backend: Backend) -> Iterator[Bench]:
    """A bench on a database without rows, once on SQLite and once on PostgreSQL."""
    clock = Clock()
    with closing(TrackingStore(migrated_url, clock=clock, sinks=[NAME])) as store:
        opened = Bench(store, backend, clock)
        yield opened
        opened.pool.close()
        opened.pool.join(60)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setenv("BRIDGE", server.url + "/very-secret-path")
        monkeypatch.setenv("SIGNING", "key")
        yield server
        server.shutdown()
        thread.join()
