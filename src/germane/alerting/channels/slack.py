"""Alerts in Slack, by an incoming webhook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from germane.alert import Alert
from germane.alerting.channels.channel import problem_of
from germane.alerting.channels.http import Web, shown_address, web_for
from germane.alerting.channels.message import Message, facts, headline, quoted, sentence, state_of, subject, worst
from germane.sanitize import counted
from germane.settings import channels as settings
from germane.settings.kinds import read_address

BLOCKS: Final = 48
"""Of the 50 that Slack takes."""
SIZE: Final = 11_000
"""Characters of all blocks; beyond about 13,000 Slack refuses a message, whatever the limits of its parts."""

Block = dict[str, Any]


class Slack:
    """POSTs each notification as blocks. Names are escaped; questions and answers are plain text to Slack."""

    def __init__(self, given: settings.Slack, *, web: Web | None = None) -> None:
        self._given = given
        self._web = web or web_for(given)
        self.answers = given.answers

    def __repr__(self) -> str:
        return f"Slack({self._given.url})"

    @property
    def problem(self) -> str | None:
        """Why it can send nothing."""
        return problem_of(lambda: read_address(self._given.url))

    @property
    def where(self) -> str:
        """Its address without what may be secret."""
        return shown_address(self._given.url)

    async def send(self, message: Message) -> int:
        """Send it once."""
        return await self._web.post(read_address(self._given.url), json.dumps(body_of(message)).encode())


def body_of(message: Message) -> dict[str, Any]:
    """Return the message: as many of its alerts as Slack takes, the gravest first."""
    title = headline(message.notification)
    blocks: list[Block] = [{"type": "header", "text": _plain(title)}]
    for number, alert in enumerate(message.alerts):
        more = list(_blocks(message, alert))
        while len(more) > 1 and _size(more) > SIZE - 1000:
            more.pop()
        if number and (len(blocks) + len(more) > BLOCKS or _size(blocks + more) > SIZE):
            left = counted(len(message.alerts) - number, "alert")
            blocks.append({"type": "context", "elements": [_plain(f"and {left} more")]})
            break
        blocks += more
    return {"text": f"{escaped(title)}\n{escaped(sentence(message.alerts[0]))}", "blocks": blocks}


def escaped(text: str) -> str:
    """Return text in which nothing names a person, a channel or an address to Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _blocks(message: Message, alert: Alert) -> Iterator[Block]:
    said = f"*{state_of(alert)}: {_cut(subject(alert), 700)}*\n{_cut(sentence(alert), 1200)}{_linked(message, alert)}"
    yield {"type": "section", "text": _marked(said)}
    fields = [_marked(f"*{name}*\n{_cut(value, 1900)}") for name, value in facts(alert)]
    if fields:
        yield {"type": "section", "fields": fields[:10]}
    for quote in message.quotes_of(alert):
        yield {"type": "section", "text": _plain(f"Question: {quoted(quote.question)}\nAnswer: {quoted(quote.answer)}")}
    if alert.exchange_ids:
        yield {"type": "context", "elements": [_plain(f"Worst exchanges: {worst(alert)}")]}


def _linked(message: Message, alert: Alert) -> str:
    """Return the link on a line of its own; nothing where names make it longer than Slack has room for."""
    link = message.link_to(alert)
    linked = "" if link is None else f"\n<{escaped(link).replace('|', '%7C')}|Open>"
    return linked if len(linked) <= 1000 else ""


def _cut(text: str, width: int) -> str:
    """Return text escaped, and cut between two characters of the text."""
    return re.sub("&[a-z]*$", "", escaped(text)[:width])


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def _marked(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _size(blocks: list[Block]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))
