"""``germane worst``: the answers with the lowest scores, and why they are low."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from germane.cli.core.output import Since, as_json, database, harmless, print_json
from germane.cli.core.store import opened
from germane.cli.core.terminal import terminal

if TYPE_CHECKING:
    from germane.score import Score
    from germane.storage import Scored


_INDENT: Final = 17
"""Columns before a text."""


@click.command("worst")
@click.option("-n", "--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@click.option("--since", type=Since(), default="24h", show_default=True, help="Answers given since then.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", help="Only this scorer.")
@database
@as_json
def command(
    limit: int,
    since: datetime,
    route: str | None,
    scorer: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Show the answers with the lowest scores."""
    with opened(database) as store:
        found = store.worst(since=since, route=route, scorer=scorer, limit=limit)
    if as_json:
        print_json({"since": since, "answers": [_as_dict(scored) for scored in found]})
        return
    where = terminal()
    if not found:
        of = f", by {harmless(scorer, 60)}" if scorer else ""
        of += f", route {harmless(route, 40)}" if route else ""
        click.echo(f"No scores since {since:%Y-%m-%d %H:%M} UTC{of}.")
    for scored in found:
        click.echo("\n".join(where.folded(line, _INDENT) for line in describe(scored)) + "\n")


def describe(scored: Scored) -> list[str]:
    """Return the lines that show one answer and what its score was made from."""
    exchange, score = scored.exchange, scored.score
    source = f"{harmless(exchange.route, 40)}  {exchange.started_at:%Y-%m-%d %H:%M:%S} UTC"
    lines = [
        f"{score.value:5.2f}  {harmless(score.label)}{_calibrated(score)}  {source}",
        f"       asked     {_text(exchange.question)}",
        f"       answered  {_text(exchange.answer)}",
    ]
    lines += [f"       reads as  {_text(one.get('text'))}  ({one['similarity']:.2f})" for one in _questions(score)]
    return [*lines, f"       scored    by {harmless(score.scorer)}, exchange {harmless(exchange.id)}"]


def _text(kept: Any) -> str:
    return "(erased, or never kept)" if kept is None else harmless(str(kept))


def _calibrated(score: Score) -> str:
    """Return the value that the label stands for, where that is not the raw one."""
    value = score.details.get("calibrated")
    return f" (calibrated {value:.2f})" if isinstance(value, float) else ""


def _questions(score: Score) -> list[Mapping[str, Any]]:
    """Return the judge's questions. Another scorer may keep anything under that name."""
    found = score.details.get("questions")
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("similarity"), (int, float))]


def _as_dict(scored: Scored) -> dict[str, Any]:
    exchange, score = scored.exchange, scored.score
    return {
        "exchange_id": exchange.id,
        "trace_id": exchange.trace_id,
        "service": exchange.service,
        "route": exchange.route,
        "started_at": exchange.started_at.isoformat(),
        "question": exchange.question,
        "answer": exchange.answer,
        "scorer": score.scorer,
        "fingerprint": score.fingerprint,
        "value": score.value,
        "label": score.label,
        "details": dict(score.details),
    }
