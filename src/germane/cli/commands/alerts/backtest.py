"""``germane alerts backtest``: replay rules over the stored history."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click
from pydantic import ValidationError

from germane import alerting, evaluation, records, sanitize
from germane.cli.core.command import Command, wants_json
from germane.cli.core.engines import EngineOptions, engine_option
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, detect_terminal, print_json, wrap
from germane.cli.core.params import PAST_TIME, TextType
from germane.cli.core.store import load_command_settings, open_store
from germane.records import select
from germane.settings import DEFAULT_RULES, RULE_TYPES, AnyRule, Rule, Settings

if TYPE_CHECKING:
    from germane.alerting import BacktestReport

ALL_RULES: Final = "all"
MAX_MESSAGE_LENGTH: Final = 600
_IDENTITY_FIELDS: Final = {"type", "name", "enabled"}
"""Fields that --set cannot override."""
_NOTIFICATION_TYPES: Final = ("firing", "escalated", "resolved", "repeated")


def _parse_rule_setting(setting: str) -> tuple[str, Any]:
    """Parse a setting and its value, such as ``threshold=0.7``. Strings may be unquoted, unlike in germane.toml."""
    name, equals, text = (part.strip() for part in setting.partition("="))
    if not (name and equals and text):
        raise click.BadParameter(f"{setting!r} does not have the form NAME=VALUE, such as threshold=0.7")
    for toml in (text, f"0{text}"):  # TOML requires a digit before the decimal point
        try:
            return name, tomllib.loads(f"value = {toml}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
    return name, text


@click.command("backtest", cls=Command)
@click.option(
    "--rule", default=ALL_RULES, show_default=True, metavar="NAME", help="A rule's name, a rule type, or all."
)
@click.option("--since", type=PAST_TIME, default="30d", show_default=True, help="Start of the replayed history.")
@click.option(
    "--set",
    "changes",
    type=TextType("setting", _parse_rule_setting),
    multiple=True,
    metavar="NAME=VALUE",
    help="Override a rule setting for this backtest.",
)
@engine_option
@click.pass_context
def command(
    context: click.Context,
    rule: str,
    since: datetime,
    changes: tuple[tuple[str, Any], ...],
    engine: EngineOptions | None,
) -> None:
    """Replay rules over the stored history.

    Shows which alerts would have fired, for how long, and how many notifications you would have received. Nothing is
    stored or sent. You can also try out a rule type that is not configured: germane alerts backtest --rule
    mean_threshold --set threshold=0.7
    """
    settings = load_command_settings()
    rules = select_rules(settings, rule, changes)
    until = datetime.now(UTC)
    with open_store() as store:
        if engine is None:
            report = alerting.run_backtest(store, settings, rules, since=since, until=until)
        else:
            with engine.open() as opened:
                report = evaluation.run_backtest_on_engine(settings, rules, opened, since=since, until=until)
    if wants_json():
        print_json(_as_dict(report))
    else:
        _print(report)
    context.exit(0 if report.scores else EXIT_NOT_ENOUGH_DATA)


def select_rules(settings: Settings, name: str, changes: Sequence[tuple[str, Any]]) -> list[AnyRule]:
    """Return the selected rules, with the settings overridden.

    Args:
        settings: The configured rules. Disabled rules, and rule types that are not configured, can be selected too.
        name: A rule's name, a rule type, or ``all`` for the active rules.
        changes: Names and values of rule settings.

    Raises:
        click.UsageError: The rule or the setting does not exist, or the value is invalid.
    """
    overrides = dict(changes)
    selected: Sequence[AnyRule | type[Rule]] = settings.active_rules
    if name != ALL_RULES:
        candidates = (settings.active_rules, settings.rules, DEFAULT_RULES)
        named = ([rule for rule in rules if rule.name == name] for rules in candidates)
        selected = next(filter(None, named), [RULE_TYPES[name]] if name in RULE_TYPES else [])
    if not selected:
        names = list(dict.fromkeys([*(rule.name for rule in (*settings.active_rules, *settings.rules)), *RULE_TYPES]))
        raise click.UsageError(f"--rule: unknown rule {sanitize.line(name, 40)!r}{_suggest(name, names)}")
    known = {field for rule in selected for field in _setting_fields(type(rule) if isinstance(rule, Rule) else rule)}
    for setting in overrides:
        if setting not in known:
            owner = "active rules have" if name == ALL_RULES else f"rule {sanitize.line(name, 40)} has"
            hint = _suggest(setting, sorted(known))
            raise click.UsageError(f"--set: {owner} no setting {sanitize.line(setting, 40)!r}{hint}")
    return [_apply_changes(rule, overrides) for rule in selected]


def _suggest(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(sanitize.line(each, 40) for each in known)}"


def _setting_fields(rule_type: type[Rule]) -> dict[str, str]:
    """Map the name of each overridable setting to its field name."""
    fields = {str(field.validation_alias or name): name for name, field in rule_type.model_fields.items()}
    return {name: field for name, field in fields.items() if field not in _IDENTITY_FIELDS}


def _apply_changes(rule: AnyRule | type[Rule], overrides: Mapping[str, Any]) -> Any:
    rule_type = type(rule) if isinstance(rule, Rule) else rule
    fields = _setting_fields(rule_type)
    changes = {fields[name]: value for name, value in overrides.items() if name in fields}
    if isinstance(rule, Rule) and not changes:
        return rule
    current = rule.model_dump(exclude_unset=True) if isinstance(rule, Rule) else {}
    try:
        return rule_type.model_validate({**current, **changes})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        names = {field: name for name, field in fields.items()}
        place = ".".join(names.get(str(part), str(part)) for part in first["loc"])
        if first["type"] == "missing":
            default = rule_type.model_fields["type"].default
            message = f"rule type {default} requires {place}: --set {place}=VALUE"
        else:
            detail = first["msg"].removeprefix("Value error, ").replace("tuple", "list")
            message = f"--set {place}={first['input']!r:.60}: {detail}"
        raise click.UsageError(message) from None


def _print(report: BacktestReport) -> None:
    each = ", each rule separately" if len(report.rules) + len(report.skipped) > 1 else ""
    window = f"{report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC"
    _echo(f"Backtest from {window} over {sanitize.count_noun(report.scores, 'score')}{each}.\n")
    for backtest in report.rules:
        types = [
            f"{backtest.notifications[each]} {each}" for each in _NOTIFICATION_TYPES if backtest.notifications[each]
        ]
        notifications = sanitize.count_noun(backtest.notifications.total(), "notification")
        notifications += f" ({', '.join(types)})" if types else ""
        fired, resolved = (
            {1: "once", 2: "twice"}.get(count, f"{count} times")
            for count in (len(backtest.episodes), backtest.resolved)
        )
        _echo(
            f"{_rule_name(backtest.rule)}: fired {fired}, resolved {resolved}; {notifications}"
            + (
                f"; {sanitize.count_noun(backtest.unfired, 'pending alert')} ended before firing"
                if backtest.unfired
                else ""
            )
        )
        for episode in backtest.episodes:
            end, reason = "still firing", episode.last.resolve_reason
            if reason is not None:
                end = f"resolved {episode.until:%Y-%m-%d %H:%M}, {alerting.RESOLVE_REASONS[reason]}"
            severity = episode.last.details.get("peak", episode.fired.severity)
            fired_at = "-" if episode.fired.fired_at is None else f"{episode.fired.fired_at:%Y-%m-%d %H:%M}"
            _echo(f"  {fired_at} {severity}, for {_format_duration(episode.seconds)}: {end}")
            _echo(f"    {sanitize.line(episode.fired.message, MAX_MESSAGE_LENGTH)}", indent=4)
        for note in backtest.notes:
            _echo(f"  - {note}", indent=4)
        step = _format_duration(backtest.step.total_seconds()).removeprefix("1 ")
        _echo(f"  - evaluated every {step}; times are no more precise than that\n")
    for skipped in report.skipped:
        _echo(f"{_rule_name(skipped.rule)}: cannot be replayed: {skipped.reason}.\n")
    if report.rules:
        count = sanitize.count_noun(report.notifications, "notification")
        _echo(f"A channel for all of these rules would have received {count}.")
        _echo("Silences, acknowledgements and manual resolutions are not replayed.")


def _echo(line: str, indent: int = 2) -> None:
    """Print a line, wrapped to the width of the terminal, or else to 80 columns."""
    start = line[: len(line) - len(line.lstrip())]
    wrapped = wrap(line.strip(), detect_terminal().width - len(start), " " * (indent - len(start)))
    click.echo("\n".join(start + part for part in wrapped) + ("\n" if line.endswith("\n") else ""))


def _rule_name(rule: AnyRule) -> str:
    name = sanitize.line(rule.name, 40)
    return name if rule.name == rule.type else f"{name} ({rule.type})"


def _format_duration(seconds: float) -> str:
    duration, hour = timedelta(seconds=seconds), timedelta(hours=1)
    if duration >= 48 * hour:
        return f"{duration / timedelta(days=1):.1f} days"
    if duration >= hour:
        return sanitize.count_noun(round(duration / hour), "hour")
    return sanitize.count_noun(round(seconds / 60), "minute")


def _as_dict(report: BacktestReport) -> Mapping[str, Any]:
    return {
        **select(report, "since", "until", "scores", "notifications"),
        "rules": [
            {
                **select(backtest.rule, "name", "type"),
                "settings": backtest.rule.model_dump(mode="json"),
                "step_seconds": backtest.step.total_seconds(),
                "fired": len(backtest.episodes),
                **select(backtest, "resolved", "unfired"),
                "notifications": {each: backtest.notifications[each] for each in _NOTIFICATION_TYPES},
                "alerts": [
                    {
                        **records.encode(episode.fired),
                        **select(episode.last, "state", "resolved_at", "resolve_reason"),
                        "seconds": episode.seconds,
                        "events": [select(event, "at", "type", "before", "after") for event in episode.events],
                    }
                    for episode in backtest.episodes
                ],
                "notes": backtest.notes,
            }
            for backtest in report.rules
        ],
        "skipped": [{**select(skipped.rule, "name", "type"), "reason": skipped.reason} for skipped in report.skipped],
    }
