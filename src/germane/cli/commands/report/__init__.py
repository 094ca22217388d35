"""``germane report``: how each route does, with what is known of how sure that is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from germane.cli.commands.report import data as finding
from germane.cli.commands.report import text as plain
from germane.cli.commands.report.data import Found, Of
from germane.cli.core.output import as_json, database, dumped
from germane.cli.core.params import Marked, Past, SinceMark, Span, moment_of
from germane.cli.core.store import opened, settings_for
from germane.cli.core.terminal import Terminal, terminal
from germane.cli.render import comparison
from germane.cli.render.comparison import ENOUGH
from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store

THRESHOLD_BROKEN: Final = 3
NOT_ENOUGH_DATA: Final = 5


@click.command("report")
@click.option(
    "--since",
    type=SinceMark(),
    default="24h",
    show_default=True,
    help="Answers given since then: a span, a moment, mark (the newest) or mark:NAME.",
)
@click.option("--until", type=Past(), help="Answers given before then; by default until now.")
@click.option("--service", help="Only this service, and its marks.")
@click.option("--route", help="Only this route.")
@click.option("--fail-under", type=float, metavar="MEAN", help="Exit with 3 when a mean is lower.")
@click.option("--compare", "compares", is_flag=True, help="Compare with the time before.")
@click.option("--fail-on-drop", is_flag=True, help="Compare, and exit with 3 when a route dropped for sure.")
@click.option("--before", type=Span(), help="How much of the time before; by default as much as there is since.")
@click.option(
    "--min-drop", type=click.FloatRange(0, 2), default=0.0, metavar="DROP", help="Only a drop larger than this is one."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "markdown", "md", "html", "json"]),
    help="How it is written; html is one file with pictures.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    since: datetime | Marked,
    until: datetime | None,
    service: str | None,
    route: str | None,
    fail_under: float | None,
    compares: bool,  # noqa: FBT001 - click passes it by name
    fail_on_drop: bool,  # noqa: FBT001
    before: timedelta | None,
    min_drop: float,
    format_: str | None,
    output: Path | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Show how each route does, and what changed since a deploy."""
    kind = _kind(format_, as_json=as_json)
    compares = compares or fail_on_drop or (isinstance(since, Marked) and kind in _PAGES)
    with opened(database) as store:
        moment, mark = moment_of(store, since, service)
        if until is not None and until <= moment:
            raise click.BadParameter("it is not after --since", param_hint="--until")
        found = finding.read(store, moment, Of(service, route), until)
        asked: dict[str, Any] = {"until": until, "service": service, "route": route, "min_drop": min_drop}
        earlier = None if before is None else (moment - before, moment)
        if compares:
            found = replace(found, comparisons=store.compare(since=moment, before=earlier, **asked), mark=mark)
        where = terminal() if output is None else Terminal()
        text = _written(kind, store, found, settings_for(database), where)
    _put(text, output)
    codes = {0 if fail_under is None else _code(found, fail_under)}
    codes |= {comparison.code(found.comparisons)} if found.comparisons is not None and fail_on_drop else set()
    context.exit(next(code for code in (THRESHOLD_BROKEN, NOT_ENOUGH_DATA, 0) if code in codes))


def _kind(given: str | None, *, as_json: bool) -> str:
    if as_json and given not in {None, "json"}:
        raise click.UsageError(f"--json and --format {given} exclude each other")
    return "json" if as_json else _SHORT.get(given or "text", given or "text")


_SHORT: Final = {"md": "markdown"}
_PAGES: Final = ("markdown", "html")


def _written(kind: str, store: Store, found: Found, settings: Settings, where: Terminal) -> str:
    if kind == "json":
        return dumped(finding.as_dict(found)) + "\n"
    if kind not in _PAGES:
        return plain.written(found, where)
    from germane.cli.commands.report.html import look

    pictured = look(store, settings, found)
    if kind == "html":
        from germane.cli.commands.report.html import page

        return page(found, pictured)
    from germane.cli.commands.report.markdown import document

    return document(found, pictured)


def _put(text: str, output: Path | None) -> None:
    if output is None or str(output) == "-":
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {output}.", err=True)


def _code(found: Found, fail_under: float) -> int:
    """Judge each route by the newest fingerprint alone: what was measured otherwise says nothing of today."""
    newest = [one for one in found.summaries if one.newest]
    judged = [one for one in newest if one.n >= ENOUGH]
    if any(one.mean < fail_under for one in judged):
        return THRESHOLD_BROKEN
    unscored = any(not one.scored and (one.failed or one.pending) for one in found.coverage)
    return 0 if judged and len(judged) == len(newest) and not unscored else NOT_ENOUGH_DATA
