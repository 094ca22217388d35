"""A report for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from germane.cli.commands.report import data as finding
from germane.cli.commands.report.data import CORRECTED, HEADINGS, cells
from germane.cli.core.output import harmless, print_table
from germane.cli.core.terminal import Terminal
from germane.cli.render import baseline, comparison, coverage

if TYPE_CHECKING:
    from germane.cli.commands.report.data import Found


def written(found: Found, where: Terminal) -> str:
    """Return all of it, as it is to look there."""
    with redirect_stdout(io.StringIO()) as text:
        _print(found, where)
    return text.getvalue()


def _print(found: Found, where: Terminal) -> None:
    summaries = found.summaries
    click.echo(f"Answers given {finding.window(found)}\n")
    if not summaries:
        click.echo("No scores.")
    elif where.watched:
        _print_by_scorer([cells(one, summaries) for one in summaries], where)
    else:
        print_table(HEADINGS, [cells(one, summaries) for one in summaries])
    if any(one.correlation is not None for one in summaries):
        click.echo(f"\n{CORRECTED}")
    for floor in found.calibrations:
        click.echo(f"\nLabels and low answers of {harmless(floor.scorer, 40)}: {floor}; means are of raw values")
    missing = [
        *filter(None, map(coverage.line, found.coverage)),
        *(f"  {told}" for told in coverage.undecided(found.left)),
    ]
    if missing:
        click.echo("\nWithout a score:")
        click.echo("\n".join(where.folded(line, 4) for line in missing))
    if found.learning:
        click.echo()
        click.echo("\n".join(where.folded(baseline.line(one, found.now), 4) for one in found.learning))
    if found.comparisons is not None:
        comparison.show(found.comparisons, found.mark)


def _print_by_scorer(rows: Sequence[Sequence[str]], where: Terminal) -> None:
    """Print a table for each scorer, which fits a screen and has routes below one another that can be compared."""
    for place, scorer in enumerate(dict.fromkeys(row[1] for row in rows)):
        click.echo(("\n" if place else "") + where.styled(scorer, bold=True), color=where.fancy)
        print_table((HEADINGS[0], *HEADINGS[2:]), [(row[0], *row[2:]) for row in rows if row[1] == scorer])
