"""Settings of notification channels."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.alert import Alert
from germane.errors import SettingsError
from germane.settings import load_settings
from germane.settings.channels import ChannelSettings
from germane.settings.types import resolve_secret, resolve_url

pytestmark = pytest.mark.usefixtures("bare")
SLACK = {"type": "slack", "url": "env:SLACK_URL"}


def refusal(**channels: Any) -> str:
    with pytest.raises(SettingsError) as raised:
        load_settings(channels=channels)
    return str(raised.value)


@each("half", [{"user": "germane"}, {"password": "env:SMTP_PASSWORD"}])
def test_a_channel_with_a_user_but_no_password_is_rejected(half: dict[str, str]) -> None:
    """The mistake is reported at startup, not with the first alert."""
    mail = {"type": "email", "host": "smtp.example.com", "sender": "a@example.com", "to": ["b@example.com"]}
    manager = {"type": "alertmanager", "url": "http://alertmanager:9093"}
    for channel in (mail, manager):
        assert "user and password must be set together" in refusal(away={**channel, **half})


def test_a_channel_secret_is_read_on_each_use(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rotated key takes effect without a restart."""
    (bare / "key").write_text("first\n")
    monkeypatch.setenv("KEY", "second")
    assert (resolve_secret(f"file:{bare / 'key'}"), resolve_secret("env:KEY")) == ("first", "second")

    (bare / "key").write_text("third\n")
    monkeypatch.setenv("KEY", "fourth")
    assert (resolve_secret(f"file:{bare / 'key'}"), resolve_secret("env:KEY")) == ("third", "fourth")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("env:NOWHERE", "the environment variable NOWHERE is not set"),
        ("file:/nowhere", "the file /nowhere does not exist"),
        (f"file:/{'n' * 300}", f"the file /{'n' * 300} cannot be read \\(OSError\\)"),
        ("env:EMPTY", "env:EMPTY is empty"),
        ("env:BINARY", "env:BINARY is not UTF-8"),
    ],
)
def test_a_missing_channel_secret_does_not_prevent_startup(
    monkeypatch: pytest.MonkeyPatch, reference: str, message: str
) -> None:
    """Processes that send no alerts share the settings file with those that do. The error is raised when the secret is
    used."""
    monkeypatch.setenv("EMPTY", " \n")
    monkeypatch.setenv("BINARY", "\udcff")
    load_settings(channels={"oncall": {"type": "pagerduty", "routing_key": reference}})

    with pytest.raises(SettingsError, match=f"^{message}$"):
        resolve_secret(reference)


def test_an_invalid_channel_url_is_reported_by_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the reference and never quotes the secret behind it."""
    monkeypatch.setenv("SLACK_URL", "hooks.slack.com/hunter2")

    with pytest.raises(SettingsError, match="the value of env:SLACK_URL must") as raised:
        resolve_url("env:SLACK_URL")

    assert "hunter2" not in str(raised.value)


@each("name", ["log", "callback", "On-Call", "", "a b", "x" * 65])
def test_channel_names_must_be_identifiers(name: str) -> None:
    """Commands can refer to every channel by name, and no channel can replace a built-in one."""
    assert "invalid channel name" in refusal(**{name: SLACK})


def test_a_channel_needs_a_type() -> None:
    """The error lists the channel types."""
    types = "type must be one of webhook, slack, teams, discord, pagerduty, alertmanager, email"

    assert types in refusal(oncall={"url": "env:X"})
    assert types in refusal(oncall={"type": "mattermost", "url": "env:X"})


def test_an_unknown_channel_field_gets_a_suggestion() -> None:
    """The suggestion is a field of the channel's type."""
    assert refusal(oncall={"type": "webhook", "url": "env:X", "secrt": "env:Y"}) == (
        "unknown setting 'channels.oncall.secrt'; did you mean 'secret'? Correct or remove it"
    )
    assert refusal(oncall={"type": "webhook"}).startswith("setting channels.oncall.url: Field required")


@each(
    "changes",
    [
        {"to": ""},
        {"to": "oncall"},
        {"to": "a@example.com\nBcc: b@example.com"},
        {"sender": "germane <germane@example.com>"},
        {"sender": "@example.com"},
        {"port": 0},
        {"security": "ssl"},
    ],
)
def test_email_addresses_are_validated(changes: dict[str, Any]) -> None:
    """Values cannot inject a header or another recipient."""
    email = {"type": "email", "host": "mail.example.com", "sender": "germane@example.com", "to": "oncall@example.com"}
    load_settings(channels={"mail": email})

    assert refusal(mail=email | changes).startswith("setting channels.mail.")


def test_allowed_networks_are_validated() -> None:
    """An invalid network is an error and is not ignored."""
    assert "must be a network such as 10.0.0.0/8" in refusal(oncall=SLACK | {"allowed_networks": ["10.0.0.0/33"]})


@each("url", ["javascript:alert(1)", "https://example.com/{answer}", "https://example.com/\n{id}"])
def test_alert_url_accepts_only_placeholders_that_identify_an_alert(url: str) -> None:
    """The URL is an HTTP URL and cannot carry a user's text."""
    with pytest.raises(SettingsError, match="setting alert_url"):
        load_settings(alert_url=url)


@each(
    ("channel", "severity", "rule", "route", "matches"),
    [
        (ChannelSettings(), "warning", "drop", "docs", True),
        (ChannelSettings(severity="critical"), "warning", "drop", "docs", False),
        (ChannelSettings(severity="critical"), "critical", "drop", "docs", True),
        (ChannelSettings(rules=("dr*",)), "warning", "drop", None, True),
        (ChannelSettings(rules=("mean_threshold", "no_*")), "warning", "drop", None, False),
        (ChannelSettings(routes=("docs-*",)), "warning", "drop", "docs-de", True),
        (ChannelSettings(routes=("docs-*",)), "warning", "drop", "shop", False),
        (ChannelSettings(routes=("docs-*",)), "warning", "drop", None, True),
    ],
)
def test_a_channel_delivers_only_matching_alerts(
    channel: ChannelSettings, severity: Any, rule: str, route: str | None, matches: bool
) -> None:
    """Severity, rule and route must match. An alert about a whole service matches each of its routes."""
    labels = {"service": "shop"} if route is None else {"service": "shop", "route": route}
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    alert = Alert(
        id="a", key="k", rule=rule, type="drop", labels=labels, state="firing", severity=severity, starts_at=noon,
        evaluated_at=noon,
    )  # fmt: skip

    assert channel.matches(alert) is matches


def test_passing_none_to_start_removes_channels_configured_in_files(bare: Path) -> None:
    """A program can run without channels even if a file configures some."""
    (bare / "germane.toml").write_text('[channels.oncall]\ntype = "slack"\nurl = "env:SLACK_URL"\n')

    assert set(load_settings().channels) == {"oncall"}
    assert load_settings(channels=None).channels == {}
