"""The PagerDuty channel: events for its Events API v2."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, a_hostile_message, a_message, an_alert, over
from tests.schemas import PAGERDUTY, check

from germane.alerting.channels.channel import ExchangeQuote
from germane.alerting.channels.pagerduty import PagerDuty, pagerduty_event
from germane.alerting.wording import alert_title
from germane.delivery import DeliveryError
from germane.settings import channels as settings

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def pagerduty(receiver: Receiver, secret: Any) -> PagerDuty:
    receiver.answers = [Answer(202)] * 9
    place = secret("ROUTING_KEY", KEY)
    return PagerDuty(settings.PagerDutySettings(type="pagerduty", routing_key=place, url=f"{receiver.url}/v2/enqueue"))


def test_a_firing_alert_triggers_a_pagerduty_incident(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """The event has the alert's key, its message as the summary, and means with n and interval."""
    alert = an_alert(severity="critical")
    message = a_message(alert, alert_url_template="https://germane.example.com/{id}")
    assert asyncio.run(pagerduty.send(message)) == 202

    (post,) = receiver.posts
    event = post.json
    check(event, PAGERDUTY)
    assert post.path == "/v2/enqueue"
    assert (event["routing_key"], event["event_action"], event["dedup_key"]) == (KEY, "trigger", alert.key)
    payload = event["payload"]
    assert payload["summary"] == f"{alert_title(alert)}: {alert.message}"
    assert (payload["severity"], payload["source"], payload["class"]) == ("critical", "shop", "drop")
    assert (payload["component"], payload["group"]) == ("answer_relevancy", "docs")
    assert payload["custom_details"]["Now"] == dict(message.facts_for(alert))["Now"]
    assert payload["custom_details"]["Worst exchanges"] == "x1, x2"
    assert event["links"][0]["href"] == "https://germane.example.com/a1"


def test_a_resolved_alert_resolves_its_pagerduty_incident(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """The resolve event has the same key as the trigger event."""
    asyncio.run(pagerduty.send(a_message(an_alert())))
    asyncio.run(pagerduty.send(a_message(over(an_alert()))))

    begun, ended = (post.json for post in receiver.posts)
    check(ended, PAGERDUTY)
    assert ended == {"routing_key": KEY, "event_action": "resolve", "dedup_key": begun["dedup_key"]}


def test_each_alert_is_a_separate_pagerduty_event(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """Incidents are resolved one by one."""
    other = an_alert(id="a2", key="other", labels={"service": "shop"})
    asyncio.run(pagerduty.send(a_message(an_alert(), over(other), type_="firing")))

    events = [post.json for post in receiver.posts]
    for event in events:
        check(event, PAGERDUTY)
    assert [(event["event_action"], event["dedup_key"]) for event in events] == [
        ("trigger", an_alert().key),
        ("resolve", "other"),
    ]


@pytest.mark.parametrize(("status", "again"), [(400, False), (429, True), (500, True)])
def test_a_temporary_pagerduty_error_fails_the_whole_message(
    receiver: Receiver, pagerduty: PagerDuty, status: int, again: bool
) -> None:
    """All events are sent again; PagerDuty recognizes them by their key."""
    receiver.answers = [Answer(202), Answer(status)]

    with pytest.raises(DeliveryError) as raised:
        asyncio.run(pagerduty.send(a_message(an_alert(), an_alert(key="other"))))

    assert (raised.value.status, raised.value.retryable) == (status, again)
    assert KEY not in repr(pagerduty) + pagerduty.destination + str(raised.value)


def test_a_rejected_pagerduty_event_does_not_stop_other_events(receiver: Receiver, pagerduty: PagerDuty) -> None:
    """Later events of the message are still sent."""
    receiver.answers = [Answer(400), Answer(202)]

    with pytest.raises(DeliveryError) as raised:
        asyncio.run(pagerduty.send(a_message(an_alert(), over(an_alert(key="other")), type_="firing")))

    assert (raised.value.status, raised.value.retryable) == (400, False)
    assert [post.json["dedup_key"] for post in receiver.posts] == [an_alert().key, "other"]


def test_hostile_text_in_pagerduty_events_is_truncated() -> None:
    """The summary is one line without control characters."""
    message = a_hostile_message()
    event = pagerduty_event(message, message.alerts[0], KEY)

    check(event, PAGERDUTY)
    assert len(event["payload"]["summary"]) <= 1024
    assert event["payload"]["summary"].isprintable()
    (quoted,) = event["payload"]["custom_details"]["Worst exchanges"]
    assert (quoted["id"], len(quoted["answer"])) == ("x2", 500)


def test_a_pagerduty_event_for_an_alert_without_a_service_has_a_source() -> None:
    """PagerDuty rejects events without one."""
    alert = an_alert(labels={}, message="")

    check(pagerduty_event(a_message(alert), alert, KEY), PAGERDUTY)


def test_pagerduty_events_contain_answers_only_if_configured() -> None:
    """By default, messages contain the ids of exchanges and no text."""
    quotes = {"x2": ExchangeQuote(exchange_id="x2", question="q", answer="a")}

    details = pagerduty_event(a_message(quotes=quotes), an_alert(), KEY)["payload"]["custom_details"]
    assert details["Worst exchanges"] == [{"id": "x2", "question": "q", "answer": "a"}]
