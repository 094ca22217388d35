"""``germane score``: score a data set, and check it against thresholds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from germane import sanitize
from germane.cli.commands.score.engine import DatasetRequest, exit_code, score_on_engine
from germane.cli.core.engines import engine_options, read_engine_options
from germane.cli.core.output import as_json, print_json, print_table, write_output
from germane.cli.core.params import ColumnNames
from germane.settings import load_settings

if TYPE_CHECKING:
    from germane.evaluation import EngineName, Evaluation, EvaluationCheck
    from germane.settings import EvaluationSettingsArguments

MAX_WORST_ROWS: Final = 5
REPORT_SUFFIXES: Final = {".md": "markdown", ".markdown": "markdown", ".json": "json", ".html": "html", ".htm": "html"}
PARQUET_SUFFIX: Final = ".parquet"
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("score")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Scorer to run. Repeatable.")
@click.option("--judge", metavar="MODEL", help="Judge model. Overrides the setting.")
@click.option("--embedder", metavar="MODEL", help="Embedding model. Overrides the setting.")
@click.option("--columns", type=ColumnNames(), help="Column names in FILE, such as question=q,answer=a.")
@click.option("--cache", type=_FILE, help="Store scores in this file, and score only the missing rows on later runs.")
@click.option(
    "--retry-timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Seconds to keep retrying an unavailable judge. Defaults to 60.",
)
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
@engine_options
@click.option(
    "--partition-size",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="With --engine, rows per partition. Defaults to 1000, or 500 with a judge.",
)
@click.option("--dry-run", is_flag=True, help="With --engine, only show what would be scored, and the estimated cost.")
@click.option("-y", "--yes", is_flag=True, help="With --engine, do not ask for confirmation.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    scorers: tuple[str, ...],
    judge: str | None,
    embedder: str | None,
    columns: dict[str, str] | None,
    cache: Path | None,
    retry_timeout: float | None,
    limit: int | None,
    fail_under: float | None,
    min_coverage: float | None,
    report_format: str | None,
    output: Path | None,
    engine: EngineName | None,
    workers: int | None,
    scheduler: str | None,
    partition_size: int | None,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
    yes: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Score the rows of FILE: JSONL, JSON, CSV or Parquet.

    FILE can be a folder of Parquet files. Columns are question, answer and contexts, or user_input, response and
    retrieved_contexts as in Ragas. With --engine, the rows are scored in partitions on many processes, and the scores
    are written to Parquet files, so FILE may be larger than memory. An interrupted command continues where it stopped
    if it is repeated.

    The command exits with 3 if a threshold is violated, and with 5 if no row could be scored, or if thresholds are set
    and a scorer has fewer than 20 scores.
    """
    from germane.evaluation import Evaluation, evaluate

    # Check options first, because scoring may cost money.
    Evaluation(()).check(fail_under, min_coverage)
    options = read_engine_options(engine, workers, scheduler, partition_size=partition_size, dry_run=dry_run, yes=yes)
    if options is None:
        report_format = _check_report_options(report_format, output, inputs=[file, cache], as_json=as_json)
    given = {"judge": judge, "embedder": embedder, "retry_timeout": retry_timeout}
    overrides = cast("EvaluationSettingsArguments", {name: value for name, value in given.items() if value is not None})
    if options is not None:
        _check_engine_options(report_format, output, cache)
        score_on_engine(
            context,
            options,
            DatasetRequest(file, output or Path(f"{file}.scores"), columns, limit, partition_size),
            load_settings(**overrides, scorers=scorers) if scorers else load_settings(**overrides),
            confirmed=yes,
            dry_run=dry_run,
            thresholds=(fail_under, min_coverage),
            as_json=as_json,
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
    if output is not None and output.suffix.lower() == PARQUET_SUFFIX:
        evaluation.to_parquet(output)
    elif report_format is not None:
        write_output(evaluation.report(report_format), output)  # type: ignore[arg-type]  # one of click's choices
    if as_json:
        print_json(_as_dict(evaluation, check))
    elif report_format is None or output is not None:
        _print(evaluation, check)
    context.exit(exit_code(check, has_scores=any(score.value is not None for score in evaluation.scores)))


def _check_engine_options(report_format: str | None, output: Path | None, cache: Path | None) -> None:
    if output is not None and output.suffix.lower() == PARQUET_SUFFIX:
        raise click.UsageError(
            f"--output must be a folder with --engine, not {output}: omit the extension, as in "
            f"--output {output.with_suffix('')}"
        )
    if cache is not None or report_format is not None:
        option = "--report" if cache is None else "--cache"
        raise click.UsageError(f"{option} does not apply with --engine, which writes the scores to --output")


def _check_report_options(
    report_format: str | None, output: Path | None, *, inputs: list[Path | None], as_json: bool
) -> str | None:
    """Return the format of the report, derived from the output file if needed; None for no report."""
    if output is None:
        if report_format is not None and as_json:
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


def _print(evaluation: Evaluation, check: EvaluationCheck | None) -> None:
    from germane.evaluation import (
        SUMMARY_HEADINGS,
        find_problems,
        group_problems,
        problems_heading,
        similar_rows,
        small_sample_notes,
        summary_cells,
        unscored_rows,
        usage_sentence,
    )

    if summaries := evaluation.summary():
        rows = [summary_cells(summary, summaries) for summary in summaries]
        print_table(SUMMARY_HEADINGS, [tuple(sanitize.line(cell, 60) for cell in row) for row in rows])
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
        value = "    -" if score.value is None else f"{score.value:5.2f}"
        label = score.reason if score.value is None else score.label
        scorer, place = sanitize.line(score.scorer, 60), sanitize.line(problem.row.location)
        click.echo(f"{value}  {sanitize.line(label)}  {scorer}  {place}")
        click.echo(f"       question  {sanitize.line(exchange.question)}")
        click.echo(f"       answer    {sanitize.line(exchange.answer)}")
        if score.explanation:
            click.echo(f"       reason    {sanitize.line(score.explanation)}")
        if similar:
            click.echo(f"       also      {similar_rows(problem, similar)}")
    click.echo(f"\n{usage_sentence(len(evaluation.rows), evaluation.usage)}")
    if check is not None:
        click.echo("\n" + "\n".join(sanitize.line(line, 1000) for line in str(check).splitlines()))


def _as_dict(evaluation: Evaluation, check: EvaluationCheck | None) -> dict[str, Any]:
    from germane.evaluation import check_to_dict, find_problems, problem_to_dict, summary_to_dict

    problems = find_problems(evaluation.rows)
    content: dict[str, Any] = {
        "rows": len(evaluation.rows),
        "summary": list(map(summary_to_dict, evaluation.summary())),
        "problems": len(problems),
        "worst": list(map(problem_to_dict, problems[:MAX_WORST_ROWS])),
        "usage": asdict(evaluation.usage),
    }
    if check is not None:
        content["check"] = check_to_dict(check)
    return content
