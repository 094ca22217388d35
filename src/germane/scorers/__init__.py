"""An exchange in, a score out. No database and no OpenTelemetry here.

A scorer of your own has ``name``, ``fingerprint``, ``requires``, ``range`` and ``async def score(exchange)``; see
:class:`Scorer`. :func:`run` is how scorers are called: it turns whatever they do into a score or a reason.
"""

from __future__ import annotations

from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Judge, Message, Reply, Scorer, Vectors
from germane.scorers.base.run import is_rejected, lacks_input, may_succeed_later, run
from germane.scorers.calibration.labels import COSINES, relabelled
from germane.scorers.factory.scorer_set import NAMES, Workbench, build, default_names
from germane.scorers.judge.client import Server
from germane.scorers.judge.coalescing import SharedJudge, asks_judge
from germane.scorers.judge.embedding_batcher import Batcher
from germane.scorers.judge.openai_embedder import OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge, at_work
from germane.scorers.judge.prices import Meter, Prices
from germane.scorers.judge.rate_limit import Pace, Place
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
from germane.scorers.plugins import CustomScorer
from germane.scorers.refusals.rules import find_noncommittal

__all__ = [
    "COSINES",
    "NAMES",
    "AnswerQuality",
    "AnswerRelevancy",
    "Batcher",
    "CombinedRelevancy",
    "ContextCoverage",
    "ContextRelevance",
    "ContextSimilarity",
    "CustomScorer",
    "DirectRelevancy",
    "Embedder",
    "Faithfulness",
    "GuardedRelevancy",
    "IntentMatch",
    "Judge",
    "LocalSimilarity",
    "Message",
    "Meter",
    "Noncommittal",
    "OpenAIEmbedder",
    "OpenAIJudge",
    "Pace",
    "Place",
    "Prices",
    "QuestionAnswerSimilarity",
    "QuestionCoverage",
    "Reply",
    "Scorer",
    "Server",
    "SharedJudge",
    "Vectors",
    "Workbench",
    "asks_judge",
    "at_work",
    "build",
    "default_names",
    "find_noncommittal",
    "fingerprint",
    "is_local_installed",
    "is_rejected",
    "lacks_input",
    "may_succeed_later",
    "relabelled",
    "run",
]
