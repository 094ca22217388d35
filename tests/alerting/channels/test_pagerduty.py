"""Alerts to PagerDuty: events that its Events API v2 takes, one per alert, by the alert's key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, a_hostile_message, a_message, an_alert, over
from tests.alerting.channels.schemas import PAGERDUTY, check

from germane.alerting.channels import NotDelivered, PagerDuty, Quote
from germane.alerting.channels.pagerduty import event_of
from germane.settings import channels as settings

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def pagerduty(receiver: Receiver, secret: Any) -> PagerDuty:
    receiver.answers = [Answer(202)] * 9
    place = secret("ROUTING_KEY", KEY)
    return PagerDuty(settings.PagerDuty(kind="pagerduty", routing_key=place, url=f"{receiver.url}/v2/enqueue"))


def test_an_alert_triggers_an_incident_with_what_one_needs(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """Its key is the alert's, its summary a sentence, its details numbers with n and interval."""
    alert = an_alert(severity="critical")
    assert asyncio.run(pagerduty.send(a_message(alert, link="https://germane.example.com/{id}"))) == 202

    (post,) = receiver.posts
    event = post.json
    check(event, PAGERDUTY)
    assert post.path == "/v2/enqueue"
    assert (event["routing_key"], event["event_action"], event["dedup_key"]) == (KEY, "trigger", alert.key)
    payload = event["payload"]
    assert payload["summary"].startswith("drop in shop, docs: answer_relevancy of route docs")
    assert (payload["severity"], payload["source"], payload["class"]) == ("critical", "shop", "drop")
    assert (payload["component"], payload["group"]) == ("answer_relevancy", "docs")
    assert payload["custom_details"]["Now"] == "0.610 (95 % 0.570 to 0.650, n = 120)"
    assert payload["custom_details"]["Worst exchanges"] == "x1, x2"
    assert event["links"][0]["href"] == "https://germane.example.com/a1"


def test_its_end_resolves_the_same_incident(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """By the same key."""
    asyncio.run(pagerduty.send(a_message(an_alert())))
    asyncio.run(pagerduty.send(a_message(over(an_alert()))))

    begun, ended = (post.json for post in receiver.posts)
    check(ended, PAGERDUTY)
    assert ended == {"routing_key": KEY, "event_action": "resolve", "dedup_key": begun["dedup_key"]}


def test_each_alert_of_a_message_is_an_event(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """Incidents are told apart and closed by themselves."""
    other = an_alert(id="a2", key="other", labels={"service": "shop"})
    asyncio.run(pagerduty.send(a_message(an_alert(), over(other), what="firing")))

    events = [post.json for post in receiver.posts]
    for event in events:
        check(event, PAGERDUTY)
    assert [(event["event_action"], event["dedup_key"]) for event in events] == [
        ("trigger", an_alert().key),
        ("resolve", "other"),
    ]


@pytest.mark.parametrize(("status", "again"), [(400, False), (429, True), (500, True)])
def test_an_event_that_is_not_taken_fails_the_message(
    receiver: Receiver, pagerduty: PagerDuty, status: int, again: bool
) -> None:
    """All of it is sent again, if that may pass: by its key PagerDuty knows what it has."""
    receiver.answers = [Answer(202), Answer(status)]

    with pytest.raises(NotDelivered) as told:
        asyncio.run(pagerduty.send(a_message(an_alert(), an_alert(key="other"))))

    assert (told.value.status, told.value.again) == (status, again)
    assert KEY not in repr(pagerduty) + pagerduty.where + str(told.value)


def test_an_event_that_is_refused_holds_up_no_other(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """An incident whose end follows one that PagerDuty does not take is still closed."""
    receiver.answers = [Answer(400), Answer(202)]

    with pytest.raises(NotDelivered) as told:
        asyncio.run(pagerduty.send(a_message(an_alert(), over(an_alert(key="other")), what="firing")))

    assert (told.value.status, told.value.again) == (400, False)
    assert [post.json["dedup_key"] for post in receiver.posts] == [an_alert().key, "other"]


def test_hostile_text_is_cut_to_what_pagerduty_takes() -> None:
    """On one line, without control characters, and quoted only where it was loaded."""
    message = a_hostile_message()
    event = event_of(message, message.alerts[0], KEY)

    check(event, PAGERDUTY)
    assert len(event["payload"]["summary"]) <= 1024
    assert event["payload"]["summary"].isprintable()
    (said,) = event["payload"]["custom_details"]["Worst exchanges"]
    assert (said["id"], len(said["answer"])) == ("x2", 500)


def test_an_alert_without_a_service_has_a_source() -> None:
    """PagerDuty refuses an event without one."""
    alert = an_alert(labels={}, message="")

    check(event_of(a_message(alert), alert, KEY), PAGERDUTY)


def test_text_is_there_only_where_it_was_loaded() -> None:
    """By default an event names exchanges, and quotes none."""
    quotes = {"x2": Quote(exchange_id="x2", question="q", answer="a")}

    details = event_of(a_message(quotes=quotes), an_alert(), KEY)["payload"]["custom_details"]
    assert details["Worst exchanges"] == [{"id": "x2", "question": "q", "answer": "a"}]
