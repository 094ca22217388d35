"""What a channel is given to send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from germane.alert import Alert, Notification


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What one of the worst exchanges said. Hostile text."""

    exchange_id: str
    question: str | None
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A notification, with what its channel may show beside it."""

    notification: Notification
    quotes: Mapping[str, Quote] = field(default_factory=dict)
    """By exchange; none unless the channel is to quote."""
    link: str | None = None
    """Of an alert, with places such as ``{id}``."""

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """At least one."""
        return self.notification.alerts

    def link_to(self, alert: Alert) -> str | None:
        """Return the address of a page on the alert; None where there is none."""
        if self.link is None:
            return None
        named = {
            "id": alert.id,
            "key": alert.key,
            "rule": alert.rule,
            "service": alert.service,
            "route": alert.route or "",
            "scorer": alert.scorer or "",
        }
        address = self.link
        for name, value in named.items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        return address

    def quotes_of(self, alert: Alert) -> list[Quote]:
        """Return what its worst exchanges said, worst first."""
        return [self.quotes[one] for one in alert.exchange_ids if one in self.quotes]
