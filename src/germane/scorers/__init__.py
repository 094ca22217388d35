"""Scorers turn exchanges into scores. This package uses neither a database nor OpenTelemetry.

A user-defined scorer has the attributes ``name``, ``fingerprint``, ``requires`` and ``range``, and the method
``async def score(exchange)``; see :class:`Scorer`. Call scorers through :func:`run_scorer`, which turns every outcome
into a score with a value or a reason.
"""

from __future__ import annotations

from germane.registry import BUILTIN_SCORER_NAMES
from germane.scorers.base.protocols import Embedder, Judge, Reply, Scorer, Token, Vectors
from germane.scorers.base.run import is_rejected, is_retryable, lacks_input, run_scorer
from germane.scorers.base.text import normalize_for_comparison
from germane.scorers.base.vectors import normalize_rows
from germane.scorers.calibration import (
    CALIBRATED_SCORERS,
    MIN_CALIBRATION_EXCHANGES,
    apply_calibration,
    distinct_exchanges,
    is_current_calibration,
    label_calibration_of,
    measure_cosine_pairs,
)
from germane.scorers.factory.dry_run import EXTRA_OUTPUT_TOKENS, OUTPUT_TOKEN_FACTOR, build_dry_run_scorer
from germane.scorers.factory.scorer_set import ScorerSet, build_scorers, builtin_base, default_scorer_names
from germane.scorers.judge.coalescing import uses_coalescing_judge
from germane.scorers.judge.embedders import FIX_EMBEDDER_KEY
from germane.scorers.judge.openai_judge import exchange_concurrency
from germane.scorers.judge.prices import PriceList, UsageMeter, price_list_date
from germane.scorers.judge.rate_limit import BYTES_PER_TOKEN, RequestReservation
from germane.scorers.local.minilm import MiniLM
from germane.scorers.local.similarity import LocalSimilarity, is_local_installed
from germane.scorers.metrics.answer_quality import AnswerQuality
from germane.scorers.metrics.answer_relevancy import AnswerRelevancy
from germane.scorers.metrics.combined_relevancy import CombinedRelevancy
from germane.scorers.metrics.context_coverage import ContextCoverage
from germane.scorers.metrics.context_relevance import ContextRelevance
from germane.scorers.metrics.context_similarity import ContextSimilarity
from germane.scorers.metrics.direct_relevancy import DirectRelevancy
from germane.scorers.metrics.faithfulness import Faithfulness
from germane.scorers.metrics.guarded_relevancy import GuardedRelevancy
from germane.scorers.metrics.intent_match import IntentMatch
from germane.scorers.metrics.noncommittal import Noncommittal
from germane.scorers.metrics.question_answer_similarity import QuestionAnswerSimilarity
from germane.scorers.metrics.question_coverage import QuestionCoverage
from germane.scorers.plugins import find_name_conflicts, import_modules

__all__ = [
    "BUILTIN_SCORER_NAMES",
    "BYTES_PER_TOKEN",
    "CALIBRATED_SCORERS",
    "EXTRA_OUTPUT_TOKENS",
    "FIX_EMBEDDER_KEY",
    "MIN_CALIBRATION_EXCHANGES",
    "OUTPUT_TOKEN_FACTOR",
    "AnswerQuality",
    "AnswerRelevancy",
    "CombinedRelevancy",
    "ContextCoverage",
    "ContextRelevance",
    "ContextSimilarity",
    "DirectRelevancy",
    "Embedder",
    "Faithfulness",
    "GuardedRelevancy",
    "IntentMatch",
    "Judge",
    "LocalSimilarity",
    "MiniLM",
    "Noncommittal",
    "PriceList",
    "QuestionAnswerSimilarity",
    "QuestionCoverage",
    "Reply",
    "RequestReservation",
    "Scorer",
    "ScorerSet",
    "Token",
    "UsageMeter",
    "Vectors",
    "apply_calibration",
    "build_dry_run_scorer",
    "build_scorers",
    "builtin_base",
    "default_scorer_names",
    "distinct_exchanges",
    "exchange_concurrency",
    "find_name_conflicts",
    "import_modules",
    "is_current_calibration",
    "is_local_installed",
    "is_rejected",
    "is_retryable",
    "label_calibration_of",
    "lacks_input",
    "measure_cosine_pairs",
    "normalize_for_comparison",
    "normalize_rows",
    "price_list_date",
    "run_scorer",
    "uses_coalescing_judge",
]
