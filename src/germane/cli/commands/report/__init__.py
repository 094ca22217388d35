"""``germane report``: report means, intervals and coverage for each route."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from germane import insights, sanitize
from germane.cli.commands.report.data import HEADINGS, ReportData, describe_labels, load_report, load_verdict
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import (
    EXIT_NOT_ENOUGH_DATA,
    EXIT_THRESHOLD_VIOLATED,
    Terminal,
    detect_terminal,
    format_json,
    format_table,
    wrap,
    write_output,
)
from germane.cli.core.params import DURATION, PAST_TIME, SINCE_MARKER, MarkerName, resolve_since
from germane.cli.core.render import (
    comparison_exit_code,
    comparison_tables,
    comparison_title,
    describe_learning,
    describe_missing_scores,
    describe_result,
)
from germane.cli.core.store import load_command_settings, open_store
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

_DOCUMENT_FORMATS: Final = ("markdown", "html")
_FORMAT_BY_SUFFIX: Final = {
    ".html": "html", ".htm": "html", ".json": "json", ".markdown": "markdown", ".md": "markdown", ".txt": "text",
}  # fmt: skip


@click.command("report", cls=Command)
@click.option(
    "--since",
    type=SINCE_MARKER,
    default="24h",
    show_default=True,
    help="Start of the window: a duration, a time, mark (the newest marker) or mark:NAME.",
)
@click.option("--until", type=PAST_TIME, help="Only answers given before this time. Defaults to now.")
@click.option("--service", help="Only this service and its markers.")
@click.option("--route", help="Only this route.")
@click.option("--fail-under", type=float, metavar="MEAN", help="Exit with 3 if a mean is below this value.")
@click.option("--compare", is_flag=True, help="Compare with the preceding window.")
@click.option("--fail-on-drop", is_flag=True, help="Compare, and exit with 3 if a route dropped significantly.")
@click.option("--before", type=DURATION, help="Length of the preceding window. Defaults to the length of the window.")
@click.option(
    "--min-drop", type=click.FloatRange(0, 2), default=0.0, metavar="DROP", help="Ignore drops up to this size."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "markdown", "md", "html", "json"]),
    help="Output format. HTML is a single file with charts. Defaults to the output file's extension, or to text.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
@click.pass_context
def command(
    context: click.Context,
    since: datetime | MarkerName,
    until: datetime | None,
    service: str | None,
    route: str | None,
    fail_under: float | None,
    compare: bool,  # noqa: FBT001 - click passes it by name
    fail_on_drop: bool,  # noqa: FBT001
    before: timedelta | None,
    min_drop: float,
    format_: str | None,
    output: Path | None,
) -> None:
    """Report the scores of each route, or compare two windows.

    Each mean comes with its number of scores and 95% interval. Means of fewer than 20 scores are not shown. With
    --since mark, --format markdown and html include the comparison.
    """
    format_ = _choose_format(format_, output)
    compare = compare or fail_on_drop or (isinstance(since, MarkerName) and format_ in _DOCUMENT_FORMATS)
    with open_store() as store:
        start, marker = resolve_since(store, since, service)
        if until is not None and until <= start:
            raise click.BadParameter("must be after --since", param_hint="--until")
        report = load_report(store, start, until, service=service, route=route)
        if compare:
            earlier = None if before is None else (start - before, start)
            comparisons = store.trends.compare(
                since=start, before=earlier, until=until, service=service, route=route, min_drop=min_drop
            )
            report = replace(report, comparisons=comparisons, marker=marker)
        terminal = detect_terminal() if output is None else Terminal()
        text = _format_report(store, load_command_settings(), report, format_, terminal)
    write_output(text, None if str(output) == "-" else output)
    if output is not None and str(output) != "-":
        click.echo(f"Wrote {output}.", err=True)
    codes = {0 if fail_under is None else _threshold_exit_code(report, fail_under)}
    if report.comparisons is not None and fail_on_drop:
        codes.add(comparison_exit_code(report.comparisons))
    context.exit(next(code for code in (EXIT_THRESHOLD_VIOLATED, EXIT_NOT_ENOUGH_DATA, 0) if code in codes))


def _choose_format(format_: str | None, output: Path | None) -> str:
    if wants_json() and format_ not in {None, "json"}:
        raise click.UsageError(f"--json and --format {format_} are mutually exclusive")
    if wants_json():
        return "json"
    if format_ is None:
        return "text" if output is None else _FORMAT_BY_SUFFIX.get(output.suffix.lower(), "text")
    return "markdown" if format_ == "md" else format_


def _format_report(
    store: TrackingStore, settings: Settings, report: ReportData, format_: str, terminal: Terminal
) -> str:
    if format_ == "json":
        return format_json(report.as_dict()) + "\n"
    if format_ in _DOCUMENT_FORMATS:
        from germane.cli.commands.report.document import create_document, load_style

        document = create_document(store, settings, report)
        # Charts escape markup but not control characters, and the output may go to a terminal.
        return (
            sanitize.text(insights.to_html(document, style=load_style()))
            if format_ == "html"
            else insights.to_markdown(document)
        )
    verdict, _ = load_verdict(store, settings, report)
    return format_text(report, verdict, terminal, describe_labels(settings, report))


def format_text(report: ReportData, verdict: str, terminal: Terminal, people: str = "") -> str:
    """Format a report for people, beginning with the verdict. Each scorer gets its own table.

    Lines fit the width, also in a pipe or a file, where it is 80 columns. Programs read ``--json``.
    """
    terminal = replace(terminal, is_interactive=True)
    lines = [
        line for text in filter(None, (verdict, people)) for line in wrap(sanitize.line(text, 1000), terminal.width, "")
    ]
    lines += ["", f"Answers given {report.window}", ""]
    if not report.summaries:
        lines.append("No scores.")
    else:
        for number, scorer in enumerate(dict.fromkeys(row[1] for row in report.rows)):
            rows = [(row[0], *row[2:]) for row in report.rows if row[1] == scorer]
            lines += [""] * bool(number)
            lines += [terminal.style(scorer, bold=True), *format_table((HEADINGS[0], *HEADINGS[2:]), rows, terminal)]
    for note in report.notes:
        lines += ["", terminal.wrap_line(note, 0)]
    if missing := describe_missing_scores(report.coverages, report.backlog):
        lines += ["", "Without a score:", *(terminal.wrap_line(f"  {line}", 4) for line in missing)]
    if report.learning:
        lines.append("")
        lines += [terminal.wrap_line(describe_learning(version, report.loaded_at), 4) for version in report.learning]
    if report.comparisons is not None:
        lines += ["", terminal.wrap_line(comparison_title(report.comparisons, report.marker), 0), ""]
        for scorer, headings, rows in comparison_tables(report.comparisons):
            lines += [terminal.style(scorer, bold=True), *format_table(headings, rows, terminal), ""]
        if report.comparisons.services:
            lines += ["All routes: weighted by the earlier traffic of each route.", ""]
        lines += [terminal.wrap_line(line, 2) for line in describe_result(report.comparisons)]
    return "\n".join(lines) + "\n"


def _threshold_exit_code(report: ReportData, fail_under: float) -> int:
    """Return the exit code for ``--fail-under``. Only scores of the newest fingerprint of each route count."""
    newest = [summary for summary in report.summaries if summary.newest]
    checked = [summary for summary in newest if summary.n >= MIN_SAMPLES]
    if any(summary.mean < fail_under for summary in checked):
        return EXIT_THRESHOLD_VIOLATED
    has_unscored = any(not each.scored and (each.failed or each.pending) for each in report.coverages)
    return 0 if checked and len(checked) == len(newest) and not has_unscored else EXIT_NOT_ENOUGH_DATA
