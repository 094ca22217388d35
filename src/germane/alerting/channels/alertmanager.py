"""Alerts to Prometheus Alertmanager, by its API v2."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from germane.alert import SEVERITIES, Alert, Notification, Severity
from germane.alerting.channels.channel import NotDelivered, problem_of
from germane.alerting.channels.http import Web, web_for, without_secrets
from germane.alerting.channels.message import Message, facts, quoted, sentence, subject, worst
from germane.sanitize import harmless
from germane.settings import channels as settings
from germane.settings.kinds import read_secret

INTERVAL: Final = 60.0
"""Seconds after which it is told again of what fires, unless ticks are longer."""
INTERVALS: Final = 4
"""After so many without a word it takes an alert for over."""
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]|^(?=[0-9])")


def _now() -> datetime:
    return datetime.now(UTC)


class Alertmanager:
    """POSTs alerts. One that fires ends by itself a few minutes after it was last told of, and is told of until then.

    Of several addresses, those of a cluster, one has to take an alert: they tell one another, and again in a minute all
    are told.
    """

    def __init__(
        self,
        given: settings.Alertmanager,
        *,
        every: float = INTERVAL,
        web: Web | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._given = given
        self._web = web or web_for(given)
        self._clock = clock
        self.every = max(every, INTERVAL)
        self.answers = given.answers

    def __repr__(self) -> str:
        return f"Alertmanager({self.where})"

    @property
    def problem(self) -> str | None:
        """Why it can send nothing."""
        return problem_of(self._access)

    @property
    def where(self) -> str:
        """Its addresses without what may be secret."""
        return ", ".join(map(without_secrets, self._given.url))

    async def send(self, message: Message) -> int:
        """Tell all addresses at once; return the status of one that took it."""
        return await self._post(list(bodies_of(message, self._clock(), self._lasting)))

    async def remind(self, alerts: Sequence[Alert], *, link: str | None) -> None:
        """Tell it of what fires, and of what is just over."""
        now = self._clock()
        message = Message(notification=_reminder(alerts, now), link=link)
        await self._post([body_of(message, alert, alert.severity, now, self._lasting) for alert in alerts])

    @property
    def _lasting(self) -> timedelta:
        return timedelta(seconds=INTERVALS * self.every)

    async def _post(self, alerts: list[dict[str, Any]]) -> int:
        body = json.dumps(alerts).encode()
        headers, auth = self._access()
        posts = [self._web.post(_endpoint(url), body, headers, auth=auth) for url in self._given.url]
        found = await asyncio.gather(*posts, return_exceptions=True)
        taken = [one for one in found if isinstance(one, int)]
        refusals = [one for one in found if isinstance(one, BaseException)]
        if taken:
            return taken[0]
        raise next((one for one in refusals if isinstance(one, NotDelivered) and one.again), refusals[0])

    def _access(self) -> tuple[Mapping[str, str], tuple[str, str] | None]:
        """Return the headers and the login of a request."""
        given = self._given
        headers = {} if given.token is None else {"Authorization": f"Bearer {read_secret(given.token)}"}
        password = None if given.password is None else read_secret(given.password)
        return headers, None if given.user is None else (given.user, password or "")


def bodies_of(message: Message, now: datetime, lasting: timedelta) -> Iterable[dict[str, Any]]:
    """Return the alerts as Alertmanager takes them.

    Its severity is one of its labels, by which people are chosen, and labels are what tells alerts apart there: once it
    has risen, the one of the severity before is over.
    """
    for alert in message.alerts:
        yield body_of(message, alert, alert.severity, now, lasting)
        if message.notification.what != "firing":
            for other in set(SEVERITIES) - {alert.severity}:
                yield body_of(message, alert, other, now, timedelta())


def body_of(message: Message, alert: Alert, severity: Severity, now: datetime, lasting: timedelta) -> dict[str, Any]:
    """Return one alert. No number that changes is among its labels."""
    link = message.link_to(alert)
    starts_at = alert.fired_at or alert.starts_at
    ends_at = now + lasting if alert.resolved_at is None else alert.resolved_at
    labels = {_name(name): harmless(value) for name, value in alert.labels.items()}
    own = {"alertname": f"germane_{_name(alert.kind)}", "rule": harmless(alert.rule), "severity": severity}
    return {
        "labels": {**labels, **own},
        "annotations": _annotations(message, alert),
        "startsAt": starts_at.isoformat(),
        "endsAt": max(ends_at, starts_at).isoformat(),
        **({} if link is None else {"generatorURL": link}),
    }


def _annotations(message: Message, alert: Alert) -> dict[str, str]:
    told = {_name(name.lower()): value for name, value in facts(alert)}
    quotes = [f"{quoted(one.question)} -> {quoted(one.answer)}" for one in message.quotes_of(alert)]
    named = {"worst_exchanges": worst(alert), "worst_answers": "\n".join(quotes)}
    summary = {"summary": subject(alert), "description": sentence(alert), "alert_key": alert.key}
    return {**told, **{name: value for name, value in named.items() if value}, **summary}


def _reminder(alerts: Sequence[Alert], now: datetime) -> Notification:
    return Notification(
        id="", channel="", idempotency_key="", what="firing", alerts=tuple(alerts), event_ids=(), created_at=now
    )


def _endpoint(url: str) -> str:
    return f"{url.rstrip('/')}/api/v2/alerts"


def _name(text: str) -> str:
    """Return a name that every version of Alertmanager takes for one of a label."""
    return _NOT_IN_A_NAME.sub("_", text) or "_"
