"""A report in Markdown, in which nothing that was captured means anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from germane.cli.commands.report import data as finding
from germane.cli.commands.report.data import CORRECTED, HEADINGS, cells
from germane.cli.render import baseline, comparison, coverage
from germane.sanitize import markdown

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.cli.commands.report.data import Found
    from germane.cli.commands.report.html import Pictured
    from germane.insights.worst_answers import Worst

_WIDTH = 400
"""Characters of a question or an answer that are shown."""


def document(found: Found, pictured: Pictured) -> str:
    """Return the report."""
    sections = [
        ["# germane report"],
        [f"**{markdown(pictured.sentence, 1000)}**"],
        [f"Answers given {finding.window(found)}, as known at {found.now:%Y-%m-%d %H:%M} UTC."],
        *_routes(found),
        *_comparison(found),
        *_worst(pictured),
        *_alerts(pictured),
        *_missing(found),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _routes(found: Found) -> Iterator[list[str]]:
    yield ["## Routes"]
    rows = [cells(one, found.summaries) for one in found.summaries]
    yield _table(HEADINGS, rows) if rows else ["No scores."]
    if any(one.correlation is not None for one in found.summaries):
        yield [CORRECTED]
    for floor in found.calibrations:
        yield [
            f"Labels and low answers of {markdown(floor.scorer, 40)}: {markdown(str(floor))}; means are of raw values."
        ]


def _comparison(found: Found) -> Iterator[list[str]]:
    if found.comparisons is None:
        return
    yield ["## Before and after"]
    yield [markdown(comparison.title(found.comparisons, found.mark), 400)]
    if rows := comparison.rows(found.comparisons):
        yield _table(comparison.HEADINGS, rows)
    yield [f"- {markdown(line, 400)}" for line in comparison.verdict(found.comparisons)]


def _worst(pictured: Pictured) -> Iterator[list[str]]:
    if pictured.worst:
        yield [f"## Worst answers by {markdown(pictured.scorer, 60)}"]
        yield [line for one in pictured.worst for line in _answer(one)]


def _answer(one: Worst) -> Iterator[str]:
    exchange, score = one.exchange, one.score
    value = "refusal" if score.label == "noncommittal" else f"{score.value:.2f}"
    route = markdown(exchange.route, 80)
    yield f"1. **{value}** on {route}, {exchange.started_at:%Y-%m-%d %H:%M} UTC, exchange {markdown(exchange.id)}"
    yield f"   - asked: {_text(exchange.question)}"
    yield f"   - answered: {_text(exchange.answer)}"
    if one.reads_like is not None:
        yield f"   - reads like: {_text(one.reads_like)}"


def _text(captured: str | None) -> str:
    return "(erased, or never kept)" if captured is None else markdown(captured, _WIDTH)


def _alerts(pictured: Pictured) -> Iterator[list[str]]:
    if pictured.alerts:
        yield ["## Open alerts"]
        yield [_alert(one) for one in pictured.alerts]


def _alert(one: Alert) -> str:
    since = f"{one.starts_at:%Y-%m-%d %H:%M} UTC"
    return f"- {one.severity}, {one.state}, since {since}: {markdown(one.message or one.rule, 600)}"


def _missing(found: Found) -> Iterator[list[str]]:
    told = [*filter(None, map(coverage.line, found.coverage)), *coverage.undecided(found.left)]
    if told:
        yield ["## Without a score"]
        yield [f"- {markdown(line.strip(), 400)}" for line in told]
    if found.learning:
        yield [f"- {markdown(baseline.line(one, found.now), 400)}" for one in found.learning]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *([markdown(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]
