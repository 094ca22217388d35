"""``germane alerts preview``: what rules would have told over the stored history."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from germane.cli.commands.report import NOT_ENOUGH_DATA
from germane.cli.core.output import as_json, database, harmless, print_json
from germane.cli.core.params import Past
from germane.cli.core.store import opened, settings_for
from germane.sanitize import counted
from germane.settings import AnyRule, Rule, Settings
from germane.settings.rules import BY_DEFAULT, KINDS

if TYPE_CHECKING:
    from germane.alerting.backtest import Episode, Preview, Replayed
    from germane.settings import AnyRule


ALL = "all"
_FIXED = {"kind", "name", "enabled"}
"""What makes a rule the one that it is."""


class Setting(click.ParamType[tuple[str, Any]]):
    """A setting's name and value, written as in germane.toml or bare: ``threshold=.7``, ``routes=["docs-*"]``."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click passes what is converted already
        name, equals, written = value.partition("=")
        if not name.strip() or not equals or not written.strip():
            self.fail(f"{value!r}: say NAME=VALUE, such as threshold=0.7", param, ctx)
        return name.strip(), _read(written.strip())


def rules_for(settings: Settings, name: str, changes: Sequence[tuple[str, Any]]) -> list[AnyRule]:
    """Return the rules that are meant, with other settings.

    Args:
        settings: whose rules they are; one that is switched off may be named, and so may a kind that is in no settings.
        name: of a rule, or ``all`` for those in force.
        changes: names and values of their settings.

    Raises:
        click.UsageError: there is no such rule, none of them has such a setting, or it cannot have that value.
    """
    given = dict(changes)
    found = list(settings.watched) if name == ALL else _named(settings, name)
    known = {setting for one in found for setting in _settings_of(type(one) if isinstance(one, Rule) else one)}
    for setting in given:
        if setting not in known:
            raise click.UsageError(_unknown(setting, name, known))
    return [_changed(one, given) if isinstance(one, Rule) else _made(one, {}, given) for one in found]


def _named(settings: Settings, name: str) -> Sequence[AnyRule | type[Rule]]:
    """Return the rules of that name, or the kind."""
    for rules in (settings.watched, settings.rules, BY_DEFAULT):
        if found := [rule for rule in rules if rule.name == name]:
            return found
    if name in KINDS:
        return [KINDS[name]]
    names = list(dict.fromkeys([*(rule.name for rule in (*settings.watched, *settings.rules)), *KINDS]))
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(harmless(one, 40) for one in names)}"
    raise click.UsageError(f"--rule: there is no rule called {harmless(name, 40)!r}{hint}")


def _settings_of(kind: type[Rule]) -> dict[str, str]:
    """Return the fields behind the names of a kind's settings."""
    fields = {str(one.validation_alias or name): name for name, one in kind.model_fields.items()}
    return {name: field for name, field in fields.items() if field not in _FIXED}


def _unknown(setting: str, name: str, known: set[str]) -> str:
    what = "no rule in force has" if name == ALL else f"the rule {harmless(name, 40)} does not have"
    close = get_close_matches(setting, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(sorted(known))}"
    return f"--set: {what} a setting {harmless(setting, 40)!r}{hint}"


def _changed(rule: AnyRule, given: Mapping[str, Any]) -> AnyRule:
    known = {name: value for name, value in given.items() if name in _settings_of(type(rule))}
    return _made(type(rule), rule.model_dump(exclude_unset=True), known) if known else rule


def _made(kind: type[Rule], fields: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    names = _settings_of(kind)
    try:
        return kind.model_validate({**fields, **{names[name]: value for name, value in given.items()}})
    except ValidationError as error:
        raise click.UsageError(_wrong(kind, error)) from None


def _wrong(kind: type[Rule], error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    aliases = {field: name for name, field in _settings_of(kind).items()}
    place = ".".join(aliases.get(str(part), str(part)) for part in first["loc"])
    if first["type"] == "missing":
        return f"a rule of the kind {kind.model_fields['kind'].default} needs a {place}: --set {place}=VALUE"
    return (
        f"--set {place}={first['input']!r:.60}: {first['msg'].removeprefix('Value error, ').replace('tuple', 'list')}"
    )


def _read(written: str) -> Any:
    """Return a value as TOML has it; what is none is text. Numbers may begin with a point."""
    for text in (written, f"0{written}"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
    return written


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
    from germane.alerting.backtest import run_backtest

    settings = settings_for(database)
    rules = rules_for(settings, rule, changes)
    with opened(database) as store:
        found = run_backtest(store, settings, rules, since=since, until=datetime.now(UTC))
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
