"""Labels for calibrated scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.calibration import Calibration
from germane.evaluation import Evaluation
from germane.evaluation.summary import RowScores
from germane.exchange import Exchange
from germane.score import GRADES, LOW_SCORE, MEANINGS, UNCALIBRATED, UNRATED_MEANINGS, Score, UnscoredReason, band_of
from germane.scorers import apply_calibration
from germane.scorers.calibration import measurement_fingerprint

NAME = "question_answer_similarity"


def calibration(
    embedder: str = "mini", scorer: str = NAME, floor: float = 0.5, topic_floor: float = 0.6
) -> Calibration:
    """Return a calibration as measured by this version."""
    return Calibration(
        embedder=embedder,
        scorer=scorer,
        fingerprint=measurement_fingerprint(embedder, scorer),
        floor=floor,
        topic_floor=topic_floor,
        n=60,
        made_at=datetime(2026, 11, 20, tzinfo=UTC),
    )


HALF = calibration()
FLOORS = {(HALF.embedder, HALF.scorer): HALF}
RAW = Score(scorer=NAME, fingerprint="f1", value=0.75, label="mostly_relevant", embedder="mini", details={"kept": 1})


def test_label_is_determined_by_the_calibrated_value() -> None:
    """The value, the fingerprint and other details do not change. The sentence matches the label."""
    found = apply_calibration(replace(RAW, value=0.605), FLOORS)

    calibrated = HALF.rescale(0.605)
    assert 0.5 < calibrated < 0.7
    assert found == replace(
        RAW,
        value=0.605,
        label="partly_relevant",
        explanation=f"{UNRATED_MEANINGS['partly_relevant']}.",
        details={"kept": 1, "calibrated": calibrated, "low_below": HALF.cosine_of(LOW_SCORE)},
    )
    assert apply_calibration(found, FLOORS) == found


@given(st.floats(0, 1), st.floats(-1, 1), st.booleans())
def test_explanation_claims_relevance_only_if_a_judge_rated_the_answer(
    rating: float, similarity: float, is_rated: bool
) -> None:
    """Similarities only show closeness. The sentence for the current label replaces that for an earlier one."""
    details = {"answer_similarity": similarity, **({"direct": rating} if is_rated else {})}
    floors = {**FLOORS, ("mini", "answer_relevancy"): calibration(scorer="answer_relevancy")}
    score = replace(RAW, scorer="answer_relevancy", value=similarity, details=details)
    for sentence in {*MEANINGS.values(), *UNRATED_MEANINGS.values()}:
        found = apply_calibration(replace(score, explanation=f"{sentence}. More."), floors)

        assert found.label in set(GRADES) - {UNCALIBRATED}
        assert found.explanation == f"{(MEANINGS if is_rated else UNRATED_MEANINGS)[found.label]}. More."
        assert is_rated or "addresses the question" not in found.explanation


@each(("value", "label"), [(0.6, "irrelevant"), (0.605, "partly_relevant"), (0.7, "mostly_relevant")])
def test_a_cosine_at_the_same_topic_floor_is_in_the_lowest_band(value: float, label: str) -> None:
    """All lower values are also in the lowest band."""
    assert apply_calibration(replace(RAW, value=value), FLOORS).label == label


def test_a_score_from_an_uncalibrated_embedder_is_labeled_uncalibrated() -> None:
    """Without a calibration, the score is never low, whatever its value."""
    found = apply_calibration(replace(RAW, value=0.1, embedder="large"), FLOORS)

    assert (found.label, found.is_low, found.details) == ("uncalibrated", False, {"kept": 1})
    assert found.explanation == "No label, because the embedder is not calibrated; run germane calibrate --save."


@given(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_a_label_without_a_calibration_never_contradicts_the_value(
    rating: float, value: float, threshold: float
) -> None:
    """If the judge's rating and the value disagree, there is no label, and the sentence states both."""
    details = {"direct": rating, "answer_similarity": value}
    score = replace(RAW, scorer="answer_relevancy", embedder="large", value=value, details=details, explanation="More.")

    found = apply_calibration(score, {})

    bands = ["relevant", "mostly_relevant", "partly_relevant", "irrelevant"]
    if found.label == UNCALIBRATED:
        assert f"of 5, similarity {value:z.2f}" in found.explanation
    else:
        assert found.explanation == f"{MEANINGS[found.label]}. More."
        assert found.is_low == (value < LOW_SCORE)
        assert abs(bands.index(found.label) - bands.index(band_of(value))) <= 1
    row = RowScores(Exchange.from_texts("How?", "So."), {"answer_relevancy": found})
    assert bool(Evaluation((row,)).problems(threshold)) == (value < threshold or found.is_low)
    assert apply_calibration(found, {}) == found


@each(("value", "label"), [(0.95, UNCALIBRATED), (0.75, "partly_relevant"), (0.35, UNCALIBRATED), (-0.5, UNCALIBRATED)])
def test_a_middle_rating_is_the_label_only_if_the_similarity_is_also_in_the_middle(value: float, label: str) -> None:
    """The finding names both numbers."""
    score = replace(RAW, scorer="answer_relevancy", embedder="large", value=value, details={"direct": 0.5})

    found = apply_calibration(score, {})

    assert found.label == label
    finding = f"Labels disagree: judge 3 of 5, similarity {value:z.2f}; run germane calibrate --save."
    assert found.explanation == (finding if label == UNCALIBRATED else "The answer only partly addresses the question.")


def test_the_local_embedder_is_calibrated_by_default() -> None:
    """A measured calibration takes precedence over the shipped one."""
    reverse = "answer_relevancy"
    score = replace(RAW, scorer=reverse, value=0.7, embedder="local:all-MiniLM-L6-v2-int8")
    own = calibration("local:all-MiniLM-L6-v2-int8", scorer=reverse, topic_floor=0.6)

    assert apply_calibration(score, {}).label == "irrelevant"
    assert apply_calibration(score, {(own.embedder, reverse): own}).label == "partly_relevant"


@each("value", [0.07, 0.3, 0.7, 0.95])
def test_question_answer_similarity_has_no_band_until_it_is_calibrated(value: float) -> None:
    """A correct short answer is not similar to its question: "Gift card valid?", "Three years." is 0.07."""
    score = replace(RAW, value=value, embedder="local:all-MiniLM-L6-v2-int8")
    own = calibration("local:all-MiniLM-L6-v2-int8", topic_floor=0.6)

    found = apply_calibration(score, {})

    assert (found.label, found.is_low, found.details) == ("uncalibrated", False, {"kept": 1})
    assert apply_calibration(score, {(own.embedder, NAME): own}).label == band_of(own.rescale(value))


@given(st.floats(-1, 1), st.none() | st.floats(0, 1))
def test_the_label_is_limited_if_the_requested_kind_of_information_is_missing(
    similarity: float, rating: float | None
) -> None:
    """The label is never better than partly relevant, and the check alone never makes it irrelevant."""
    details = {} if rating is None else {"answer_similarity": similarity, "direct": rating}
    score = replace(RAW, value=similarity, details=details)
    unchecked = apply_calibration(score, FLOORS)

    found = apply_calibration(replace(score, details={**details, "missing_kind": "a time"}), FLOORS)

    assert found.label == ("irrelevant" if unchecked.label == "irrelevant" else "partly_relevant")


def test_answer_similarity_can_raise_the_answer_relevancy_label() -> None:
    """Small judges generate unrelated questions even from good answers."""
    reverse = calibration(scorer="answer_relevancy")
    floors = {**FLOORS, ("mini", "answer_relevancy"): reverse}
    score = replace(RAW, scorer="answer_relevancy", value=0.2, details={"answer_similarity": 0.9})

    assert apply_calibration(replace(score, details={}), floors).label == "irrelevant"
    assert apply_calibration(score, floors).details["calibrated"] == HALF.rescale(0.9)


@each(
    ("rating", "label"),
    [
        (1.0, "relevant"),
        (0.9, "relevant"),
        (0.75, "mostly_relevant"),
        (0.5, "partly_relevant"),
        (0.25, "irrelevant"),
        (0.0, "irrelevant"),
    ],
)
def test_the_rating_determines_the_label_of_an_on_topic_answer(rating: float, label: str) -> None:
    """Ratings of 5, 4, 3 and less each have their own band. The similarity of the questions has no influence."""
    details = {"answer_similarity": 0.6, "direct": rating}
    score = replace(RAW, scorer="answer_relevancy", value=0.2, details=details)

    assert apply_calibration(score, FLOORS).label == label
    assert apply_calibration(replace(score, value=0.9), FLOORS).label == label


def test_a_rating_cannot_make_an_off_topic_answer_relevant() -> None:
    """An answer that asks the judge for a good rating is still off topic."""
    details = {"answer_similarity": 0.52, "direct": 1.0}
    score = replace(RAW, scorer="answer_relevancy", value=0.2, details=details)

    assert apply_calibration(score, FLOORS).label == "irrelevant"


def test_a_direct_rating_needs_no_calibration() -> None:
    """If the embedder is not calibrated, the rating alone determines the label."""
    score = replace(RAW, embedder="large", details={"answer_similarity": 0.1, "direct": 0.75})

    assert apply_calibration(score, {}).label == "mostly_relevant"


def test_an_answer_that_repeats_the_question_is_labeled_irrelevant_without_a_calibration() -> None:
    """An answer that only repeats the question is irrelevant with any embedder."""
    echo = replace(RAW, value=0.0, embedder="large", explanation="The answer only repeats the question.")

    found = apply_calibration(echo, {})

    assert (found.label, found.explanation) == ("irrelevant", echo.explanation)


def test_a_calibration_stored_by_an_earlier_version_is_ignored() -> None:
    """In earlier versions, the second value was not the same-topic floor."""
    own = replace(calibration("local:all-MiniLM-L6-v2-int8", topic_floor=0.9), fingerprint="of version 1")
    score = replace(RAW, value=0.7, embedder=own.embedder)

    assert apply_calibration(score, {(own.embedder, NAME): own}) == apply_calibration(score, {})


def test_a_score_below_the_floor_is_labeled_irrelevant() -> None:
    """Calibrated values range from 0 to 1."""
    found = apply_calibration(replace(RAW, value=0.2), FLOORS)
    assert (found.value, found.label, found.details["calibrated"]) == (0.2, "irrelevant", 0.0)


@given(st.floats(-1, 0.99), st.floats(-1, 1))
def test_label_is_the_band_of_the_calibrated_value(floor: float, value: float) -> None:
    """This holds for any floors and values, and calibration preserves the order of values."""
    floors = {(HALF.embedder, NAME): calibration(floor=floor, topic_floor=max(floor, 0.5))}
    found = apply_calibration(replace(RAW, value=value), floors)
    lower = apply_calibration(replace(RAW, value=-1.0), floors)
    assert found.value == value
    assert 0 <= lower.details["calibrated"] <= found.details["calibrated"] <= 1
    assert found.label == band_of(found.details["calibrated"])


OTHERS = [
    replace(RAW, embedder=None),
    replace(RAW, scorer="faithfulness"),
    replace(RAW, value=None, label=None, reason=UnscoredReason.EMBEDDER_ERROR),
]


@each("score", OTHERS)
def test_calibration_does_not_change_scores_that_are_not_cosines(score: Score) -> None:
    """The scale of such scores does not depend on an embedder."""
    assert apply_calibration(score, {**FLOORS, ("mini", "faithfulness"): HALF}) == score


def test_calibration_does_not_replace_labels_other_than_bands() -> None:
    """For example, `noncommittal` remains the label."""
    found = apply_calibration(replace(RAW, value=0.0, label="noncommittal"), FLOORS)
    assert (found.label, found.details["calibrated"]) == ("noncommittal", 0.0)
