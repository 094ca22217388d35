"""Delivery of alerts to Slack, through an incoming webhook."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from germane import sanitize
from germane.alerting.channels.channel import ChannelMessage, status_label, worst_exchange_ids
from germane.alerting.channels.webhook import WebhookChannel
from germane.alerting.wording import alert_title, headline
from germane.settings import SlackSettings

MAX_BLOCKS: Final = 48
"""Maximum number of blocks per message. Slack accepts 50."""
MAX_FIELDS: Final = 10
"""Maximum number of fields per section. Slack accepts ten."""
MAX_SIZE: Final = 11_000
"""Maximum total number of characters in all blocks. Slack rejects messages above about 13,000 characters, even if each
block is within its limit."""
MAX_LINKS_LENGTH: Final = 2900
"""Maximum number of characters in an alert's links. Slack accepts 3,000 per section."""

Block = dict[str, Any]


class Slack(WebhookChannel[SlackSettings]):
    """Posts each notification as blocks. Names are escaped, and questions and answers are sent as plain text."""

    def build_payload(self, message: ChannelMessage) -> dict[str, Any]:
        """Return the JSON body for a message as a dict."""
        return slack_payload(message)


def slack_payload(message: ChannelMessage) -> dict[str, Any]:
    """Return the JSON body as a dict. It contains as many alerts as Slack accepts, most important first."""
    title = headline(message.notification)
    blocks: list[Block] = [{"type": "header", "text": _plain_text(title)}]
    for index, alert in enumerate(message.alerts):
        name, text = _escape_and_cut(alert_title(alert), 700), _escape_and_cut(message.text_for(alert), 1200)
        more: list[Block] = [{"type": "section", "text": _mrkdwn(f"*{status_label(alert)}: {name}*\n{text}")}]
        links = [escape_link(link, label) for label, link in message.links_for(alert).items()]
        while sum(map(len, links)) > MAX_LINKS_LENGTH:
            links.pop()
        if links:
            more.append({"type": "section", "text": _mrkdwn(" · ".join(links))})
        fields = [_mrkdwn(f"*{label}*\n{_escape_and_cut(value, 1900)}") for label, value in message.facts_for(alert)]
        more += [
            {"type": "section", "fields": fields[start : start + MAX_FIELDS]}
            for start in range(0, len(fields), MAX_FIELDS)
        ]
        for quote in message.quotes_for(alert):
            text = "\n".join(f"{label}: {line}" for label, line in quote.lines)
            more.append({"type": "section", "text": _plain_text(text)})
        if alert.exchange_ids:
            more.append({"type": "context", "elements": [_plain_text(f"Worst exchanges: {worst_exchange_ids(alert)}")]})
        while len(more) > 1 and _size(more) > MAX_SIZE - 1000:
            more.pop()
        if index and (len(blocks) + len(more) > MAX_BLOCKS or _size(blocks + more) > MAX_SIZE):
            remaining = sanitize.count_noun(len(message.alerts) - index, "more alert")
            blocks.append({"type": "context", "elements": [_plain_text(f"and {remaining}")]})
            break
        blocks += more
    return {"text": f"{escape_mrkdwn(title)}\n{escape_mrkdwn(message.text_for(message.alerts[0]))}", "blocks": blocks}


def escape_mrkdwn(text: str) -> str:
    """Escape text so that it cannot mention a user or channel, or contain a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_link(url: str, label: str) -> str:
    """Return a link to one of germane's own URLs. The label is also germane's own and is not escaped."""
    return f"<{escape_mrkdwn(url).replace('|', '%7C').replace(' ', '%20')}|{label}>"


def _escape_and_cut(text: str, width: int) -> str:
    """Return escaped text, truncated without splitting an escaped character."""
    return re.sub("&[a-z]*$", "", escape_mrkdwn(text)[:width])


def _plain_text(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _size(blocks: list[Block]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))
