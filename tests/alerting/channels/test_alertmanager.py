"""Alerts to Alertmanager: told again while they fire, told apart by labels in which no number changes."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.alerting.channels.conftest import NOON, Answer, Receiver, a_hostile_message, a_message, an_alert, over
from tests.alerting.channels.schemas import ALERTMANAGER, check

from germane.alert import Level
from germane.alerting.channels import Alertmanager, NotDelivered, Quote
from germane.settings import channels as settings


def alertmanager(*urls: str, every: float = 60, **given: Any) -> Alertmanager:
    given_ = settings.Alertmanager(kind="alertmanager", url=urls, **given)
    return Alertmanager(given_, every=every, clock=lambda: NOON + timedelta(minutes=10))


def test_what_fires_ends_by_itself_four_intervals_from_now(receiver: Receiver) -> None:
    """It began when it fired, and lasts as long as it is told of: counted from the sending, not from the finding."""
    asyncio.run(alertmanager(receiver.url, every=90).send(a_message(link="https://germane.example.com/{id}")))

    (post,) = receiver.posts
    (told,) = post.json
    check(post.json, ALERTMANAGER)
    assert post.path == "/api/v2/alerts"
    assert told["labels"] == {
        "alertname": "germane_drop",
        "rule": "drop",
        "severity": "warning",
        "service": "shop",
        "scorer": "answer_relevancy",
        "route": "docs",
    }
    assert datetime.fromisoformat(told["startsAt"]) == NOON
    assert datetime.fromisoformat(told["endsAt"]) == NOON + timedelta(minutes=10, seconds=4 * 90)
    assert told["generatorURL"] == "https://germane.example.com/a1"
    assert told["annotations"]["now"] == "0.610 (95 % 0.570 to 0.650, n = 120)"
    assert told["annotations"]["worst_exchanges"] == "x1, x2"


def test_no_number_is_part_of_an_alerts_identity(receiver: Receiver) -> None:
    """The same alert with other figures is the same to Alertmanager."""
    channel = alertmanager(receiver.url)
    asyncio.run(channel.send(a_message()))
    changed = an_alert(value=0.3, current=Level(mean=0.3, n=999), evidence=0.001, message="other", threshold=0.7)
    asyncio.run(channel.send(a_message(changed)))

    (first,), (second,) = (post.json for post in receiver.posts)
    assert first["labels"] == second["labels"]
    assert first["annotations"] != second["annotations"]


def test_what_is_over_ended_when_it_did(receiver: Receiver) -> None:
    """Also where it had another severity before."""
    asyncio.run(alertmanager(receiver.url).send(a_message(over(an_alert(severity="critical")))))

    told = receiver.posts[0].json
    check(told, ALERTMANAGER)
    assert {one["labels"]["severity"] for one in told} == {"critical", "warning"}
    assert {datetime.fromisoformat(one["endsAt"]) for one in told} == {NOON + timedelta(hours=1)}


def test_an_alert_that_has_become_critical_leaves_no_other_behind(receiver: Receiver) -> None:
    """Severity is a label there: the one that was a warning ends."""
    asyncio.run(alertmanager(receiver.url).send(a_message(an_alert(severity="critical"), what="escalated")))

    ends = {one["labels"]["severity"]: datetime.fromisoformat(one["endsAt"]) for one in receiver.posts[0].json}
    assert ends == {"critical": NOON + timedelta(minutes=14), "warning": NOON + timedelta(minutes=10)}


def test_a_reminder_tells_of_all_at_once(receiver: Receiver) -> None:
    """Of what lasts and of what is just over, each with its own end."""
    other = over(an_alert(id="a2", key="k2", labels={"service": "shop", "route": "faq"}))
    asyncio.run(alertmanager(receiver.url).remind([an_alert(), other], link=None))

    told = receiver.posts[0].json
    check(told, ALERTMANAGER)
    assert [datetime.fromisoformat(one["endsAt"]) for one in told] == [
        NOON + timedelta(minutes=14),
        NOON + timedelta(hours=1),
    ]


def test_of_a_cluster_one_is_enough(receiver: Receiver) -> None:
    """They tell one another; when none takes it, it is tried again if any of them may take it later."""
    receiver.answers = [Answer(200), Answer(400)]
    assert asyncio.run(alertmanager("http://127.0.0.1:1", receiver.url).send(a_message())) == 200

    with pytest.raises(NotDelivered) as told:
        asyncio.run(alertmanager(receiver.url, "http://127.0.0.1:1").send(a_message()))
    assert told.value.again


def test_a_login_goes_along(receiver: Receiver, secret: Any) -> None:
    """By user and password, or by a token; neither is shown."""
    by_password = alertmanager(receiver.url, user="germane", password=secret("PW", "hunter2"))
    by_token = alertmanager(receiver.url, token=secret("TOKEN", "hunter3"))
    for channel in (by_password, by_token):
        asyncio.run(channel.send(a_message()))

    basic = base64.b64encode(b"germane:hunter2").decode()
    assert [post.headers["Authorization"] for post in receiver.posts] == [f"Basic {basic}", "Bearer hunter3"]
    assert repr(by_password) == f"Alertmanager({receiver.url}/***)"
    assert alertmanager(receiver.url, token="env:NOWHERE").problem is not None


def test_hostile_text_is_text(receiver: Receiver) -> None:
    """In labels and annotations, on one line each; label names are such as Alertmanager takes."""
    asyncio.run(alertmanager(receiver.url).send(a_hostile_message()))
    odd = an_alert(labels={"service": "shop", "attributes.tenant": "a", "1x": "b", "": "c"})
    asyncio.run(alertmanager(receiver.url).send(a_message(odd)))

    for post in receiver.posts:
        check(post.json, ALERTMANAGER)
    (told,) = receiver.posts[0].json
    assert all(value.isprintable() for value in told["labels"].values())
    assert "attributes_tenant" in receiver.posts[1].json[0]["labels"]


def test_text_is_there_only_where_it_was_loaded(receiver: Receiver) -> None:
    """By default annotations name exchanges, and quote none."""
    quotes = {"x1": Quote(exchange_id="x1", question="q", answer="a")}
    asyncio.run(alertmanager(receiver.url).send(a_message()))
    asyncio.run(alertmanager(receiver.url).send(a_message(quotes=quotes)))

    assert "worst_answers" not in receiver.posts[0].json[0]["annotations"]
    assert receiver.posts[1].json[0]["annotations"]["worst_answers"] == "q -> a"
