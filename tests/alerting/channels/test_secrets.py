"""Channel secrets appear only at the source and at the receiver."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, an_alert

from germane.alert import Notification
from germane.alerting.channels.factory import build_channels
from germane.settings import load_settings
from germane.storage import NOTIFICATION, AlertTransaction, TrackingStore

SECRETS = ("hunter-url", "hunter-key", "hunter-pager", "hunter-slack", "hunter-mail", "hunter-token")


def test_channel_secrets_appear_in_no_row_log_error_or_repr(
    store: TrackingStore, start: Any, settings: Any, receiver: Receiver, until: Any, tmp_path: Path, caplog: Any,
    monkeypatch: pytest.MonkeyPatch, url: str,
) -> None:  # fmt: skip
    """Rows, logs, errors and reprs contain no secrets, for every channel type and at log level DEBUG."""
    caplog.set_level(logging.DEBUG)
    places = {
        "HOOK": f"{receiver.url.replace('//', '//user:hunter-url@')}/hunter-url?k=hunter-url",
        "KEY": "hunter-key",
        "PAGER": "hunter-pager",
        "SLACK": f"{receiver.url}/services/hunter-slack",
        "MAIL": "hunter-mail",
    }
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "token").write_text("hunter-token\n")
    mail = {"type": "email", "host": "127.0.0.1", "port": 1, "sender": "a@example.com", "to": "b@example.com"}
    channels = {
        "hook": {"type": "webhook", "url": "env:HOOK", "secret": "env:KEY"},
        "pager": {"type": "pagerduty", "routing_key": "env:PAGER", "url": f"{receiver.url}/v2/enqueue"},
        "slack": {"type": "slack", "url": "env:SLACK"},
        "metrics": {"type": "alertmanager", "url": receiver.url, "token": f"file:{tmp_path / 'token'}"},
        "mail": {**mail, "user": "me", "password": "env:MAIL"},
        "away": {"type": "webhook", "url": "env:AWAY"},
    }
    monkeypatch.setenv("AWAY", "http://127.0.0.1:1/hunter-url")
    receiver.answers = [Answer(status) for status in (400, 403, 404, 500)]
    given = settings(channels=channels)
    now = datetime.now(UTC)
    notifications = [
        Notification(
            id=name,
            channel=name,
            idempotency_key=name,
            type="firing",
            alerts=(an_alert(),),
            event_ids=(),
            created_at=now,
        )
        for name in channels
    ]
    assert store.alerts.commit(AlertTransaction(notifications=notifications))
    running = start(store, settings=given)
    until(lambda: all(one.error or one.status == "sent" for one in store.notifications.search()))
    outputs = [
        repr(store.notifications.search()),
        repr(store.outbox.list_queues(NOTIFICATION)),
        repr(running.status()),
        caplog.text,
    ]
    assert running.stop(60)

    built = build_channels(given)
    outputs += [repr(given), given.model_dump_json(), repr(built), *(channel.destination for channel in built.values())]
    files = b"".join(file.read_bytes() for file in tmp_path.glob("germane.db*"))
    assert len(files) > 10_000
    assert b"status" in files
    assert [one for one in SECRETS if any(one in text for text in outputs) or one.encode() in files] == []


def test_references_to_channel_secrets_are_shown() -> None:
    """People need the references to fix the secrets."""
    given = load_settings(channels={"pager": {"type": "pagerduty", "routing_key": "env:PAGER_KEY"}})

    assert "env:PAGER_KEY" in repr(given)
    assert repr(build_channels(given)["pager"]) == "PagerDuty(env:PAGER_KEY)"
