"""``germane alerts show``: one alert, with what happened to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from germane.cli.alerts.listing import lines_of
from germane.cli.opening import opened
from germane.cli.output import as_json, database, harmless, print_json

if TYPE_CHECKING:
    from germane.alert import Alert, Event, Level


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
    from germane.monitor.acts import find

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
