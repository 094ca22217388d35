"""The pages of messages and payloads show what the current code sends."""

from __future__ import annotations

import json
import re
import runpy

import pytest
from tests.alerting.channels.schemas import ALERTMANAGER, DISCORD, PAGERDUTY, SLACK, TEAMS, check
from tests.docs.blocks import DOCS

SCHEMAS = {"slack": SLACK, "teams": TEAMS, "discord": DISCORD, "pagerduty": PAGERDUTY, "alertmanager": ALERTMANAGER}
PAYLOADS = DOCS / "notification-payloads.md"
SENT = re.findall(r"(?s)\*\*(\w+)\*\*\n\n```json\n(.*?)\n```", PAYLOADS.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_pages_of_notifications_are_up_to_date() -> None:
    """The same simulation gives the same messages and payloads."""
    script = runpy.run_path(str(DOCS / "notifications.py"))

    assert (script["PAGE"].read_text(encoding="utf-8"), PAYLOADS.read_text(encoding="utf-8")) == script["pages"]()


@pytest.mark.parametrize(
    ("channel", "payload"), SENT, ids=[f"{number}-{name}" for number, (name, _) in enumerate(SENT)]
)
def test_payload_is_valid_for_its_receiver(channel: str, payload: str) -> None:
    """Each printed payload matches the receiver's documented schema; webhooks have a format of their own."""
    body = json.loads(payload)

    if channel in SCHEMAS:
        check(body, SCHEMAS[channel])
    else:
        assert (channel, body["version"]) == ("webhook", 1)


def test_every_channel_is_shown_for_every_scenario() -> None:
    """Five alerts, as six receivers get them."""
    assert sorted(name for name, _ in SENT) == sorted([*SCHEMAS, "webhook"] * 5)
