"""``germane worst``: show the answers with the lowest scores."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from germane import insights, sanitize
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import detect_terminal, print_json
from germane.cli.core.params import SINCE
from germane.cli.core.store import open_store
from germane.records import select
from germane.score import describe_value

if TYPE_CHECKING:
    from germane.insights import WorstAnswer
    from germane.storage import ScoredExchange

TEXT_INDENT: Final = 17
"""Number of columns to the left of a text."""


@click.command("worst", cls=Command)
@click.option("-n", "--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="Number of answers.")
@click.option("--since", type=SINCE, default="24h", show_default=True, help="Only answers given since this time.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", help="Only this scorer.")
def command(
    limit: int,
    since: datetime,
    route: str | None,
    scorer: str | None,
) -> None:
    """Show the answers with the lowest scores.

    The scores are those of one scorer; without --scorer, those of the scorer that germane report compares.
    """
    with open_store() as store:
        window = store.trends.window_summary(since=since, until=store.now())
        groups = window.services if route is None else [group for group in window.routes if group.route == route]
        chosen = insights.choose_scorer(groups, scorer)
        newest = [group for group in groups if group.newest and group.scorer == chosen]
        answers = insights.load_worst_answers(store, newest, since, limit=limit)
    if wants_json():
        listed = [
            {
                "exchange_id": answer.exchange.id,
                **select(answer.exchange, "trace_id", "service", "route", "started_at", "question", "answer"),
                **select(answer.score, "scorer", "fingerprint", "value", "label", "details"),
                "repetitions": answer.repetitions,
            }
            for answer in answers
        ]
        print_json({"since": since, "answers": listed})
        return
    if not answers:
        filters = f", scorer {sanitize.line(scorer, 60)}" if scorer else ""
        filters += f", route {sanitize.line(route, 40)}" if route else ""
        click.echo(f"No scores since {since:%Y-%m-%d %H:%M} UTC{filters}.")
    terminal = detect_terminal()
    for worst in answers:
        lines = describe_answer(worst)
        if worst.repetitions:
            lines.append(f"       also      {sanitize.count_noun(worst.repetitions, 'more answer')} with the same text")
        click.echo("\n".join(terminal.wrap_line(line, TEXT_INDENT) for line in lines) + "\n")


def describe_answer(answer: ScoredExchange | WorstAnswer) -> list[str]:
    """Return the lines that show an answer, its score and the questions generated from it."""
    exchange, score = answer.exchange, answer.score
    calibrated = score.details.get("calibrated")
    calibration = f" (calibrated {calibrated:z.2f})" if isinstance(calibrated, float) else ""
    where = f"{sanitize.line(exchange.route, 40)}  {exchange.started_at:%Y-%m-%d %H:%M:%S} UTC"
    lines = [
        f"{describe_value(score.scorer, score.value or 0.0):>5}  {sanitize.line(score.label)}{calibration}  {where}",
        f"       question  {_format_text(exchange.question)}",
        f"       answer    {_format_text(exchange.answer)}",
    ]
    generated = score.details.get("questions")  # scorers other than answer_relevancy may store anything here
    rows = generated if isinstance(generated, list) else []
    lines += [
        f"       generated {_format_text(row.get('text'))}  ({row['similarity']:z.2f})"
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("similarity"), (int, float))
    ]
    return [*lines, f"       scorer    {sanitize.line(score.scorer)}, exchange {sanitize.line(exchange.id)}"]


def _format_text(captured: Any) -> str:
    return "(erased or not stored)" if captured is None else sanitize.line(str(captured))
