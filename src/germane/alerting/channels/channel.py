"""The channel protocol, the messages that channels send, and the texts that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable
from urllib.parse import quote

from germane import sanitize
from germane.alert import Alert, Notification, ScoreLevel
from germane.errors import GermaneError, SettingsError

MAX_EXCHANGES: Final = 5
"""Exchanges whose ids are shown."""
MAX_FACT_LENGTH: Final = 390
MAX_MESSAGE_LENGTH: Final = 590
MAX_QUOTE_LENGTH: Final = 500
"""Characters of a question or an answer."""
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
_RESOLVE_REASONS: Final[Mapping[str, str]] = {
    "recovered": "recovered",
    "passed": "ended before it fired",
    "judge_changed": "the judge changed; a new baseline is being learned",
    "by_hand": "resolved by hand",
    "new_baseline": "accepted as the new baseline",
    "rule_removed": "the rule was removed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeQuote:
    """Question and answer of one of the worst exchanges. Untrusted text."""

    exchange_id: str
    question: str | None
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A notification, with the quotes and links that its channel may show."""

    notification: Notification
    quotes: Mapping[str, ExchangeQuote] = field(default_factory=dict)
    """By exchange id; empty unless the channel includes text."""
    alert_url_template: str | None = None
    """URL of an alert, with placeholders such as ``{id}``."""

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The alerts of the notification; at least one."""
        return self.notification.alerts

    def url_for(self, alert: Alert) -> str | None:
        """Return the URL of an alert's page, or None."""
        if self.alert_url_template is None:
            return None
        values = {
            "id": alert.id,
            "key": alert.key,
            "rule": alert.rule,
            "service": alert.service,
            "route": alert.route or "",
            "scorer": alert.scorer or "",
        }
        url = self.alert_url_template
        for name, value in values.items():
            url = url.replace(f"{{{name}}}", quote(value, safe=""))
        return url

    def quotes_for(self, alert: Alert) -> list[ExchangeQuote]:
        """Return the quotes of an alert's worst exchanges, worst first."""
        return [self.quotes[id_] for id_ in alert.exchange_ids if id_ in self.quotes]


def headline(notification: Notification) -> str:
    """Return a subject line: the type of the notification, the rule and the service or route."""
    prefix, first = _TYPES[notification.type], notification.alerts[0]
    if len(notification.alerts) == 1:
        return sanitize.line(f"{prefix}: {alert_title(first)}", 150)
    same_state = sum(alert.is_open == first.is_open for alert in notification.alerts)
    resolved = len(notification.alerts) - same_state
    more = f", {resolved} resolved" if resolved else ""
    return sanitize.line(f"{prefix}: {sanitize.count_noun(same_state, 'alert')} in {first.service}{more}", 150)


def alert_title(alert: Alert) -> str:
    """Return rule, service and route, such as ``drop in shop, docs``."""
    return sanitize.line(f"{alert.rule} in {', '.join(filter(None, (alert.service, alert.route)))}", 140)


def status_label(alert: Alert) -> str:
    """Return the severity, or ``Resolved``."""
    return "Resolved" if alert.state == "resolved" else alert.severity.capitalize()


def message_line(alert: Alert) -> str:
    """Return the message of an alert on one line."""
    return sanitize.line(alert.message or f"{alert_title(alert)}: {status_label(alert).lower()}", MAX_MESSAGE_LENGTH)


def alert_facts(alert: Alert) -> list[tuple[str, str]]:
    """Return labels and values that describe an alert, each on one line."""
    shifts = [
        f"{shift.dimension} {shift.name}: {shift.before.mean:.3f} to {shift.since.mean:.3f}"
        for shift in alert.shifts[:3]
    ]
    facts = {
        "Likely cause": _CAUSES.get(alert.cause or ""),
        "Current": _level(alert.current),
        "Baseline": _level(alert.baseline),
        "Threshold": None if alert.threshold is None else f"{alert.threshold:.3g}",
        "Started about": None if alert.onset is None else f"{alert.onset:%Y-%m-%d %H:%M} UTC",
        "Expected false alerts": None if alert.evidence is None else f"{alert.evidence:.2g} a year",
        "Largest drops": "; ".join(shifts) or None,
        "Resolved because": _RESOLVE_REASONS.get(alert.resolve_reason or ""),
    }
    return [(label, sanitize.line(value, MAX_FACT_LENGTH)) for label, value in facts.items() if value is not None]


def worst_exchange_ids(alert: Alert) -> str:
    """Return the ids of an alert's worst exchanges, on one line."""
    return sanitize.line(", ".join(alert.exchange_ids[:MAX_EXCHANGES]), MAX_FACT_LENGTH)


def quote_line(text: str | None) -> str:
    """Return a question or an answer on one line, truncated."""
    return "(none)" if text is None else sanitize.line(text, MAX_QUOTE_LENGTH)


def _level(level: ScoreLevel | None) -> str | None:
    if level is None:
        return None
    interval = "" if level.interval is None else f"95 % CI {level.interval[0]:.3f} to {level.interval[1]:.3f}, "
    return f"{level.mean:.3f} ({interval}n = {level.n})"


class DeliveryError(GermaneError):
    """A channel did not accept a message. The text contains no secret.

    Args:
        problem: What failed, such as ``status 503``.
        status: HTTP or SMTP status, if there was a response.
        retryable: Whether a later attempt may succeed.
        retry_after: Seconds that the receiver asked to wait.
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
    """A destination of notifications. A channel sends its messages one after another."""

    @property
    def include_text(self) -> bool:
        """Whether messages quote questions and answers."""

    @property
    def config_error(self) -> str | None:
        """Why this process cannot send anything, such as a missing secret; None if it can."""

    @property
    def destination(self) -> str:
        """The destination of messages for display, without secrets."""

    async def send(self, message: ChannelMessage) -> int | None:
        """Send a message once; return the status of the response, if there is one.

        Raises:
            DeliveryError: The message was not accepted.
        """


@runtime_checkable
class ResendingChannel(Protocol):
    """A channel whose receiver resolves an alert by itself unless the alert is resent."""

    @property
    def resend_interval(self) -> float:
        """Seconds after which firing alerts are sent again."""

    async def resend(self, alerts: Sequence[Alert], *, alert_url_template: str | None) -> None:
        """Send firing and recently resolved alerts again.

        Args:
            alerts: At least one, in their current state.
            alert_url_template: As in :class:`ChannelMessage`.

        Raises:
            DeliveryError: The alerts were not accepted.
        """


def config_error_of(read_secrets: Callable[[], object]) -> str | None:
    """Return the reason why a channel's secrets cannot be read, or None. It names the location of the secret."""
    try:
        read_secrets()
    except SettingsError as error:
        return str(error)
    return None
