"""``germane worker``: scores in the background, beside applications that only capture."""

from __future__ import annotations

from typing import Any, Literal

import click

from germane.cli.core.output import database
from germane.cli.core.params import Address, Listening
from germane.cli.core.signals import listening

GRACE = 30.0
"""Seconds that a stop may take: as long as Kubernetes waits, less what it takes to notice."""


@click.command("worker")
@click.option("--once", is_flag=True, help="One round: sample, score what is ready, watch; then exit.")
@click.option("--until-empty", is_flag=True, help="Exit once nothing waits for a decision or a score.")
@click.option("--concurrency", type=click.IntRange(1, 1024), help="Judge requests in flight, instead of the setting.")
@click.option("--import", "modules", multiple=True, metavar="MODULE", help="Import your scorers first; repeatable.")
@click.option(
    "--grace", default=GRACE, show_default=True, type=click.FloatRange(0), help="Seconds that a stop may take."
)
@click.option(
    "--metrics",
    type=Listening(),
    help="Show what is measured at /metrics there, for Prometheus; 127.0.0.1 unless told, and port 0 takes a free one.",
)
@database
@click.pass_context
def command(
    context: click.Context,
    once: bool,  # noqa: FBT001 - click passes it by name
    until_empty: bool,  # noqa: FBT001
    concurrency: int | None,
    modules: tuple[str, ...],
    grace: float,
    metrics: Address | None,
    database: str | None,
) -> None:
    """Score what applications capture, until SIGTERM or SIGINT.

    It takes no more work then, finishes what it holds or hands it back, and exits with 0, after SIGINT with 130. A
    second signal ends it at once.
    """
    if once and until_empty:
        raise click.UsageError("--once and --until-empty exclude one another")
    with listening() as ending:
        from germane.cli.worker import Worker

        worker = Worker(_arguments(database, concurrency, modules), ending, grace=grace, metrics=metrics)
        context.exit(worker.run(_how_long(once=once, until_empty=until_empty)))


def _how_long(*, once: bool, until_empty: bool) -> Literal["once", "until empty", "for ever"]:
    if once:
        return "once"
    return "until empty" if until_empty else "for ever"


def _arguments(database: str | None, concurrency: int | None, modules: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that the options stand for. A worker scores, also where the environment says otherwise."""
    given = {"database": database, "concurrency": concurrency, "imports": modules or None}
    return {"role": "all"} | {name: value for name, value in given.items() if value is not None}
