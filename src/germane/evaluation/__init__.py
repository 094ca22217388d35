"""Evaluation of data sets with the same scorers that run in production."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.evaluation.files import iterate_records
from germane.evaluation.progress import RunUsage
from germane.evaluation.result import Evaluation
from germane.evaluation.rows import Row, read_rows
from germane.evaluation.run import aevaluate, evaluate, evaluate_to_parquet
from germane.evaluation.summary import (
    AnswerProblem,
    EvaluationCheck,
    RowScores,
    ScorerSummary,
    ScoringProblem,
    ThresholdResult,
    find_problems,
)
from germane.lazy import lazy_exports
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.evaluation.backtest import run_backtest_on_engine
    from germane.evaluation.dataset_run import DatasetResult, count_rows, run_dataset
    from germane.evaluation.engines import ENGINE_NAMES, Engine, EngineName, open_engine
    from germane.evaluation.partitions import PartitionFailed, RunStopped, default_partition_size
    from germane.evaluation.report import (
        SUMMARY_HEADINGS,
        check_to_dict,
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
    from germane.evaluation.rescoring import run_rescoring

__all__ = [
    "ENGINE_NAMES",
    "MIN_SAMPLES",
    "SUMMARY_HEADINGS",
    "AnswerProblem",
    "DatasetResult",
    "Engine",
    "EngineName",
    "Evaluation",
    "EvaluationCheck",
    "PartitionFailed",
    "Row",
    "RowScores",
    "RunStopped",
    "RunUsage",
    "ScorerSummary",
    "ScoringProblem",
    "ThresholdResult",
    "aevaluate",
    "check_to_dict",
    "count_rows",
    "default_partition_size",
    "evaluate",
    "evaluate_to_parquet",
    "find_problems",
    "group_problems",
    "iterate_records",
    "open_engine",
    "problem_to_dict",
    "problems_heading",
    "read_rows",
    "run_backtest_on_engine",
    "run_dataset",
    "run_rescoring",
    "similar_rows",
    "small_sample_notes",
    "summary_cells",
    "summary_to_dict",
    "unscored_rows",
    "usage_sentence",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "backtest": ("run_backtest_on_engine",),
        "dataset_run": ("DatasetResult", "count_rows", "run_dataset"),
        "engines": ("ENGINE_NAMES", "Engine", "EngineName", "open_engine"),
        "partitions": ("PartitionFailed", "RunStopped", "default_partition_size"),
        # The report functions depend on the charts and tables in germane.insights.
        "report": (
            "SUMMARY_HEADINGS",
            "check_to_dict",
            "group_problems",
            "problem_to_dict",
            "problems_heading",
            "similar_rows",
            "small_sample_notes",
            "summary_cells",
            "summary_to_dict",
            "unscored_rows",
            "usage_sentence",
        ),
        "rescoring": ("run_rescoring",),
    },
)
