"""The same scorers over a data set."""

from __future__ import annotations

from germane.evaluation.progress import Spending
from germane.evaluation.result import Evaluation, Problem, RowScores
from germane.evaluation.rows import Row, read_rows
from germane.evaluation.run import aevaluate, evaluate
from germane.evaluation.summary import ENOUGH, Check, Finding, ScorerSummary

__all__ = [
    "ENOUGH",
    "Check",
    "Evaluation",
    "Finding",
    "Problem",
    "Row",
    "RowScores",
    "ScorerSummary",
    "Spending",
    "aevaluate",
    "evaluate",
    "read_rows",
]
