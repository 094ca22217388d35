"""Settings for notification channels, with references to their secrets."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from germane.alert import SEVERITIES, Alert, Severity
from germane.settings.types import (
    CommaSeparated,
    Names,
    NestedSettings,
    PublicURL,
    SecretReference,
    Timezone,
    matches_patterns,
)

BUILTIN_CHANNELS: Final = ("log", "callback")
"""Channels that need no configuration."""
URL_FIELDS: Final = ("id", "key", "rule", "service", "route", "scorer")
"""The placeholders that `alert_url` may contain."""
TEMPLATE_FIELDS: Final = (
    *("message", "title", "status", "severity", "current", "baseline", "since", "url", "runbook", "owner"),
    *URL_FIELDS,
)
"""The placeholders that a channel's `template` may contain."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def _validate_networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            ip_network(value)
        except ValueError:
            raise ValueError(f"must be a network such as 10.0.0.0/8, not {value!r}") from None
    return values


def _validate_mailbox(value: str) -> str:
    local, at, domain = value.rpartition("@")
    if not (local and at and domain and value.isprintable()) or any(sign in value for sign in ' <>,;:"()[]\\'):
        raise ValueError(f"must be an email address such as oncall@example.com, not {value!r}")
    return value


def valid_names(noun: str, reserved: tuple[str, ...] = ()) -> AfterValidator:
    """Return a validator for the names of channels or sinks."""

    def validate(entries: dict[str, Any]) -> dict[str, Any]:
        for name in entries:
            if name in reserved or not _NAME.fullmatch(name):
                rule = f"invalid {noun} name {name!r:.80}: use only lowercase letters, digits, _ and -"
                raise ValueError(rule + (f"; these names are reserved: {', '.join(reserved)}" if reserved else ""))
        return entries

    return AfterValidator(validate)


def _validate_url_template(value: str) -> str:
    placeholders = re.findall(r"{([^{}]*)}", value)
    unusable = not value.startswith(("https://", "http://")) or not value.isprintable()
    if unusable or set(placeholders) - set(URL_FIELDS):
        allowed = ", ".join(f"{{{field}}}" for field in URL_FIELDS)
        raise ValueError(f"must start with http:// or https://; the supported placeholders are {allowed}")
    return value


def _validate_message_template(value: str) -> str:
    unknown = set(re.findall(r"{([^{}]*)}", value)) - set(TEMPLATE_FIELDS)
    if unknown or not value.strip():
        allowed = ", ".join(f"{{{field}}}" for field in TEMPLATE_FIELDS)
        raise ValueError(f"must contain text; the supported placeholders are {allowed}")
    return value


class ChannelSettings(NestedSettings):
    """Fields shared by all channels."""

    severity: Severity = "info"
    """The lowest severity to deliver: `info` (improvements), `warning` or `critical`."""
    rules: Names = ()
    """Rule name patterns. By default, all rules."""
    routes: Names = ()
    """Route patterns. By default, all routes. Alerts that are not about a single route are always delivered."""
    include_text: bool = False
    """Whether messages include the questions and answers of the worst exchanges. By default, they include ids only."""
    send_resolved: bool = True
    """Whether to send a message when an alert resolves."""
    timezone: Timezone = "UTC"
    """The timezone for times in messages, such as `Europe/Berlin`."""
    template: Annotated[str, AfterValidator(_validate_message_template)] | None = None
    """Template that replaces the sentence about the alert, such as `{severity} in {route}: {message} Call {owner}.` It
    may contain `{message}` (the sentence), `{title}`, `{status}`, `{severity}`, `{current}` and `{baseline}` (means),
    `{since}`, `{url}`, `{runbook}`, `{owner}`, `{id}`, `{key}`, `{rule}`, `{service}`, `{route}` and `{scorer}`."""

    def matches(self, alert: Alert) -> bool:
        """Return whether the channel delivers an alert."""
        return (
            (self.send_resolved or alert.state != "resolved")
            and SEVERITIES.index(alert.severity) >= SEVERITIES.index(self.severity)
            and matches_patterns(self.rules, alert.rule)
            and (alert.route is None or matches_patterns(self.routes, alert.route))
        )


class HTTPChannel(ChannelSettings):
    """Fields shared by all HTTP channels."""

    allow_private_networks: bool = True
    """Whether the URL may point to private networks. If false, only https:// URLs with public addresses and port 80 or
    443 are allowed."""
    allowed_networks: Annotated[Names, AfterValidator(_validate_networks)] = ()
    """Networks, such as `10.0.0.0/8`, that are allowed even if `allow_private_networks` is false."""


class _Credentials(BaseModel):
    """A mixin for channels with a username and password."""

    @model_validator(mode="after")
    def _require_both(self) -> Self:
        if (getattr(self, "user", None) is None) != (getattr(self, "password", None) is None):
            raise ValueError("user and password must be set together")
        return self


class WebhookSettings(HTTPChannel):
    """POST alerts as JSON, optionally signed."""

    type: Literal["webhook"]
    url: SecretReference
    """The URL, as `env:NAME` or `file:/path`."""
    secret: SecretReference | None = None
    """The signing secret, as `env:NAME` or `file:/path`. If set, messages carry an HMAC-SHA256 signature in the
    `Germane-Signature` header.
    """


class SlackSettings(HTTPChannel):
    """Post alerts to a Slack incoming webhook."""

    type: Literal["slack"]
    url: SecretReference
    """The webhook URL, as `env:NAME` or `file:/path`."""


class TeamsSettings(HTTPChannel):
    """Post alerts to Microsoft Teams through a workflow's webhook."""

    type: Literal["teams"]
    url: SecretReference
    """The URL of the workflow "Post to a channel when a webhook request is received", as `env:NAME` or `file:/path`."""


class DiscordSettings(HTTPChannel):
    """Post alerts to a Discord webhook."""

    type: Literal["discord"]
    url: SecretReference
    """The webhook URL, as `env:NAME` or `file:/path`."""


class PagerDutySettings(HTTPChannel):
    """Send alerts to the PagerDuty Events API v2."""

    type: Literal["pagerduty"]
    severity: Severity = "warning"
    """The lowest severity to deliver: `info` (improvements), `warning` or `critical`."""
    routing_key: SecretReference
    """The integration key, as `env:NAME` or `file:/path`."""
    url: PublicURL = "https://events.pagerduty.com/v2/enqueue"
    """URL of the Events API. In the EU: `https://events.eu.pagerduty.com/v2/enqueue`."""


class AlertmanagerSettings(HTTPChannel, _Credentials):
    """Send alerts to the Prometheus Alertmanager API v2."""

    type: Literal["alertmanager"]
    url: Annotated[CommaSeparated[PublicURL], Field(min_length=1)]
    """URLs such as `http://alertmanager:9093`. List every member of a cluster."""
    user: str | None = None
    """User name for basic authentication. Requires `password`."""
    password: SecretReference | None = None
    """The password, as `env:NAME` or `file:/path`."""
    token: SecretReference | None = None
    """A bearer token, as `env:NAME` or `file:/path`."""


class EmailSettings(ChannelSettings, _Credentials):
    """Send alerts by email over SMTP."""

    type: Literal["email"]
    host: str = Field(min_length=1)
    """Host name of the SMTP server."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Port of the SMTP server. Defaults to 587 for `starttls`, 465 for `tls` and 25 for `none`."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Encryption: `starttls`, `tls` (implicit TLS) or `none`."""
    certificates: Path | None = None
    """PEM file with certificate authorities to trust in addition to the system's."""
    user: str | None = None
    """User name to log in with. Requires `password`."""
    password: SecretReference | None = None
    """The password, as `env:NAME` or `file:/path`."""
    sender: Annotated[str, AfterValidator(_validate_mailbox)]
    """The From address."""
    to: Annotated[CommaSeparated[Annotated[str, AfterValidator(_validate_mailbox)]], Field(min_length=1)]
    """The recipients."""


_Channel = (
    WebhookSettings
    | SlackSettings
    | TeamsSettings
    | DiscordSettings
    | PagerDutySettings
    | AlertmanagerSettings
    | EmailSettings
)
AnyChannel = Annotated[_Channel, Field(discriminator="type")]
CHANNEL_TYPES: Final[dict[str, type[ChannelSettings]]] = {
    get_args(channel.model_fields["type"].annotation)[0]: channel for channel in get_args(_Channel)
}
Channels = Annotated[
    dict[str, AnyChannel],
    valid_names("channel", BUILTIN_CHANNELS),
    BeforeValidator(lambda value: {} if value is None else value),
]
"""Channels by name. Passing None as an argument removes the channels configured in files."""
URLTemplate = Annotated[str, AfterValidator(_validate_url_template)]
