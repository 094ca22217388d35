"""Evaluation reports in Markdown, HTML and JSON. Every format treats questions and answers as untrusted text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

from germane.errors import UsageError
from germane.evaluation.progress import RunUsage
from germane.evaluation.serialize import score_to_dict
from germane.evaluation.summary import (
    EvaluationCheck,
    RowScores,
    ScorerSummary,
    ScoringProblem,
    find_problems,
    summarize,
)
from germane.insights import MEAN_HEADINGS, Document, DocumentTable, Section, mean_cells, to_html, to_markdown
from germane.records import select
from germane.score import MIN_SAMPLES, describe_value

SCHEMA_VERSION = 1
MAX_PROBLEMS_SHOWN = 20
SUMMARY_HEADINGS = ("scorer", *MEAN_HEADINGS, "scored / rows")

ReportFormat = Literal["markdown", "json", "html"]


def render_report(rows: Sequence[RowScores], usage: RunUsage, report_format: ReportFormat) -> str:
    """Render an evaluation report. Raise a usage error if the format is unknown."""
    if report_format not in get_args(ReportFormat):
        raise UsageError(f"unknown report format {report_format!r}; known formats: {', '.join(get_args(ReportFormat))}")
    if report_format == "json":
        return _render_json(rows, usage)
    summaries, problems = summarize(rows), find_problems(rows)
    shown = group_problems(problems)[:MAX_PROBLEMS_SHOWN]
    problem_rows: list[tuple[str, ...]] = []
    for problem, similar in shown:
        score, row = problem.score, problem.row
        cells = (
            str(score.reason) if score.value is None else describe_value(score.scorer, score.value),
            score.scorer,
            f"{row.location}; {similar_rows(problem, similar)}" if similar else row.location,
            row.exchange.question or "",
            row.exchange.answer or "",
            score.explanation or score.label or "",
        )
        problem_rows.append(cells)
    tables: list[tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]] = [
        ("Scores", SUMMARY_HEADINGS, [summary_cells(summary, summaries) for summary in summaries]),
        (
            "Unscored rows",
            ("scorer", "rows", "reason", "most frequent explanation"),
            [tuple(map(str, unscored)) for unscored in unscored_rows(rows)],
        ),
        (
            problems_heading(shown, problems),
            ("score", "scorer", "row", "question", "answer", "explanation"),
            problem_rows,
        ),
    ]
    document = Document(
        title="Evaluation",
        paragraphs=[usage_sentence(len(rows), usage), *small_sample_notes(summaries)],
        sections=[
            Section(title=title, table=DocumentTable(headings=headings, rows=table_rows))
            for title, headings, table_rows in tables
            if table_rows
        ],
    )
    return to_html(document) if report_format == "html" else to_markdown(document)


def check_to_dict(check: EvaluationCheck) -> dict[str, Any]:
    """Convert a threshold check to a JSON-serializable dict."""
    findings = [
        {"violated": finding.failed, **select(finding, "scorer", "has_min_samples", "message")}
        for finding in check.results
    ]
    return {"passed": check.passed, "has_min_samples": check.has_min_samples, "findings": findings}


def summary_cells(summary: ScorerSummary, summaries: Sequence[ScorerSummary]) -> tuple[str, ...]:
    """Return the table cells for a summary, one for each heading in :data:`SUMMARY_HEADINGS`."""
    is_only_one = sum(other.scorer == summary.scorer for other in summaries) == 1
    name = summary.scorer if is_only_one else f"{summary.scorer} {summary.fingerprint}"
    return (
        name,
        *mean_cells(summary.estimate, scorer=summary.scorer, min_samples=1),
        f"{summary.scored} of {summary.rows}",
    )


def small_sample_notes(summaries: Sequence[ScorerSummary]) -> list[str]:
    """Return a list with a note if any mean is based on too few scores; otherwise an empty list."""
    if not any(0 < summary.n < MIN_SAMPLES for summary in summaries):
        return []
    return [f"A mean of fewer than {MIN_SAMPLES} scores has a wide interval: other rows may have a different mean."]


def unscored_rows(rows: Sequence[RowScores]) -> list[tuple[str, int, str, str]]:
    """Group the unscored rows by scorer and reason. Each group has its row count and its most frequent explanation."""
    explanations: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for score in row.scores.values():
            if score.reason is not None:
                counter = explanations.setdefault((score.scorer, str(score.reason)), Counter())
                counter[score.explanation or ""] += 1
    return [
        (scorer, counter.total(), reason, counter.most_common(1)[0][0])
        for (scorer, reason), counter in explanations.items()
    ]


def usage_sentence(rows: int, usage: RunUsage) -> str:
    """Describe a run's usage in a sentence, such as ``20 rows in 3.5 s, 40 requests.``"""
    requests = f", {_count(usage.requests, 'request')}" if usage.requests else ""
    tokens = "" if usage.tokens is None else f", {_count(usage.tokens, 'token')}"
    cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
    return f"{_count(rows, 'row')} in {usage.seconds:.1f} s{requests}{tokens}{cost}."


def group_problems(problems: Sequence[ScoringProblem]) -> list[tuple[ScoringProblem, int]]:
    """Return the distinct problems, each with the number of duplicates in other rows.

    Duplicates are equal scores for the same answer to the same question, and failures with the same explanation.
    """
    groups: dict[Hashable, list[ScoringProblem]] = {}
    for problem in problems:
        score, exchange = problem.score, problem.row.exchange
        same = (exchange.question, exchange.answer, score.value) if score.value is not None else score.explanation
        groups.setdefault((score.scorer, score.reason, same), []).append(problem)
    return [(group[0], len(group) - 1) for group in groups.values()]


def problems_heading(shown: Sequence[tuple[ScoringProblem, int]], problems: Sequence[ScoringProblem]) -> str:
    """Return the heading for the list of problems, such as ``Worst 20 of 35 low or failed scores``."""
    return f"Worst {sum(similar + 1 for _, similar in shown)} of {len(problems)} low or failed scores"


def similar_rows(problem: ScoringProblem, count: int) -> str:
    """Describe how many other rows have the same problem, such as ``2 more rows with the same answer``."""
    return f"{_count(count, 'more row')} with the same {'failure' if problem.score.value is None else 'answer'}"


def summary_to_dict(summary: ScorerSummary) -> dict[str, Any]:
    """Convert a summary to a JSON-serializable dict."""
    estimate = summary.estimate
    return {
        **select(summary, "scorer", "fingerprint", "rows", "scored", "coverage", "n"),
        "has_min_samples": summary.n >= MIN_SAMPLES,
        "mean": estimate and estimate.mean,
        "interval": estimate and estimate.interval,
        "min": summary.minimum,
        "max": summary.maximum,
        "sum": summary.total,
        "low_share": estimate and estimate.low_share,
        "noncommittal_share": estimate and estimate.noncommittal_share,
        "reasons": dict(summary.reasons),
    }


def problem_to_dict(problem: ScoringProblem) -> dict[str, Any]:
    """Convert a problem to a JSON-serializable dict."""
    return {**_row_texts(problem.row), **score_to_dict(problem.score)}


def _render_json(rows: Sequence[RowScores], usage: RunUsage) -> str:
    content = {
        "schema_version": SCHEMA_VERSION,
        "summary": [summary_to_dict(summary) for summary in summarize(rows)],
        "usage": asdict(usage),
        "rows": [
            {
                **_row_texts(row),
                "contexts": [context.text for context in row.exchange.contexts],
                "history": [{"role": each.role, "content": each.content} for each in row.exchange.history],
                "route": row.exchange.route,
                "model": row.exchange.model,
                "attributes": dict(row.exchange.attributes),
                "scores": {name: score_to_dict(score) for name, score in row.scores.items()},
            }
            for row in rows
        ],
    }
    return json.dumps(content, allow_nan=False) + "\n"


def _row_texts(row: RowScores) -> dict[str, Any]:
    exchange = row.exchange
    return {"location": row.location, "id": exchange.id, "question": exchange.question, "answer": exchange.answer}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
