"""``germane alerts show``, and the display of alerts and silences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from germane import alerting, sanitize
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.store import open_store
from germane.records import select
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.alert import Alert, Silence

ID_LENGTH: Final = 8
"""Number of characters of an id to display. They are enough to identify an alert."""
MAX_MESSAGE_LENGTH: Final = 600


@click.command("show", cls=Command)
@click.argument("alert_id", metavar="ID")
def command(
    alert_id: str,
) -> None:
    """Show an alert and its history.

    ID is the alert's id or a prefix of it.
    """
    with open_store() as store:
        alert = alerting.find_alert(store, alert_id)
        events = store.alerts.list_events(alert.id)
    if wants_json():
        names = ("id", "at", "type", "before", "after", "detail")
        print_json({"alert": alert, "events": [select(event, *names) for event in events]})
        return
    click.echo("\n".join([*format_alert(alert), *_format_details(alert)]))
    for event in events:
        details = [
            f"{sanitize.line(name, 20)} "
            f"{f'{value:z.3f}' if isinstance(value, float) else sanitize.line(str(value), 60)}"
            for name, value in event.detail.items()
            if value is not None
        ]
        shown = f" ({', '.join(details)})" if details else ""
        click.echo(f"  {event.at:%Y-%m-%d %H:%M:%S} UTC  {event.type}{shown}")


def format_alert(alert: Alert) -> list[str]:
    """Return the lines that describe an alert in a list."""
    state: str = alert.state
    if alert.acknowledged_at and alert.is_open:
        by = f" by {sanitize.line(alert.acknowledged_by, 40)}" if alert.acknowledged_by else ""
        state += f", acknowledged{by}"
    since = f"{alert.fired_at or alert.starts_at:%Y-%m-%d %H:%M}"
    time = f"since {since}" if alert.resolved_at is None else f"from {since} to {alert.resolved_at:%Y-%m-%d %H:%M}"
    head = f"{alert.id[:ID_LENGTH]}  {sanitize.line(alert.rule, 40)}  {alert.severity}  {state}  {time} UTC"
    return [head, f"  {sanitize.line(alert.message, MAX_MESSAGE_LENGTH)}"]


def format_silence(silence: Silence) -> str:
    """Return the line that describes a silence."""
    matchers = ", ".join(
        f"{sanitize.line(name, 40)} {sanitize.line(pattern, 80)}" for name, pattern in sorted(silence.matchers.items())
    )
    comment = f": {sanitize.line(silence.comment, 200)}" if silence.comment else ""
    until = f"{silence.ends_at:%Y-%m-%d %H:%M} UTC"
    return f"silence {silence.id[:ID_LENGTH]} for {matchers or 'all alerts'} until {until}{comment}"


def _format_details(alert: Alert) -> Iterator[str]:
    yield f"  id           {alert.id}"
    for name, value in alert.labels.items():
        yield f"  {sanitize.line(name, 12):<12} {sanitize.line(value, 100)}"
    cause = alerting.alert_facts(alert).cause
    if cause is not None:
        yield f"  likely cause {alerting.CAUSES[cause]}"
    if alert.onset is not None:
        began, span = f"  onset        {alert.onset:%Y-%m-%d %H:%M} UTC", alert.onset_interval
        yield f"{began} (95% interval {span[0]:%m-%d %H:%M} to {span[1]:%m-%d %H:%M})" if span else began
    for name, level in (("now", alert.current), ("before", alert.baseline)):
        if level is not None:
            interval = ""
            if level.interval is not None:
                interval = f", 95% interval {level.interval[0]:z.3f} to {level.interval[1]:z.3f}"
            yield f"  {name:<12} {level.mean:z.3f} (n = {level.n}{interval})"
    for shift in alert.shifts:
        means = f"{shift.before.mean:z.3f} -> {shift.since.mean:z.3f} (n = {shift.before.n}, {shift.since.n})"
        if (n := min(shift.before.n, shift.since.n)) < MIN_SAMPLES:
            means = f"not enough data (n={n}, need {MIN_SAMPLES})"
        yield f"  {shift.dimension:<12} {sanitize.line(shift.name, 100)} {means}"
    for exchange_id in alert.exchange_ids:
        yield f"  exchange     {sanitize.line(exchange_id)}"
