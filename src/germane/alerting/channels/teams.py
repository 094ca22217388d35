"""Delivery of alerts to Microsoft Teams, as Adaptive Cards posted to a workflow's webhook."""

from __future__ import annotations

import json
from typing import Any, Final

from germane import sanitize
from germane.alerting.channels.channel import ChannelMessage, status_label, worst_exchange_ids
from germane.alerting.channels.webhook import WebhookChannel
from germane.alerting.wording import headline
from germane.settings import TeamsSettings

MAX_SIZE: Final = 24_000
"""Maximum size of a card in bytes. Teams rejects messages larger than 28 KB."""
_STYLES: Final = {"Critical": "attention", "Warning": "warning", "Info": "accent", "Resolved": "good"}
"""Background style of an alert's container, by status."""

Element = dict[str, Any]


class Teams(WebhookChannel[TeamsSettings]):
    """Posts each notification as an Adaptive Card. Text is sent as text runs, which do not support Markdown."""

    def build_payload(self, message: ChannelMessage) -> dict[str, Any]:
        """Return the JSON body for a message as a dict."""
        return teams_payload(message)


def teams_payload(message: ChannelMessage) -> dict[str, Any]:
    """Return the JSON body as a dict. It contains as many alerts as fit into a card, most important first."""
    body: list[Element] = [_text(headline(message.notification), size="Large", weight="Bolder")]
    for index, alert in enumerate(message.alerts):
        items = [
            _text(message.heading_for(alert), weight="Bolder"),
            _text(message.text_for(alert)),
            *(_text(f"{label}: {value}", isSubtle=True) for label, value in message.facts_for(alert)),
        ]
        items += [_text(f"{label}: {line}") for quote in message.quotes_for(alert) for label, line in quote.lines]
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
