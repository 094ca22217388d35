"""The Slack channel: blocks within Slack's limits, with hostile text escaped."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from tests.alerting.channels.conftest import HOSTILE, Receiver, a_hostile_message, a_message, an_alert, over
from tests.schemas import SLACK, check

from germane.alerting.channels.channel import ExchangeQuote
from germane.alerting.channels.slack import Slack, slack_payload
from germane.alerting.wording import headline
from germane.settings import channels as settings


def texts(body: Any, kind: str) -> list[str]:
    """Return all texts of one type in a message."""
    found = [body["text"]] if kind == "mrkdwn" and isinstance(body.get("text"), str) and "blocks" in body else []
    for value in body.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found += [one["text"]] if one.get("type") == kind else []
                found += texts(one, kind)
    return found


def test_slack_messages_stay_within_the_limits(receiver: Receiver, secret: Any) -> None:
    """The payload has a headline, the message, facts and the ids of the worst exchanges."""
    channel = Slack(settings.SlackSettings(type="slack", url=secret("URL", receiver.url + "/services/T0/B0/x")))
    message = a_message(alert_url_template="https://germane.example.com/alerts/{id}")
    assert asyncio.run(channel.send(message)) == 200

    (post,) = receiver.posts
    body = post.json
    check(body, SLACK)
    assert post.path == "/services/T0/B0/x"
    (alert,) = message.alerts
    assert body["blocks"][0]["text"]["text"] == headline(message.notification)
    everything = json.dumps(body)
    for expected in (alert.message, "x1, x2", *dict(message.facts_for(alert)).values()):
        assert expected in everything
    assert "<https://germane.example.com/alerts/a1|Open alert>" in texts(body, "mrkdwn")


def test_hostile_text_creates_no_mention_or_link_in_slack() -> None:
    """Questions and answers are plain text."""
    body = slack_payload(a_hostile_message())

    check(body, SLACK)
    marked = "".join(texts(body, "mrkdwn"))
    assert "<!channel>" not in marked
    assert "|here>" not in marked
    assert "&lt;!channel&gt;" in marked
    plain = "".join(texts(body, "plain_text"))
    assert "Question: <!channel>" in plain
    assert not [one for one in marked + plain if not one.isprintable() and one != "\n"]


def test_slack_messages_contain_answers_only_if_configured() -> None:
    """By default, messages contain the ids of exchanges and no text."""
    quotes = {"x1": ExchangeQuote(exchange_id="x1", question="How long?", answer=None)}

    assert "Question" not in json.dumps(slack_payload(a_message()))
    assert "How long?\\nAnswer: (none)" in json.dumps(slack_payload(a_message(quotes=quotes)))


def test_a_slack_message_states_the_number_of_alerts_that_it_omits() -> None:
    """A message with many alerts stays within Slack's limits."""
    quotes = {
        f"x{number}": ExchangeQuote(exchange_id=f"x{number}", question="q" * 900, answer="&" * 900)
        for number in range(9)
    }
    alerts = [
        an_alert(id=f"a{number}", labels={"service": "shop", "route": f"r{number}"}, message="&" * 2000)
        for number in range(60)
    ]
    message = a_message(*alerts, quotes=quotes)
    body = slack_payload(message)

    check(body, SLACK)
    assert body["blocks"][0]["text"]["text"] == headline(message.notification)
    shown = sum("Warning: drop" in one for one in texts(body, "mrkdwn"))
    assert f"and {60 - shown} more alerts" in json.dumps(body)
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) <= 13_000


def test_long_names_are_truncated_in_slack_messages() -> None:
    """Each part is cut to Slack's limit."""
    alert = an_alert(rule="&" * 5000, message="<" * 5000, labels={"service": "&" * 999}, exchange_ids=("&" * 3000,) * 9)

    check(slack_payload(a_message(alert)), SLACK)


def test_truncation_in_slack_messages_does_not_split_escapes_or_links() -> None:
    """A link that is too long is omitted."""
    alert = an_alert(labels={"service": "&" * 200, "route": "docs"}, rule="&<>" * 60, message="<&>" * 300)
    body = slack_payload(a_message(alert, alert_url_template="https://germane.example.com/{id}"))

    assert "<https://germane.example.com/a1|Open alert>" in texts(body, "mrkdwn")
    assert re.search("&(?!amp;|lt;|gt;)", "".join(texts(body, "mrkdwn")[:2])) is None
    assert "|Open alert>" not in str(
        slack_payload(a_message(alert, alert_url_template="https://germane.example.com/{rule}{service}{rule}"))
    )


def test_the_last_quotes_are_omitted_from_a_slack_message_that_is_too_long() -> None:
    """Slack rejects messages that are too long."""
    ids = tuple(f"x{number}" for number in range(5))
    quotes = {id_: ExchangeQuote(exchange_id=id_, question='"' * 900, answer="<" * 900) for id_ in ids}
    body = slack_payload(a_message(an_alert(exchange_ids=ids, message="&" * 900, rule="&" * 90), quotes=quotes))

    check(body, SLACK)
    assert 0 < json.dumps(body).count("Question: ") <= 5
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) <= 13_000


def test_a_slack_message_about_a_resolved_alert_says_so() -> None:
    """The message contains the reason."""
    message = a_message(over(an_alert()))
    body = slack_payload(message)

    check(body, SLACK)
    assert body["blocks"][0]["text"]["text"] == headline(message.notification)
    assert "recovered" in json.dumps(body)


def test_the_hostile_sample_text_contains_all_attacks() -> None:
    """The hostile text of these tests contains the attacks that they rely on."""
    assert "\n" in HOSTILE
    assert "\x1b" in HOSTILE
