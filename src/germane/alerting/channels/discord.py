"""Delivery of alerts to Discord, through a webhook."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from germane import sanitize
from germane.alerting.channels.channel import ChannelMessage, status_label
from germane.alerting.channels.webhook import WebhookChannel
from germane.alerting.wording import headline
from germane.settings import DiscordSettings

MAX_EMBEDS: Final = 10
MAX_SIZE: Final = 5500
"""Maximum total number of characters in all embeds. Discord accepts 6,000."""
MAX_FIELDS: Final = 20
"""Maximum number of fields per embed. Discord accepts 25."""
_COLORS: Final = {"Critical": 0xC62828, "Warning": 0xEF6C00, "Info": 0x1565C0, "Resolved": 0x2E7D32}
_AFTER_LINK: Final = re.compile(r"[<>\s\\]")
"""Characters that could end a link."""
_MARKDOWN: Final = re.compile(r"([\\`*_~|<>\[\]()#:@-])")


class Discord(WebhookChannel[DiscordSettings]):
    """Posts each notification as embeds. Markdown in names, questions and answers is escaped; mentions are disabled."""

    def build_payload(self, message: ChannelMessage) -> dict[str, Any]:
        """Return the JSON body for a message as a dict."""
        return discord_payload(message)


def discord_payload(message: ChannelMessage) -> dict[str, Any]:
    """Return the JSON body as a dict. It contains as many alerts as Discord accepts, most important first."""
    embeds: list[dict[str, Any]] = []
    content = escape_markdown(headline(message.notification))
    for index, alert in enumerate(message.alerts):
        links = message.links_for(alert)
        url = links.pop("Open alert", None)
        fields = [{"name": _cut(name, 256), "value": _cut(value, 1024)} for name, value in message.facts_for(alert)]
        fields += [{"name": label, "value": escape_link(link)} for label, link in links.items()]
        fields += [{"name": _cut(name, 256), "value": _cut(value, 1024)} for name, value in message.evidence_for(alert)]
        fields = fields[:MAX_FIELDS]
        embed = {
            "title": _cut(message.heading_for(alert), 256),
            "description": _cut(message.text_for(alert), 2000),
            "color": _COLORS[status_label(alert)],
            "timestamp": alert.evaluated_at.isoformat(),
            "fields": fields,
            **({} if url is None else {"url": url}),
        }
        while _size(embed) > MAX_SIZE:
            fields.pop()
        if index and (index == MAX_EMBEDS or sum(map(_size, [*embeds, embed])) > MAX_SIZE):
            content += f" (and {sanitize.count_noun(len(message.alerts) - index, 'more alert')})"
            break
        embeds.append(embed)
    return {"content": content, "embeds": embeds, "allowed_mentions": {"parse": []}}


def escape_markdown(text: str) -> str:
    """Escape text so that Discord does not interpret Markdown, links or mentions in it."""
    return _MARKDOWN.sub(r"\\\1", text)


def escape_link(url: str) -> str:
    """Return one of germane's own URLs as a link that Discord neither truncates nor parses as Markdown."""
    return f"<{_AFTER_LINK.sub(lambda match: quote(match[0]), url)}>"


def _cut(text: str, width: int) -> str:
    """Return escaped text, truncated without splitting an escape sequence."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\$", r"\1", escape_markdown(text)[:width]) or "-"


def _size(embed: dict[str, Any]) -> int:
    """Return the number of characters in an embed that count toward Discord's limit."""
    texts = [embed["title"], embed["description"]]
    return sum(map(len, texts)) + sum(len(one["name"]) + len(one["value"]) for one in embed["fields"])
