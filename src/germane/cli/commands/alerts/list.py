"""``germane alerts``: what is wrong now, and what was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from germane.cli.core.output import as_json, database, harmless, print_json
from germane.cli.core.store import opened
from germane.cli.core.terminal import terminal

if TYPE_CHECKING:
    from germane.alert import Alert, Event, Level, Silence


BROKEN = 3
"""Exit code where something fires and one asked whether anything does."""
SHOWN = 8
"""Digits of an id that are shown: as many as one has to type."""
LIMIT = 100
WIDTH = 600
"""Characters of a sentence."""


def tell(database: str | None, *, every: bool, check: bool, as_json: bool) -> int:
    """Show the alerts that are open, or all of late, and the silences; return the exit code."""
    with opened(database) as store:
        alerts = store.alerts(limit=LIMIT) if every else store.open_alerts()
        silences = store.silences()
    if as_json:
        print_json({"alerts": [alert.as_dict() for alert in alerts], "silences": list(map(silence_as_dict, silences))})
    else:
        _print(alerts, silences, every=every)
    fires = any(alert.is_open and alert.fired_at is not None for alert in alerts)
    return BROKEN if check and fires else 0


def _print(alerts: Sequence[Alert], silences: Sequence[Silence], *, every: bool) -> None:
    if not alerts:
        click.echo("No alert yet." if every else "No alert is open.")
    where = terminal()
    for alert in alerts:
        click.echo("\n".join([*(where.folded(line, 2) for line in lines_of(alert)), ""]))
    for silence in silences:
        click.echo(silence_line(silence))


def lines_of(alert: Alert) -> list[str]:
    """Return what is shown of an alert in a list."""
    known = " acknowledged" + (f" by {harmless(alert.acknowledged_by, 40)}" if alert.acknowledged_by else "")
    state = alert.state + (known if alert.acknowledged_at and alert.is_open else "")
    head = f"{alert.id[:SHOWN]}  {harmless(alert.rule, 40)}  {alert.severity}  {state}  {_time(alert)} UTC"
    return [head, f"  {harmless(alert.message, WIDTH)}"]


def _time(alert: Alert) -> str:
    since = f"{alert.fired_at or alert.starts_at:%Y-%m-%d %H:%M}"
    return f"since {since}" if alert.resolved_at is None else f"from {since} to {alert.resolved_at:%Y-%m-%d %H:%M}"


def silence_line(silence: Silence) -> str:
    """Return one line that tells of a silence."""
    what = ", ".join(f"{harmless(name, 40)} {harmless(one, 80)}" for name, one in sorted(silence.matchers.items()))
    comment = f": {harmless(silence.comment, 200)}" if silence.comment else ""
    return f"silence {silence.id[:SHOWN]} of {what or 'everything'} until {silence.ends_at:%Y-%m-%d %H:%M} UTC{comment}"


def silence_as_dict(silence: Silence) -> dict[str, object]:
    """Return a silence ready for JSON."""
    return {
        "id": silence.id,
        "matchers": dict(silence.matchers),
        "starts_at": silence.starts_at,
        "ends_at": silence.ends_at,
        "created_by": silence.created_by,
        "comment": silence.comment,
    }


@click.command("show")
@click.argument("alert_id", metavar="ID")
@database
@as_json
def command(
    alert_id: str,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Show an alert, by its id or the beginning of it."""
    from germane.alerting.actions import find

    with opened(database) as store:
        alert = find(store, alert_id)
        events = store.alert_events(alert.id)
    if as_json:
        print_json({"alert": alert.as_dict(), "events": list(map(_event_as_dict, events))})
    else:
        click.echo("\n".join([*lines_of(alert), *_facts(alert), *_history(events)]))


def _facts(alert: Alert) -> Iterator[str]:
    yield f"  id           {alert.id}"
    for name, value in alert.labels.items():
        yield f"  {harmless(name, 12):<12} {harmless(value, 100)}"
    if alert.cause is not None:
        yield f"  likely       {alert.cause.replace('_', ' ')}"
    yield from _level("now", alert.current)
    yield from _level("before", alert.baseline)
    for shift in alert.shifts:
        moved = f"{shift.before.mean:.3f} -> {shift.since.mean:.3f} (n = {shift.before.n}, {shift.since.n})"
        yield f"  {shift.kind:<12} {harmless(shift.name, 100)} {moved}"
    for exchange_id in alert.exchange_ids:
        yield f"  exchange     {harmless(exchange_id)}"


def _level(name: str, level: Level | None) -> Iterator[str]:
    if level is not None:
        between = (
            "" if level.interval is None else f", 95 % interval {level.interval[0]:.3f} to {level.interval[1]:.3f}"
        )
        yield f"  {name:<12} {level.mean:.3f} (n = {level.n}{between})"


def _history(events: list[Event]) -> Iterator[str]:
    for event in events:
        told = {name: value for name, value in event.detail.items() if value is not None}
        detail = ", ".join(f"{harmless(name, 20)} {_detail(value)}" for name, value in told.items())
        yield f"  {event.at:%Y-%m-%d %H:%M:%S} UTC  {event.what}{f' ({detail})' if detail else ''}"


def _detail(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else harmless(str(value), 60)


def _event_as_dict(event: Event) -> dict[str, object]:
    names = ("id", "at", "what", "before", "after")
    return {**{name: getattr(event, name) for name in names}, "detail": dict(event.detail)}
