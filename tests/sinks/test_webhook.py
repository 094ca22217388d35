"""What a webhook gets, and a worker that writes to it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver
from tests.cli.conftest import an_exchange
from tests.conftest import migrated_file
from tests.monitor.conftest import wait_until

from germane.annotation import Feedback, RecordedScore
from germane.errors import SettingsError
from germane.monitor import Monitor, MonitorConfig
from germane.settings import load_settings
from germane.settings.sinks import WebhookSinkSettings
from germane.sinks.webhook import WebhookSink
from germane.storage import TrackingStore
from germane.storage.answers.store_sinks import SinkItem, SinkLabel, SinkScore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ITEM = SinkItem(
    exchange_id="a", trace_id="b", span_id="c", service="shop", route="docs", attributes={"tenant": "x"},
    scores=(
        SinkScore(
            scorer="tone", fingerprint="f2", value=0.5, label="polite", explanation="It says please.", judge="gpt",
            scored_at=NOON, superseded=("f1",),
        ),
    ),
    labels=(SinkLabel(id="l", score=1.0, comment=None, user="ada", created_at=NOON),),
)  # fmt: skip


def test_the_body_describes_each_exchange(receiver: Receiver) -> None:
    """It is signed, and its idempotency key is the same when it is sent again."""
    sink = WebhookSink("bridge", WebhookSinkSettings(type="webhook", url="env:BRIDGE", secret="env:SIGNING"))
    assert asyncio.run(sink.write([ITEM])) == {}
    asyncio.run(sink.write([ITEM]))
    asyncio.run(sink.test())

    post, again, test = receiver.posts
    assert post.json == {
        "version": 1,
        "items": [
            {
                "exchange_id": "a", "trace_id": "b", "span_id": "c", "service": "shop", "route": "docs",
                "attributes": {"tenant": "x"},
                "scores": [
                    {
                        "scorer": "tone", "fingerprint": "f2", "value": 0.5, "label": "polite",
                        "explanation": "It says please.", "judge": "gpt", "scored_at": "2026-03-01T12:00:00+00:00",
                        "superseded": ["f1"],
                    }
                ],
                "labels": [
                    {
                        "id": "l", "score": 1.0, "comment": None, "user": "ada",
                        "created_at": "2026-03-01T12:00:00+00:00",
                    }
                ],
            }
        ],
    }  # fmt: skip
    signed = f"{post.headers['Germane-Timestamp']}.".encode() + post.body
    assert post.headers["Germane-Signature"] == f"sha256={hmac.new(b'key', signed, hashlib.sha256).hexdigest()}"
    assert post.headers["Idempotency-Key"] == again.headers["Idempotency-Key"] != test.headers["Idempotency-Key"]
    assert test.json == {"version": 1, "items": []}
    assert sink.destination == f"{receiver.url}/***"


def test_a_secret_that_cannot_be_read_is_a_problem_of_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process does not send without it; another one may."""
    monkeypatch.setenv("BRIDGE", "https://example.com")
    settings = WebhookSinkSettings(type="webhook", url="env:BRIDGE", secret="env:NOWHERE")
    sink = WebhookSink("bridge", settings)

    assert sink.config_error == "the environment variable NOWHERE is not set"
    with pytest.raises(SettingsError):
        asyncio.run(sink.write([ITEM]))


@pytest.fixture
def run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], tuple[TrackingStore, Monitor]]]:
    """A function that starts a monitor without scorers, with a webhook as its sink."""
    monitors: list[Monitor] = []
    path = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "germane.db")
    with closing(TrackingStore(f"sqlite:///{path}", sinks=["bridge"])) as store:

        def start() -> tuple[TrackingStore, Monitor]:
            settings = load_settings(sinks={"bridge": {"type": "webhook", "url": "env:BRIDGE"}}, poll_interval=0.05)
            monitors.append(Monitor(MonitorConfig(store, [], settings, attach=lambda *_: None)))
            monitors[-1].start()
            return store, monitors[-1]

        yield start
        for monitor in monitors:
            monitor.stop(5)


def score(store: TrackingStore) -> str:
    """Store an exchange with a score and a label, and return its id."""
    exchange = an_exchange()
    store.exchanges.add([exchange])
    now = datetime.now(UTC)
    store.exchanges.record_scores([RecordedScore(exchange_id=exchange.id, name="tone", value=0.5, recorded_at=now)])
    store.labels.add_feedback([Feedback(id=exchange.id, exchange_id=exchange.id, score=1.0, created_at=now)])
    return exchange.id


def test_a_worker_writes_scores(run: Any, receiver: Receiver) -> None:
    """As soon as they are stored, and after a failure. The problem is part of its status until then."""
    receiver.answers += [Answer(403)] * 2
    store, monitor = run()
    exchange_id = score(store)

    wait_until(lambda: monitor.status().sink_problems)
    assert monitor.status().sink_problems == {"bridge": "status 403: the key was rejected"}
    wait_until(lambda: len(receiver.posts) == 3)
    wait_until(lambda: not monitor.status().sink_problems)
    (item,) = receiver.posts[-1].json["items"]
    assert item["exchange_id"] == exchange_id
    assert (len(item["scores"]), len(item["labels"])) == (1, 1)
    assert store.outbox.list_queues("sink") == []


def test_stopping_does_not_wait_for_a_hanging_sink(run: Any, receiver: Receiver) -> None:
    """Nothing is lost: the next start sends what was not confirmed."""
    release = threading.Event()
    receiver.answers.append(Answer(200, after=release))
    store, monitor = run()
    score(store)
    wait_until(lambda: receiver.posts)

    assert monitor.stop(60)
    release.set()
    assert [queue.waiting for queue in store.outbox.list_queues("sink")] == [1]
    run()
    wait_until(lambda: store.outbox.list_queues("sink") == [])

    assert len(receiver.posts) == 2


def test_a_stopping_process_sends_what_is_due(run: Any, receiver: Receiver) -> None:
    """A short-lived process does not leave its scores to the next one."""
    store, monitor = run()
    wait_until(lambda: monitor.status().running)
    for _ in range(3):
        score(store)
    assert monitor.stop(60)

    assert sum(len(post.json["items"]) for post in receiver.posts) >= 3
    assert store.outbox.list_queues("sink") == []


def test_settings_of_sinks_are_validated() -> None:
    """Names, types and secrets have the same rules as those of channels."""

    def refusal(**sinks: Any) -> str:
        with pytest.raises(SettingsError) as raised:
            load_settings(sinks=sinks)
        return str(raised.value)

    assert "type must be one of phoenix, mlflow, langfuse, webhook" in refusal(bridge={"url": "env:X"})
    assert "invalid sink name 'A b'" in refusal(**{"A b": {"type": "webhook", "url": "env:X"}})
    assert "must be a reference to the secret" in refusal(bridge={"type": "webhook", "url": "https://hunter2"})
    assert "hunter2" not in refusal(bridge={"type": "webhook", "url": "https://hunter2"})
    assert load_settings(sinks={"log": {"type": "phoenix", "url": "http://phoenix:6006"}}).sinks.keys() == {"log"}
