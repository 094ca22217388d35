"""An exchange in, a score out. No database and no OpenTelemetry here.

A scorer of your own has ``name``, ``fingerprint``, ``requires``, ``range`` and ``async def score(exchange)``; see
:class:`Scorer`. :func:`run` is how scorers are called: it turns whatever they do into a score or a reason.
"""

from __future__ import annotations

from germane.scorers.answer_quality import AnswerQuality
from germane.scorers.answer_relevancy import AnswerRelevancy
from germane.scorers.batcher import Batcher
from germane.scorers.boundary import is_rejected, lacks_input, may_succeed_later, run
from germane.scorers.calibrated import COSINES, relabelled
from germane.scorers.combined_relevancy import CombinedRelevancy
from germane.scorers.commitment import Noncommittal
from germane.scorers.context_coverage import ContextCoverage
from germane.scorers.context_relevance import ContextRelevance
from germane.scorers.context_similarity import ContextSimilarity
from germane.scorers.custom import CustomScorer
from germane.scorers.direct_relevancy import DirectRelevancy
from germane.scorers.embedder import OpenAIEmbedder
from germane.scorers.faithfulness import Faithfulness
from germane.scorers.fingerprint import fingerprint
from germane.scorers.guarded_relevancy import GuardedRelevancy
from germane.scorers.intent_match import IntentMatch
from germane.scorers.judge import OpenAIJudge
from germane.scorers.local_similarity import LocalSimilarity, is_local_installed
from germane.scorers.meter import Meter
from germane.scorers.noncommittal import find_noncommittal
from germane.scorers.pace import Pace, Place
from germane.scorers.prices import Prices
from germane.scorers.protocols import Embedder, Judge, Message, Reply, Scorer, Vectors
from germane.scorers.question_answer_similarity import QuestionAnswerSimilarity
from germane.scorers.question_coverage import QuestionCoverage
from germane.scorers.server import Server
from germane.scorers.shared_judge import SharedJudge, asks_judge
from germane.scorers.slots import at_work
from germane.scorers.workbench import NAMES, Workbench, build, default_names

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
