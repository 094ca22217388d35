"""Evaluation results: scores, summaries, problems, threshold checks and reports."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.evaluation.parquet import PANDAS, write_scores
from germane.evaluation.progress import RunUsage
from germane.evaluation.summary import (
    AnswerProblem,
    EvaluationCheck,
    RowScores,
    ScorerSummary,
    check_thresholds,
    find_problem_answers,
    summarize,
)
from germane.installation import install_command
from germane.score import Score

if TYPE_CHECKING:
    from germane.evaluation.report import ReportFormat

PROBLEM_THRESHOLD = 0.6
"""The default threshold for :meth:`Evaluation.problems`."""
FRAME_COLUMNS = ("id", "question", "answer", "contexts")


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The result of an evaluation: the rows of the data set, in order, with their scores."""

    rows: tuple[RowScores, ...]
    usage: RunUsage = field(default_factory=RunUsage)
    """Requests, tokens, cost and duration of this run."""

    def __repr__(self) -> str:
        scorers = dict.fromkeys(name for row in self.rows for name in row.scores)
        return f"Evaluation({len(self.rows)} rows, scored by {', '.join(scorers) or 'nothing'})"

    def _repr_markdown_(self) -> str:
        """Return the Markdown report, which notebooks display."""
        return self.report("markdown")

    @property
    def scores(self) -> list[Score]:
        """All scores, in row order. Each score without a value has a reason."""
        return [score for row in self.rows for score in row.scores.values()]

    @property
    def cost(self) -> float | None:
        """Cost of this run in US dollars, not counting cached scores; None if no price is known."""
        return self.usage.cost

    @property
    def tokens(self) -> int | None:
        """Input plus output tokens that the judge used in this run; None if no server reported them."""
        return self.usage.tokens

    @property
    def seconds(self) -> float:
        """Duration of this run in seconds."""
        return self.usage.seconds

    def summary(self) -> list[ScorerSummary]:
        """Return each scorer's mean, interval, and number of unscored rows by reason, separately for each
        fingerprint.
        """
        return summarize(self.rows)

    def problems(self, threshold: float = PROBLEM_THRESHOLD) -> list[AnswerProblem]:
        """Return the answers that have low scores, failed scores, or scores below the threshold, together with those
        scores.

        The threshold applies to the calibrated value if there is one, otherwise to the score itself. The answer with
        the lowest score comes first, and answers with only failed scores come last.
        Rows with the same question, answer, contexts and history count as one answer.

        Raises:
            UsageError: the threshold is not finite.
        """
        return find_problem_answers(self.rows, threshold)

    def check(self, min_mean: float | None = None, min_coverage: float | None = None) -> EvaluationCheck:
        """Check each scorer's mean and coverage (the share of rows with a score) against minimum values.

        Raises:
            UsageError: ``min_mean`` is not finite, or ``min_coverage`` is not from 0 to 1.
        """
        return check_thresholds(self.summary(), min_mean, min_coverage)

    def report(self, format: ReportFormat = "markdown") -> str:  # noqa: A002 - the name that users expect
        """Return a report as Markdown, as one JSON object, or as a self-contained HTML page.

        Raises:
            UsageError: the format is unknown.
        """
        from germane.evaluation.report import render_report

        return render_report(self.rows, self.usage, format)

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per row of the data set.

        The columns are ``id``, ``question``, ``answer``, ``contexts``, the data set's other columns, and four columns
        per scorer: its value (NaN if there is none) under the scorer's name, and columns with that name plus
        ``_label``, ``_reason`` and ``_explanation``.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise UsageError(f"to_pandas() needs pandas; install it with: {install_command(PANDAS)}") from None
        records = []
        for row in self.rows:
            exchange = row.exchange
            record: dict[str, Any] = {
                "id": exchange.id,
                "question": exchange.question,
                "answer": exchange.answer,
                "contexts": [context.text for context in exchange.contexts],
            }
            record |= {name: value for name, value in exchange.attributes.items() if name not in record}
            for name, score in row.scores.items():
                reason = None if score.reason is None else str(score.reason)
                record |= {name: score.value, f"{name}_label": score.label, f"{name}_reason": reason}
                record[f"{name}_explanation"] = score.explanation
            records.append(record)
        frame = pandas.DataFrame(records, columns=None if self.rows else list(FRAME_COLUMNS))
        scorers = dict.fromkeys(name for row in self.rows for name in row.scores)
        return frame.astype(dict.fromkeys(scorers, float))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the scores to a Parquet file, with one row for each row of the data set and each scorer.

        Raises:
            UsageError: pyarrow is not installed.
        """
        write_scores(Path(path), self.rows)
