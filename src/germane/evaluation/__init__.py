"""Evaluation of data sets with the same scorers that run in production."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from germane.evaluation.files import iterate_records
from germane.evaluation.progress import RunUsage
from germane.evaluation.result import Evaluation
from germane.evaluation.rows import Row, read_rows
from germane.evaluation.run import aevaluate, evaluate
from germane.evaluation.summary import (
    AnswerProblem,
    EvaluationCheck,
    RowScores,
    ScorerSummary,
    ScoringProblem,
    ThresholdResult,
    find_problems,
)
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.evaluation.report import (
        SUMMARY_HEADINGS,
        group_problems,
        problem_to_dict,
        problems_heading,
        similar_rows,
        small_sample_notes,
        summary_cells,
        summary_to_dict,
        unscored_rows,
        usage_sentence,
    )

__all__ = [
    "MIN_SAMPLES",
    "SUMMARY_HEADINGS",
    "AnswerProblem",
    "Evaluation",
    "EvaluationCheck",
    "Row",
    "RowScores",
    "RunUsage",
    "ScorerSummary",
    "ScoringProblem",
    "ThresholdResult",
    "aevaluate",
    "evaluate",
    "find_problems",
    "group_problems",
    "iterate_records",
    "problem_to_dict",
    "problems_heading",
    "read_rows",
    "similar_rows",
    "small_sample_notes",
    "summary_cells",
    "summary_to_dict",
    "unscored_rows",
    "usage_sentence",
]


def __getattr__(name: str) -> Any:
    """Import the report functions on first access, because they depend on the charts and tables in
    ``germane.insights``.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("germane.evaluation.report"), name)
    return value
