"""Settings of channels: where alerts go, one table for each, and where their secrets are read."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from germane.alert import SEVERITIES, Alert, Severity
from germane.settings.kinds import Names, PlainAddress, PlainAddresses, Reference

OWN: Final = ("log", "callback")
"""Channels that are there without being configured."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
PLACES: Final = ("id", "key", "rule", "service", "route", "scorer")
"""What a link may name in braces."""


def _are_networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            ip_network(value)
        except ValueError:
            raise ValueError(f"{value!r} is no network such as 10.0.0.0/8") from None
    return values


def _is_mailbox(value: str) -> str:
    local, at, domain = value.rpartition("@")
    if not (local and at and domain and value.isprintable()) or any(one in value for one in ' <>,;:"()[]\\'):
        raise ValueError(f"{value!r} is no address such as oncall@example.com")
    return value


def _are_mailboxes(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("must name at least one address, such as oncall@example.com")
    return tuple(map(_is_mailbox, values))


def _are_names(channels: dict[str, Any]) -> dict[str, Any]:
    for name in channels:
        if name in OWN or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r:.80} cannot name a channel: take small letters, digits, _ and -, and not {' or '.join(OWN)}"
            )
    return channels


def _is_link(value: str) -> str:
    named = re.findall(r"{([^{}]*)}", value)
    if not value.startswith(("https://", "http://")) or not value.isprintable() or set(named) - set(PLACES):
        places = ", ".join(f"{{{place}}}" for place in PLACES)
        raise ValueError(f"must start with http:// or https://, and name in braces only {places}")
    return value


class Channel(BaseModel):
    """What all channels have."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    severity: Severity = "warning"
    """The least that it is told of: `warning` or `critical`."""
    rules: Names = ()
    """Patterns of rules' names; by default of all rules."""
    routes: Names = ()
    """Patterns of routes; by default of all. What is about no single route goes to it as well."""
    answers: bool = False
    """Whether messages quote question and answer of the worst exchanges. Without it they carry ids."""

    def takes(self, alert: Alert) -> bool:
        """Whether it is told of an alert."""
        grave = SEVERITIES.index(alert.severity) >= SEVERITIES.index(self.severity)
        return grave and _fits(self.rules, alert.rule) and (alert.route is None or _fits(self.routes, alert.route))


def _fits(patterns: Collection[str], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


class WebChannel(Channel):
    """What channels over HTTP have."""

    trusted: bool = True
    """Whether its address may lie anywhere. If not, only public ones at https:// and ports 80 and 443 are spoken to."""
    allow: Annotated[Names, AfterValidator(_are_networks)] = ()
    """Networks such as `10.0.0.0/8` that may be spoken to although it is not trusted."""


class _Login(BaseModel):
    """What channels have that somebody logs in to."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (getattr(self, "user", None) is None) != (getattr(self, "password", None) is None):
            raise ValueError("user and password go together: say both, or neither")
        return self


class Webhook(WebChannel):
    """A channel: alerts are POSTed as JSON, signed where there is a secret."""

    kind: Literal["webhook"]
    url: Reference
    """Where its address stands: `env:NAME` or `file:/path`."""
    secret: Reference | None = None
    """Where the secret stands that signs each message (HMAC-SHA256, in the header `Germane-Signature`)."""


class Slack(WebChannel):
    """A channel: an incoming webhook of Slack."""

    kind: Literal["slack"]
    url: Reference
    """Where the address stands that Slack gave: `env:NAME` or `file:/path`."""


class PagerDuty(WebChannel):
    """A channel: PagerDuty, by its Events API v2."""

    kind: Literal["pagerduty"]
    routing_key: Reference
    """Where the integration key stands: `env:NAME` or `file:/path`."""
    url: PlainAddress = "https://events.pagerduty.com/v2/enqueue"
    """In the EU `https://events.eu.pagerduty.com/v2/enqueue`."""


class Alertmanager(WebChannel, _Login):
    """A channel: Prometheus Alertmanager, by its API v2."""

    kind: Literal["alertmanager"]
    url: PlainAddresses
    """Such as `http://alertmanager:9093`; of a cluster all, each is told."""
    user: str | None = None
    """For basic authentication, with `password`."""
    password: Reference | None = None
    """Where the password stands: `env:NAME` or `file:/path`."""
    token: Reference | None = None
    """Where a bearer token stands."""


class Email(Channel, _Login):
    """A channel: e-mail over SMTP."""

    kind: Literal["email"]
    host: str = Field(min_length=1)
    """Of the SMTP server."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """By default 587, with `tls` 465, with `none` 25."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """How it is encrypted: from the second command on, from the first byte, or not at all."""
    certificates: Path | None = None
    """File (PEM) of authorities that are believed besides the system's."""
    user: str | None = None
    """Who logs in, with `password`."""
    password: Reference | None = None
    """Where the password stands: `env:NAME` or `file:/path`."""
    sender: Annotated[str, AfterValidator(_is_mailbox)]
    """Whose address the messages bear."""
    to: Annotated[Names, AfterValidator(_are_mailboxes)]
    """Who gets them."""


AnyChannel = Annotated[Webhook | Slack | PagerDuty | Alertmanager | Email, Field(discriminator="kind")]
KINDS: Final[dict[str, type[Channel]]] = {
    "webhook": Webhook,
    "slack": Slack,
    "pagerduty": PagerDuty,
    "alertmanager": Alertmanager,
    "email": Email,
}
Channels = Annotated[
    dict[str, AnyChannel],
    AfterValidator(_are_names),
    BeforeValidator(lambda value: {} if value is None else value),
]
"""By name. None, as an argument, takes away those of the files."""
Link = Annotated[str, AfterValidator(_is_link)]
