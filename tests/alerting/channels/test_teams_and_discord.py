"""The channels for Microsoft Teams and Discord: messages within their limits, with hostile text escaped."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from tests.alerting.channels.conftest import Answer, Receiver, a_hostile_message, a_message, an_alert, over
from tests.schemas import DISCORD, TEAMS, check

from germane.alerting.channels.channel import ChannelMessage, ExchangeQuote
from germane.alerting.channels.discord import Discord, discord_payload
from germane.alerting.channels.teams import Teams, teams_payload
from germane.delivery import DeliveryError
from germane.settings import DiscordSettings, TeamsSettings

PAYLOADS = {"teams": (teams_payload, TEAMS), "discord": (discord_payload, DISCORD)}
URL = "https://germane.example.com/alerts/{id}"
MANY = [an_alert(id=f"a{number}", labels={"service": "shop", "route": f"r{number}"}) for number in range(60)]
LONG = [an_alert(id=f"a{number}", message="*" * 2000) for number in range(12)]
QUOTES = {"x1": ExchangeQuote(exchange_id="x1", question="q" * 900, answer="_" * 900)}


def channel(kind: str, url: str) -> Teams | Discord:
    return (
        Teams(TeamsSettings(type="teams", url=url))
        if kind == "teams"
        else Discord(DiscordSettings(type="discord", url=url))
    )


def characters(payload: Any) -> int:
    """Return the number of characters in the embeds of a Discord message."""
    return sum(
        len(embed["title"]) + len(embed["description"]) + sum(len(f["name"]) + len(f["value"]) for f in embed["fields"])
        for embed in payload["embeds"]
    )


@pytest.mark.parametrize("kind", PAYLOADS)
def test_teams_and_discord_messages_describe_the_alert_and_link_to_it(
    receiver: Receiver, secret: Any, kind: str
) -> None:
    """The text contains the message, the means, the likely cause, and the ids of the worst exchanges."""
    receiver.answers = [Answer(204)]
    sent = channel(kind, secret("URL", receiver.url + "/hook")).send(a_message(alert_url_template=URL))
    assert asyncio.run(sent) == 204

    (post,) = receiver.posts
    check(post.json, PAYLOADS[kind][1])
    everything = json.dumps(post.json).replace("\\\\", "")
    for expected in ("Firing: drop in shop, docs", "has dropped from 0.820", "more refusals", "x1, x2", "alerts/a1"):
        assert expected in everything


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize(
    "message",
    [
        a_message(over(an_alert())),
        a_message(an_alert(severity="info", type="improvement")),
        a_message(an_alert(severity="critical"), type_="escalated"),
        a_message(*MANY, alert_url_template=URL),
        a_message(*LONG, quotes=QUOTES, alert_url_template=URL),
        a_message(quotes=QUOTES),
        a_hostile_message(),
    ],
    ids=["resolved", "improvement", "escalated", "60 alerts", "long alerts", "quotes", "hostile"],
)
def test_teams_and_discord_messages_stay_within_the_limits(kind: str, message: ChannelMessage) -> None:
    """Alerts that do not fit are counted."""
    payload, schema = PAYLOADS[kind]
    body = payload(message)

    check(body, schema)
    assert len(json.dumps(body)) <= 28_000 or kind == "discord"
    assert kind == "teams" or characters(body) <= 6000
    shown = json.dumps(body).count("Warning: ")
    if len(message.alerts) > shown > 0:
        assert f"and {len(message.alerts) - shown} more alert" in json.dumps(body)


def test_text_in_teams_messages_is_not_interpreted_as_markdown() -> None:
    """No text in a card is in an element that interprets Markdown."""
    card = teams_payload(a_hostile_message())["attachments"][0]["content"]

    assert set(re.findall(r'"type": "(\w+)"', json.dumps(card))) <= {
        "AdaptiveCard", "Container", "RichTextBlock", "TextRun", "ActionSet"
    }  # fmt: skip


def test_discord_texts_contain_no_markdown_mentions_or_links() -> None:
    """Special characters are escaped, and mentions are disabled."""
    body = discord_payload(a_hostile_message())
    texts = [body["content"]]
    for embed in body["embeds"]:
        texts += [embed["title"], embed["description"], *(field["value"] for field in embed["fields"])]

    assert body["allowed_mentions"] == {"parse": []}
    for text in texts:
        unescaped = re.sub(r"\\[^\w\s]", "", text)
        assert not re.search(r"[\\`*_~|<>\[\]()#:@]", unescaped), text


@pytest.mark.parametrize("kind", PAYLOADS)
def test_rejected_teams_and_discord_messages_and_missing_secrets_are_reported(
    receiver: Receiver, secret: Any, kind: str
) -> None:
    """A rate limit is retried after the given time. The URL is shown without its secret part."""
    receiver.answers = [Answer(429, {"Retry-After": "7"}), Answer(404)]
    sender = channel(kind, secret("URL", receiver.url + "/secret"))
    with pytest.raises(DeliveryError) as limited:
        asyncio.run(sender.send(a_message()))
    with pytest.raises(DeliveryError) as missing:
        asyncio.run(sender.send(a_message()))

    assert (limited.value.retryable, limited.value.retry_after) == (True, 7)
    assert (missing.value.retryable, missing.value.status) == (False, 404)
    assert "secret" not in sender.destination
    assert sender.config_error is None
    assert "MISSING" in (channel(kind, "env:MISSING").config_error or "")
