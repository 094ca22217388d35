"""A report for a terminal."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from germane.cli import compared, covered, learned
from germane.cli.output import harmless, print_table
from germane.cli.report.cells import HEADINGS, cells

if TYPE_CHECKING:
    from germane.cli.report.found import Found


def written(found: Found) -> str:
    """Return all of it."""
    with redirect_stdout(io.StringIO()) as text:
        _print(found)
    return text.getvalue()


def _print(found: Found) -> None:
    summaries = found.summaries
    click.echo(f"Answers given since {found.since:%Y-%m-%d %H:%M} UTC\n")
    if not summaries:
        click.echo("No scores.")
    else:
        print_table(HEADINGS, [cells(one, summaries) for one in summaries])
    for floor in found.calibrations:
        click.echo(f"\nLabels and low answers of {harmless(floor.scorer, 40)}: {floor}; means are of raw values")
    missing = [
        *filter(None, map(covered.line, found.coverage)),
        *(f"  {told}" for told in covered.undecided(found.left)),
    ]
    if missing:
        click.echo("\nWithout a score:")
        click.echo("\n".join(missing))
    if found.learning:
        click.echo()
        click.echo("\n".join(learned.line(one, found.now) for one in found.learning))
    if found.comparisons is not None:
        compared.show(found.comparisons, found.mark)
