"""``germane alerts sensitivity``: estimate how small a drop the detector can detect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from germane import alerting, sanitize
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, print_json, print_table
from germane.cli.core.params import FiniteRange
from germane.cli.core.store import load_command_settings, open_store
from germane.records import select
from germane.settings import Drop

if TYPE_CHECKING:
    from germane.alerting import DropSensitivity

TARGET_PROBABILITY: Final = 0.8
"""Minimum probability of detection at which a drop counts as detected."""
DAYS: Final = (1.0, 7.0)
"""Number of days within which a drop is to be detected."""
MAX_RUNS: Final = 2000


@click.command("sensitivity", cls=Command)
@click.option("--rule", help="Only this rule. Its type must be drop.")
@click.option(
    "--per-day",
    type=FiniteRange(1),
    metavar="N",
    help="Scores per day that reach the detector. Defaults to the baseline's rate.",
)
@click.option(
    "--runs", type=click.IntRange(10, MAX_RUNS), default=60, show_default=True, help="Simulation runs per drop."
)
@click.pass_context
def command(
    context: click.Context,
    rule: str | None,
    per_day: float | None,
    runs: int,
) -> None:
    """Estimate the size of drops that would be detected.

    The detector runs on simulated scores that follow the active baseline's distribution and then drop.
    """
    active = [each for each in load_command_settings().active_rules if isinstance(each, Drop)]
    if not active:
        raise click.UsageError("no drop rule is active, because the `rules` setting disables all of them; enable one")
    rules = [each for each in active if rule in {None, each.name}]
    if not rules:
        known = ", ".join(sanitize.line(each.name, 40) for each in active)
        raise click.UsageError(f"--rule: unknown drop rule {sanitize.line(rule, 40)!r}; known: {known}")
    with open_store() as store:
        results = alerting.list_sensitivities(store, rules, days=DAYS, scores_per_day=per_day, runs=runs)
    standard_error = float((TARGET_PROBABILITY * (1 - TARGET_PROBABILITY) / runs) ** 0.5)
    if wants_json():
        streams = [
            {
                **select(result, "rule", "service", "scorer", "scores_per_day"),
                "smallest_drops": [
                    {"days": days, "drop": result.smallest_drop(days, TARGET_PROBABILITY)} for days in result.days
                ],
                "probabilities": [
                    {"drop": drop, "within": dict(zip(map(str, result.days), probabilities, strict=True))}
                    for drop, probabilities in zip(result.drops, result.probabilities, strict=True)
                ],
                "tolerance": {"mean": result.tolerance, "refusals": result.zero_tolerance},
            }
            for result in results
        ]
        print_json(
            {
                "target_probability": TARGET_PROBABILITY,
                "runs": runs,
                "standard_error": standard_error,
                "streams": streams,
            }
        )
    elif results:
        shows_rule = len({result.rule for result in results}) > 1
        for result in results:
            _print_result(result, shows_rule=shows_rule)
        click.echo(
            f"Simulated with the production detector, {runs} runs per drop and a fixed seed. The standard error of a\n"
            f"probability near {TARGET_PROBABILITY:g} is {standard_error:.2f}. Simulated drops affect all routes;\n"
            "a drop on a single route is detected later."
        )
    else:
        click.echo("No active baseline. Run germane doctor to see when learning ends.")
    context.exit(0 if results else EXIT_NOT_ENOUGH_DATA)


def _print_result(result: DropSensitivity, *, shows_rule: bool) -> None:
    rule = f", rule {sanitize.line(result.rule, 40)}" if shows_rule else ""
    click.echo(f"{sanitize.line(result.scorer, 40)} for {sanitize.line(result.service, 40)}{rule}")
    rate = f"{result.scores_per_day:,.0f}" if result.scores_per_day >= 10 else f"{result.scores_per_day:.1f}"
    click.echo(f"  {rate} scores per day reach the detector.")
    parts = []
    for days in result.days:
        smallest = result.smallest_drop(days, TARGET_PROBABILITY)
        drop = f"a drop of {smallest:.2f}" if smallest else f"no drop up to {result.drops[-1]:.2f}"
        parts.append(f"{drop} {_format_days(days)}")
    click.echo(f"  Detected with a probability of at least {TARGET_PROBABILITY:g}: {'; '.join(parts)}.")
    click.echo(
        f"  Tolerance, averaged over routes: drops in the mean of up to {result.tolerance:.3f} and increases in "
        f"refusals of up to {result.zero_tolerance:.1%} are ignored.\n"
    )
    rows = [
        (f"{drop:.2f}", *(f"{probability:.2f}" for probability in probabilities))
        for drop, probabilities in zip(result.drops, result.probabilities, strict=True)
    ]
    print_table(("drop", *map(_format_days, result.days)), rows)
    click.echo("")


def _format_days(days: float) -> str:
    return {1.0: "within a day", 7.0: "within a week"}[days]
