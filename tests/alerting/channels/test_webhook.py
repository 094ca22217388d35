"""The webhook channel: signature, idempotency key and error handling."""

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
from germane.alerting.channels.channel import ExchangeQuote
from germane.alerting.channels.http import JsonPoster
from germane.alerting.channels.webhook import Webhook
from germane.delivery import DeliveryError
from germane.errors import SettingsError
from germane.settings import channels as settings
from germane.settings import redact_url

PATH = "/services/T000/B000/very-secret-path"


def webhook(url: str, secret: str | None = None, *, timeout: float = 10, **given: Any) -> Webhook:
    given_ = settings.WebhookSettings(type="webhook", url=url, secret=secret, **given)
    return Webhook(given_, poster=JsonPoster(timeout=timeout))


def refused(channel: Webhook) -> DeliveryError:
    with pytest.raises(DeliveryError) as raised:
        asyncio.run(channel.send(a_message()))
    return raised.value


def test_a_webhook_body_is_signed_with_the_secret(receiver: Receiver, secret: Any) -> None:
    """The body is the documented JSON. The HMAC-SHA256 covers the timestamp and the body."""
    channel = webhook(secret("URL", receiver.url + PATH), secret("KEY", "key"))
    status = asyncio.run(
        channel.send(a_message(an_alert(), an_alert(id="a2"), alert_url_template="https://example.com/{id}"))
    )

    (post,) = receiver.posts
    timestamp, body = post.headers["Germane-Timestamp"], post.body
    expected = hmac.new(b"key", timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert status == 200
    assert post.path == PATH
    assert post.headers["Germane-Signature"] == f"sha256={expected}"
    assert post.headers["Idempotency-Key"] == "0123456789abcdef"
    assert abs(time.time() - int(timestamp)) < 60
    payload = post.json
    assert {name: payload[name] for name in ("version", "id", "type", "service", "created_at")} == {
        "version": 1,
        "id": "0123456789abcdef",
        "type": "firing",
        "service": "shop",
        "created_at": "2026-03-01T12:00:00+00:00",
    }
    assert [one["url"] for one in payload["alerts"]] == ["https://example.com/a1", "https://example.com/a2"]
    assert Alert.from_dict(payload["alerts"][0]) == an_alert()
    assert payload["alerts"][0]["current"] == {"mean": 0.61, "n": 120, "interval": [0.57, 0.65]}


def test_every_delivery_attempt_sends_the_same_body_and_key(receiver: Receiver, secret: Any) -> None:
    """Receivers can recognize duplicates."""
    channel = webhook(secret("URL", receiver.url))
    for _ in range(2):
        asyncio.run(channel.send(a_message()))

    assert receiver.posts[0].body == receiver.posts[1].body
    assert receiver.keys == ["0123456789abcdef"] * 2


def test_a_webhook_body_is_not_signed_without_a_secret(receiver: Receiver, secret: Any) -> None:
    """The timestamp is still sent."""
    asyncio.run(webhook(secret("URL", receiver.url)).send(a_message()))

    assert "Germane-Signature" not in receiver.posts[0].headers


def test_webhook_secrets_are_read_for_every_message(receiver: Receiver, secret: Any) -> None:
    """A rotated key or URL takes effect immediately."""
    channel = webhook(secret("URL", receiver.url + "/old"), secret("KEY", "old"))
    asyncio.run(channel.send(a_message()))
    secret("URL", receiver.url + "/new"), secret("KEY", "new")
    asyncio.run(channel.send(a_message()))

    before, after = receiver.posts
    signed = hmac.new(b"new", f"{after.headers['Germane-Timestamp']}.".encode() + after.body, hashlib.sha256)
    assert [post.path for post in receiver.posts] == ["/old", "/new"]
    assert after.headers["Germane-Signature"] == f"sha256={signed.hexdigest()}"
    assert before.headers["Germane-Signature"] != after.headers["Germane-Signature"]


def test_quotes_are_not_escaped_in_webhook_bodies(receiver: Receiver, secret: Any) -> None:
    """Questions and answers have their own fields."""
    channel = webhook(secret("URL", receiver.url), include_text=True)
    asyncio.run(channel.send(a_message(quotes={"x1": ExchangeQuote(exchange_id="x1", question="q", answer=HOSTILE)})))
    asyncio.run(channel.send(a_message()))

    (quoted,) = receiver.posts[0].json["alerts"][0]["exchanges"]
    assert quoted == {"id": "x1", "question": "q", "answer": HOSTILE}
    assert receiver.posts[1].json["alerts"][0]["exchanges"] == []


def test_hostile_text_in_webhook_bodies_is_encoded_as_json(receiver: Receiver, secret: Any) -> None:
    """Any name arrives unchanged."""
    asyncio.run(webhook(secret("URL", receiver.url)).send(a_hostile_message()))

    (alert,) = receiver.posts[0].json["alerts"]
    assert alert["rule"] == HOSTILE
    assert alert["url"].startswith("https://germane.example.com/%3C%21channel%3E")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_temporary_webhook_errors_are_retryable(receiver: Receiver, secret: Any, status: int) -> None:
    """429 and 5xx are retryable, and Retry-After is passed on."""
    receiver.answers = [Answer(status, {"Retry-After": "17"})]
    error = refused(webhook(secret("URL", receiver.url)))

    assert (error.problem, error.status, error.retryable, error.retry_after) == (f"status {status}", status, True, 17.0)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 410, 413])
def test_webhook_rejections_and_redirects_are_not_retryable(receiver: Receiver, secret: Any, status: int) -> None:
    """Redirects are not followed."""
    receiver.answers = [Answer(status, {"Location": receiver.url + "/elsewhere", "Retry-After": "1"})]
    error = refused(webhook(secret("URL", receiver.url)))

    assert (error.status, error.retryable, error.retry_after) == (status, False, None)
    assert len(receiver.posts) == 1


def test_webhook_connection_errors_are_retryable(receiver: Receiver, secret: Any) -> None:
    """This covers closed and refused connections."""
    receiver.answers = [Answer(0)]
    errors = [refused(webhook(secret("URL", url))) for url in (receiver.url, "http://127.0.0.1:1")]

    assert [(one.retryable, one.status) for one in errors] == [(True, None)] * 2
    assert [one.problem for one in errors] == ["RemoteProtocolError", "ConnectError"]


@pytest.mark.parametrize("proxy", ["nonsense://me:hunter2@proxy", "socks5://me:hunter2@proxy"])
def test_an_unusable_proxy_is_reported_without_its_password(
    receiver: Receiver, secret: Any, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """The proxy comes from the environment."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(DeliveryError) as raised:
        asyncio.run(JsonPoster().post(receiver.url, b"{}"))

    assert raised.value.problem.startswith("the proxy from the environment is unusable (")
    assert raised.value.retryable
    assert "hunter2" not in str(raised.value)


def test_delivery_to_a_slow_webhook_times_out(receiver: Receiver, secret: Any, hold: threading.Event) -> None:
    """The error is temporary."""
    receiver.answers = [Answer(after=hold)]
    error = refused(webhook(secret("URL", receiver.url), timeout=1.0))

    assert (error.retryable, error.problem) == (True, "ReadTimeout")


def test_a_missing_webhook_secret_is_a_configuration_error(secret: Any) -> None:
    """The error names the reference before anything is sent."""
    channel = webhook("env:NOWHERE_URL")
    assert channel.config_error == "the environment variable NOWHERE_URL is not set"
    assert channel.destination == "env:NOWHERE_URL"
    with pytest.raises(SettingsError):
        asyncio.run(channel.send(a_message()))

    assert webhook(secret("URL", "http://example.com"), "env:NOWHERE").config_error is not None
    assert webhook(secret("URL", "http://example.com")).config_error is None


def test_an_invalid_webhook_url_is_a_permanent_error(secret: Any) -> None:
    """The error does not quote the URL."""
    error = refused(webhook(secret("URL", "http://example/very-secret-path\x01")))

    assert (error.problem, error.retryable) == ("InvalidURL", False)


def test_the_webhook_url_appears_in_no_log_error_or_repr(
    receiver: Receiver, secret: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The URL does not appear in logs, errors or reprs."""
    caplog.set_level(logging.DEBUG)
    receiver.answers = [Answer(500)]
    url = receiver.url.replace("http://", "http://user:password@") + PATH + "?token=abc"
    channel = webhook(secret("URL", url), secret("KEY", "signing-key"))
    errors = [refused(channel)]
    asyncio.run(channel.send(a_message()))
    errors.append(refused(webhook(secret("URL", "http://127.0.0.1:1" + PATH))))
    secret("URL", url)

    texts = [caplog.text, repr(channel), channel.destination, *map(repr, errors), *map(str, errors)]
    everything = "".join(texts)
    assert [one for one in ("very-secret-path", "password", "token=abc", "signing-key") if one in everything] == []
    assert repr(channel) == "Webhook(env:URL)"
    assert channel.destination == f"{receiver.url}/***"


def test_http_requests_of_the_application_are_still_logged(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the channel's own requests are hidden from the client's log."""
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
def test_the_displayed_webhook_url_is_redacted(url: str, shown: str) -> None:
    """Only scheme, host and port are shown."""
    assert redact_url(url) == shown


def test_a_webhook_body_about_a_resolution_contains_the_reason() -> None:
    """The JSON body contains the reason."""
    from germane.alerting.channels.webhook import webhook_payload

    payload = json.loads(json.dumps(webhook_payload(a_message(over(an_alert())))))

    assert (payload["type"], payload["alerts"][0]["resolve_reason"]) == ("resolved", "recovered")
