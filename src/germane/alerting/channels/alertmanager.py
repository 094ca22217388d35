"""Delivery of alerts to Prometheus Alertmanager, through its API v2."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from germane import sanitize
from germane.alert import SEVERITIES, Alert, Notification, Severity
from germane.alerting.channels.channel import (
    ChannelMessage,
    MessageFormat,
    config_error_of,
    quote_line,
    worst_exchange_ids,
)
from germane.alerting.channels.http import JsonPoster, build_poster
from germane.alerting.wording import alert_title
from germane.delivery import DeliveryError
from germane.settings import AlertmanagerSettings, redact_url, resolve_secret

MIN_RESEND_INTERVAL: Final = 60.0
"""Seconds after which firing alerts are resent, unless the poll interval is longer."""
EXPIRY_INTERVALS: Final = 4
"""Alertmanager resolves an alert after this many resend intervals without an update."""
_NOT_IN_LABEL_NAME: Final = re.compile(r"[^a-zA-Z0-9_]|^(?=[0-9])")


class Alertmanager:
    """Posts alerts to all members of an Alertmanager cluster.

    A firing alert expires a few minutes after it was last sent, so it is resent until it resolves. Delivery succeeds if
    at least one member accepts the alert, because the next update is sent to all members a minute later.
    """

    def __init__(
        self,
        settings: AlertmanagerSettings,
        *,
        resend_interval: float = MIN_RESEND_INTERVAL,
        poster: JsonPoster | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._poster = poster or build_poster(settings)
        self._clock = clock
        self.resend_interval = max(resend_interval, MIN_RESEND_INTERVAL)
        self._expiry = timedelta(seconds=EXPIRY_INTERVALS * self.resend_interval)
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"Alertmanager({self.destination})"

    @property
    def config_error(self) -> str | None:
        """The reason why the channel cannot send messages, or None if it can."""
        return config_error_of(self._credentials)

    @property
    def destination(self) -> str:
        """The redacted URLs."""
        return ", ".join(map(redact_url, self._settings.url))

    async def send(self, message: ChannelMessage) -> int:
        """Send a message to all members, and return the status from a member that accepted it."""
        return await self._post(list(alertmanager_alerts(message, self._clock(), self._expiry)))

    async def resend(self, alerts: Sequence[Alert], *, format: MessageFormat) -> None:  # noqa: A002 - the field's name
        """Send firing and recently resolved alerts again."""
        now = self._clock()
        notification = Notification(
            id="", channel="", idempotency_key="", type="firing", alerts=tuple(alerts), event_ids=(), created_at=now
        )
        message = ChannelMessage(notification=notification, format=format)
        await self._post([alertmanager_alert(message, alert, alert.severity, now, self._expiry) for alert in alerts])

    async def _post(self, alerts: list[dict[str, Any]]) -> int:
        body = json.dumps(alerts).encode()
        headers, auth = self._credentials()
        urls = [f"{url.rstrip('/')}/api/v2/alerts" for url in self._settings.url]
        requests = [self._poster.post(url, body, headers, auth=auth) for url in urls]
        results = await asyncio.gather(*requests, return_exceptions=True)
        statuses = [result for result in results if isinstance(result, int)]
        errors = [result for result in results if isinstance(result, BaseException)]
        if statuses:
            return statuses[0]
        raise next((error for error in errors if isinstance(error, DeliveryError) and error.retryable), errors[0])

    def _credentials(self) -> tuple[Mapping[str, str], tuple[str, str] | None]:
        """Return the authorization headers, and the username and password, if any."""
        settings = self._settings
        headers = {} if settings.token is None else {"Authorization": f"Bearer {resolve_secret(settings.token)}"}
        password = None if settings.password is None else resolve_secret(settings.password)
        return headers, None if settings.user is None else (settings.user, password or "")


def alertmanager_alerts(message: ChannelMessage, now: datetime, expiry: timedelta) -> Iterator[dict[str, Any]]:
    """Yield the alerts in Alertmanager's format.

    Severity is a label, so that Alertmanager can route by it. Because labels identify an alert, a change of severity
    resolves the alert with the previous severity.
    """
    for alert in message.alerts:
        yield alertmanager_alert(message, alert, alert.severity, now, expiry)
        if message.notification.type != "firing":
            for other in SEVERITIES:
                if "info" not in {other, alert.severity} and other != alert.severity:  # info stays info
                    yield alertmanager_alert(message, alert, other, now, timedelta())


def alertmanager_alert(
    message: ChannelMessage, alert: Alert, severity: Severity, now: datetime, expiry: timedelta
) -> dict[str, Any]:
    """Return an alert in Alertmanager's format. Values that change are annotations, not labels."""
    url = message.url_for(alert)
    starts_at = alert.fired_at or alert.starts_at
    ends_at = now + expiry if alert.resolved_at is None else alert.resolved_at
    quotes = [f"{quote_line(quote.question)} -> {quote_line(quote.answer)}" for quote in message.quotes_for(alert)]
    links = {_label_name(label.lower()): link for label, link in message.links_for(alert).items()}
    optional = {
        "worst_exchanges": worst_exchange_ids(alert),
        "worst_answers": "\n".join(quotes),
        "bad_example": links.get("bad_example"),
        "good_example": links.get("good_example"),
        "runbook_url": links.get("runbook"),  # Alertmanager's default templates link to this URL
    }
    return {
        "labels": {
            **{_label_name(name): sanitize.line(value) for name, value in message.labels_for(alert).items()},
            **{_label_name(name): sanitize.line(value) for name, value in alert.labels.items()},
            "alertname": f"germane_{_label_name(alert.type)}",
            "rule": sanitize.line(alert.rule),
            "severity": severity,
        },
        "annotations": {
            **{_label_name(label.lower()): value for label, value in message.facts_for(alert)},
            **{name: value for name, value in optional.items() if value},
            "summary": alert_title(alert),
            "description": message.text_for(alert),
            "alert_key": alert.key,
        },
        "startsAt": starts_at.isoformat(),
        "endsAt": max(ends_at, starts_at).isoformat(),
        **({} if url is None else {"generatorURL": url}),
    }


def _label_name(text: str) -> str:
    """Return a label name that every version of Alertmanager accepts."""
    return _NOT_IN_LABEL_NAME.sub("_", text) or "_"
