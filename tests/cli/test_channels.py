"""Tests of channels, undelivered notifications, and their checks in `germane doctor`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, an_alert
from tests.deliveries import Courier, due_channels

from germane.alert import Notification
from germane.storage import AlertTransaction, DeliveryOutcome, TrackingStore

HOOK = '[channels.hook]\ntype = "webhook"\nurl = "env:HOOK_URL"\n'


class Call(Protocol):
    def __call__(self, *arguments: str) -> Any: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def hook(bare: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """A channel named hook, and its receiver."""
    (bare / "germane.toml").write_text(HOOK)
    monkeypatch.setenv("HOOK_URL", receiver.url + "/very-secret-path")
    return receiver


@pytest.fixture
def died(store: TrackingStore) -> Callable[..., str]:
    """Write an undelivered notification."""

    def died(name: str, channel: str = "hook", error: str = "status 404") -> str:
        notification = Notification(
            id=name, channel=channel, idempotency_key=f"key-{name}", type="firing", alerts=(an_alert(),),
            event_ids=(), created_at=datetime.now(UTC),
        )  # fmt: skip
        assert store.alerts.commit(AlertTransaction(notifications=[notification]))
        assert Courier(store, channel).deliver(DeliveryOutcome(http_status=404, error=error)) == name
        return name

    return died


def test_a_channel_can_be_tested_without_a_database(call: Call, hook: Receiver) -> None:
    """The notification is marked as a test, and the response is shown."""
    ended = call("alerts", "test", "hook")

    assert ended.code == 0
    (alert,) = hook.posts[0].json["alerts"]
    assert ended.out == (
        f"hook: {hook.url}/***\ndelivered, status 200\n"
        f"To resolve the test alert: germane alerts test hook --resolved {alert['labels']['test']}\n"
    )
    assert alert["message"] == "This is a test of channel hook. No action is needed."
    assert (alert["rule"], alert["state"]) == ("test", "firing")


def test_a_test_alert_can_be_resolved(call: Call, hook: Receiver) -> None:
    """The resolution has the key of this test, so it does not resolve other incidents."""
    ids = [call("alerts", "test", "hook", "--json").content["id"] for _ in range(2)]
    assert call("alerts", "test", "hook", "--resolved", ids[0]).code == 0

    (begun,), (other,), (ended,) = (post.json["alerts"] for post in hook.posts)
    assert (begun["key"], ended["state"]) == (ended["key"], "resolved")
    assert other["key"] != ended["key"]


def test_a_failed_test_delivery_exits_with_1(call: Call, hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is shown without the URL."""
    hook.answers = [Answer(403)]
    refused = call("alerts", "test", "hook", "--json")
    assert refused.code == 1
    assert refused.content == {
        "schema_version": 1,
        "channel": "hook",
        "destination": f"{hook.url}/***",
        "id": refused.content["id"],
        "delivered": False,
        "status": 403,
        "error": "status 403",
    }
    monkeypatch.delenv("HOOK_URL")
    absent = call("alerts", "test", "hook")
    assert absent.code == 1
    assert absent.out == "hook: env:HOOK_URL\nnot delivered: the environment variable HOOK_URL is not set\n"
    assert "very-secret-path" not in refused.out + refused.err + absent.out + absent.err


def test_the_error_for_an_unknown_channel_lists_the_configured_channels(call: Call, hook: Receiver) -> None:
    """This makes typos easy to find."""
    ended = call("alerts", "test", "hok")

    assert ended.code == 1
    assert "unknown channel 'hok'; configured: log, hook." in ended.err
    assert call("alerts", "test", "log").code == 0


@pytest.mark.usefixtures("hook")
def test_undelivered_notifications_can_be_resent(call: Call, store: TrackingStore, died: Callable[..., str]) -> None:
    """Notifications are selected by id prefixes or by channel."""
    assert call("alerts", "--undelivered").out == "No undelivered notifications.\n"
    for name in ("aa1", "ab2"):
        died(name)
    died("ac3", "mail", "status \x1b[31m550")

    shown = call("alerts", "--undelivered")
    assert "firing: drop" in shown.out
    assert "status 404" in shown.out
    assert "\x1b" not in shown.out
    undelivered = call("alerts", "--undelivered", "--json").content["undelivered"]
    assert ("ac3", 1, 404) in [(one["id"], one["attempts"], one["http_status"]) for one in undelivered]
    assert call("alerts", "respond", "resend", "a").err.startswith("germane: more than one undelivered notification")
    assert call("alerts", "respond", "resend", "x").err.startswith("germane: no undelivered notification")
    assert call("alerts", "respond", "resend").code == 2
    assert call("alerts", "respond", "resend", "aa").out == "1 notification will be resent.\n"
    assert call("alerts", "respond", "resend", "--channel", "mail").out == "1 notification will be resent.\n"
    assert call("alerts", "respond", "resend", "ab", "--json").content["resent"] == 1
    assert due_channels(store, ["hook", "mail"]) == {"hook", "mail"}


def test_superseded_notifications_are_not_resent(call: Call, store: TrackingStore, died: Callable[..., str]) -> None:
    """The output states their number."""
    died("aa1")
    later = Notification(
        id="n2", channel="hook", idempotency_key="k2", type="repeated", alerts=(an_alert(),), event_ids=(),
        created_at=datetime.now(UTC),
    )  # fmt: skip
    assert store.alerts.commit(AlertTransaction(notifications=[later]))
    assert Courier(store, "hook").deliver() == "n2"

    assert (
        call("alerts", "respond", "resend", "aa1").out
        == "0 notifications will be resent; 1 superseded by later notifications.\n"
    )


def findings(call: Call) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for one in call("doctor", "--offline", "--json").content["findings"]:
        found.setdefault(one["subject"], []).append((one["level"], one["message"]))
    return {about: statuses for about, statuses in found.items() if about.startswith("channel ")}


def test_doctor_checks_the_configured_channels(
    call: Call, hook: Receiver, store: TrackingStore, died: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output shows destinations, configuration errors, and pending and undelivered notifications."""
    assert findings(call) == {"channel hook": [("ok", f"sends to {hook.url}/***; no pending notifications")]}

    died("aa1"), died("ab2", error="status 410")
    waiting = Notification(
        id="w1", channel="old-name", idempotency_key="k", type="firing", alerts=(an_alert(),), event_ids=(),
        created_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    )  # fmt: skip
    assert store.alerts.commit(AlertTransaction(notifications=[waiting]))
    monkeypatch.delenv("HOOK_URL")
    reported = findings(call)

    assert reported["channel hook"][0] == (
        "warning",
        "cannot send from this host: the environment variable HOOK_URL is not set",
    )
    status, message = reported["channel hook"][1]
    assert status == "error"
    assert message.startswith("2 undelivered notifications in the last week, the latest at ")
    assert message.endswith("UTC: status 410")
    assert reported["channel old-name"] == [
        ("warning", "1 pending notification, the oldest since 2026-03-01 12:00 UTC")
    ]


def test_doctor_warns_about_channel_patterns_that_match_no_rule(
    call: Call, hook: Receiver, store: TrackingStore, bare: Path
) -> None:
    """With a typo in a pattern, notifications would not be sent."""
    (bare / "germane.toml").write_text(f'{HOOK}\nrules = ["dr*", "nodata"]\n')

    note = findings(call)["channel hook"][-1]

    assert note == ("warning", "its rule pattern 'nodata' matches no active rule")
