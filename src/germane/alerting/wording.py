"""Wording for causes, reasons and scores, shared by messages, the dashboard and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.alert import Cause, ResolveReason

CAUSES: Final[Mapping[Cause, str]] = {
    "answers_drifting": "answers drift away from the questions",
    "refusals_rising": "more refusals",
    "retrieval_worse": "retrieval returns less relevant contexts",
    "judge_broken": "the judge, the model that scores answers, fails",
    "no_data": "answers are not scored",
    "budget": "the budget is exhausted",
}
"""Likely causes of alerts."""
RESOLVE_REASONS: Final[Mapping[ResolveReason, str]] = {
    "recovered": "recovered",
    "passed": "the condition cleared before the alert fired",
    "judge_changed": "the judge changed",
    "by_hand": "someone resolved it",
    "new_baseline": "its level is the new baseline",
    "rule_removed": "its rule was removed",
}
"""Reasons for resolving alerts."""
MEASURES: Final[Mapping[str, str]] = {
    "answer_quality": "how good the answers and their contexts are",
    "answer_relevancy": "how well answers match their questions",
    "combined_relevancy": "how well answers match their questions",
    "context_coverage": "how much of each answer appears in the retrieved contexts",
    "context_relevance": "how relevant the retrieved contexts are to the questions",
    "context_similarity": "how similar the retrieved contexts are to the questions",
    "direct_relevancy": "how well answers address their questions",
    "faithfulness": "how many of the answers' claims the retrieved contexts support",
    "guarded_relevancy": "how well answers address their questions",
    "intent_match": "how well answers fulfill the intent of their questions",
    "noncommittal": "how many answers are substantive rather than noncommittal",
    "question_answer_similarity": "how similar answers are to their questions",
    "question_coverage": "how much of each question its answer addresses",
}
"""What the built-in scorers measure."""
