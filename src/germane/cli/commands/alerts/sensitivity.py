"""``germane alerts power``: what drop would be noticed within a day and a week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from germane.cli.commands.estimate import Count
from germane.cli.commands.report import NOT_ENOUGH_DATA
from germane.cli.core.output import as_json, database, harmless, print_json, print_table
from germane.cli.core.store import opened, settings_for
from germane.sanitize import counted
from germane.settings import Drop

if TYPE_CHECKING:
    from germane.alerting.detector import Power
    from germane.alerting.sensitivity import Prospect, Unknown

SURE = 0.8
"""Probability with which a drop counts as noticed."""
DAYS = (1.0, 7.0)
MOST_DAYS = 90
MOST_RUNS = 2000


@click.command("power")
@click.option("--scorer", help="Only of this scorer.")
@click.option("--service", help="Only of this service.")
@click.option("--rule", help="Only of this rule, of the kind drop.")
@click.option("--per-day", type=Count(1), metavar="N", help="Scores a day that reach the detector, instead of today's.")
@click.option("--days", type=Count(0.1, MOST_DAYS), multiple=True, metavar="N", help="How soon; by default 1 and 7.")
@click.option("--runs", type=click.IntRange(10, MOST_RUNS), default=60, show_default=True, help="Of the simulation.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    scorer: str | None,
    service: str | None,
    rule: str | None,
    per_day: float | None,
    days: tuple[float, ...],
    runs: int,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Say what drop would be noticed. With today's number of scores, and with twice as many.

    By simulation: the detector watches made-up scores that are like those of the baseline, and drop.
    """
    from germane.alerting.sensitivity import Asked, prospects

    rules = _rules(settings_for(database).watched, rule)
    asked = Asked(days=tuple(sorted(set(days or DAYS))), per_day=per_day, service=service, scorer=scorer, runs=runs)
    with opened(database) as store:
        found, unknown = prospects(store, rules, asked, now=datetime.now(UTC))
    if as_json:
        told = {"sure": SURE, "runs": runs, "standard_error": _error(runs)}
        print_json({**told, "streams": list(map(_as_dict, found)), "not_enough_data": list(map(asdict, unknown))})
    else:
        _print(found, unknown, runs)
    context.exit(0 if found else NOT_ENOUGH_DATA)


def _rules(watched: Sequence[object], name: str | None) -> list[Drop]:
    """Return the rules in force that watch for drops.

    Raises:
        UsageError: there is none, or none of that name.
    """
    rules = [rule for rule in watched if isinstance(rule, Drop)]
    if not rules:
        raise click.UsageError("no rule of the kind drop is in force: the setting rules switches it off")
    if name is not None and name not in {rule.name for rule in rules}:
        known = ", ".join(harmless(rule.name, 40) for rule in rules)
        raise click.UsageError(f"--rule: no rule of the kind drop is called {harmless(name, 40)!r}; known: {known}")
    return [rule for rule in rules if name in {None, rule.name}]


def _error(runs: int) -> float:
    """Return the standard error of a probability of .8 that so many runs tell."""
    return float((SURE * (1 - SURE) / runs) ** 0.5)


def _print(found: Sequence[Prospect], unknown: Sequence[Unknown], runs: int) -> None:
    several = len({one.rule for one in found}) > 1
    for one in found:
        _print_one(one, by=f", rule {harmless(one.rule, 40)}" if several else "")
    for missing in unknown:
        of = f"{harmless(missing.scorer, 40)} of {harmless(missing.service, 40)}"
        click.echo(f"{of}: not enough data. {missing.why[:1].upper()}{missing.why[1:]}.")
    if found:
        click.echo(
            f"A simulation with the detector that watches, {runs} runs for each drop, always with the same seed: the\n"
            f"standard error of a probability near {SURE:g} is {_error(runs):.2f}. Drops are of all routes at once;\n"
            "that of one route is noticed later."
        )
    elif not unknown:
        click.echo("There are no scores to go by.")


def _print_one(one: Prospect, by: str) -> None:
    click.echo(f"{harmless(one.scorer, 40)} of {harmless(one.service, 40)}{by}")
    click.echo(f"  {_rate(one)}")
    click.echo(f"  {_source(one)}")
    click.echo(f"  {_noticed(one.power)}")
    tolerated = f"a fall of the mean by {one.power.tolerance:.3f}, and {one.power.zero_tolerance:.1%} more refusals"
    click.echo(f"  Tolerance in force, on average of the routes: {tolerated} count as nothing.")
    if one.unsteady:
        routes = ", ".join(harmless(route, 40) for route in one.unsteady)
        click.echo(f"  Unsteady: {routes}. Days differed so much there that a drop by {one.min_drop:g} is not unusual.")
        click.echo("  If something was wrong at that time, learn from other days: germane baseline import.")
    click.echo(f"  False alarms while all is well: at most {one.false_alarms_per_year:.2g} a year on average.")
    click.echo(f"  {_doubled(one)}\n")
    headings = [f"{_within(days)}" for days in one.power.days]
    twice = [f"{heading}, {_count(one.doubled_per_day)} a day" for heading in headings] if one.doubled else []
    rows = [_row(one, place) for place in range(len(one.power.chances))]
    print_table(("drop", *headings, *twice), rows)
    click.echo("")


def _row(one: Prospect, place: int) -> tuple[str, ...]:
    powers = [one.power, *([one.doubled] if one.doubled else [])]
    chances = [chance for power in powers for chance in power.chances[place].within]
    return (f"{one.power.chances[place].drop:.2f}", *(f"{chance:.2f}" for chance in chances))


def _rate(one: Prospect) -> str:
    if one.asked_for:
        return f"{_count(one.per_day)} scores a day that reach the detector, as you say."
    made = one.made_per_day
    of = "" if made is None or made < 1.02 * one.per_day else f" of {_count(made)} that are made"
    return f"{_count(one.per_day)} scores a day{of} reach the detector, as in the last 7 days."


def _source(one: Prospect) -> str:
    n, since, until = counted(one.n, "score"), f"{one.since:%Y-%m-%d %H:%M}", f"{one.until:%Y-%m-%d %H:%M} UTC"
    if one.source == "active":
        return f"By the baseline in force, of {n} from {since} to {until}."
    if one.source == "learning":
        return f"It is still learning: by what has been learned so far, of {n} from {since} to {until}."
    return f"Nobody has begun to learn a baseline: by what is stored, {n} from {since} to {until}."


def _noticed(power: Power) -> str:
    """Say what is noticed, how soon."""
    said = []
    for days in power.days:
        smallest = power.smallest_noticed(days, SURE)
        largest = power.chances[-1].drop
        what = f"a drop by {smallest:.2f}" if smallest else f"no drop up to {largest:.2f} for sure"
        said.append(f"{_within(days)} {what}")
    told = "; ".join(said)
    return f"Noticed with a probability of {SURE:g} or more: {told}."


def _within(days: float) -> str:
    names = {1.0: "within a day", 7.0: "within a week"}
    return names.get(days, f"within {days:g} days")


def _doubled(one: Prospect) -> str:
    if one.doubled is None:
        return "Twice the budget would notice nothing more: beyond a thousand scores a day the detector takes a part."
    return f"With {_count(one.doubled_per_day)} a day, as twice the budget brings: {_lower(_noticed(one.doubled))}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _as_dict(one: Prospect) -> Mapping[str, Any]:
    return {
        **{name: value for name, value in asdict(one).items() if name not in {"power", "doubled", "doubled_per_day"}},
        "today": _power(one.power, one.per_day),
        "doubled": one.doubled and _power(one.doubled, one.doubled_per_day),
    }


def _power(power: Power, per_day: float) -> Mapping[str, Any]:
    smallest = [{"days": days, "drop": power.smallest_noticed(days, SURE)} for days in power.days]
    chances = [
        {"drop": chance.drop, "within": dict(zip(map(str, power.days), chance.within, strict=True))}
        for chance in power.chances
    ]
    tolerance = {"mean": power.tolerance, "refusals": power.zero_tolerance}
    return {"per_day": per_day, "noticed": smallest, "probabilities": chances, "tolerance": tolerance}
