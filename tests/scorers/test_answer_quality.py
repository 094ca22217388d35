"""Answer quality: one value and a letter grade from context relevance, faithfulness and answer relevancy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError, SettingsError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import AnswerQuality, build_scorers
from germane.scorers.metrics.answer_quality import grade, harmonic_mean
from germane.settings import load_settings
from germane.testing import FakeJudge

Make = Callable[..., Exchange]
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=5)


class Fixed:
    """Scorer that always returns the same result."""

    requires = frozenset({"question"})
    range = (-1.0, 1.0)

    def __init__(self, name: str, outcome: float | ScoringError) -> None:
        self.name = name
        self.outcome = outcome

    @property
    def fingerprint(self) -> str:
        """Return a fingerprint derived from the name."""
        return f"of-{self.name}"

    async def score(self, exchange: Exchange) -> Score:
        """Return the fixed result."""
        if isinstance(self.outcome, ScoringError):
            raise self.outcome
        return Score(scorer=self.name, fingerprint=self.fingerprint, value=self.outcome, input_tokens=10, cost=0.001)


def quality(
    context: float | ScoringError, faithful: float | ScoringError, relevant: float | ScoringError, **options: Any
) -> AnswerQuality:
    """Return an answer quality scorer whose parts have the given results."""
    outcome = {"context_relevance": context, "faithfulness": faithful, "answer_relevancy": relevant}
    return AnswerQuality({name: Fixed(name, value) for name, value in outcome.items()}, **options)


@pytest.fixture
def asked(exchange: Make) -> Exchange:
    """Return an exchange with a question, an answer and contexts."""
    return exchange("Who created Python?", "Guido van Rossum.", "Python was created by Guido van Rossum.")


def test_answer_quality_is_the_weighted_mean_of_its_parts(asked: Exchange, score: Any) -> None:
    """The weights are 0.3, 0.4 and 0.3. The other means are kept in the details."""
    (result,) = score(quality(0.8, 0.5, 0.9), asked)

    assert result.value == pytest.approx(0.3 * 0.8 + 0.4 * 0.5 + 0.3 * 0.9, abs=1e-9)
    assert result.details["weighted"] == result.value
    assert result.details["harmonic"] == pytest.approx(3 / (1 / 0.8 + 1 / 0.5 + 1 / 0.9), abs=1e-9)
    assert result.details["minimum"] == 0.5
    assert (result.label, result.details["grade"], result.details["missing"]) == ("C", "C", [])
    assert (result.input_tokens, result.cost) == (30, pytest.approx(0.003))
    assert result.explanation == "context_relevance 0.80, faithfulness 0.50, answer_relevancy 0.90."


@each(
    ("aggregate", "value", "label"),
    [("weighted", 0.71, "C"), ("harmonic", 3 / (1 / 0.8 + 1 / 0.5 + 1 / 0.9), "D"), ("minimum", 0.5, "F")],
)
def test_the_type_of_mean_is_configurable(
    asked: Exchange, score: Any, aggregate: Any, value: float, label: str
) -> None:
    """The value and the letter grade are based on the chosen mean."""
    (result,) = score(quality(0.8, 0.5, 0.9, aggregate=aggregate), asked)

    assert result.value == pytest.approx(value, abs=1e-9)
    assert result.label == label


def test_the_harmonic_mean_is_zero_if_one_part_is_zero(asked: Exchange, score: Any) -> None:
    """In the weighted mean, the other parts compensate for a zero."""
    (result,) = score(quality(1.0, 0.0, 1.0, aggregate="harmonic"), asked)

    assert (result.value, result.label) == (0.0, "F")
    assert result.details["weighted"] == pytest.approx(0.6, abs=1e-9)


def test_a_negative_cosine_counts_as_zero(asked: Exchange, score: Any) -> None:
    """Parts are clipped to 0..1 before they are combined. Their original values are kept."""
    (result,) = score(quality(1.0, 1.0, -0.3), asked)

    assert result.value == pytest.approx(0.7, abs=1e-9)
    assert result.details["parts"]["answer_relevancy"]["value"] == -0.3


@each(
    ("value", "letter"),
    [(1.0, "A"), (0.9, "A"), (0.3 * 0.9 + 0.4 * 0.9 + 0.3 * 0.9, "A"), (0.89, "B"), (0.8, "B"), (0.79, "C"),
     (0.7, "C"), (0.69, "D"), (0.6, "D"), (0.59, "F"), (0.0, "F")],
)  # fmt: skip
def test_a_letter_grade_includes_its_lower_limit(value: float, letter: str) -> None:
    """The grade is A from 0.9, B from 0.8, C from 0.7, D from 0.6, and F below that."""
    assert grade(value) == letter


@given(VALUES)
def test_the_harmonic_mean_lies_between_the_minimum_and_the_plain_mean(values: list[float]) -> None:
    """The order of the values does not matter."""
    harmonic = harmonic_mean(values)

    assert min(values) - 1e-9 <= harmonic <= sum(values) / len(values) + 1e-9
    assert harmonic_mean(values[::-1]) == pytest.approx(harmonic, abs=1e-12)


# Missing parts


def test_a_missing_part_is_excluded_from_the_mean_and_recorded(asked: Exchange, score: Any) -> None:
    """A missing part never counts as 0. The remaining weights are renormalized."""
    nothing = ScoringError(UnscoredReason.MISSING_INPUT, "the answer makes no claims")

    whole, without = score(quality(0.8, 0.8, 0.9), asked)[0], score(quality(0.8, nothing, 0.9), asked)[0]

    assert without.value == pytest.approx((0.3 * 0.8 + 0.3 * 0.9) / 0.6, abs=1e-9)
    assert without.details["minimum"] == 0.8
    assert without.details["harmonic"] == pytest.approx(2 / (1 / 0.8 + 1 / 0.9), abs=1e-9)
    assert without.details["missing"] == ["faithfulness"]
    assert without.details["parts"]["faithfulness"]["reason"] == "missing_input"
    assert without.label == "B (incomplete)"
    assert "without faithfulness (missing_input)" in without.explanation
    assert without.fingerprint != whole.fingerprint


def test_a_missing_part_can_be_configured_to_fail_the_score(asked: Exchange, score: Any) -> None:
    """The score has the reason of the missing part."""
    (result,) = score(quality(0.8, ScoringError(UnscoredReason.UNPARSABLE, "prose"), 0.9, missing="fail"), asked)

    assert (result.value, result.reason) == (None, UnscoredReason.UNPARSABLE)
    assert "no value for faithfulness: prose" in result.explanation


def test_a_temporary_part_failure_postpones_the_score(asked: Exchange, score: Any) -> None:
    """The score is retried after the delay that the part requested."""
    busy = ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "slow down", retry_after=7.0)

    (result,) = score(quality(0.8, busy, 0.9), asked)

    assert (result.value, result.reason, result.details["retry_after"]) == (
        None,
        UnscoredReason.JUDGE_RATE_LIMITED,
        7.0,
    )


def test_there_is_no_value_if_every_part_is_missing(asked: Exchange, score: Any) -> None:
    """The score has the reason of the first missing part."""
    errors = [
        ScoringError(reason, "no")
        for reason in (UnscoredReason.UNPARSABLE, UnscoredReason.MISSING_INPUT, UnscoredReason.UNPARSABLE)
    ]

    (result,) = score(quality(*errors), asked)

    assert (result.value, result.reason) == (None, UnscoredReason.UNPARSABLE)


def test_answer_quality_requires_contexts(exchange: Make, score: Any) -> None:
    """Without contexts, only relevancy would remain, which is a different scorer."""
    (result,) = score(quality(0.8, 0.8, 0.8), exchange())

    assert result.reason is UnscoredReason.MISSING_INPUT


# From settings


def ratings_and_verdicts(request: Any) -> dict[str, Any]:
    """Return the reply of a judge that knows who created Python."""
    properties = (request.schema or {})["properties"]
    if "ratings" in properties:
        return {"ratings": [5 if "Guido" in each else 1 for each in request.text.split("Passage ")[1:]]}
    if "claims" in properties:
        right = "Guido" in request.section("answer")
        quoted = "Guido van Rossum created Python" if right else ""
        verdict = "SUPPORTED" if right else "NOT_SUPPORTED"
        return {"claims": [{"claim": 1, "source_sentence": quoted, "verdict": verdict}]}
    return {"intent": "To know who invented Python.", "given": "A name.", "rating": 5}


def test_a_relevant_but_unfaithful_answer_scores_lower_than_a_faithful_one(exchange: Make, judged: Any) -> None:
    """ "Who invented Python?" "Larry Wall." names a person, as required, but contradicts good contexts."""
    contexts = ("Guido van Rossum created Python.", "Guido worked at a research institute.")
    wall = exchange("Who invented Python?", "Larry Wall invented Python.", *contexts)
    guido = exchange("Who invented Python?", "Guido van Rossum invented Python.", *contexts)
    poor = exchange(
        "Who invented Python?", "Guido van Rossum invented Python.", "Pythons are snakes.", "Java is coffee."
    )

    unfaithful, faithful, unsupported = judged(
        "answer_quality", ratings_and_verdicts, wall, guido, poor, relevancy="intent_match"
    )

    assert (unfaithful.value, unfaithful.label) == (pytest.approx(0.6, abs=1e-9), "D")
    assert (faithful.value, faithful.label) == (pytest.approx(1.0, abs=1e-9), "A")
    assert (unfaithful.details["harmonic"], unfaithful.details["minimum"]) == (0.0, 0.0)
    assert unfaithful.details["parts"]["intent_match"]["value"] == 1.0
    assert faithful.value > unsupported.value


def test_parts_share_requests_with_configured_scorers(fake: FakeJudge, bare: Path) -> None:
    """Each scorer is created once with its own options and is used under both names."""
    names = ("faithfulness", "answer_quality")
    options = {"faithfulness": {"claims": "judge"}, "answer_quality": {"relevancy": "intent_match"}}
    scorer_set = build_scorers(load_settings(service="tests", **fake.settings(), scorers=names, scorer_options=options))

    faithfulness, whole = scorer_set.scorers

    assert isinstance(whole, AnswerQuality)
    assert whole.scorers["faithfulness"] is faithfulness
    asyncio.run(scorer_set.aclose())


def test_errors_about_invalid_options_name_the_setting(fake: FakeJudge, bare: Path) -> None:
    """Errors are raised before anything is scored."""
    options = {"answer_quality": {"relevancy": "answer_quality"}}

    with pytest.raises(SettingsError, match=r"scorer_options.answer_quality: relevancy must be one of"):
        build_scorers(
            load_settings(service="tests", **fake.settings(), scorers=("answer_quality",), scorer_options=options)
        )


# Options


def test_the_relevancy_part_can_be_computed_by_another_scorer(asked: Exchange, score: Any) -> None:
    """The other scorer gets the same weight."""
    parts = {name: Fixed(name, 1.0) for name in ("context_relevance", "faithfulness")}
    scorer = AnswerQuality({**parts, "direct_relevancy": Fixed("direct_relevancy", 0.5)}, relevancy="direct_relevancy")

    (result,) = score(scorer, asked)

    assert result.value == pytest.approx(0.85, abs=1e-9)


@each(
    "options",
    [{"relevancy": "answer_quality"}, {"relevancy": "direct_relevancy"}, {"aggregate": "mean"}, {"missing": "zero"}],
)
def test_invalid_options_are_rejected(options: Any) -> None:
    """Invalid options are the scorer itself as a part, an unknown part, and values outside their range."""
    with pytest.raises(ValueError, match=r"must be|there is no scorer for direct_relevancy"):
        quality(1.0, 1.0, 1.0, **options)


def test_the_fingerprint_does_not_change_by_accident() -> None:
    """The fingerprint covers the options and the fingerprints of the parts."""
    assert quality(1.0, 1.0, 1.0).fingerprint == "af977222ffdf"
    assert quality(1.0, 1.0, 1.0, aggregate="minimum").fingerprint != "af977222ffdf"
    assert "faithfulness" in repr(quality(1.0, 1.0, 1.0))


def test_weights_of_the_parts_are_configurable(asked: Exchange) -> None:
    """Weights may have any sum. Parts without a weight do not run and do not count as missing."""
    weights = {"context_relevance": 1, "answer_relevancy": 3}
    scorer = quality(0.4, ScoringError(UnscoredReason.UNPARSABLE, "not asked"), 0.8, weights=weights)

    score = asyncio.run(scorer.score(asked))

    assert score.value == pytest.approx((0.4 + 3 * 0.8) / 4, abs=1e-9)
    assert (list(scorer.scorers), score.details["missing"]) == (["context_relevance", "answer_relevancy"], [])
    assert scorer.fingerprint != quality(0.4, 0.5, 0.8).fingerprint


def test_another_aggregate_can_determine_the_grade(asked: Exchange) -> None:
    """With the minimum, the worst part determines the grade, while the value remains the weighted mean."""
    by_value, by_minimum = quality(1.0, 1.0, 0.62), quality(1.0, 1.0, 0.62, grade_from="minimum")

    scores = [asyncio.run(scorer.score(asked)) for scorer in (by_value, by_minimum)]

    assert scores[0].value == scores[1].value == pytest.approx(0.886, abs=1e-9)
    assert [(score.label, score.details["grade"]) for score in scores] == [("B", "B"), ("D", "D")]
    assert by_value.fingerprint != by_minimum.fingerprint
    assert by_value.fingerprint == quality(1.0, 1.0, 0.62, grade_from="weighted").fingerprint


@each(
    ("options", "message"),
    [
        (
            {"weights": {"faithfullness": 1}},
            "unknown part faithfullness; the parts are context_relevance, faithfulness",
        ),
        ({"weights": {"faithfulness": -1}}, "faithfulness must be 0 or more, not -1"),
        ({"weights": {"faithfulness": 0}}, "at least one must be greater than 0"),
        ({"weights": [1]}, "weights must be a mapping"),
        ({"grade_from": "best"}, "grade_from must be one of weighted, harmonic, minimum, not 'best'"),
    ],
)
def test_invalid_weights_and_grades_are_rejected(options: dict[str, Any], message: str) -> None:
    """The error names the option and the valid values."""
    with pytest.raises((TypeError, ValueError), match=message):
        quality(0.5, 0.5, 0.5, **options)
