"""The notification pages show what the current code sends for five alerts, and real receivers accept it."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiosmtpd.controller import Controller
from tests.cases import each
from tests.docs.blocks import DOCS

from germane.alert import SEVERITIES, Alert
from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.email import Email
from germane.settings import AlertmanagerSettings, EmailSettings

PAGE = DOCS / "notifications.md"
PAYLOADS = DOCS / "payloads"
SHOWN = re.findall(r"(?s)```text\n(.*?)```", PAGE.read_text(encoding="utf-8"))
RESEND_INTERVAL = 90.0
NOTIFY_CONFIG = """\
route: {receiver: stub, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: stub, webhook_configs: [{url: '%s'}]}]
"""


@dataclass(frozen=True)
class Simulation:
    """The five completed scenarios, and the script that ran them."""

    script: dict[str, Any]
    receiver: Any
    scenarios: list[tuple[str, Any]]

    def notifications(self) -> Iterator[tuple[Any, Any]]:
        """Yield each notification with its service, oldest first within a service."""
        for _, service in self.scenarios:
            for notification in service.notifications():
                yield service, notification


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    """Run the scenarios once for all tests, because this takes 20 seconds."""
    script = runpy.run_path(str(DOCS / "notifications.py"))
    with script["receiving"]() as receiver:
        channels = script["channel_settings"](receiver.url)
        scenarios = list(script["run_scenarios"](channels, tmp_path_factory.mktemp("scenarios")))
        yield Simulation(script, receiver, scenarios)
        for _, service in scenarios:
            service.store.close()


@pytest.mark.slow
def test_the_notification_pages_are_up_to_date(simulation: Simulation) -> None:
    """The simulation produces the messages and payloads on the pages."""
    page, payloads = simulation.script["pages"](simulation.scenarios, simulation.receiver)

    assert PAGE.read_text(encoding="utf-8") == page
    assert {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in PAYLOADS.glob("*.json")} == payloads


@each("text", SHOWN)
def test_the_title_and_facts_of_a_message_agree(text: str) -> None:
    """The sentence and the facts state the same levels, and the title states the same means."""
    subject, title, sentence = text.split("\n")[0], text.split("\n")[2], text.split("\n")[3]
    facts = dict(line.split(": ", 1) for line in text.split("\n")[4:] if ": " in line)

    assert title.partition(": ")[2].lower() in subject.lower()
    now = facts.get("Now") or facts.get("At the end")
    if now is not None:
        assert now in sentence
        before = facts["Baseline"].partition(" ")[0]
        assert f"from {before} to" in sentence or f"baseline {before}" in sentence
        if " to " in title:
            assert f"({before} to {now.partition(' ')[0]})" in title
    if "has dropped" in sentence:
        assert float((now or "").partition(" ")[0]) < float(facts["Baseline"].partition(" ")[0])


class Mailbox:
    """An SMTP handler that records emails."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - a hook of aiosmtpd
        self.received.append(envelope.content)
        return "250 OK"


class MailServer(Controller):
    """An SMTP server on a free port."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.mark.slow
def test_delivered_emails_match_the_documented_messages(simulation: Simulation) -> None:
    """The subject and text of each of the five scenarios' notifications match after delivery over SMTP."""
    mailbox = Mailbox()
    server = MailServer(mailbox, hostname="127.0.0.1", port=0)
    server.start()
    try:
        values = {**simulation.script["MAIL"], "host": "127.0.0.1", "port": server.port, "security": "none"}
        channel = Email(EmailSettings.model_validate(values))
        for service, notification in simulation.notifications():
            assert asyncio.run(channel.send(simulation.script["as_message"](service, notification, "mail"))) == 250
    finally:
        server.stop()

    mails = [message_from_bytes(content, policy=default) for content in mailbox.received]
    assert [simulation.script["shown_email"](mail) for mail in mails] == SHOWN
    for mail in mails:
        assert mail["To"] == "oncall@example.com"
        html = mail.get_body(("html",))
        assert html is not None
        assert "Open alert: <a href=" in html.get_content()


@pytest.fixture
def alertmanager(simulation: Simulation, tmp_path: Path) -> Iterator[str]:
    """Run a real Alertmanager that notifies the simulation's receiver, and return its URL."""
    binary = shutil.which("prometheus-alertmanager")
    if binary is None:
        pytest.skip("prometheus-alertmanager is not installed: apt-get install prometheus-alertmanager")
    config = tmp_path / "alertmanager.yml"
    config.write_text(NOTIFY_CONFIG % simulation.receiver.url, encoding="utf-8")
    command = [binary, f"--config.file={config}", f"--storage.path={tmp_path / 'data'}", "--cluster.listen-address="]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stderr=output)
    try:
        yield f"http://{_until(lambda: re.search(r'Listening on. address=(.*)', log.read_text(encoding='utf-8')))[1]}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_alertmanager_shows_the_alerts_until_they_resolve(simulation: Simulation, alertmanager: str) -> None:
    """Alertmanager's API returns each firing alert with labels, state and end; an escalation replaces the severity.

    A resolved alert disappears from the API, and Alertmanager notifies its own receivers of the end time.
    """
    settings = AlertmanagerSettings(type="alertmanager", url=(alertmanager,))
    channel = Alertmanager(settings, resend_interval=RESEND_INTERVAL)
    expiry = timedelta(seconds=4 * RESEND_INTERVAL)
    states = set()
    for service, notification in simulation.notifications():
        (alert,) = notification.alerts
        states.add(notification.type)
        before = datetime.now(UTC)
        message = simulation.script["as_message"](service, notification, "alertmanager")
        assert asyncio.run(channel.send(message)) == 200
        if notification.type == "resolved":
            _until(lambda key=alert.key: not _listed(alertmanager, key))
            ended = _until(lambda alert=alert: _ended(simulation.receiver.payloads, alert))
            assert datetime.fromisoformat(ended["endsAt"]) == alert.resolved_at
            continue
        listed = _until(lambda alert=alert: _with_severity(_listed(alertmanager, alert.key), alert.severity))
        assert listed["labels"] == {
            **({"owner": "search team"} if alert.rule == "drop" else {}),
            **alert.labels,
            "alertname": f"germane_{alert.type}",
            "rule": alert.rule,
            "severity": alert.severity,
        }
        assert listed["status"]["state"] == "active"
        assert datetime.fromisoformat(listed["startsAt"]) == alert.fired_at
        ends_at = datetime.fromisoformat(listed["endsAt"])
        assert before + expiry - timedelta(seconds=1) <= ends_at <= datetime.now(UTC) + expiry
        assert listed["annotations"]["summary"] in simulation.script["email"](service, notification)
        assert listed["annotations"]["description"] == message.text_for(alert)
        assert listed["generatorURL"] == message.url_for(alert)
    assert states == {"firing", "escalated", "resolved"}


def _listed(url: str, key: str) -> list[dict[str, Any]]:
    """Return the current alerts in Alertmanager that have a given key."""
    response = httpx2.get(f"{url}/api/v2/alerts")
    response.raise_for_status()
    return [alert for alert in response.json() if alert["annotations"]["alert_key"] == key]


def _with_severity(listed: list[dict[str, Any]], severity: str) -> dict[str, Any] | None:
    """Return the only listed alert if it has this severity, which means that the previous severity has ended."""
    assert severity in SEVERITIES
    return listed[0] if [alert["labels"]["severity"] for alert in listed] == [severity] else None


def _ended(payloads: list[Any], alert: Alert) -> dict[str, Any] | None:
    """Return an alert from Alertmanager's own notification of its resolution, if the notification has arrived."""
    found = [
        each
        for payload in payloads
        if isinstance(payload, dict) and payload.get("status") == "resolved"
        for each in payload["alerts"]
        if each["annotations"]["alert_key"] == alert.key and each["labels"]["severity"] == alert.severity
    ]
    return found[-1] if found else None


def _until(read: Any) -> Any:
    """Wait for up to 30 seconds for a true result, and return it."""
    deadline = time.monotonic() + 30
    while not (found := read()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
