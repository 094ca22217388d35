"""``germane score``: score a data set, and check it against thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from germane import sanitize
from germane.cli.commands.score.engine import exit_code, print_check, print_summaries, score_on_engine
from germane.cli.commands.score.estimate import load_basis, print_estimate
from germane.cli.core.command import Command, database_setting, wants_json
from germane.cli.core.engines import EngineOptions, engine_option, require_engine
from germane.cli.core.output import print_json, write_output
from germane.cli.core.params import COLUMN_NAMES, FiniteRange
from germane.score import describe_value
from germane.settings import load_settings

if TYPE_CHECKING:
    from germane.evaluation import Evaluation, EvaluationCheck
    from germane.settings import EvaluationSettingsArguments, Settings

MAX_WORST_ROWS: Final = 5
REPORT_SUFFIXES: Final = {".md": "markdown", ".markdown": "markdown", ".json": "json", ".html": "html", ".htm": "html"}
PARQUET_SUFFIX: Final = ".parquet"
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("score", cls=Command)
@click.argument("file", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Scorer to run. Repeatable.")
@click.option("--judge", metavar="MODEL", help="Judge model. Overrides the setting.")
@click.option("--embedder", metavar="MODEL", help="Embedding model. Overrides the setting.")
@click.option("--columns", type=COLUMN_NAMES, help="Column names in FILE, such as question=q,answer=a.")
@click.option("--cache", type=_FILE, help="Store scores in this file, and score only the missing rows on later runs.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Score only the first N rows.")
@click.option("--fail-under", type=float, metavar="MEAN", help="Exit with 3 if a scorer's mean is below this value.")
@click.option(
    "--min-coverage",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit with 3 if the share of rows with a score is below this value.",
)
@click.option(
    "--report", "report_format", type=click.Choice(["markdown", "json", "html"]), help="Create a report in this format."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="File for the report, or for the scores if it ends with .parquet. With --engine, folder for the scores.",
)
@engine_option
@click.option(
    "--partition-size",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="With --engine, rows per partition. Defaults to 1000, or 500 with a judge.",
)
@click.option(
    "--estimate",
    is_flag=True,
    help="Only estimate requests, tokens and cost: of FILE, or without it, of a day of your application's traffic.",
)
@click.option(
    "--per-day",
    type=FiniteRange(0),
    metavar="N",
    help="With --estimate, exchanges per day. Defaults to the current traffic.",
)
@click.option("-y", "--yes", is_flag=True, help="With --engine, do not ask for confirmation.")
@click.pass_context
def command(
    context: click.Context,
    file: Path | None,
    scorers: tuple[str, ...],
    judge: str | None,
    embedder: str | None,
    columns: dict[str, str] | None,
    cache: Path | None,
    limit: int | None,
    fail_under: float | None,
    min_coverage: float | None,
    report_format: str | None,
    output: Path | None,
    engine: EngineOptions | None,
    partition_size: int | None,
    estimate: bool,  # noqa: FBT001 - click passes it by name
    per_day: float | None,
    yes: bool,  # noqa: FBT001
) -> None:
    """Score the rows of FILE, or estimate the cost.

    FILE is JSONL, JSON, CSV or Parquet, or a folder of Parquet files. Columns are question, answer and contexts, or
    user_input, response and retrieved_contexts as in Ragas. With --engine, the rows are scored in partitions on many
    processes, and the scores are written to Parquet files, so FILE may be larger than memory. An interrupted command
    continues where it stopped if it is repeated.

    With --estimate, nothing is sent to any judge or embedder: the scorers run on a sample of the rows, or of the stored
    exchanges, with a simulated judge that only counts requests and tokens.

    The command exits with 3 if a threshold is violated, and with 5 if no row could be scored, or if thresholds are set
    and a scorer has fewer than 20 scores.
    """
    from germane.evaluation import Evaluation, evaluate

    given = {"judge": judge, "embedder": embedder}
    overrides = cast("EvaluationSettingsArguments", {name: value for name, value in given.items() if value is not None})
    if estimate:
        settings = _load_settings(overrides, scorers, **database_setting())
        basis = load_basis(settings, per_day=per_day, file=file, columns=columns, limit=limit)
        context.exit(print_estimate(settings, basis, has_judge=judge is not None))
    if per_day is not None or database_setting():
        raise click.UsageError("--per-day and --database require --estimate")
    if file is None:
        raise click.UsageError("pass the FILE to score, or --estimate")
    # Check options first, because scoring may cost money.
    Evaluation(()).check(fail_under, min_coverage)
    if engine is None:
        require_engine(partition_size=partition_size, yes=yes)
        report_format = _check_report_options(report_format, output, inputs=[file, cache])
    else:
        _check_engine_options(report_format, output, cache)
        score_on_engine(
            context,
            engine,
            _load_settings(overrides, scorers),
            file,
            output=output or Path(f"{file}.scores"),
            columns=columns,
            limit=limit,
            partition_size=partition_size,
            confirmed=yes,
            thresholds=(fail_under, min_coverage),
        )
        return
    try:
        evaluation = evaluate(file, list(scorers) or None, columns=columns, cache=cache, limit=limit, **overrides)
    except KeyboardInterrupt:
        hint = (
            f"the scores so far are in {cache}; run again to continue" if cache else "without --cache, scores are lost"
        )
        click.echo(f"germane: interrupted; {hint}", err=True)
        raise
    has_thresholds = fail_under is not None or min_coverage is not None
    check = evaluation.check(fail_under, min_coverage) if has_thresholds else None
    _write_report(evaluation, report_format, output)
    if wants_json():
        print_json(_as_dict(evaluation, check))
    elif report_format is None or output is not None:
        _print(evaluation, check)
    context.exit(exit_code(check, has_scores=any(score.value is not None for score in evaluation.scores)))


def _load_settings(overrides: EvaluationSettingsArguments, scorers: Sequence[str], **others: str) -> Settings:
    return load_settings(**overrides, **others, **({"scorers": scorers} if scorers else {}))


def _check_engine_options(report_format: str | None, output: Path | None, cache: Path | None) -> None:
    if output is not None and output.suffix.lower() == PARQUET_SUFFIX:
        raise click.UsageError(
            f"--output must be a folder with --engine, not {output}: omit the extension, as in "
            f"--output {output.with_suffix('')}"
        )
    if cache is not None or report_format is not None:
        option = "--report" if cache is None else "--cache"
        raise click.UsageError(f"{option} does not apply with --engine, which writes the scores to --output")


def _check_report_options(report_format: str | None, output: Path | None, *, inputs: list[Path | None]) -> str | None:
    """Return the format of the report, derived from the output file if needed; None for no report."""
    if output is None:
        if report_format is not None and wants_json():
            raise click.UsageError("--json and --report both print to standard output; add --output FILE")
        return report_format
    report_format = report_format or REPORT_SUFFIXES.get(output.suffix.lower())
    if report_format is None and output.suffix.lower() != PARQUET_SUFFIX:
        raise click.UsageError(
            f"cannot determine the format of --output {output}; pass --report, or use one of these extensions: "
            f"{', '.join([*REPORT_SUFFIXES, PARQUET_SUFFIX])}"
        )
    if output.is_dir():
        raise click.UsageError(f"--output must be a file without --engine, not the folder {output}")
    if not output.parent.is_dir():
        raise click.UsageError(f"--output: the directory {output.parent} does not exist")
    if output.resolve() in {path.resolve() for path in inputs if path is not None}:
        raise click.UsageError(f"--output {output} would overwrite an input file")
    return report_format


def _write_report(evaluation: Evaluation, report_format: str | None, output: Path | None) -> None:
    if output is not None and output.suffix.lower() == PARQUET_SUFFIX:
        evaluation.to_parquet(output)
    elif report_format is not None:
        write_output(evaluation.report(report_format), output)  # type: ignore[arg-type]  # one of click's choices


def _print(evaluation: Evaluation, check: EvaluationCheck | None) -> None:
    from germane.evaluation import (
        find_problems,
        group_problems,
        problems_heading,
        similar_rows,
        small_sample_notes,
        unscored_rows,
        usage_sentence,
    )

    summaries = evaluation.summary()
    print_summaries(summaries)
    if missing := unscored_rows(evaluation.rows):
        click.echo("\nWithout a score:")
    for scorer, count, reason, explanation in missing:
        mostly = f", mostly: {sanitize.line(explanation)}" if explanation else ""
        click.echo(f"  {sanitize.line(scorer, 60)}: {count} {reason}{mostly}")
    for note in small_sample_notes(summaries):
        click.echo(note)
    problems = find_problems(evaluation.rows)
    if worst := group_problems(problems)[:MAX_WORST_ROWS]:
        click.echo(f"\n{problems_heading(worst, problems)}:")
    for problem, similar in worst:
        score, exchange = problem.score, problem.row.exchange
        value = "-" if score.value is None else describe_value(score.scorer, score.value)
        label = score.reason if score.value is None else score.label
        scorer, place = sanitize.line(score.scorer, 60), sanitize.line(problem.row.location)
        click.echo(f"{value:>5}  {sanitize.line(label)}  {scorer}  {place}")
        click.echo(f"       question  {sanitize.line(exchange.question)}")
        click.echo(f"       answer    {sanitize.line(exchange.answer)}")
        if score.explanation:
            click.echo(f"       reason    {sanitize.line(score.explanation)}")
        if similar:
            click.echo(f"       also      {similar_rows(problem, similar)}")
    click.echo(f"\n{usage_sentence(len(evaluation.rows), evaluation.usage)}")
    print_check(check)


def _as_dict(evaluation: Evaluation, check: EvaluationCheck | None) -> dict[str, Any]:
    from germane.evaluation import check_to_dict, find_problems, problem_to_dict, summary_to_dict

    problems = find_problems(evaluation.rows)
    content: dict[str, Any] = {
        "rows": len(evaluation.rows),
        "summary": list(map(summary_to_dict, evaluation.summary())),
        "problems": len(problems),
        "worst": list(map(problem_to_dict, problems[:MAX_WORST_ROWS])),
        "usage": evaluation.usage,
    }
    if check is not None:
        content["check"] = check_to_dict(check)
    return content
