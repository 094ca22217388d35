"""A scriptable HTTP receiver, harmless alerts and hostile alerts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from tests.schemas import WEBHOOK, check

from germane.alert import Alert, Notification, ScoreLevel, ScoreShift, alert_key
from germane.alerting.channels.channel import ChannelMessage, ExchangeQuote, MessageFormat

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABELS = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
HOSTILE = (
    "<!channel> <https://evil.example|here> *b* `c` & <script>alert(1)</script>\r\nBcc: all@example.com\x1b[31m\u202e"
)


def an_alert(**given: Any) -> Alert:
    """Return an alert with all fields set."""
    labels = given.pop("labels", LABELS)
    values: dict[str, Any] = {
        "id": "a1",
        "key": alert_key("drop", labels),
        "rule": "drop",
        "type": "drop",
        "labels": labels,
        "state": "firing",
        "cause": "refusals_rising",
        "message": "answer_relevancy for route docs in shop has dropped from 0.820 to 0.610.",
        "fingerprint": "f1",
        "value": 0.61,
        "current": ScoreLevel(mean=0.61, n=120, interval=(0.57, 0.65)),
        "baseline": ScoreLevel(mean=0.82, n=1400),
        "onset": NOON - timedelta(hours=3),
        "shifts": (
            ScoreShift(
                dimension="route", name="docs", before=ScoreLevel(mean=0.8, n=9), since=ScoreLevel(mean=0.6, n=9)
            ),
        ),
        "exchange_ids": ("x1", "x2"),
        "starts_at": NOON,
        "fired_at": NOON,
        "evaluated_at": NOON,
    }
    return Alert(**values | given)


def over(alert: Alert, **given: Any) -> Alert:
    """Return an alert after it has resolved."""
    values = {"state": "resolved", "resolved_at": NOON + timedelta(hours=1), "resolve_reason": "recovered", **given}
    return replace(alert, **values)


def a_message(
    *alerts: Alert, type_: Any = None, quotes: Mapping[str, ExchangeQuote] | None = None, **form: Any
) -> ChannelMessage:
    """Return a message about alerts, in the given format."""
    included = alerts or (an_alert(),)
    notification = Notification(
        id="n1",
        channel="oncall",
        idempotency_key="0123456789abcdef",
        type=type_ or ("resolved" if included[0].state == "resolved" else "firing"),
        alerts=included,
        event_ids=tuple(f"e-{alert.id}" for alert in included),
        created_at=NOON,
    )
    return ChannelMessage(notification=notification, quotes=quotes or {}, format=MessageFormat(**form))


def a_hostile_message() -> ChannelMessage:
    """Return a message in which every name and text is hostile."""
    alert = an_alert(
        labels={"service": HOSTILE, "scorer": HOSTILE, "route": HOSTILE},
        rule=HOSTILE,
        message=HOSTILE * 100,
        exchange_ids=(HOSTILE, "x2"),
        shifts=(
            ScoreShift(
                dimension="attribute", name=HOSTILE, before=ScoreLevel(mean=0.8, n=9), since=ScoreLevel(mean=0.6, n=9)
            ),
        ),
    )
    quotes = {"x2": ExchangeQuote(exchange_id="x2", question=HOSTILE * 100, answer=HOSTILE * 1000)}
    return a_message(alert, quotes=quotes, alert_url_template="https://germane.example.com/{route}?a=1&b=2")


class ReceivedRequest(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer(NamedTuple):
    """A receiver's response, after a delay if given. Status 0 closes the connection."""

    status: int = 200
    headers: Mapping[str, str] = {}
    after: threading.Event | None = None


class Receiver(ThreadingHTTPServer):
    """An HTTP server that records requests and sends the given answers, then 200."""

    daemon_threads = True

    def __init__(self) -> None:
        self.posts: list[ReceivedRequest] = []
        self.answers: list[Answer] = []
        super().__init__(("127.0.0.1", 0), _Receiving)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def keys(self) -> list[str]:
        """The idempotency keys of all requests."""
        return [post.headers["Idempotency-Key"] for post in self.posts]


class _Receiving(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.server.answers.pop(0) if self.server.answers else Answer()
        self.server.posts.append(ReceivedRequest(self.path, dict(self.headers), body))
        if answer.after is not None:
            answer.after.wait(60)
        if not answer.status:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver. Requests to webhooks must match the documented schema."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
    for post in server.posts:
        if "Germane-Timestamp" in post.headers:
            check(post.json, WEBHOOK)


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """An event that delays answers; it is set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Store a secret where settings can refer to it, and return the reference."""

    def put(name: str, value: str) -> str:
        monkeypatch.setenv(name, value)
        return f"env:{name}"

    return put
