"""Where alerts go, and what does not go with them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from germane.monitor import Alert, Callback, Monitor, Webhook
from germane.monitor.alerts import key_of
from germane.monitor.backoff import Backoff
from germane.monitor.channels import NotDelivered
from germane.monitor.delivery import Delivery
from germane.settings import Settings
from germane.storage import Store

PATH = "/services/T000/B000/very-secret-path"
QUICK = Backoff(first=0.01, limit=0.02)
ALERT = Alert(
    key=key_of("floor", {"service": "shop", "route": "ask", "scorer": "answer_relevancy"}),
    rule="floor",
    state="firing",
    service="shop",
    route="ask",
    scorer="answer_relevancy",
    fingerprint="f1",
    value=0.41,
    n=40,
    interval=(0.35, 0.47),
    threshold=0.6,
    window=5400,
    fired_at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    exchange_ids=("a", "b"),
)


def test_an_alert_is_one_plain_sentence() -> None:
    """The message names scorer, route, mean, interval, n and window."""
    assert ALERT.message == (
        "answer_relevancy of route ask in shop is below 0.6: "
        "mean 0.410 (95 % interval 0.35 to 0.47, n = 40) over the last 90 minutes."
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(86400, "the last day"), (7200, "the last 2 hours"), (60, "the last minute"), (1.5, "the last 1.5 seconds")],
)
def test_the_window_is_named_in_the_largest_whole_unit(seconds: float, words: str) -> None:
    """Nobody has to divide by 3600."""
    assert ALERT.resolved(window=seconds).message.endswith(f"over {words}.")


def test_a_resolved_alert_says_so() -> None:
    """The message of the end does not read like one of the beginning."""
    assert "is no longer below 0.6" in ALERT.resolved(value=0.7).message


def test_the_key_is_the_same_whatever_the_order_of_the_labels() -> None:
    """Rule and sorted labels make the key; any difference in them makes another."""
    assert key_of("floor", {"b": "2", "a": "1"}) == key_of("floor", {"a": "1", "b": "2"})
    assert len({key_of("floor", {"a": "1"}), key_of("floor", {"a": "2"}), key_of("low", {"a": "1"})}) == 3


def test_a_webhook_gets_the_alert_signed(receiver: Any) -> None:
    """The body is the alert as JSON; HMAC-SHA256 over timestamp and body proves whom it is from."""
    asyncio.run(Webhook(receiver.url + PATH, "key").send(ALERT))

    (post,) = receiver.posts
    timestamp, body = post.headers["Germane-Timestamp"], post.body
    expected = hmac.new(b"key", timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert post.path == PATH
    assert post.headers["Germane-Signature"] == f"sha256={expected}"
    assert abs(time.time() - int(timestamp)) < 60
    assert json.loads(body) == ALERT.as_dict()
    assert json.loads(body)["interval"] == [0.35, 0.47]
    assert json.loads(body)["fired_at"] == "2026-01-01T12:00:00+00:00"


def test_without_a_secret_nothing_is_signed(receiver: Any) -> None:
    """No signature is better than one that anybody could make."""
    asyncio.run(Webhook(receiver.url).send(ALERT))

    assert "Germane-Signature" not in receiver.posts[0].headers


def test_a_webhook_tries_again_under_the_same_key(receiver: Any) -> None:
    """429 and 5xx are tried again; the receiver can tell a repetition by its Idempotency-Key, a resolve has another."""
    receiver.statuses = [500, 429]
    webhook = Webhook(receiver.url, backoff=QUICK)
    asyncio.run(webhook.send(ALERT))
    asyncio.run(webhook.send(ALERT.resolved()))

    keys = [post.headers["Idempotency-Key"] for post in receiver.posts]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]


def test_a_webhook_gives_up(receiver: Any) -> None:
    """A receiver that never works is not tried for ever."""
    receiver.statuses = [503] * 10

    with pytest.raises(NotDelivered, match="in 3 tries: status 503"):
        asyncio.run(Webhook(receiver.url, tries=3, backoff=QUICK).send(ALERT))

    assert len(receiver.posts) == 3


@pytest.mark.parametrize("status", [301, 307, 400, 404])
def test_a_refusal_or_a_redirect_is_final(receiver: Any, status: int) -> None:
    """Redirects are not followed, and what the receiver refuses is not sent again."""
    receiver.statuses = [status]
    receiver.headers["Location"] = receiver.url + "/elsewhere"

    with pytest.raises(NotDelivered, match=str(status)):
        asyncio.run(Webhook(receiver.url, backoff=QUICK).send(ALERT))

    assert len(receiver.posts) == 1


def test_an_address_that_is_none_is_told_without_it() -> None:
    """A URL that cannot be used fails for good, and is not quoted."""
    webhook = Webhook("http://example/very-secret-path\x01", backoff=QUICK)

    with pytest.raises(NotDelivered, match="InvalidURL") as told:
        asyncio.run(webhook.send(ALERT))

    assert "very-secret-path" not in str(told.value)


def test_the_address_of_a_webhook_is_told_nowhere(receiver: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Path, user and secret appear in no log of ours or of the client, in no error and in no repr."""
    caplog.set_level(logging.DEBUG)
    secret_url = receiver.url.replace("http://", "http://user:password@") + PATH + "?token=abc"
    webhook = Webhook(secret_url, "signing-key", tries=2, backoff=QUICK)
    receiver.statuses = [500, 500]
    with pytest.raises(NotDelivered) as told:
        asyncio.run(webhook.send(ALERT))
    asyncio.run(webhook.send(ALERT))

    nowhere = Webhook("http://127.0.0.1:1" + PATH, tries=1)
    with pytest.raises(NotDelivered) as unreachable:
        asyncio.run(nowhere.send(ALERT))

    everything = caplog.text + repr(webhook) + str(told.value) + repr(unreachable.value)
    for secret in ("very-secret-path", "password", "token=abc", "signing-key"):
        assert secret not in everything
    assert repr(webhook) == f"Webhook({receiver.url}/***)"


def test_the_client_still_logs_what_is_not_ours(receiver: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Only our own requests are held back from the client's log."""
    import httpx2

    Webhook(receiver.url)
    caplog.set_level(logging.INFO, "httpx2")
    httpx2.post(receiver.url + "/theirs")

    assert "/theirs" in caplog.text


def test_a_callback_may_be_sync_or_async() -> None:
    """Both kinds of function get the alert; a sync one runs on no event loop."""
    got: list[tuple[str, str]] = []

    def plain(alert: Alert) -> None:
        got.append((alert.key, threading.current_thread().name))

    async def on_the_loop(alert: Alert) -> None:
        got.append((alert.key, threading.current_thread().name))

    asyncio.run(Callback(plain).send(ALERT))
    asyncio.run(Callback(on_the_loop).send(ALERT))
    asyncio.run(Callback(lambda alert: on_the_loop(alert)).send(ALERT))

    assert [key for key, _ in got] == [ALERT.key] * 3
    assert [name for _, name in got] == ["germane-callback-0", "MainThread", "MainThread"]
    assert repr(Callback(plain)).startswith("Callback(test_a_callback_may_be")


def test_what_a_channel_raises_does_not_spread(caplog: pytest.LogCaptureFixture) -> None:
    """A callback that raises is told in the log, without its message, and the other channels get their alert."""
    got: list[Alert] = []

    def broken(alert: Alert) -> None:
        raise RuntimeError("my-api-key")

    async def deliver() -> dict[str, str]:
        delivery = Delivery([Callback(broken), Callback(got.append)])
        delivery.send(ALERT)
        await delivery.drain()
        problems = delivery.problems
        await delivery.close()
        return problems

    (problem,) = asyncio.run(deliver()).values()

    assert got == [ALERT]
    assert problem.startswith("RuntimeError at test_channels.py:")
    assert "RuntimeError" in caplog.text
    assert "my-api-key" not in caplog.text


def test_alerts_of_one_channel_keep_their_order() -> None:
    """The end of an alert never arrives before its beginning, even when the first try of that fails."""
    got: list[str] = []

    async def slow(alert: Alert) -> None:
        await asyncio.sleep(0.02 if alert.state == "firing" else 0)
        got.append(alert.state)

    async def deliver() -> None:
        delivery = Delivery([Callback(slow)])
        delivery.send(ALERT)
        delivery.send(ALERT.resolved())
        await delivery.drain()
        await delivery.close()

    asyncio.run(deliver())

    assert got == ["firing", "resolved"]


def test_alerts_that_never_went_out_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """When the end comes before a channel has taken its alerts, the log says how many."""

    async def hang(alert: Alert) -> None:
        await asyncio.Event().wait()

    async def deliver() -> None:
        delivery = Delivery([Callback(hang)])
        for _ in range(1002):
            delivery.send(ALERT)
        await asyncio.sleep(0)
        await delivery.close()

    asyncio.run(deliver())

    assert "1000 alerts wait for it" in caplog.text
    assert "1000 alert(s) did not go out" in caplog.text


def test_a_slow_channel_does_not_hold_up_the_watch(
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
    receiver: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one channel hangs, the webhook of the settings gets its alert and the next looks go on."""
    hang = threading.Event()

    class Low:
        name, fingerprint, requires, range = "answer_relevancy", "f1", frozenset({"answer"}), (0.0, 1.0)

        async def score(self, exchange: Any) -> float:
            return 0.1

    store.add([new_exchange() for _ in range(3)])
    monkeypatch.setenv("HOOK_URL", receiver.url)
    hook = {"kind": "webhook", "url": "env:HOOK_URL"}
    told = settings(rules=[{"threshold": 0.5, "min_count": 3}], channels={"hook": hook})
    monitor = start(store, [Low()], settings=told, channels=[Callback(lambda alert: hang.wait(30))])

    until(lambda: receiver.posts)
    before = monitor.status().jobs["watch"].last_run
    until(lambda: monitor.status().jobs["watch"].last_run > before)
    hang.set()

    assert json.loads(receiver.posts[0].body)["value"] == pytest.approx(0.1)
    (alert,) = monitor.status().open_alerts
    assert alert.n == 3
