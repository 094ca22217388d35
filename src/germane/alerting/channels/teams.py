"""Delivery of alerts to Microsoft Teams, as Adaptive Cards posted to a workflow's webhook."""

from __future__ import annotations

import json
from typing import Any, Final

from germane import sanitize
from germane.alerting.channels.channel import (
    ChannelMessage,
    config_error_of,
    quote_line,
    status_label,
    worst_exchange_ids,
)
from germane.alerting.channels.http import JsonPoster, build_poster, redact_reference
from germane.alerting.titles import alert_title, headline
from germane.settings import TeamsSettings, resolve_url

MAX_SIZE: Final = 24_000
"""Maximum size of a card in bytes. Teams rejects messages larger than 28 KB."""
_STYLES: Final = {"Critical": "attention", "Warning": "warning", "Info": "accent", "Resolved": "good"}
"""Background style of an alert's container, by status."""

Element = dict[str, Any]


class Teams:
    """Posts each notification as an Adaptive Card. Text is sent as text runs, which do not support Markdown."""

    def __init__(self, settings: TeamsSettings, *, poster: JsonPoster | None = None) -> None:
        self._settings = settings
        self._poster = poster or build_poster(settings)
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"Teams({self._settings.url})"

    @property
    def config_error(self) -> str | None:
        """The reason why the channel cannot send messages; None if it can."""
        return config_error_of(lambda: resolve_url(self._settings.url))

    @property
    def destination(self) -> str:
        """The redacted URL."""
        return redact_reference(self._settings.url)

    async def send(self, message: ChannelMessage) -> int:
        """Send a message once."""
        return await self._poster.post(resolve_url(self._settings.url), json.dumps(teams_payload(message)).encode())


def teams_payload(message: ChannelMessage) -> dict[str, Any]:
    """Return the JSON body as a dict, with as many alerts as fit into a card, most important first."""
    body: list[Element] = [_text(headline(message.notification), size="Large", weight="Bolder")]
    for index, alert in enumerate(message.alerts):
        items = [
            _text(f"{status_label(alert)}: {alert_title(alert)}", weight="Bolder"),
            _text(message.text_for(alert)),
            *(_text(f"{label}: {value}", isSubtle=True) for label, value in message.facts_for(alert)),
        ]
        for quote in message.quotes_for(alert):
            items += [_text(f"Question: {quote_line(quote.question)}"), _text(f"Answer: {quote_line(quote.answer)}")]
        if alert.exchange_ids:
            items.append(_text(f"Worst exchanges: {worst_exchange_ids(alert)}", isSubtle=True))
        links = message.links_for(alert)
        actions = [{"type": "Action.OpenUrl", "title": title, "url": url} for title, url in links.items()]
        container = {"type": "Container", "style": _STYLES[status_label(alert)], "separator": True, "items": items}
        added: list[Element] = [container, *([{"type": "ActionSet", "actions": actions}] if actions else [])]
        if index and len(json.dumps(body + added)) > MAX_SIZE:
            body.append(_text(f"and {sanitize.count_noun(len(message.alerts) - index, 'more alert')}"))
            break
        body += added
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": body,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _text(text: str, **style: Any) -> Element:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
