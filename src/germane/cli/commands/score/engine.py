"""Scoring of a data set on an engine, which writes the scores to a folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from germane import evaluation, sanitize
from germane.cli.core.command import wants_json
from germane.cli.core.forecast import forecast_rescoring, print_forecasts
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, EXIT_THRESHOLD_VIOLATED, print_json, print_table

if TYPE_CHECKING:
    from germane.cli.core.engines import EngineOptions
    from germane.evaluation import DatasetResult, EvaluationCheck, ScorerSummary
    from germane.settings import Settings

SAMPLE_SIZE: Final = 20
"""Number of rows in the sample for estimating requests."""


def score_on_engine(
    context: click.Context,
    options: EngineOptions,
    settings: Settings,
    file: Path,
    *,
    output: Path,
    columns: Mapping[str, str] | None,
    limit: int | None,
    partition_size: int | None,
    confirmed: bool,
    thresholds: tuple[float | None, float | None],
) -> None:
    """Score a data set on an engine, after the forecast has been confirmed, and print the result."""
    from germane.scorers import build_scorers

    scorer_set = build_scorers(settings)
    counts = dict.fromkeys((scorer.name for scorer in scorer_set.scorers), evaluation.count_rows(file, limit))
    sample = [row.exchange for row in islice(evaluation.read_rows(file, columns), SAMPLE_SIZE)]
    forecasts = forecast_rescoring(settings, counts, dict.fromkeys(counts, sample))
    if not wants_json():
        click.echo(f"To score, into {output}:")
        print_forecasts(counts, forecasts, noun="row")
        if not confirmed and sys.stdin.isatty() and sys.stdout.isatty():
            click.confirm("Score these rows?", default=True, abort=True)
    try:
        result = evaluation.run_dataset(
            file,
            output,
            settings,
            options.open(),
            columns=columns,
            limit=limit,
            partition_size=partition_size,
        )
    except KeyboardInterrupt:
        click.echo("germane: interrupted; repeat the command to continue", err=True)
        raise
    check = result.check(*thresholds) if any(threshold is not None for threshold in thresholds) else None
    if wants_json():
        print_json(_as_dict(result, check))
    else:
        _print(result, check)
    context.exit(exit_code(check, has_scores=any(summary.scored for summary in result.summaries)))


def exit_code(check: EvaluationCheck | None, *, has_scores: bool) -> int:
    """Return the exit code of the command, for the check against thresholds if there are any."""
    if check is not None and check.failed:
        return EXIT_THRESHOLD_VIOLATED
    return 0 if has_scores and (check is None or check.has_min_samples) else EXIT_NOT_ENOUGH_DATA


def _print(result: DatasetResult, check: EvaluationCheck | None) -> None:
    summaries = result.summaries
    print_summaries(summaries)
    for summary in summaries:
        for reason, count in summary.reasons.items():
            click.echo(f"{sanitize.line(summary.scorer, 60)}: {count:,} {reason}")
    for note in evaluation.small_sample_notes(summaries):
        click.echo(note)
    scored = f"Scored now: {evaluation.usage_sentence(result.rows - result.reused_rows, result.usage)}"
    reused = f" Scored before and reused: {sanitize.count_noun(result.reused_rows, 'row')}."
    click.echo(f"\n{scored}{reused if result.reused_rows else ''}")
    click.echo(f"The scores are in {result.output}.")
    print_check(check)


def print_summaries(summaries: Sequence[ScorerSummary]) -> None:
    """Print a table of the scorers' means, if there are any."""
    if summaries:
        rows = [evaluation.summary_cells(summary, summaries) for summary in summaries]
        print_table(evaluation.SUMMARY_HEADINGS, [tuple(sanitize.line(cell, 60) for cell in row) for row in rows])


def print_check(check: EvaluationCheck | None) -> None:
    """Print the check against thresholds, if there are any."""
    if check is not None:
        click.echo("\n" + "\n".join(sanitize.line(line, 1000) for line in str(check).splitlines()))


def _as_dict(result: DatasetResult, check: EvaluationCheck | None) -> dict[str, object]:
    content: dict[str, object] = {
        "rows": result.rows,
        "summary": list(map(evaluation.summary_to_dict, result.summaries)),
        "output": str(result.output),
        "usage": result.usage,
    }
    if check is not None:
        content["check"] = evaluation.check_to_dict(check)
    return content
