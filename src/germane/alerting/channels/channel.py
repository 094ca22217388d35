"""The channel protocol, the messages that channels send, and the text fragments that all channels share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol, runtime_checkable
from urllib.parse import quote

from germane import sanitize
from germane.alert import IMPROVEMENT, Alert, Notification, ScoreLevel
from germane.alerting.evidence import GOOD_EXCHANGE, REFUSALS
from germane.alerting.messages import MIN_REFUSAL_INCREASE, RESOLVE_REASONS, alert_message, describe_changes
from germane.errors import GermaneError, SettingsError
from germane.settings import Rule

MAX_EXCHANGES: Final = 5
"""Maximum number of exchanges whose ids are shown."""
MAX_FACT_LENGTH: Final = 390
MAX_MESSAGE_LENGTH: Final = 590
MAX_FILLED_LENGTH: Final = 1000
"""Maximum number of characters in a message created from a template."""
MAX_QUOTE_LENGTH: Final = 500
"""Maximum number of characters that are shown from a question or an answer."""
_TYPES: Final[Mapping[str, str]] = {
    "firing": "Firing",
    "escalated": "Escalated to critical",
    "repeated": "Still firing",
    "resolved": "Resolved",
}
_CAUSES: Final[Mapping[str, str]] = {
    "answers_drifting": "answers drift away from the questions",
    "refusals_rising": "more refusals",
    "retrieval_worse": "retrieval returns less relevant contexts",
    "judge_broken": "the judge fails",
    "no_data": "answers are not scored",
    "budget": "the budget is exhausted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeQuote:
    """The question and answer of one of the worst exchanges. Both are untrusted text."""

    exchange_id: str
    question: str | None
    answer: str | None


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
    """The configured rules by name, for their runbooks, owners and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A notification, with the quotes and links that its channel may show."""

    notification: Notification
    quotes: Mapping[str, ExchangeQuote] = field(default_factory=dict)
    """Quotes by exchange id; empty unless the channel includes text."""
    format: MessageFormat = MessageFormat()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The notification's alerts, at least one."""
        return self.notification.alerts

    def url_for(self, alert: Alert) -> str | None:
        """Return the URL of an alert's page, or None."""
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
        if text == alert_message(alert):  # its times are in UTC
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
            "current": "" if alert.current is None else f"{alert.current.mean:.2f}",
            "baseline": "" if alert.baseline is None else f"{alert.baseline.mean:.2f}",
            "since": self.moment(alert.onset or alert.starts_at),
            "url": self.url_for(alert) or "",
            "runbook": self.runbook_for(alert) or "",
            "owner": self.labels_for(alert).get("owner", ""),
        }
        return sanitize.line(_fill(self.format.template, values), MAX_FILLED_LENGTH)

    def facts_for(self, alert: Alert) -> list[tuple[str, str]]:
        """Return the facts about an alert as pairs of a label and a one-line value."""
        shifts = [
            f"{shift.dimension} {shift.name}: {shift.before.mean:.3f} to {shift.since.mean:.3f}"
            for shift in [shift for shift in alert.shifts if shift.name != alert.scorer][:3]
        ]
        facts = {
            "Likely cause": _CAUSES.get(alert.cause or ""),
            "Now": _level(alert.current),
            "Before": _level(alert.baseline),
            "Threshold": None if alert.threshold is None or alert.type == "no_data" else f"{alert.threshold:.3g}",
            "Started about": None if alert.onset is None else self.moment(alert.onset),
            "Changed": ", ".join(describe_changes(alert, self.moment)) or None,
            "Refusals": _refusals(alert),
            "Largest drops": "; ".join(shifts) or None,
            "Resolved because": alert.resolve_reason and RESOLVE_REASONS[alert.resolve_reason],
            "Bad example": self.exchange_url_for(alert.exchange_ids[0]) if alert.exchange_ids else None,
            "Good example": self.exchange_url_for(alert.details.get(GOOD_EXCHANGE)),
            "Runbook": self.runbook_for(alert),
            **{name.capitalize(): value for name, value in self.labels_for(alert).items()},
            "Alert": alert.id,
        }
        return [(label, sanitize.line(value, MAX_FACT_LENGTH)) for label, value in facts.items() if value is not None]

    def moment(self, moment: datetime) -> str:
        """Return a time in the channel's timezone, such as ``2026-11-23 04:10 CET, 4 h ago``.

        The age is relative to the notification, so that the text is the same for every attempt.
        """
        age = max(timedelta(), self.notification.created_at - moment)
        ago = f"{age // timedelta(minutes=1)} min"
        if age >= timedelta(hours=2):
            ago = f"{age // timedelta(hours=1)} h" if age < timedelta(days=2) else f"{age.days} days"
        return f"{moment.astimezone(self.format.timezone):%Y-%m-%d %H:%M %Z}, {ago} ago"

    def quotes_for(self, alert: Alert) -> list[ExchangeQuote]:
        """Return quotes from an alert's worst exchanges, worst first."""
        return [self.quotes[id_] for id_ in alert.exchange_ids if id_ in self.quotes]


def headline(notification: Notification) -> str:
    """Return a subject line with the notification type, the rule, and the service or route."""
    prefix, first = _TYPES[notification.type], notification.alerts[0]
    if len(notification.alerts) == 1 and first.type == IMPROVEMENT:
        return f"I{alert_title(first)[1:]}"
    if len(notification.alerts) == 1:
        return sanitize.line(f"{prefix}: {alert_title(first)}", 150)
    same_state = sum(alert.is_open == first.is_open for alert in notification.alerts)
    resolved = len(notification.alerts) - same_state
    more = f", {resolved} resolved" if resolved else ""
    return sanitize.line(f"{prefix}: {sanitize.count_noun(same_state, 'alert')} in {first.service}{more}", 150)


def alert_title(alert: Alert) -> str:
    """Return an alert's title with rule, service, route and size, such as ``drop in shop, docs (0.82 to 0.71)``."""
    title = f"{alert.rule} in {', '.join(filter(None, (alert.service, alert.route)))}"
    if alert.type == IMPROVEMENT:
        title = title.replace(alert.rule, IMPROVEMENT, 1)
    if alert.is_open and alert.type in {"drop", IMPROVEMENT} and alert.current is not None:
        before = "" if alert.baseline is None else f"{alert.baseline.mean:.2f} to "
        title += f" ({before}{alert.current.mean:.2f})"
    return sanitize.line(title, 140)


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


def _refusals(alert: Alert) -> str | None:
    shares = alert.details.get(REFUSALS)
    if not shares or shares[1] - shares[0] < MIN_REFUSAL_INCREASE:
        return None
    return f"{100 * shares[0]:.3g} % before, {100 * shares[1]:.3g} % now"


def _level(level: ScoreLevel | None) -> str | None:
    if level is None:
        return None
    interval = "" if level.interval is None else f"95 % CI {level.interval[0]:.3f} to {level.interval[1]:.3f}, "
    return f"{level.mean:.3f} ({interval}n = {level.n})"


class DeliveryError(GermaneError):
    """A channel did not accept a message. The error text contains no secrets.

    Args:
        problem: Description of the failure, such as ``status 503``.
        status: HTTP or SMTP status, if there was a response.
        retryable: Whether a later attempt may succeed.
        retry_after: Seconds after which the receiver asked to retry.
    """

    def __init__(
        self, problem: str, *, status: int | None = None, retryable: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class Channel(Protocol):
    """A destination for notifications. Each channel sends its messages one at a time."""

    @property
    def include_text(self) -> bool:
        """Whether messages quote questions and answers."""

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot send messages, such as a missing secret; None if it can."""

    @property
    def destination(self) -> str:
        """The destination of messages for display, without secrets."""

    async def send(self, message: ChannelMessage) -> int | None:
        """Send a message once. Return the status of the response, or None if there is no response.

        Raises:
            DeliveryError: The message was not accepted.
        """


@runtime_checkable
class ResendingChannel(Protocol):
    """A channel whose receiver automatically resolves an alert that is not resent."""

    @property
    def resend_interval(self) -> float:
        """Seconds after which firing alerts are resent."""

    async def resend(self, alerts: Sequence[Alert], *, format: MessageFormat) -> None:  # noqa: A002 - its field's name
        """Send firing and recently resolved alerts again.

        Args:
            alerts: At least one alert, in its current state.
            format: The channel's message format.

        Raises:
            DeliveryError: The alerts were not accepted.
        """


def config_error_of(read_secrets: Callable[[], object]) -> str | None:
    """Return the reason why a channel's secrets cannot be read, including the expected source; None if they can be."""
    try:
        read_secrets()
    except SettingsError as error:
        return str(error)
    return None
