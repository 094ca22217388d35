"""``germane alerts preview``: what rules would have told over the stored history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from germane.cli.alerts.chosen import ALL, Setting, rules_for
from germane.cli.opening import opened, settings_for
from germane.cli.output import as_json, database, harmless, print_json
from germane.cli.report import NOT_ENOUGH_DATA
from germane.cli.since import Past
from germane.shown import counted

if TYPE_CHECKING:
    from germane.monitor.preview import Episode, Preview, Replayed
    from germane.settings import AnyRule

WIDTH = 600
"""Characters of a message."""
_TOLD = ("firing", "escalated", "resolved", "repeated")
_HOUR, _DAY = 3600, 86_400


@click.command("preview")
@click.option("--rule", default=ALL, show_default=True, metavar="NAME", help="Which: a rule's name, or a kind.")
@click.option("--since", type=Past(), default="30d", show_default=True, help="How far back.")
@click.option("--set", "changes", type=Setting(), multiple=True, metavar="NAME=VALUE", help="With another setting.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    rule: str,
    since: datetime,
    changes: tuple[tuple[str, Any], ...],
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Replay rules over the stored history. What would have fired, for how long, how often had you been told?

    Nothing is written and nobody is told anything. A kind that is in no settings may be tried too:
    germane alerts preview --rule floor --set threshold=0.7
    """
    from germane.monitor.preview import preview

    settings = settings_for(database)
    rules = rules_for(settings, rule, changes)
    with opened(database) as store:
        found = preview(store, settings, rules, since=since, until=datetime.now(UTC))
    if as_json:
        print_json(_as_dict(found))
    else:
        _print(found)
    context.exit(0 if found.scores else NOT_ENOUGH_DATA)


def _print(found: Preview) -> None:
    several = len(found.replayed) + len(found.unreplayed)
    each = ", each by itself" if several > 1 else ""
    click.echo(f"From {_moment(found.since)} to {_moment(found.until)} UTC: {counted(found.scores, 'score')}{each}.\n")
    for one in found.replayed:
        _print_rule(one)
    for missing in found.unreplayed:
        click.echo(f"{_name(missing.rule)}: cannot be replayed, because {missing.why}.\n")
    if found.replayed:
        click.echo(f"A channel that takes all of it would have been notified {_times(found.notifications)}.")
        click.echo("What people do is not replayed: no silence, acknowledgement or resolution by hand.")


def _print_rule(one: Replayed) -> None:
    fired = f"fired {_times(len(one.episodes))}, resolved {_times(one.resolved)}"
    told = [f"{one.notifications[what]} {what}" for what in _TOLD if one.notifications[what]]
    notified = f"; would have notified {_times(one.notifications.total())}" + (f" ({', '.join(told)})" if told else "")
    passed = f"; {one.passed} passed before anybody was told" if one.passed else ""
    click.echo(f"{_name(one.rule)}: {fired}{notified}{passed}")
    for episode in one.episodes:
        click.echo(f"  {_episode(episode)}")
        click.echo(f"    {harmless(episode.fired.message, WIDTH)}")
    for note in one.notes:
        click.echo(f"  - {note}")
    click.echo(f"  - looked at every {_every(one.step.total_seconds())}: when it fired is known to within that\n")


def _episode(one: Episode) -> str:
    severity = f" {one.last.details.get('peak', one.fired.severity)}"
    over = f"over {_moment(one.until)}, {one.last.resolve_reason}" if one.last.resolved_at else "still firing"
    return f"{_moment(one.fired.fired_at)}{severity}, for {_span(one.seconds)}: {over}"


def _name(rule: AnyRule) -> str:
    return harmless(rule.name, 40) if rule.name == rule.kind else f"{harmless(rule.name, 40)} ({rule.kind})"


def _moment(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _span(seconds: float) -> str:
    if seconds >= 2 * _DAY:
        return f"{seconds / _DAY:.1f} days"
    return counted(round(seconds / _HOUR), "hour") if seconds >= _HOUR else counted(round(seconds / 60), "minute")


def _every(seconds: float) -> str:
    return _span(seconds).removeprefix("1 ")


def _as_dict(found: Preview) -> Mapping[str, Any]:
    missing = [{"name": one.rule.name, "kind": one.rule.kind, "why": one.why} for one in found.unreplayed]
    return {
        "since": found.since,
        "until": found.until,
        "scores": found.scores,
        "would_have_notified": found.notifications,
        "rules": [_rule(one) for one in found.replayed],
        "not_replayed": missing,
    }


def _rule(one: Replayed) -> Mapping[str, Any]:
    return {
        "name": one.rule.name,
        "kind": one.rule.kind,
        "settings": one.rule.model_dump(mode="json"),
        "step": one.step.total_seconds(),
        "fired": len(one.episodes),
        "resolved": one.resolved,
        "passed": one.passed,
        "notifications": {what: one.notifications[what] for what in _TOLD},
        "alerts": [_alert(episode) for episode in one.episodes],
        "notes": list(one.notes),
    }


def _alert(one: Episode) -> Mapping[str, Any]:
    over = {"resolved_at": one.last.resolved_at, "resolve_reason": one.last.resolve_reason, "seconds": one.seconds}
    events = [
        {"at": event.at, "what": event.what, "before": event.before, "after": event.after} for event in one.events
    ]
    return {**one.fired.as_dict(), "state": one.last.state, **over, "events": events}
