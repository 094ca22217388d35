"""A report for people and for programs. Questions and answers are hostile text in each kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.evaluation.serialize import as_dict
from germane.evaluation.summary import ENOUGH
from germane.sanitize import harmless, markdown

if TYPE_CHECKING:
    from germane.evaluation.result import Evaluation, Problem, RowScores
    from germane.evaluation.summary import ScorerSummary


Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Title, headings, rows. One without rows is left out."""
WIDTH = 2_000
"""Characters of a cell that are shown."""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid #8884;
  overflow-wrap: anywhere; min-width: 4rem; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{text}</p>
{tables}
</body>
</html>
"""


def page(title: str, text: str, tables: Sequence[Table]) -> str:
    """Return a page with these tables, all of it escaped."""
    shown = "\n".join(_table_page(*table) for table in tables if table[2])
    return _PAGE.format(title=escape(title), style=_STYLE, text=escape(text), tables=shown)


def _table_page(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<h2>{escape(title)}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _cell(cell: object) -> str:
    return f'<td dir="auto">{escape(harmless(str(cell), WIDTH))}</td>'


SCHEMA_VERSION = 1
WORST = 20
"""Rows that a report shows as its worst."""
HEADINGS = ("scorer", "n", "mean", "95 % interval", "low", "refused", "scored of rows")


def report(evaluation: Evaluation, kind: str) -> str:
    """Return a report of that kind.

    Raises:
        UsageError: there is no such kind.
    """
    make = _KINDS.get(kind)
    if make is None:
        raise UsageError(f"there is no report {kind!r}; there are {', '.join(_KINDS)}")
    return make(evaluation)


def summary_cells(found: ScorerSummary, summaries: Sequence[ScorerSummary]) -> tuple[str, ...]:
    """Return the row of a summary under :data:`HEADINGS`."""
    ways = sum(other.scorer == found.scorer for other in summaries)
    name = found.scorer if ways == 1 else f"{found.scorer} {found.fingerprint}"
    seen = f"{found.scored} of {found.asked}"
    estimate = found.estimate
    if estimate is None or estimate.n < ENOUGH:
        return name, str(found.n), "-", f"not enough data (need {ENOUGH})", "-", "-", seen
    interval = "-" if estimate.interval is None else f"{estimate.interval[0]:.3f} to {estimate.interval[1]:.3f}"
    shares = f"{estimate.low_share:.0%}", f"{estimate.noncommittal_share:.0%}"
    return name, str(found.n), f"{estimate.mean:.3f}", interval, *shares, seen


def absences(evaluation: Evaluation) -> list[tuple[str, int, str, str]]:
    """Return scorer, number of rows, reason and most frequent explanation of what could not be scored."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for score in evaluation.scores:
        if score.reason is not None:
            found.setdefault((score.scorer, str(score.reason)), Counter())[score.explanation or ""] += 1
    return [(scorer, why.total(), reason, why.most_common(1)[0][0]) for (scorer, reason), why in found.items()]


def took(evaluation: Evaluation) -> str:
    """Return what the run took, in a sentence."""
    spent = evaluation.spending
    requests = f", {_count(spent.requests, 'request')}" if spent.requests else ""
    tokens = "" if evaluation.tokens is None else f", {_count(evaluation.tokens, 'token')}"
    cost = "" if evaluation.cost is None else f", ${evaluation.cost:.4f}"
    return f"{_count(len(evaluation.rows), 'row')} in {evaluation.seconds:.1f} s{requests}{tokens}{cost}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary_dict(found: ScorerSummary) -> dict[str, Any]:
    """Return a summary as JSON holds it."""
    estimate = found.estimate
    return {
        "scorer": found.scorer,
        "fingerprint": found.fingerprint,
        "rows": found.asked,
        "scored": found.scored,
        "coverage": found.coverage,
        "n": found.n,
        "enough": found.n >= ENOUGH,
        "mean": estimate and estimate.mean,
        "interval": estimate and estimate.interval,
        "low_share": estimate and estimate.low_share,
        "noncommittal_share": estimate and estimate.noncommittal_share,
        "reasons": dict(found.reasons),
    }


def problem_dict(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON holds it."""
    return {**_texts(problem.row), **as_dict(problem.score)}


def _texts(row: RowScores) -> dict[str, Any]:
    exchange = row.exchange
    return {"place": row.place, "id": exchange.id, "question": exchange.question, "answer": exchange.answer}


def _json(evaluation: Evaluation) -> str:
    content = {
        "schema_version": SCHEMA_VERSION,
        "summary": [summary_dict(found) for found in evaluation.summary()],
        "spending": asdict(evaluation.spending),
        "rows": [_row_dict(row) for row in evaluation.rows],
    }
    return json.dumps(content, allow_nan=False) + "\n"


def _row_dict(row: RowScores) -> dict[str, Any]:
    exchange = row.exchange
    return {
        **_texts(row),
        "contexts": [context.text for context in exchange.contexts],
        "history": [{"role": turn.role, "text": turn.text} for turn in exchange.history],
        "route": exchange.route,
        "model": exchange.model,
        "attributes": dict(exchange.attributes),
        "scores": {name: as_dict(score) for name, score in row.scores.items()},
    }


def _tables(evaluation: Evaluation) -> list[Table]:
    """Return the tables of a report for people."""
    summaries, problems = evaluation.summary(), evaluation.problems()
    worst = said_once(problems)[:WORST]
    return [
        ("Scores", HEADINGS, [summary_cells(found, summaries) for found in summaries]),
        ("Without a score", ("scorer", "rows", "reason", "mostly because"), absences(evaluation)),
        (
            worst_title(worst, problems),
            ("score", "scorer", "row", "question", "answer", "why"),
            [problem_cells(*each) for each in worst],
        ),
    ]


def said_once(problems: Sequence[Problem]) -> list[tuple[Problem, int]]:
    """Return each problem, and how many are like it: failures of a scorer for the same reason, in the same words."""
    found: dict[Hashable, list[Problem]] = {}
    for place, problem in enumerate(problems):
        score = problem.score
        alike = place if score.value is not None else (score.scorer, score.reason, score.explanation)
        found.setdefault(alike, []).append(problem)
    return [(alike[0], len(alike) - 1) for alike in found.values()]


def worst_title(shown: Sequence[tuple[Problem, int]], problems: Sequence[Problem]) -> str:
    """Return the heading over the problems that are shown."""
    return f"Worst {sum(more + 1 for _, more in shown)} of {len(problems)} low or failed"


def likewise(more: int) -> str:
    """Return that so many more rows failed in the same way."""
    return f"{_count(more, 'more row')} likewise"


def problem_cells(problem: Problem, more: int) -> tuple[str, ...]:
    """Return value or reason, scorer, place, question, answer, and why; the place tells how many are like it."""
    score, exchange = problem.score, problem.row.exchange
    value = str(score.reason) if score.value is None else f"{score.value:.2f}"
    texts = (exchange.question or "", exchange.answer or "", score.explanation or score.label or "")
    place = f"{problem.row.place}; {likewise(more)}" if more else problem.row.place
    return value, score.scorer, place, *texts


def _markdown(evaluation: Evaluation) -> str:
    lines = ["# Evaluation", "", markdown(took(evaluation))]
    for title, headings, rows in _tables(evaluation):
        if rows:
            lines += ["", f"## {title}", "", *_table(headings, rows)]
    return "\n".join(lines) + "\n"


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [" | ".join(headings), " | ".join("---" for _ in headings)]
    lines += [" | ".join(markdown(str(cell)) for cell in row) for row in rows]
    return [f"| {line} |" for line in lines]


def _html(evaluation: Evaluation) -> str:
    return page("Evaluation", took(evaluation), _tables(evaluation))


_KINDS: Mapping[str, Callable[[Evaluation], str]] = {"markdown": _markdown, "json": _json, "html": _html}
