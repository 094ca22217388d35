"""Explanations of scores, for any details that a scorer stored."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each

from germane.insights.explanation import explain_score
from germane.insights.worst_answers import reads_like
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import Score

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    "questions", "noncommittal", "claims", "sub_questions", "chunks", "parts", "missing", "digits", "rating", "cut",
    "calibrated", "supported", "total", "words", "found", "not_found", "requested", "usable", "diversity",
)  # fmt: skip
SCORERS = (*sorted(BUILTIN_SCORER_NAMES), "mine")


@given(
    scorer=st.sampled_from(SCORERS),
    label=st.sampled_from([None, "noncommittal", "irrelevant"]),
    details=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), JSON, max_size=6),
)
@settings(max_examples=150, deadline=None)
def test_score_details_of_any_shape_can_be_displayed(scorer: str, label: str | None, details: dict[str, Any]) -> None:
    """Custom scorers and older versions can store anything under any name."""
    found = explain_score(Score(scorer=scorer, value=0.5, label=label, details=details))

    assert found.lead
    assert len(found.rows) <= 50
    assert all(isinstance(part, str) for fact in found.facts for part in fact)
    assert json.dumps([row.text for row in found.rows])


@each(
    ("scorer", "details", "expected"),
    [
        (
            "question_answer_similarity",
            {"calibrated": 0.8, "copies_removed": True},
            "Repetitions of the question were removed",
        ),
        ("answer_relevancy", {"copies_removed": True}, "only repeats the question"),
        (
            "answer_relevancy",
            {"questions": [{"text": "Q?", "similarity": 0.5}], "similarity": "judge"},
            "judge-rated similarity",
        ),
        ("context_similarity", {"chunks": [0.5]}, "The cosine similarity between the question"),
        ("intent_match", {"rating": 3}, "from 1 to 5"),
        ("mine", {"links": {"dead": 3}}, "defines its own details"),
    ],
)
def test_each_scorer_has_an_explanation_of_its_computation(scorer: str, details: dict[str, Any], expected: str) -> None:
    """A sentence above the values explains the computation."""
    assert expected in explain_score(Score(scorer=scorer, value=0.5, label="partly_relevant", details=details)).lead


def test_a_combined_score_is_shown_with_its_missing_parts() -> None:
    """The weights of the remaining scorers are shown."""
    parts = {"answer_relevancy": {"value": 0.7, "weight": 0.5}, "intent_match": {"value": None, "reason": "unparsable"}}

    found = explain_score(
        Score(scorer="combined_relevancy", value=0.7, details={"parts": parts, "missing": ["intent_match"]})
    )

    assert [(row.text, row.value, row.verdict) for row in found.rows] == [
        ("answer relevancy", 0.7, "weight 0.50"),
        ("intent match", None, "unparsable"),
    ]
    assert ("Missing", "intent_match") in found.facts


def test_the_number_of_refusal_votes_is_shown() -> None:
    """The generated questions are not shown."""
    questions = [{"text": "Q?", "similarity": None, "noncommittal": vote} for vote in (True, True, False)]

    found = explain_score(
        Score(scorer="answer_relevancy", value=0.0, label="noncommittal", details={"questions": questions})
    )

    assert found.facts == [("Votes", "2 of 3 for refusal")]
    assert not found.rows


def test_a_detail_with_a_number_out_of_range_is_omitted() -> None:
    """Its question is omitted too, and the page still renders."""
    questions = [{"text": "far", "similarity": -(10**400)}, {"text": "near", "similarity": 0.5}, {"similarity": "0"}]

    assert reads_like(Score(scorer="mine", value=0.5, details={"questions": questions})) == "near"
    assert reads_like(Score(scorer="mine", value=0.5, explanation="said", details={"questions": [1]})) == "said"
