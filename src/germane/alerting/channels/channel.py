"""The channel protocol, the messages that channels send, and text fragments for all channels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol, runtime_checkable
from urllib.parse import quote

from germane import sanitize
from germane.alert import Alert, Notification
from germane.alerting.evidence import GOOD_EXCHANGE
from germane.alerting.formatting import format_score
from germane.alerting.wording import alert_message, alert_title
from germane.alerting.wording.details import alert_details
from germane.errors import SettingsError
from germane.settings import Rule

MAX_EXCHANGES: Final = 5
"""Maximum number of exchanges whose ids are shown."""
MAX_FACT_LENGTH: Final = 390
MAX_MESSAGE_LENGTH: Final = 590
MAX_FILLED_LENGTH: Final = 1000
"""Maximum number of characters in a message created from a template."""
MAX_QUOTE_LENGTH: Final = 500
"""Maximum number of characters shown of a question or an answer."""
MAX_LINK_LENGTH: Final = 1000
"""Maximum length of a link in characters. Longer links are omitted, because a truncated link is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeQuote:
    """The question and answer of one of the worst exchanges. Both are untrusted text."""

    exchange_id: str
    question: str | None
    answer: str | None

    @property
    def lines(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The question and the answer, each as a label and a line."""
        return ("Question", quote_line(self.question)), ("Answer", quote_line(self.answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFormat:
    """The formatting options for a channel's messages."""

    alert_url_template: str | None = None
    """Template for the URL of an alert, with placeholders such as ``{id}``."""
    exchange_url_template: str | None = None
    """Template for the URL of an exchange, with the placeholder ``{id}``."""
    template: str | None = None
    """Template that replaces an alert's message, with placeholders such as ``{message}``."""
    timezone: tzinfo = UTC
    """The timezone in which times are shown."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """The configured rules by name. They provide runbooks, owners and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A notification, together with the quotes and links that its channel may show."""

    notification: Notification
    quotes: Mapping[str, ExchangeQuote] = field(default_factory=dict)
    """Quotes by exchange id; empty unless the channel includes text."""
    format: MessageFormat = MessageFormat()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The notification's alerts, at least one."""
        return self.notification.alerts

    def url_for(self, alert: Alert) -> str | None:
        """Return the URL of an alert's page, or None without the ``alert_url`` setting."""
        if self.format.alert_url_template is None:
            return None
        values = {name: quote(value, safe="") for name, value in _url_values(alert).items()}
        return _fill(self.format.alert_url_template, values)

    def exchange_url_for(self, exchange_id: str | None) -> str | None:
        """Return the URL of an exchange's page, or None."""
        template = self.format.exchange_url_template
        if template is None or exchange_id is None:
            return None
        return _fill(template, {"id": quote(exchange_id, safe="")})

    def bad_example_for(self, alert: Alert) -> str | None:
        """Return the id of the exchange with the lowest score, or None."""
        return alert.exchange_ids[0] if alert.exchange_ids else None

    def good_example_for(self, alert: Alert) -> str | None:
        """Return the id of an exchange with a high score from before the onset, or None."""
        return alert.details.get(GOOD_EXCHANGE)

    def links_for(self, alert: Alert) -> dict[str, str]:
        """Return the URLs that germane built or read from the settings, by label."""
        links = {
            "Open alert": self.url_for(alert),
            "Bad example": self.exchange_url_for(self.bad_example_for(alert)),
            "Good example": self.exchange_url_for(self.good_example_for(alert)),
            "Runbook": self.runbook_for(alert),
        }
        return {label: url for label, url in links.items() if url is not None and len(url) <= MAX_LINK_LENGTH}

    def runbook_for(self, alert: Alert) -> str | None:
        """Return the runbook URL of the alert's rule, or None."""
        rule = self.format.rules.get(alert.rule)
        return None if rule is None else rule.runbook_url

    def labels_for(self, alert: Alert) -> dict[str, str]:
        """Return the labels of the alert's rule by name, including its owner."""
        rule = self.format.rules.get(alert.rule)
        if rule is None:
            return {}
        return rule.labels | ({} if rule.owner is None else {"owner": rule.owner})

    def text_for(self, alert: Alert) -> str:
        """Return the alert's message, or the channel's filled-in template, as one line."""
        text = alert.message or f"{alert_title(alert)}: {status_label(alert).lower()}"
        if text == alert_message(alert):  # the stored message has times in UTC
            text = alert_message(alert, self.moment)
        text = sanitize.line(text, MAX_MESSAGE_LENGTH)
        if self.format.template is None:
            return text
        values = {name: sanitize.line(value, MAX_FACT_LENGTH) for name, value in _url_values(alert).items()}
        values |= {
            "message": text,
            "title": alert_title(alert),
            "status": status_label(alert),
            "severity": alert.severity,
            "current": "" if alert.current is None else format_score(alert.current.mean),
            "baseline": "" if alert.baseline is None else format_score(alert.baseline.mean),
            "since": self.moment(alert.onset or alert.starts_at),
            "url": self.url_for(alert) or "",
            "runbook": self.runbook_for(alert) or "",
            "owner": self.labels_for(alert).get("owner", ""),
        }
        return sanitize.line(_fill(self.format.template, values), MAX_FILLED_LENGTH)

    def facts_for(self, alert: Alert) -> list[tuple[str, str]]:
        """Describe an alert in pairs of a label and a one-line value. :meth:`links_for` returns its links."""
        labels = {name.capitalize(): value for name, value in self.labels_for(alert).items()}
        facts = alert_details(alert, self.moment) | labels | {"Alert": alert.id}
        return [(label, sanitize.line(value, MAX_FACT_LENGTH)) for label, value in facts.items() if value is not None]

    def evidence_for(self, alert: Alert) -> list[tuple[str, str]]:
        """Return quotes from the worst exchanges and the ids of these, as pairs of a label and a line."""
        lines = [line for quote in self.quotes_for(alert) for line in quote.lines]
        return lines + ([("Worst exchanges", worst_exchange_ids(alert))] if alert.exchange_ids else [])

    def heading_for(self, alert: Alert) -> str:
        """Return the status and the title of an alert."""
        return f"{status_label(alert)}: {alert_title(alert)}"

    def moment(self, moment: datetime) -> str:
        """Return a time in the channel's timezone, such as ``2026-11-23 04:10 CET, 4 h ago``.

        The age is relative to the notification, so that the text is the same for every attempt.
        """
        age = max(timedelta(), self.notification.created_at - moment)
        ago = f"{age // timedelta(minutes=1)} min ago" if age >= timedelta(minutes=1) else "just now"
        if age >= timedelta(hours=2):
            ago = f"{age // timedelta(hours=1)} h ago" if age < timedelta(days=2) else f"{age.days} days ago"
        return f"{moment.astimezone(self.format.timezone):%Y-%m-%d %H:%M %Z}, {ago}"

    def quotes_for(self, alert: Alert) -> list[ExchangeQuote]:
        """Return quotes from an alert's worst exchanges, worst first."""
        return [self.quotes[id_] for id_ in alert.exchange_ids if id_ in self.quotes]


def status_label(alert: Alert) -> str:
    """Return ``Resolved`` for a resolved alert, otherwise the severity, such as ``Warning``."""
    return "Resolved" if alert.state == "resolved" else alert.severity.capitalize()


def worst_exchange_ids(alert: Alert) -> str:
    """Return the ids of an alert's worst exchanges as one line."""
    return sanitize.line(", ".join(alert.exchange_ids[:MAX_EXCHANGES]), MAX_FACT_LENGTH)


def quote_line(text: str | None) -> str:
    """Return a question or an answer as one line, truncated to :data:`MAX_QUOTE_LENGTH` characters."""
    return "(none)" if text is None else sanitize.line(text, MAX_QUOTE_LENGTH)


def _url_values(alert: Alert) -> dict[str, str]:
    """Return the values by name for the placeholders that ``alert_url`` and ``template`` share."""
    return {
        "id": alert.id,
        "key": alert.key,
        "rule": alert.rule,
        "service": alert.service,
        "route": alert.route or "",
        "scorer": alert.scorer or "",
    }


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in one pass, so that braces in a value are not interpreted."""
    return re.sub(r"{([a-z_]+)}", lambda match: values.get(match[1], match[0]), template)


class Channel(Protocol):
    """A destination for notifications. Each channel sends its messages one at a time."""

    @property
    def include_text(self) -> bool:
        """Whether messages quote questions and answers."""

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot send messages, such as a missing secret, or None if it can."""

    @property
    def destination(self) -> str:
        """The destination of messages, for display. It contains no secrets."""

    async def send(self, message: ChannelMessage) -> int | None:
        """Send a message, without retries. Return the status of the response, or None if there is none.

        Raises:
            DeliveryError: The message was not accepted.
        """


@runtime_checkable
class ResendingChannel(Protocol):
    """A channel whose receiver resolves an alert automatically unless it is resent."""

    @property
    def resend_interval(self) -> float:
        """Seconds after which firing alerts are resent."""

    async def resend(self, alerts: Sequence[Alert], *, format: MessageFormat) -> None:  # noqa: A002 - the field's name
        """Send firing and recently resolved alerts again.

        Args:
            alerts: At least one alert, in its current state.
            format: The channel's message format.

        Raises:
            DeliveryError: The alerts were not accepted.
        """


def config_error_of(read_secrets: Callable[[], object]) -> str | None:
    """Return the reason why a channel's secrets cannot be read, with their expected location, or None if they can."""
    try:
        read_secrets()
    except SettingsError as error:
        return str(error)
    return None
