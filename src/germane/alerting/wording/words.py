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
    "judge_drift": "the judge, the model that scores answers, scores lower than before",
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
FAILURES: Final[Mapping[str, str]] = {
    "judge_timeout": "the judge times out",
    "judge_rate_limited": "the judge is rate limited",
    "judge_refused": "the judge refuses to answer",
    "judge_unreachable": "the judge is unreachable",
    "judge_rejected": "the judge rejects the key, quota or model",
    "unparsable": "the judge's replies cannot be parsed",
    "no_usable_question": "the judge generates no usable question",
    "embedder_error": "the embedder fails",
    "out_of_range": "values are out of range",
    "scorer_error": "the scorer raises an exception",
}
"""Why scores fail, by reason."""
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
