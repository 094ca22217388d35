"""Tests of ``germane sinks``, and of the checks of sinks in ``germane doctor``."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.alerting.channels.conftest import Answer, Receiver
from tests.sinks.conftest import receiver
from tests.sinks.test_webhook import score

from germane.sinks import MISSING_SPAN
from germane.storage import DeliveryOutcome, TrackingStore, sink_queue
from germane.storage.db.tables import delivery
from germane.testing import transaction

__all__ = ["receiver"]  # a fixture


def set_back(store: TrackingStore, error: str | None, age: timedelta) -> None:
    """Let all exchanges that wait for a sink have waited for a time, with an error from the last attempt."""
    failed = {"created_at": store.now() - age, "error": error}
    with transaction(store) as connection:
        connection.execute(update(delivery).where(delivery.c.due_at.is_not(None)).values(failed))


TOML = '[sinks.bridge]\ntype = "webhook"\nurl = "env:BRIDGE"\n'


def test_the_command_shows_tests_and_resends(
    call: Any, bare: Path, database: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``germane sinks`` and ``germane doctor`` describe one sink, in text and JSON."""
    with closing(TrackingStore(database, sinks=["bridge", "gone"])) as store:
        exchange_id = score(store)
        (bare / "germane.toml").write_text(TOML)

        bridge, gone = call("sinks", "status", "--json").content["sinks"]
        assert (bridge["name"], bridge["configured"], bridge["waiting"]) == ("bridge", True, 1)
        assert (gone["name"], gone["configured"]) == ("gone", False)
        assert "bridge        1" in call("sinks", "status").out
        queue = sink_queue("bridge", batch_size=1)
        (claimed,) = store.outbox.claim(queue, "me", lease=timedelta(hours=1))
        refused = DeliveryOutcome(http_status=413, error="status 413")
        assert store.outbox.record_attempt(queue, "me", {claimed.id: refused}) == {claimed.id: "undelivered"}
        shown = call("sinks", "status")
        assert exchange_id in shown.out
        assert "status 413" in shown.out
        assert call("sinks", "status", "--json").content["undelivered"][0]["exchange_id"] == exchange_id
        doctor = call("doctor", "--offline").out
        assert "warning  sink bridge: gave up on 1 exchange in the last week: status 413" in doctor
        assert "warning  sink gone: cannot write from this host: it is not configured, but scores wait" in doctor
        assert call("sinks", "resend", "--since", "1h").out == "Queued 1 exchange.\n"
        for error, minutes, expected in (
            (None, 0, "ok       sink bridge: writes to"),
            (MISSING_SPAN, 0, "ok       sink bridge: writes to"),
            (MISSING_SPAN, 2, "UTC: the backend has not received the span"),
            ("status 401", 0, "UTC: status 401\n         -> germane sinks test bridge"),
            (None, 2, "-> start a worker that has this sink in its settings"),
        ):
            set_back(store, error, timedelta(minutes=minutes))
            assert expected in call("doctor", "--offline").out
        assert call("sinks", "resend", "bridge", "--since", "1h", "--json").content["queued"] == 1
        assert store.sinks.list_undelivered() == []

    assert call("sinks", "test").out == f"bridge: {receiver.url}/***: ok\n"
    receiver.answers.append(Answer(401))
    failed = call("sinks", "test", "bridge", "--json")
    assert failed.code == 1
    assert failed.content["sinks"][0]["error"] == "status 401: the key was rejected"
    assert "unknown sink 'elsewhere'; configured: bridge" in call("sinks", "test", "elsewhere").err
    monkeypatch.delenv("BRIDGE")
    assert "the environment variable BRIDGE is not set" in call("sinks", "test").out
    assert "cannot write from this host: the environment variable BRIDGE" in call("doctor", "--offline").out
    (bare / "germane.toml").unlink()
    assert "no sinks are configured" in call("sinks", "test").err


def test_no_sinks_and_nothing_waiting(call: Any, database: str) -> None:
    """The command says so."""
    assert call("sinks", "status").out.startswith("No sinks are configured, and nothing waits for one.")
