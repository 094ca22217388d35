"""The parts of messages that come from a channel's settings and an alert's rule."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.alerting.channels.conftest import NOON, a_message, an_alert, over
from tests.schemas import ALERTMANAGER, PAGERDUTY, check

from germane.alert import SEVERITIES
from germane.alerting.channels.alertmanager import alertmanager_alert
from germane.alerting.channels.factory import message_formats
from germane.alerting.channels.pagerduty import pagerduty_event
from germane.alerting.wording import alert_message
from germane.errors import SettingsError
from germane.settings import Settings, load_settings
from germane.settings.channels import CHANNEL_TYPES

RUNBOOK = "https://wiki.example.com/drop"


def configured(**channel: object) -> Settings:
    """Return settings with one channel, and with a runbook, an owner and a label for drops."""
    rule = {"type": "drop", "runbook_url": RUNBOOK, "owner": "Search team", "labels": {"team": "search"}}
    return load_settings(channels={"team": {"type": "slack", "url": "env:URL", **channel}}, rules=[rule])


def facts(settings: Settings) -> dict[str, str]:
    """Return the facts in a message about a drop."""
    message = a_message(**_fields(settings))
    return dict(message.facts_for(message.alerts[0]))


def _fields(settings: Settings) -> dict[str, object]:
    found = message_formats(settings, ["team"])["team"]
    names = ("alert_url_template", "template", "timezone", "rules")
    return {name: getattr(found, name) for name in names}


def test_message_times_are_in_the_time_zone_of_the_channel() -> None:
    """This applies to the facts and the message, which also state the elapsed time."""
    alert = an_alert(onset=NOON - timedelta(hours=4))
    alert = an_alert(onset=alert.onset, message=alert_message(alert))
    message = a_message(alert, **_fields(configured(timezone="Asia/Tokyo")))

    assert dict(message.facts_for(alert))["Started about"] == "2026-03-01 17:00 JST, 4 h ago"
    assert "2026-03-01 17:00 JST, 4 h ago" in message.text_for(alert)
    assert "2026-03-01 08:00 UTC" in alert.message


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, "just now"),
        (1, "1 min ago"),
        (119, "119 min ago"),
        (120, "2 h ago"),
        (2879, "47 h ago"),
        (2880, "2 days ago"),
        (-5, "just now"),
    ],
)
def test_ages_in_messages_use_readable_units(age: int, expected: str) -> None:
    """An age is never negative, even if the clock is behind."""
    assert a_message().moment(NOON - timedelta(minutes=age)).endswith(f"UTC, {expected}")


def test_messages_contain_the_runbook_owner_and_labels_of_the_rule() -> None:
    """People see them as facts and links; Alertmanager and PagerDuty get annotations and labels."""
    message = a_message(**_fields(configured()))
    (alert,) = message.alerts

    expected = {"Owner": "Search team", "Team": "search"}
    assert message.links_for(alert) == {"Runbook": RUNBOOK}
    assert {name: facts(configured())[name] for name in expected} == expected
    sent = alertmanager_alert(message, alert, "warning", NOON, timedelta())
    check([sent], ALERTMANAGER)
    assert sent["annotations"]["runbook_url"] == RUNBOOK
    assert (sent["labels"]["owner"], sent["labels"]["team"]) == ("Search team", "search")
    event = pagerduty_event(message, alert, "0" * 32)
    check(event, PAGERDUTY)
    assert {"href": RUNBOOK, "text": "Runbook"} in event["links"]
    assert event["payload"]["custom_details"]["Owner"] == "Search team"


def test_a_channel_template_replaces_the_message() -> None:
    """Braces in names are kept as text, and unknown placeholders are rejected."""
    template = "{severity} in {route}: {current} instead of {baseline}. Call {owner}. {url}"
    message = a_message(
        an_alert(labels={"service": "shop", "route": "{owner}"}),
        **_fields(configured(template=template)) | {"alert_url_template": "https://example.com/{id}"},
    )

    expected = "warning in {owner}: 0.61 instead of 0.82. Call Search team. https://example.com/a1"
    assert message.text_for(message.alerts[0]) == expected
    with pytest.raises(SettingsError, match=r"placeholders are \{message\}, "):
        configured(template="{nonsense}")


@pytest.mark.parametrize("severity", SEVERITIES)
def test_messages_about_resolutions_can_be_disabled(severity: str) -> None:
    """Firing alerts are still delivered."""
    channel = configured(send_resolved=False).channels["team"]
    alert = an_alert(severity=severity)

    assert channel.matches(alert)
    assert not channel.matches(over(alert))
    assert configured().channels["team"].matches(over(alert))


@pytest.mark.parametrize("name", ["service", "severity", "owner", "two words", "1st", ""])
def test_reserved_and_invalid_label_names_are_rejected(name: str) -> None:
    """Names that Alertmanager would reject are rejected as well."""
    with pytest.raises(SettingsError, match="invalid label name"):
        load_settings(rules=[{"type": "drop", "labels": {name: "x"}}])


def test_an_unknown_channel_time_zone_is_rejected() -> None:
    """The error gives an example."""
    with pytest.raises(SettingsError, match="Europe/Berlin"):
        configured(timezone="Mars/Base")
    assert message_formats(configured(timezone="Europe/Berlin"), ["team"])["team"].timezone == ZoneInfo("Europe/Berlin")


def test_every_channel_type_accepts_the_message_format_settings() -> None:
    """These settings are shared by all channels."""
    for settings in CHANNEL_TYPES.values():
        assert {"send_resolved", "timezone", "template"} <= set(settings.model_fields)
