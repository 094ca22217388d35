"""The Alertmanager channel: alerts for its API v2, and resending."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.alerting.channels.conftest import NOON, Answer, Receiver, a_hostile_message, a_message, an_alert, over
from tests.schemas import ALERTMANAGER, check

from germane.alert import ScoreLevel
from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.channel import ExchangeQuote, MessageFormat
from germane.delivery import DeliveryError
from germane.settings import channels as settings


def alertmanager(*urls: str, every: float = 60, **given: Any) -> Alertmanager:
    given_ = settings.AlertmanagerSettings(type="alertmanager", url=urls, **given)
    return Alertmanager(given_, resend_interval=every, clock=lambda: NOON + timedelta(minutes=10))


def test_a_firing_alert_expires_after_four_resend_intervals(receiver: Receiver) -> None:
    """The alert starts when it fires; its expiry is counted from when it is sent."""
    asyncio.run(
        alertmanager(receiver.url, every=90).send(a_message(alert_url_template="https://germane.example.com/{id}"))
    )

    (post,) = receiver.posts
    (alert,) = post.json
    check(post.json, ALERTMANAGER)
    assert post.path == "/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "germane_drop",
        "rule": "drop",
        "severity": "warning",
        "service": "shop",
        "scorer": "answer_relevancy",
        "route": "docs",
    }
    assert datetime.fromisoformat(alert["startsAt"]) == NOON
    assert datetime.fromisoformat(alert["endsAt"]) == NOON + timedelta(minutes=10, seconds=4 * 90)
    assert alert["generatorURL"] == "https://germane.example.com/a1"
    message = a_message()
    assert alert["annotations"]["now"] == dict(message.facts_for(message.alerts[0]))["Now"]
    assert alert["annotations"]["worst_exchanges"] == "x1, x2"


def test_alertmanager_labels_contain_no_changing_values(receiver: Receiver) -> None:
    """The same alert with different values has the same identity in Alertmanager."""
    channel = alertmanager(receiver.url)
    asyncio.run(channel.send(a_message()))
    changed = an_alert(value=0.3, current=ScoreLevel(mean=0.3, n=999), message="other", threshold=0.7)
    asyncio.run(channel.send(a_message(changed)))

    (first,), (second,) = (post.json for post in receiver.posts)
    assert first["labels"] == second["labels"]
    assert first["annotations"] != second["annotations"]


def test_a_resolved_alert_ends_at_its_time_of_resolution(receiver: Receiver) -> None:
    """The alert ends at that time for every severity that it may have had."""
    asyncio.run(alertmanager(receiver.url).send(a_message(over(an_alert(severity="critical")))))

    alerts = receiver.posts[0].json
    check(alerts, ALERTMANAGER)
    assert {one["labels"]["severity"] for one in alerts} == {"critical", "warning"}
    assert {datetime.fromisoformat(one["endsAt"]) for one in alerts} == {NOON + timedelta(hours=1)}


def test_an_escalation_resolves_the_alert_with_the_previous_severity(receiver: Receiver) -> None:
    """Severity is a label, so the alert with severity warning ends."""
    asyncio.run(alertmanager(receiver.url).send(a_message(an_alert(severity="critical"), type_="escalated")))

    ends = {one["labels"]["severity"]: datetime.fromisoformat(one["endsAt"]) for one in receiver.posts[0].json}
    assert ends == {"critical": NOON + timedelta(minutes=14), "warning": NOON + timedelta(minutes=10)}


def test_a_resend_posts_all_alerts_in_one_request(receiver: Receiver) -> None:
    """The request contains firing and recently resolved alerts, each with its own end time."""
    other = over(an_alert(id="a2", key="k2", labels={"service": "shop", "route": "faq"}))
    asyncio.run(alertmanager(receiver.url).resend([an_alert(), other], format=MessageFormat()))

    alerts = receiver.posts[0].json
    check(alerts, ALERTMANAGER)
    assert [datetime.fromisoformat(one["endsAt"]) for one in alerts] == [
        NOON + timedelta(minutes=14),
        NOON + timedelta(hours=1),
    ]


def test_delivery_succeeds_if_one_alertmanager_of_a_cluster_accepts_it(receiver: Receiver) -> None:
    """If none accepts the alert, it is retried if any error is temporary."""
    receiver.answers = [Answer(200), Answer(400)]
    assert asyncio.run(alertmanager("http://127.0.0.1:1", receiver.url).send(a_message())) == 200

    with pytest.raises(DeliveryError) as raised:
        asyncio.run(alertmanager(receiver.url, "http://127.0.0.1:1").send(a_message()))
    assert raised.value.retryable


def test_alertmanager_credentials_are_sent_but_never_shown(receiver: Receiver, secret: Any) -> None:
    """The credentials are a user and password, or a bearer token."""
    by_password = alertmanager(receiver.url, user="germane", password=secret("PW", "hunter2"))
    by_token = alertmanager(receiver.url, token=secret("TOKEN", "hunter3"))
    for channel in (by_password, by_token):
        asyncio.run(channel.send(a_message()))

    basic = base64.b64encode(b"germane:hunter2").decode()
    assert [post.headers["Authorization"] for post in receiver.posts] == [f"Basic {basic}", "Bearer hunter3"]
    assert repr(by_password) == f"Alertmanager({receiver.url}/***)"
    assert alertmanager(receiver.url, token="env:NOWHERE").config_error is not None


def test_hostile_text_in_labels_and_annotations_is_sanitized(receiver: Receiver) -> None:
    """Labels and annotations are single lines, and label names are valid."""
    asyncio.run(alertmanager(receiver.url).send(a_hostile_message()))
    odd = an_alert(labels={"service": "shop", "attributes.tenant": "a", "1x": "b", "": "c"})
    asyncio.run(alertmanager(receiver.url).send(a_message(odd)))

    for post in receiver.posts:
        check(post.json, ALERTMANAGER)
    (posted,) = receiver.posts[0].json
    assert all(value.isprintable() for value in posted["labels"].values())
    assert "attributes_tenant" in receiver.posts[1].json[0]["labels"]


def test_alertmanager_annotations_contain_answers_only_if_configured(receiver: Receiver) -> None:
    """By default, messages contain the ids of exchanges and no text."""
    quotes = {"x1": ExchangeQuote(exchange_id="x1", question="q", answer="a")}
    asyncio.run(alertmanager(receiver.url).send(a_message()))
    asyncio.run(alertmanager(receiver.url).send(a_message(quotes=quotes)))

    assert "worst_answers" not in receiver.posts[0].json[0]["annotations"]
    assert receiver.posts[1].json[0]["annotations"]["worst_answers"] == "q -> a"
