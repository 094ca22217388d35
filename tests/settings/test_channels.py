"""Where alerts go, as it is written in the settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from germane.alert import Alert
from germane.errors import SettingsError
from germane.settings import load
from germane.settings.channels import Channel
from germane.settings.kinds import read_address, read_secret

pytestmark = pytest.mark.usefixtures("bare")
SLACK = {"kind": "slack", "url": "env:SLACK_URL"}


def refusal(**channels: Any) -> str:
    with pytest.raises(SettingsError) as raised:
        load(channels=channels)
    return str(raised.value)


@pytest.mark.parametrize("half", [{"user": "germane"}, {"password": "env:SMTP_PASSWORD"}])
def test_half_a_login_is_refused(half: dict[str, str]) -> None:
    """It would be found out when somebody is to be told."""
    mail = {"kind": "email", "host": "smtp.example.com", "sender": "a@example.com", "to": ["b@example.com"]}
    manager = {"kind": "alertmanager", "url": "http://alertmanager:9093"}
    for channel in (mail, manager):
        assert "user and password go together" in refusal(away={**channel, **half})


def test_a_secret_is_read_when_it_is_needed(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rotates a key does not have to start germane again."""
    (bare / "key").write_text("first\n")
    monkeypatch.setenv("KEY", "second")
    assert (read_secret(f"file:{bare / 'key'}"), read_secret("env:KEY")) == ("first", "second")

    (bare / "key").write_text("third\n")
    monkeypatch.setenv("KEY", "fourth")
    assert (read_secret(f"file:{bare / 'key'}"), read_secret("env:KEY")) == ("third", "fourth")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:NOWHERE", "the environment variable NOWHERE is not set"),
        ("file:/nowhere", "the file /nowhere does not exist"),
        (f"file:/{'n' * 300}", f"the file /{'n' * 300} cannot be read \\(OSError\\)"),
        ("env:EMPTY", "nothing stands at env:EMPTY"),
    ],
)
def test_a_secret_that_is_not_there_does_not_keep_a_process_from_starting(
    monkeypatch: pytest.MonkeyPatch, reference: str, said: str
) -> None:
    """One file of settings serves processes that send alerts and others that do not; it is told when it is needed."""
    monkeypatch.setenv("EMPTY", " \n")
    load(channels={"oncall": {"kind": "pagerduty", "routing_key": reference}})

    with pytest.raises(SettingsError, match=f"^{said}$"):
        read_secret(reference)


def test_what_is_no_address_is_told_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is no secret, what stands there is."""
    monkeypatch.setenv("SLACK_URL", "hooks.slack.com/hunter2")

    with pytest.raises(SettingsError, match="what stands at env:SLACK_URL must") as raised:
        read_address("env:SLACK_URL")

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["log", "callback", "On-Call", "", "a b", "x" * 65])
def test_a_channel_is_named_so_that_a_command_can_name_it(name: str) -> None:
    """And not like those that are always there."""
    assert "cannot name a channel" in refusal(**{name: SLACK})


def test_what_a_channel_is_has_to_be_said() -> None:
    """The refusal lists the kinds."""
    kinds = "kind = one of webhook, slack, pagerduty, alertmanager, email"

    assert kinds in refusal(oncall={"url": "env:X"})
    assert kinds in refusal(oncall={"kind": "teams", "url": "env:X"})


def test_a_part_of_a_channel_is_told_by_its_name() -> None:
    """A suggestion comes from the parts of its kind; the kind itself stands in no path."""
    assert refusal(oncall={"kind": "webhook", "url": "env:X", "secrt": "env:Y"}) == (
        "there is no setting 'channels.oncall.secrt'; did you mean 'secret'? Correct or remove it"
    )
    assert refusal(oncall={"kind": "webhook"}).startswith("setting channels.oncall.url: Field required")


@pytest.mark.parametrize(
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
def test_an_address_of_email_is_one(changes: dict[str, Any]) -> None:
    """Nothing in it ends a header, or names somebody else."""
    email = {"kind": "email", "host": "mail.example.com", "sender": "germane@example.com", "to": "oncall@example.com"}
    load(channels={"mail": email})

    assert refusal(mail=email | changes).startswith("setting channels.mail.")


def test_a_network_is_one() -> None:
    """An allowance that nobody understands allows nothing."""
    assert "no network such as 10.0.0.0/8" in refusal(oncall=SLACK | {"allow": ["10.0.0.0/33"]})


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://example.com/{answer}", "https://example.com/\n{id}"])
def test_a_link_is_made_of_what_names_an_alert(link: str) -> None:
    """And leads to a web page."""
    with pytest.raises(SettingsError, match="setting alert_link"):
        load(alert_link=link)


@pytest.mark.parametrize(
    ("channel", "severity", "rule", "route", "taken"),
    [
        (Channel(), "warning", "drop", "docs", True),
        (Channel(severity="critical"), "warning", "drop", "docs", False),
        (Channel(severity="critical"), "critical", "drop", "docs", True),
        (Channel(rules=("dr*",)), "warning", "drop", None, True),
        (Channel(rules=("floor", "no_*")), "warning", "drop", None, False),
        (Channel(routes=("docs-*",)), "warning", "drop", "docs-de", True),
        (Channel(routes=("docs-*",)), "warning", "drop", "shop", False),
        (Channel(routes=("docs-*",)), "warning", "drop", None, True),
    ],
)
def test_a_channel_is_told_what_it_asks_for(
    channel: Channel, severity: Any, rule: str, route: str | None, taken: bool
) -> None:
    """By severity, rule and route; what is about the service as a whole is about each of its routes."""
    labels = {"service": "shop"} if route is None else {"service": "shop", "route": route}
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    alert = Alert(
        id="a", key="k", rule=rule, kind="drop", labels=labels, state="firing", severity=severity, starts_at=noon,
        evaluated_at=noon,
    )  # fmt: skip

    assert channel.takes(alert) is taken


def test_none_takes_away_the_channels_of_the_files(bare: Path) -> None:
    """A program that brings its own settings may have no channels although a file names some."""
    (bare / "germane.toml").write_text('[channels.oncall]\nkind = "slack"\nurl = "env:SLACK_URL"\n')

    assert set(load().channels) == {"oncall"}
    assert load(channels=None).channels == {}
