"""Trying channels, what nobody was told of, and what the doctor says of both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, an_alert

from germane.alert import Notification
from germane.storage import Advance, Outcome, Store

HOOK = '[channels.hook]\nkind = "webhook"\nurl = "env:HOOK_URL"\n'


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
def died(store: Store) -> Callable[..., str]:
    """Write a notification that nobody has taken."""

    def died(name: str, channel: str = "hook", error: str = "status 404") -> str:
        notification = Notification(
            id=name, channel=channel, idempotency_key=f"key-{name}", what="firing", alerts=(an_alert(),),
            event_ids=(), created_at=datetime.now(UTC),
        )  # fmt: skip
        assert store.advance(Advance(notifications=[notification]))
        assert store.take_notification(channel, "me", lease=timedelta(minutes=1))
        assert store.settle_notification(name, "me", Outcome(http_status=404, error=error)) == "dead"
        return name

    return died


def test_a_channel_is_tried_at_once(call: Call, hook: Receiver) -> None:
    """Without a database; what goes out says that it is a test, what is printed says what came back."""
    ended = call("alerts", "test", "hook")

    assert ended.code == 0
    assert ended.out == f"hook: {hook.url}/***\ntaken, status 200\n"
    (alert,) = hook.posts[0].json["alerts"]
    assert alert["message"] == "This is a test of the channel hook. Nothing is wrong."
    assert (alert["rule"], alert["state"]) == ("test", "firing")


def test_a_test_can_be_ended(call: Call, hook: Receiver) -> None:
    """By the same key, which closes an incident."""
    call("alerts", "test", "hook")
    assert call("alerts", "test", "hook", "--resolved").code == 0

    (begun,), (ended,) = (post.json["alerts"] for post in hook.posts)
    assert (begun["key"], ended["state"]) == (ended["key"], "resolved")


def test_a_channel_that_does_not_work_is_said(call: Call, hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, without the address, and with exit code 1."""
    hook.answers = [Answer(403)]
    refused = call("alerts", "test", "hook", "--json")
    assert refused.code == 1
    assert refused.content == {
        "schema_version": 1,
        "channel": "hook",
        "where": f"{hook.url}/***",
        "taken": False,
        "status": 403,
        "problem": "status 403",
    }
    monkeypatch.delenv("HOOK_URL")
    absent = call("alerts", "test", "hook")
    assert absent.code == 1
    assert absent.out == "hook: env:HOOK_URL\nnot taken: the environment variable HOOK_URL is not set\n"
    assert "very-secret-path" not in refused.out + refused.err + absent.out + absent.err


def test_a_channel_that_is_none_is_answered_with_those_there_are(call: Call, hook: Receiver) -> None:
    """A typing error is seen at once."""
    ended = call("alerts", "test", "hok")

    assert ended.code == 1
    assert "there is no channel 'hok'; known: log, hook." in ended.err
    assert call("alerts", "test", "log").code == 0


@pytest.mark.usefixtures("hook")
def test_the_dead_are_shown_and_sent_again(call: Call, store: Store, died: Callable[..., str]) -> None:
    """By the beginning of an id, of a channel, or all."""
    assert call("alerts", "dead").out == "No notification has died.\n"
    for name in ("aa1", "ab2"):
        died(name)
    died("ac3", "mail", "status \x1b[31m550")

    shown = call("alerts", "dead")
    assert "firing: drop" in shown.out
    assert "status 404" in shown.out
    assert "\x1b" not in shown.out
    told = call("alerts", "dead", "--channel", "mail", "--json").content["dead"]
    assert [(one["id"], one["tries"], one["http_status"]) for one in told] == [("ac3", 1, 404)]
    assert call("alerts", "resend", "a").err.startswith("germane: there is more than one dead notification")
    assert call("alerts", "resend", "x").err.startswith("germane: there is no dead notification")
    assert call("alerts", "resend").code == 2
    assert call("alerts", "resend", "aa").out == "1 notification will be sent again\n"
    assert call("alerts", "resend", "--channel", "mail").out == "1 notification will be sent again\n"
    assert call("alerts", "resend", "--all", "--json").content["resent"] == 1
    assert store.due_channels(["hook", "mail"]) == {"hook", "mail"}


def test_what_later_news_has_overtaken_is_said(call: Call, store: Store, died: Callable[..., str]) -> None:
    """Nothing happens to it, and whoever asked hears why."""
    died("aa1")
    later = Notification(
        id="n2", channel="hook", idempotency_key="k2", what="repeated", alerts=(an_alert(),), event_ids=(),
        created_at=datetime.now(UTC),
    )  # fmt: skip
    assert store.advance(Advance(notifications=[later]))
    store.take_notification("hook", "me", lease=timedelta(minutes=1))
    store.settle_notification("n2", "me", Outcome(http_status=200))

    assert call("alerts", "resend", "aa1").out == "0 notifications will be sent again; of 1 later news went out\n"


def findings(call: Call) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for one in call("doctor", "--offline", "--json").content["findings"]:
        found.setdefault(one["about"], []).append((one["status"], one["message"]))
    return {about: told for about, told in found.items() if about.startswith("channel ")}


def test_the_doctor_tells_of_channels(
    call: Call, hook: Receiver, store: Store, died: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they send to, what keeps them from it, what waits, and what nobody has taken."""
    assert findings(call) == {"channel hook": [("ok", f"sends to {hook.url}/***; nothing waits")]}

    died("aa1"), died("ab2", error="status 410")
    waiting = Notification(
        id="w1", channel="old-name", idempotency_key="k", what="firing", alerts=(an_alert(),), event_ids=(),
        created_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    )  # fmt: skip
    assert store.advance(Advance(notifications=[waiting]))
    monkeypatch.delenv("HOOK_URL")
    told = findings(call)

    assert told["channel hook"][0] == ("note", "cannot send from here: the environment variable HOOK_URL is not set")
    status, message = told["channel hook"][1]
    assert status == "fault"
    assert message.startswith("2 notifications of the last week did not go out, the last at ")
    assert message.endswith("UTC: status 410")
    assert told["channel old-name"] == [("note", "1 notification waiting, the oldest since 2026-03-01 12:00 UTC")]


def test_a_pattern_that_fits_no_rule_is_told(call: Call, hook: Receiver, store: Store, bare: Path) -> None:
    """A typing error there would keep a page from ever being sent."""
    (bare / "germane.toml").write_text(f'{HOOK}\nrules = ["dr*", "nodata"]\n')

    note = findings(call)["channel hook"][-1]

    assert note == ("note", "its rules name 'nodata', which fits none in force")
