"""``germane demo``: a small RAG application goes wrong, and is noticed."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from germane.cli.commands.worst import describe
from germane.cli.core.browser import open_in_browser
from germane.cli.core.output import as_json, harmless, print_json
from germane.cli.core.signals import listening
from germane.demo.traffic import BROKEN_ROUTE, FAULT_AT, LENGTH

if TYPE_CHECKING:
    from germane.demo.run import Moment, Outcome, Progress

CONNECT = """\
The judge here, {judge}, is a toy of 135 million parameters: it shows how germane works, not how well it judges.
With a real one: export OPENAI_API_KEY=...  (or OPENAI_BASE_URL=http://... for a server of your own), then again."""


@click.command("demo")
@click.option("--headless", is_flag=True, help="Show no progress and no pages.")
@click.option(
    "--seconds", default=LENGTH, show_default=True, type=click.FloatRange(5, 600), help="How long visitors come."
)
@as_json
def command(headless: bool, seconds: float, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Watch a small RAG application go wrong, and be told.

    On a terminal it ends by showing its data in the browser, until Ctrl-C.
    """
    from germane.demo.run import run

    logging.getLogger("germane").setLevel(logging.ERROR)  # the demo tells of its alerts itself
    if not as_json:
        click.echo(_wrapped(INTRODUCTION.format(length=seconds, fault_at=FAULT_AT * seconds / LENGTH)) + "\n")
    with nullcontext(_say_nothing) if headless or as_json else _progress() as progress:
        outcome = run(progress, length=seconds)
    if as_json:
        print_json(outcome.as_dict())
        return
    click.echo("\n".join(verdict(outcome)))
    if not headless and sys.stdout.isatty():
        _show(outcome.database)


def _show(database: str) -> None:
    """Serve the pages over what was captured, until a signal comes."""
    from germane.dashboard import create_app
    from germane.dashboard.server import Server
    from germane.demo.run import RULE, SCORER
    from germane.settings import load

    settings = load(database=database, token=None, rules=[{"scorer": SCORER, **RULE}])
    with listening() as ending:
        server = Server(create_app(settings), host="127.0.0.1", port=0)
        with server.running():
            address = f"{server.address}/?window=24h"
            click.echo(f"\nLook at it: {address}\nCtrl-C ends it.")
            open_in_browser(address)
            while server.serves and not ending.wait(1.0):
                pass


INTRODUCTION = f"""\
For {{length:.0f}} seconds visitors ask the documentation of an invented weather station, on three routes.
After {{fault_at:.0f}} seconds the index of the route '{BROKEN_ROUTE}' goes wrong: no request fails, but the answers are
about something else. germane scores a sample of the answers in the background, and is to notice."""


def verdict(outcome: Outcome) -> list[str]:
    """Return the lines that a person reads at the end."""
    return [
        "",
        *map(_wrapped, _headline(outcome)),
        *_worst(outcome),
        "",
        _wrapped(
            f"{outcome.captured} answers captured, {outcome.sampled} drawn, {outcome.scored} scored, "
            f"{outcome.failed} failed{_reasons(outcome)}, {outcome.waiting} still waiting."
        ),
        _wrapped(
            f"An OTLP receiver got {outcome.spans} handler spans: {outcome.on_original_span} carry their score, "
            f"{outcome.on_carrier_span} got it later, from a span that links to them."
        ),
        f"Look further: {_command()} report --database {outcome.database}",
        *(["", _wrapped(CONNECT.format(judge=outcome.judge))] if outcome.judge.startswith("local:") else []),
    ]


def _headline(outcome: Outcome) -> list[str]:
    fired = [alert for alert in outcome.alerts if alert.state == "firing"]
    found = [alert for alert in fired if alert.route == BROKEN_ROUTE and alert.at >= outcome.fault_at]
    told = [f"Alert {alert.at - outcome.fault_at:.0f} s after the fault: {harmless(alert.message)}" for alert in found]
    false = [
        f"A false alarm after {alert.at:.0f} s: {harmless(alert.message)}" for alert in fired if alert not in found
    ]
    if not found:
        return [f"No alert came, though '{BROKEN_ROUTE}' went wrong after {outcome.fault_at:.0f} s: a miss.", *false]
    before, after = (_mean(*means) for means in (outcome.before, outcome.after))
    means = f"mean relevancy {before} before the index went wrong, {after} since"
    return [f"'{BROKEN_ROUTE}' stopped answering the question: {means}.", *told, *false]


def _worst(outcome: Outcome) -> list[str]:
    title = f"The lowest answers of '{BROKEN_ROUTE}' since then, and the questions that the judge thought they answer:"
    lines = [line for scored in outcome.worst for line in describe(scored)]
    return ["", title, *lines] if lines else []


def _command() -> str:
    """Return what to type: the command may be in an environment that is not the shell's."""
    return "germane" if shutil.which("germane") else f"{sys.executable} -m germane"


def _wrapped(text: str) -> str:
    return click.wrap_text(" ".join(text.split()), shutil.get_terminal_size().columns)


def _mean(mean: float, n: int) -> str:
    return f"{mean:.2f} (n = {n})" if n else "unknown (n = 0)"


def _reasons(outcome: Outcome) -> str:
    told = ", ".join(f"{count} {reason}" for reason, count in outcome.failed_reasons.items())
    return f" ({told})" if told else ""


def _say_nothing(_moment: Moment) -> None:
    """Show nothing."""


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a bar, and a line for each thing that happens."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = ("{task.fields[asked]}", "{task.fields[scored]}")
    with Bar(TextColumn("{task.description}"), BarColumn(), *map(TextColumn, columns)) as bar:
        task, told = bar.add_task("starting", total=None, asked="", scored=""), set[str]()

        def show(moment: Moment) -> None:
            state = f"'{BROKEN_ROUTE}' is broken" if moment.broken_at else "healthy"
            asked, scored = f"{moment.asked} of {moment.visits} asked", f"{moment.counts.rows} scored"
            bar.update(task, description=state, completed=moment.asked, total=moment.visits, asked=asked, scored=scored)
            for line in _events(moment):
                if line not in told:
                    told.add(line)
                    bar.console.print(line, markup=False, highlight=False)

        yield show


def _events(moment: Moment) -> list[str]:
    fault = [] if moment.broken_at is None else [f"{moment.broken_at:4.0f} s  the index of '{BROKEN_ROUTE}' went wrong"]
    return fault + [f"{alert.at:4.0f} s  alert {alert.state}: {harmless(alert.message)}" for alert in moment.alerts]
