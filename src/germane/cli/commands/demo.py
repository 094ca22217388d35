"""``germane demo``: watch germane detect when a small RAG application goes wrong."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from germane import dashboard, sanitize
from germane.cli.commands.worst import describe_answer
from germane.cli.core.command import JSON, Command, wants_json
from germane.cli.core.output import open_in_browser, print_json
from germane.cli.core.signals import handle_shutdown_signals
from germane.demo import BROKEN_ROUTE, DURATION, FAULT_TIME

if TYPE_CHECKING:
    from germane.demo import DemoProgress, DemoResult, ProgressCallback

INTRODUCTION: Final = f"""\
For {{duration:.0f}} seconds, visitors ask questions about a fictional weather station on three routes.
After {{fault_time:.0f}} seconds, the index of the route '{BROKEN_ROUTE}' breaks: no request fails, but the answers are
about something else. germane scores a sample of the answers in the background and should raise an alert."""
MAX_PENDING: Final = 0.1
"""Share of unscored answers above which a missed fault is blamed on the judge's speed."""
TOY_JUDGE_NOTE: Final = """\
The judge {judge} is a toy model with 135 million parameters. It shows how germane works, not how well it judges.
For a real judge, set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server, and run the demo again."""


@click.command("demo", cls=Command, shared=(JSON,))
@click.option("--headless", is_flag=True, help="Do not show progress or the dashboard.")
@click.option(
    "--seconds",
    default=DURATION,
    show_default=True,
    type=click.FloatRange(5, 600),
    help="Duration of the traffic, in seconds.",
)
def command(headless: bool, seconds: float) -> None:  # noqa: FBT001 - click passes it by name
    """Watch germane detect when a RAG application goes wrong.

    Runs a small RAG application and breaks one of its indexes. On a terminal, it then opens the dashboard in
    the browser and serves it until you press Ctrl-C.
    """
    from germane.demo import run_demo

    logging.getLogger("germane").setLevel(logging.ERROR)  # the demo prints alerts itself
    if wants_json():
        print_json(run_demo(lambda _progress: None, duration=seconds).as_dict())
        return
    introduction = INTRODUCTION.format(duration=seconds, fault_time=FAULT_TIME * seconds / DURATION)
    click.echo(_wrap(introduction) + "\n")
    if headless:
        result = run_demo(lambda _progress: None, duration=seconds)
    else:
        with _show_progress() as callback:
            result = run_demo(callback, duration=seconds)
    click.echo("\n".join(describe_result(result)))
    if not headless and sys.stdout.isatty():
        from germane.demo import RULE, SCORER
        from germane.settings import load_settings
        from germane.web_server import WebServer

        settings = load_settings(database=result.database, dashboard_token=None, rules=[{"scorer": SCORER, **RULE}])
        with handle_shutdown_signals() as shutdown:
            server = WebServer(dashboard.create_app(settings), host="127.0.0.1", port=0)
            with server.running():
                url = f"{server.address}/?window=24h"
                click.echo(f"\nDashboard: {url}\nPress Ctrl-C to stop.")
                open_in_browser(url)
                while server.is_serving and not shutdown.wait(1.0):
                    pass


def describe_result(result: DemoResult) -> list[str]:
    """Return the lines printed at the end of a run."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in result.failed_reasons.items())
    counts = (
        f"{result.captured} answers captured, {result.sampled} sampled, {result.scored} scored, "
        f"{result.failed} failed{f' ({reasons})' if reasons else ''}, {result.pending} pending."
    )
    spans = (
        f"An OTLP receiver received {result.spans} handler spans: {result.on_original_span} with their score, and "
        f"{result.on_carrier_span} whose score arrived later on a linked span."
    )
    lowest = [line for answer in result.worst for line in describe_answer(answer)]
    if lowest:
        title = (
            f"Lowest-scoring answers of '{BROKEN_ROUTE}' since the fault, with the questions that the judge generated:"
        )
        lowest = ["", title, *lowest]
    program = "germane" if shutil.which("germane") else f"{sys.executable} -m germane"
    note = ["", _wrap(TOY_JUDGE_NOTE.format(judge=result.judge))] if result.judge.startswith("local:") else []
    return [
        "",
        *map(_wrap, _describe_detection(result)),
        *lowest,
        "",
        _wrap(counts),
        _wrap(spans),
        f"To explore the data: {program} report --database {result.database}",
        *note,
    ]


def _describe_detection(result: DemoResult) -> list[str]:
    fired = [alert for alert in result.alerts if alert.state == "firing"]
    detected = [alert for alert in fired if alert.route == BROKEN_ROUTE and alert.at >= result.fault_at]
    false_alerts = [
        f"False alert after {alert.at:.0f} s: {sanitize.line(alert.message)}"
        for alert in fired
        if alert not in detected
    ]
    if not detected:
        missed = f"Missed: '{BROKEN_ROUTE}' broke after {result.fault_at:.0f} s, but no alert fired."
        if result.pending > MAX_PENDING * result.sampled:
            missed += (
                f" The judge was too slow: {result.pending} of {result.sampled} answers were not scored in time. Close "
                "other programs, and run the demo again."
            )
        return [missed, *false_alerts]
    before, after = (f"{mean:.2f} (n = {n})" if n else "unknown (n = 0)" for mean, n in (result.before, result.after))
    return [
        f"'{BROKEN_ROUTE}' stopped answering the question: mean relevancy {before} before the fault, {after} after it.",
        *(
            f"Alert {alert.at - result.fault_at:.0f} s after the fault: {sanitize.line(alert.message)}"
            for alert in detected
        ),
        *false_alerts,
    ]


@contextmanager
def _show_progress() -> Iterator[ProgressCallback]:
    """Show a progress bar, and one line per event."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = ("{task.fields[asked]}", "{task.fields[scored]}")
    with Progress(TextColumn("{task.description}"), BarColumn(), *map(TextColumn, columns)) as bar:
        task, printed_events = bar.add_task("starting", total=None, asked="", scored=""), set[str]()

        def update(progress: DemoProgress) -> None:
            bar.update(
                task,
                description="healthy" if progress.broken_at is None else f"'{BROKEN_ROUTE}' is broken",
                completed=progress.asked,
                total=progress.visits,
                asked=f"{progress.asked} of {progress.visits} asked",
                scored=f"{progress.counts.scores} scored",
            )
            events = [
                f"{alert.at:4.0f} s  alert {alert.state}: {sanitize.line(alert.message)}" for alert in progress.alerts
            ]
            if progress.broken_at is not None:
                events.insert(0, f"{progress.broken_at:4.0f} s  the index of '{BROKEN_ROUTE}' broke")
            for event in events:
                if event not in printed_events:
                    printed_events.add(event)
                    bar.console.print(event, markup=False, highlight=False)

        yield update


def _wrap(text: str) -> str:
    return click.wrap_text(" ".join(text.split()), shutil.get_terminal_size().columns)
