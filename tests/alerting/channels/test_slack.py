"""Alerts in Slack: blocks that it takes, in which nothing hostile does anything."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from tests.alerting.channels.conftest import HOSTILE, Receiver, a_hostile_message, a_message, an_alert, over
from tests.alerting.channels.schemas import SLACK, check

from germane.alerting.channels import Message, Quote, Slack
from germane.alerting.channels.slack import body_of
from germane.settings import channels as settings


def texts(body: Any, kind: str) -> list[str]:
    """Return all texts of a kind that a message holds."""
    found = [body["text"]] if kind == "mrkdwn" and isinstance(body.get("text"), str) and "blocks" in body else []
    for value in body.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found += [one["text"]] if one.get("type") == kind else []
                found += texts(one, kind)
    return found


def test_slack_gets_blocks_that_it_takes(receiver: Receiver, secret: Any) -> None:
    """A headline, the sentence, what one needs to believe it, and the worst exchanges by their ids."""
    channel = Slack(settings.Slack(kind="slack", url=secret("URL", receiver.url + "/services/T0/B0/x")))
    assert asyncio.run(channel.send(a_message(link="https://germane.example.com/alerts/{id}"))) == 200

    (post,) = receiver.posts
    body = post.json
    check(body, SLACK)
    assert post.path == "/services/T0/B0/x"
    assert body["blocks"][0]["text"]["text"] == "Firing: drop in shop, docs"
    everything = json.dumps(body)
    for said in ("has dropped from 0.820", "0.610 (95 % 0.570 to 0.650, n = 120)", "more refusals", "x1, x2"):
        assert said in everything
    assert "<https://germane.example.com/alerts/a1|Open>" in texts(body, "mrkdwn")[1]


def test_nothing_hostile_names_anybody_or_leads_anywhere() -> None:
    """No mention, no link and no control character of captured text is left; questions and answers are plain text."""
    body = body_of(a_hostile_message())

    check(body, SLACK)
    marked = "".join(texts(body, "mrkdwn"))
    assert "<!channel>" not in marked
    assert "|here>" not in marked
    assert "&lt;!channel&gt;" in marked
    plain = "".join(texts(body, "plain_text"))
    assert "Question: <!channel>" in plain
    assert not [one for one in marked + plain if not one.isprintable() and one != "\n"]


def test_text_is_there_only_where_it_was_loaded() -> None:
    """By default a message names exchanges, and quotes none."""
    quotes = {"x1": Quote(exchange_id="x1", question="How long?", answer=None)}

    assert "Question" not in json.dumps(body_of(a_message()))
    assert "Question: How long?\\nAnswer: (none)" in json.dumps(body_of(a_message(quotes=quotes)))


def test_many_alerts_are_one_message_within_limits() -> None:
    """What does not fit is counted."""
    quotes = {
        f"x{number}": Quote(exchange_id=f"x{number}", question="q" * 900, answer="&" * 900) for number in range(9)
    }
    alerts = [
        an_alert(id=f"a{number}", labels={"service": "shop", "route": f"r{number}"}, message="&" * 2000)
        for number in range(60)
    ]
    body = body_of(a_message(*alerts, quotes=quotes))

    check(body, SLACK)
    assert body["blocks"][0]["text"]["text"] == "Firing: 60 alerts in shop"
    told = sum("Warning: drop" in one for one in texts(body, "mrkdwn"))
    assert f"and {60 - told} alerts more" in json.dumps(body)
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) <= 13_000


def test_one_alert_fits_however_long_its_names_are() -> None:
    """Each part is cut to what Slack takes of it."""
    alert = an_alert(rule="&" * 5000, message="<" * 5000, labels={"service": "&" * 999}, exchange_ids=("&" * 3000,) * 9)

    check(body_of(a_message(alert)), SLACK)


def test_what_is_cut_ends_between_two_characters_and_keeps_its_link() -> None:
    """Of names that grow as they are escaped; a link that is longer than a message has room for is left out."""
    alert = an_alert(labels={"service": "&" * 200, "route": "docs"}, rule="&<>" * 60, message="<&>" * 300)
    said = texts(body_of(a_message(alert, link="https://germane.example.com/{id}")), "mrkdwn")[1]

    assert said.endswith("\n<https://germane.example.com/a1|Open>")
    assert re.search("&(?!amp;|lt;|gt;)", said) is None
    assert "|Open>" not in str(body_of(a_message(alert, link="https://germane.example.com/{rule}{service}{rule}")))


def test_one_alert_with_long_texts_loses_the_last_of_them() -> None:
    """Slack refuses all of a message that is too long."""
    ids = tuple(f"x{number}" for number in range(5))
    quotes = {id_: Quote(exchange_id=id_, question='"' * 900, answer="<" * 900) for id_ in ids}
    body = body_of(a_message(an_alert(exchange_ids=ids, message="&" * 900, rule="&" * 90), quotes=quotes))

    check(body, SLACK)
    assert 0 < json.dumps(body).count("Question: ") <= 5
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) <= 13_000


def test_the_end_reads_like_one() -> None:
    """What is over is not taken for news of trouble."""
    body = body_of(a_message(over(an_alert())))

    check(body, SLACK)
    assert body["blocks"][0]["text"]["text"] == "Resolved: drop in shop, docs"
    assert "it has recovered" in json.dumps(body)


def test_other_tellings_have_their_words() -> None:
    """What has grown worse or goes on says so."""

    def headline(message: Message) -> str:
        return str(body_of(message)["blocks"][0]["text"]["text"])

    assert headline(a_message(what="escalated")).startswith("Now critical: ")
    assert headline(a_message(what="repeated")).startswith("Still firing: ")


def test_a_headline_counts_what_is_over_apart() -> None:
    """Nobody reads of two alerts that fire where one of them does not."""
    fires, ended = an_alert(), over(an_alert(key="other"))
    groups = [(fires, ended), (fires, fires), (ended, ended)]
    said = [body_of(a_message(*group))["blocks"][0]["text"]["text"] for group in groups]

    assert said == ["Firing: 1 alert in shop, 1 resolved", "Firing: 2 alerts in shop", "Resolved: 2 alerts in shop"]


def test_a_hostile_name_stays_within_its_line() -> None:
    """The hostile text of the tests is what it should be."""
    assert "\n" in HOSTILE
    assert "\x1b" in HOSTILE
