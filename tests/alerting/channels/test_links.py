"""Links to the alert, a bad and a good example, and the runbook, in the form that each receiver supports."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.alerting.channels.conftest import HOSTILE, LABELS, NOON, a_message, an_alert
from tests.schemas import DISCORD, PAGERDUTY, SLACK, TEAMS, check

from germane.alerting.channels.alertmanager import alertmanager_alerts
from germane.alerting.channels.channel import MAX_LINK_LENGTH, ChannelMessage
from germane.alerting.channels.discord import discord_payload
from germane.alerting.channels.email import build_email
from germane.alerting.channels.pagerduty import pagerduty_event
from germane.alerting.channels.slack import slack_payload
from germane.alerting.channels.teams import teams_payload
from germane.alerting.channels.webhook import webhook_payload
from germane.alerting.wording import alert_message, alert_title
from germane.settings import Drop, parse_timezone

RUNBOOK = "https://wiki.example.com/on_call/drop_(now)"
ALERT = "https://germane.example.com/alerts/a1?route={}&_x_=*1*"
LINKS = {
    "Open alert": ALERT.format("docs"),
    "Bad example": "https://germane.example.com/a/x1",
    "Good example": "https://germane.example.com/a/x9",
    "Runbook": RUNBOOK,
}


def a_linked_message(route: str = "docs", **form: Any) -> ChannelMessage:
    """Return a message with all links; the URL of the alert contains the route."""
    rule = Drop(runbook_url=RUNBOOK, owner="Search team", labels={"team": "search"})
    alert = an_alert(labels={**LABELS, "route": route}, details={"good_exchange": "x9"})
    return a_message(
        alert,
        **{
            "alert_url_template": ALERT.format("{route}").replace("a1", "{id}"),
            "exchange_url_template": "https://germane.example.com/a/{id}",
            "rules": {"drop": rule},
            **form,
        },
    )


def test_links_in_discord_messages_are_not_escaped() -> None:
    """Angle brackets enclose a link in which Markdown has no effect. The title links to the alert."""
    body = discord_payload(a_linked_message())

    check(body, DISCORD)
    (embed,) = body["embeds"]
    values = {field["name"]: field["value"] for field in embed["fields"]}
    assert {name: values[name] for name in LINKS if name in values} == {
        name: f"<{url}>" for name, url in LINKS.items() if name != "Open alert"
    }
    assert embed["url"] == LINKS["Open alert"]


def test_a_hostile_name_cannot_break_out_of_a_discord_link() -> None:
    """The name is percent-encoded, as are spaces and angle brackets from a setting."""
    message = a_linked_message(HOSTILE)
    broken = a_message(exchange_url_template="https://germane.example.com/<{id}> **b**\\")

    url = discord_payload(message)["embeds"][0]["url"]
    assert re.fullmatch(r"[!-~]+", url)
    assert not re.search(r"[<>`|]", url)
    links = [field["value"] for field in discord_payload(broken)["embeds"][0]["fields"] if "example" in field["name"]]
    assert links == ["<https://germane.example.com/%3Cx1%3E%20**b**%5C>"]


def test_links_in_slack_messages_have_labels() -> None:
    """With ``verbatim``, Slack creates no links by itself. A URL cannot contain the separator before its label."""
    body = slack_payload(a_linked_message())

    check(body, SLACK)
    escaped = {label: url.replace("&", "&amp;") for label, url in LINKS.items()}
    section = " · ".join(f"<{url}|{label}>" for label, url in escaped.items())
    assert section in json.dumps(body, ensure_ascii=False)
    piped = a_message(exchange_url_template="https://germane.example.com/a|b>{id}")
    assert "<https://germane.example.com/a%7Cb&gt;x1|Bad example>" in json.dumps(slack_payload(piped))


def test_links_in_slack_messages_fit_into_a_section() -> None:
    """Links that do not fit are omitted."""
    long = a_linked_message(alert_url_template="https://example.com/" + "&" * 700)

    check(slack_payload(long), SLACK)


def test_links_in_teams_messages_are_buttons() -> None:
    """Each link is a button."""
    body = teams_payload(a_linked_message())

    check(body, TEAMS)
    (actions,) = [each for each in body["attachments"][0]["content"]["body"] if each["type"] == "ActionSet"]
    assert {action["title"]: action["url"] for action in actions["actions"]} == LINKS


def test_pagerduty_and_alertmanager_receive_the_links_of_an_alert() -> None:
    """PagerDuty gets links, and Alertmanager gets annotations."""
    message = a_linked_message()
    event = pagerduty_event(message, message.alerts[0], "0" * 32)
    (sent,) = alertmanager_alerts(message, NOON, NOON - NOON)

    check(event, PAGERDUTY)
    assert {link["text"]: link["href"] for link in event["links"]} == LINKS
    assert sent["generatorURL"] == LINKS["Open alert"]
    names = {"bad_example": "Bad example", "good_example": "Good example", "runbook_url": "Runbook"}
    assert {name: sent["annotations"][name] for name in names} == {name: LINKS[label] for name, label in names.items()}


def test_links_in_emails_are_anchors() -> None:
    """The HTML part has anchors, and the text part shows the URLs."""
    mail = build_email(a_linked_message(), "a@example.com", ("b@example.com",))
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None

    for label, url in LINKS.items():
        assert f"{label}: {url}\n" in text.get_content()
        escaped = url.replace("&", "&amp;")
        assert f'{label}: <a href="{escaped}">{escaped}</a>' in html.get_content()


def test_webhook_payload_contains_links_owner_labels_and_the_channel_text() -> None:
    """``message`` stays in UTC; ``text`` has the channel's timezone and template."""
    message = a_linked_message(timezone=parse_timezone("Asia/Tokyo"), template="{message} Call {owner}.")
    alert = message.alerts[0]
    worded = a_message(an_alert(message=alert_message(an_alert())), timezone=parse_timezone("Asia/Tokyo"))
    (sent,) = webhook_payload(message)["alerts"]

    assert {name: sent[name] for name in ("title", "url", "runbook_url", "owner", "rule_labels")} == {
        "title": alert_title(alert),
        "url": LINKS["Open alert"],
        "runbook_url": RUNBOOK,
        "owner": "Search team",
        "rule_labels": {"team": "search"},
    }
    assert sent["bad_example"] == {"id": "x1", "url": LINKS["Bad example"]}
    assert sent["good_example"] == {"id": "x9", "url": LINKS["Good example"]}
    assert sent["text"] == f"{alert.message} Call Search team."
    assert sent["message"] == alert.message
    assert sent["labels"] == alert.labels
    assert "2026-03-01 18:00 JST, 3 h ago" in webhook_payload(worded)["alerts"][0]["text"]
    (bare,) = webhook_payload(a_message(an_alert(exchange_ids=())))["alerts"]
    assert {bare[name] for name in ("url", "runbook_url", "owner", "bad_example", "good_example")} == {None}


def test_a_link_that_is_too_long_for_the_channel_is_omitted() -> None:
    """A truncated link leads nowhere."""
    long = a_message(exchange_url_template="https://example.com/{id}/" + "x" * MAX_LINK_LENGTH)

    assert long.links_for(long.alerts[0]) == {}
