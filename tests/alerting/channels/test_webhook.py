"""Alerts as JSON: signed, under one key, and one try at a time."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import threading
import time
from typing import Any

import httpx2
import pytest
from tests.alerting.channels.conftest import HOSTILE, Answer, Receiver, a_hostile_message, a_message, an_alert, over

from germane.alert import Alert
from germane.alerting.channels import NotDelivered, Quote, Webhook
from germane.alerting.channels.http import Web, seconds_of, without_secrets
from germane.errors import SettingsError
from germane.settings import channels as settings

PATH = "/services/T000/B000/very-secret-path"


def webhook(url: str, secret: str | None = None, *, timeout: float = 10, **given: Any) -> Webhook:
    given_ = settings.Webhook(kind="webhook", url=url, secret=secret, **given)
    return Webhook(given_, web=Web(timeout=timeout))


def refused(channel: Webhook) -> NotDelivered:
    with pytest.raises(NotDelivered) as told:
        asyncio.run(channel.send(a_message()))
    return told.value


def test_a_webhook_gets_the_alerts_signed(receiver: Receiver, secret: Any) -> None:
    """The body is the documented JSON; HMAC-SHA256 over timestamp and body proves whom it is from."""
    channel = webhook(secret("URL", receiver.url + PATH), secret("KEY", "key"))
    status = asyncio.run(channel.send(a_message(an_alert(), an_alert(id="a2"), link="https://example.com/{id}")))

    (post,) = receiver.posts
    timestamp, body = post.headers["Germane-Timestamp"], post.body
    expected = hmac.new(b"key", timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert status == 200
    assert post.path == PATH
    assert post.headers["Germane-Signature"] == f"sha256={expected}"
    assert post.headers["Idempotency-Key"] == "0123456789abcdef"
    assert abs(time.time() - int(timestamp)) < 60
    told = post.json
    assert {name: told[name] for name in ("version", "id", "what", "service", "created_at")} == {
        "version": 1,
        "id": "0123456789abcdef",
        "what": "firing",
        "service": "shop",
        "created_at": "2026-03-01T12:00:00+00:00",
    }
    assert [one["link"] for one in told["alerts"]] == ["https://example.com/a1", "https://example.com/a2"]
    assert Alert.read(told["alerts"][0]) == an_alert()
    assert told["alerts"][0]["current"] == {"mean": 0.61, "n": 120, "interval": [0.57, 0.65]}


def test_each_try_has_the_same_body_and_key(receiver: Receiver, secret: Any) -> None:
    """A receiver can tell a repetition from news."""
    channel = webhook(secret("URL", receiver.url))
    for _ in range(2):
        asyncio.run(channel.send(a_message()))

    assert receiver.posts[0].body == receiver.posts[1].body
    assert receiver.keys == ["0123456789abcdef"] * 2


def test_without_a_secret_nothing_is_signed(receiver: Receiver, secret: Any) -> None:
    """No signature is better than one that anybody could make."""
    asyncio.run(webhook(secret("URL", receiver.url)).send(a_message()))

    assert "Germane-Signature" not in receiver.posts[0].headers


def test_secrets_are_read_for_each_message(receiver: Receiver, secret: Any) -> None:
    """A key that was changed signs the next message, a new address gets it."""
    channel = webhook(secret("URL", receiver.url + "/old"), secret("KEY", "old"))
    asyncio.run(channel.send(a_message()))
    secret("URL", receiver.url + "/new"), secret("KEY", "new")
    asyncio.run(channel.send(a_message()))

    before, after = receiver.posts
    signed = hmac.new(b"new", f"{after.headers['Germane-Timestamp']}.".encode() + after.body, hashlib.sha256)
    assert [post.path for post in receiver.posts] == ["/old", "/new"]
    assert after.headers["Germane-Signature"] == f"sha256={signed.hexdigest()}"
    assert before.headers["Germane-Signature"] != after.headers["Germane-Signature"]


def test_text_goes_along_where_it_was_loaded(receiver: Receiver, secret: Any) -> None:
    """Questions and answers stand in parts of their own, as they are: JSON needs no escaping of ours."""
    channel = webhook(secret("URL", receiver.url), answers=True)
    asyncio.run(channel.send(a_message(quotes={"x1": Quote(exchange_id="x1", question="q", answer=HOSTILE)})))
    asyncio.run(channel.send(a_message()))

    (said,) = receiver.posts[0].json["alerts"][0]["exchanges"]
    assert said == {"id": "x1", "question": "q", "answer": HOSTILE}
    assert receiver.posts[1].json["alerts"][0]["exchanges"] == []


def test_hostile_text_makes_no_body_fail(receiver: Receiver, secret: Any) -> None:
    """Whatever stands in a name arrives as text."""
    asyncio.run(webhook(secret("URL", receiver.url)).send(a_hostile_message()))

    (alert,) = receiver.posts[0].json["alerts"]
    assert alert["rule"] == HOSTILE
    assert alert["link"].startswith("https://germane.example.com/%3C%21channel%3E")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_said_to(receiver: Receiver, secret: Any, status: int) -> None:
    """Too many requests and errors of the server; the time that it asks for is handed on."""
    receiver.answers = [Answer(status, {"Retry-After": "17"})]
    told = refused(webhook(secret("URL", receiver.url)))

    assert (told.problem, told.status, told.again, told.asked) == (f"status {status}", status, True, 17.0)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 410, 413])
def test_a_refusal_or_a_redirect_is_final(receiver: Receiver, secret: Any, status: int) -> None:
    """Redirects are not followed, and what the receiver refuses is not to be sent again."""
    receiver.answers = [Answer(status, {"Location": receiver.url + "/elsewhere", "Retry-After": "1"})]
    told = refused(webhook(secret("URL", receiver.url)))

    assert (told.status, told.again, told.asked) == (status, False, None)
    assert len(receiver.posts) == 1


def test_a_connection_that_is_closed_may_be_tried_again(receiver: Receiver, secret: Any) -> None:
    """So may one that is not taken at all."""
    receiver.answers = [Answer(0)]
    told = [refused(webhook(secret("URL", url))) for url in (receiver.url, "http://127.0.0.1:1")]

    assert [(one.again, one.status) for one in told] == [(True, None)] * 2
    assert [one.problem for one in told] == ["RemoteProtocolError", "ConnectError"]


@pytest.mark.parametrize("proxy", ["nonsense://me:hunter2@proxy", "socks5://me:hunter2@proxy"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(
    receiver: Receiver, secret: Any, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """It stands in the environment, which a person can mend."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(NotDelivered) as told:
        asyncio.run(Web().post(receiver.url, b"{}"))

    assert told.value.problem.startswith("the proxy that the environment names cannot be used (")
    assert told.value.again
    assert "hunter2" not in str(told.value)


def test_a_receiver_that_hangs_is_left(receiver: Receiver, secret: Any, hold: threading.Event) -> None:
    """After the time that it may take; it may answer another time."""
    receiver.answers = [Answer(after=hold)]
    told = refused(webhook(secret("URL", receiver.url), timeout=1.0))

    assert (told.again, told.problem) == (True, "ReadTimeout")


def test_a_secret_that_is_not_there_is_a_problem_of_this_process(secret: Any) -> None:
    """It is told by its place, before anything is sent."""
    channel = webhook("env:NOWHERE_URL")
    assert channel.problem == "the environment variable NOWHERE_URL is not set"
    assert channel.where == "env:NOWHERE_URL"
    with pytest.raises(SettingsError):
        asyncio.run(channel.send(a_message()))

    assert webhook(secret("URL", "http://example.com"), "env:NOWHERE").problem is not None
    assert webhook(secret("URL", "http://example.com")).problem is None


def test_an_address_that_is_none_is_told_without_it(secret: Any) -> None:
    """A URL that cannot be used fails for good, and is not quoted."""
    told = refused(webhook(secret("URL", "http://example/very-secret-path\x01")))

    assert (told.problem, told.again) == ("InvalidURL", False)


def test_the_address_of_a_webhook_is_told_nowhere(
    receiver: Receiver, secret: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Path, user and secret appear in no log of ours or of the client, in no error and in no repr."""
    caplog.set_level(logging.DEBUG)
    receiver.answers = [Answer(500)]
    url = receiver.url.replace("http://", "http://user:password@") + PATH + "?token=abc"
    channel = webhook(secret("URL", url), secret("KEY", "signing-key"))
    errors = [refused(channel)]
    asyncio.run(channel.send(a_message()))
    errors.append(refused(webhook(secret("URL", "http://127.0.0.1:1" + PATH))))
    secret("URL", url)

    everything = caplog.text + repr(channel) + channel.where + "".join(map(repr, errors)) + "".join(map(str, errors))
    assert [one for one in ("very-secret-path", "password", "token=abc", "signing-key") if one in everything] == []
    assert repr(channel) == "Webhook(env:URL)"
    assert channel.where == f"{receiver.url}/***"


def test_the_client_still_logs_what_is_not_ours(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    """Only our own requests are held back from the client's log."""
    caplog.set_level(logging.INFO, "httpx2")
    httpx2.post(receiver.url + "/theirs")

    assert "/theirs" in caplog.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.slack.com/services/T/B/x", "https://hooks.slack.com/***"),
        ("https://user:pw@example.com:8443/?k=v", "https://example.com:8443/***"),
        ("http://[::1]:80/x", "http://[::1]:80/***"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    """Scheme, host and port are left."""
    assert without_secrets(url) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("", None), ("soon", None), ("-3", None), ("٣", None), (f"1 Jan {'9' * 20} 0:0:0 +0", None)],
)
def test_a_time_to_wait_is_a_number_of_seconds(text: str, seconds: float | None) -> None:
    """What is neither a number nor a date asks for nothing."""
    assert seconds_of(text) == seconds


def test_a_time_to_wait_may_be_a_date() -> None:
    """One that has passed asks for nothing more."""
    assert seconds_of("Sun, 01 Mar 2020 12:00:00 GMT") == 0.0
    assert (seconds_of("Fri, 01 Mar 2999 12:00:00 GMT") or 0) > 1e9


def test_the_end_of_an_alert_says_why() -> None:
    """What is over goes out with its reason."""
    from germane.alerting.channels.webhook import body_of

    told = json.loads(json.dumps(body_of(a_message(over(an_alert())))))

    assert (told["what"], told["alerts"][0]["resolve_reason"]) == ("resolved", "recovered")
