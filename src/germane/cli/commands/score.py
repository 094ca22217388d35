"""``germane score``: a data set now, and whether it is good enough."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli.commands.report import NOT_ENOUGH_DATA, THRESHOLD_BROKEN
from germane.cli.core.output import as_json, harmless, print_json, print_table

if TYPE_CHECKING:
    from germane.evaluation import Check, Evaluation, Problem

SHOWN = 5
"""Rows that are shown as the worst."""
_ENDINGS = {".md": "markdown", ".markdown": "markdown", ".json": "json", ".html": "html", ".htm": "html"}
_FILE = click.Path(dir_okay=False, path_type=Path)


class Columns(click.ParamType[dict[str, str]]):
    """Pairs such as ``question=q,answer=a``."""

    name = "name=column"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in str(value).split(",") if pair.strip()]
        if not all(name.strip() and column.strip() for name, _, column in pairs):
            self.fail(f"{value!r} is not of the form question=q,answer=a", param, ctx)
        return {name.strip(): column.strip() for name, _, column in pairs}


@click.command("score")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Which; again for more than one.")
@click.option("--judge", metavar="MODEL", help="Judge, when it is not the one of the settings.")
@click.option("--embedder", metavar="MODEL", help="Embedder, when it is not the one of the settings.")
@click.option("--columns", type=Columns(), help="Your names of columns, such as question=q,answer=a.")
@click.option("--cache", type=_FILE, help="A file that keeps each score: run again, only what is missing is asked.")
@click.option("--retry-for", type=click.FloatRange(0), metavar="SECONDS", help="How long to wait for a judge: 60.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Score only the first N rows.")
@click.option("--fail-under", type=float, metavar="MEAN", help="Exit with 3 when a scorer's mean is lower.")
@click.option(
    "--min-coverage", type=click.FloatRange(0, 1), metavar="SHARE", help="Exit with 3 when fewer rows have a score."
)
@click.option("--report", "kind", type=click.Choice(["markdown", "json", "html"]), help="Write a report.")
@click.option("--output", type=_FILE, help="Where to; by default the report is printed.")
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
    retry_for: float | None,
    limit: int | None,
    fail_under: float | None,
    min_coverage: float | None,
    kind: str | None,
    output: Path | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Score the rows of FILE: JSONL, JSON, CSV or Parquet.

    Columns are question, answer and contexts, or Ragas' user_input, response and retrieved_contexts. With thresholds it
    exits with 3 when one is broken, and with 5 when a scorer has fewer than 20 scores; with 5 also when no row at all
    could be scored.
    """
    from germane.evaluation import Evaluation, evaluate

    Evaluation(()).check(fail_under, min_coverage)  # a wrong threshold is told before anything is paid for
    kind = _kind(kind, output, [file, *([cache] if cache else [])], as_json=as_json)
    given = {"judge": judge, "embedder": embedder, "retry_for": retry_for}
    settings = {name: value for name, value in given.items() if value is not None}
    try:
        evaluation = evaluate(file, list(scorers) or None, columns=columns, cache=cache, limit=limit, **settings)
    except KeyboardInterrupt:
        kept = f"what was scored is in {cache}: run again to go on" if cache else "nothing was kept: --cache would have"
        click.echo(f"germane: interrupted; {kept}", err=True)
        raise
    check = evaluation.check(fail_under, min_coverage)
    thresholds = fail_under is not None or min_coverage is not None
    if kind is not None:
        _write(evaluation.report(kind), output)  # type: ignore[arg-type]  # one of click's choices
    if as_json:
        print_json(_as_dict(evaluation, check if thresholds else None))
    elif kind is None or output is not None:
        _print(evaluation, check if thresholds else None)
    context.exit(_code(evaluation, check, thresholds=thresholds))


def _kind(kind: str | None, output: Path | None, read: list[Path], *, as_json: bool) -> str | None:
    """Return the kind of the report. What is wrong is said before anything is paid for."""
    if output is None:
        if kind is not None and as_json:
            raise click.UsageError("--json and --report would both print: name a file with --output")
        return kind
    kind = kind or _ENDINGS.get(output.suffix.lower())
    if kind is None:
        raise click.UsageError(f"--output {output} ends in none of {', '.join(_ENDINGS)}: say which with --report")
    if not output.parent.is_dir():
        raise click.UsageError(f"--output: there is no folder {output.parent}")
    if output.resolve() in {path.resolve() for path in read}:
        raise click.UsageError(f"--output {output} would overwrite what is read")
    return kind


def _code(evaluation: Evaluation, check: Check, *, thresholds: bool) -> int:
    if thresholds and check.broken:
        return THRESHOLD_BROKEN
    nothing = not any(score.value is not None for score in evaluation.scores)
    return NOT_ENOUGH_DATA if nothing or (thresholds and not check.enough_data) else 0


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror or error}") from None


def _print(evaluation: Evaluation, check: Check | None) -> None:
    from germane.evaluation.report import HEADINGS, absences, said_once, summary_cells, took, worst_title

    summaries = evaluation.summary()
    if summaries:
        rows = [summary_cells(found, summaries) for found in summaries]
        print_table(HEADINGS, [tuple(harmless(cell, 60) for cell in row) for row in rows])
    if missing := absences(evaluation):
        click.echo("\nWithout a score:")
    for scorer, count, reason, why in missing:
        click.echo(f"  {harmless(scorer, 60)}: {count} {reason}{f', mostly: {harmless(why)}' if why else ''}")
    problems = evaluation.problems()
    worst = said_once(problems)[:SHOWN]
    if worst:
        click.echo(f"\n{worst_title(worst, problems)}:")
    for problem, more in worst:
        click.echo("\n".join(_described(problem, more)))
    click.echo(f"\n{took(evaluation)}")
    if check is not None:
        click.echo("\n" + "\n".join(harmless(line, 1000) for line in str(check).splitlines()))


def _described(problem: Problem, more: int) -> list[str]:
    from germane.evaluation.report import likewise

    score, exchange = problem.score, problem.row.exchange
    value = "    -" if score.value is None else f"{score.value:5.2f}"
    told = score.reason if score.value is None else score.label
    return [
        f"{value}  {harmless(told)}  {harmless(score.scorer, 60)}  {harmless(problem.row.place)}",
        f"       asked     {harmless(exchange.question)}",
        f"       answered  {harmless(exchange.answer)}",
        *([f"       because   {harmless(score.explanation)}"] if score.explanation else []),
        *([f"       and       {likewise(more)}"] if more else []),
    ]


def _as_dict(evaluation: Evaluation, check: Check | None) -> dict[str, Any]:
    from germane.evaluation.report import problem_dict, summary_dict

    problems = evaluation.problems()
    found: dict[str, Any] = {
        "rows": len(evaluation.rows),
        "summary": [summary_dict(summary) for summary in evaluation.summary()],
        "problems": len(problems),
        "worst": [problem_dict(problem) for problem in problems[:SHOWN]],
        "spending": asdict(evaluation.spending),
    }
    if check is not None:
        findings = [
            {"scorer": each.scorer, "broken": each.broken, "enough": each.enough_data, "sentence": each.sentence}
            for each in check.findings
        ]
        found["check"] = {"passed": check.passed, "enough": check.enough_data, "findings": findings}
    return found
