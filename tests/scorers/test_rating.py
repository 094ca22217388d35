"""Expected ratings from log probabilities, and ratings parsed from text."""

from __future__ import annotations

import contextlib
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.reply_parser import UnreadableReply
from germane.scorers.prompting.rating import Rating, expected_rating, parse_rating


def test_the_expected_rating_is_the_mean_of_digits_weighted_by_probability() -> None:
    """Tokens other than the digits 1 to 5 are ignored."""
    rating = expected_rating({"5": 0.6, "4": 0.2, "The": 0.1, "0": 0.05, "6": 0.03, "45": 0.02})

    assert rating.points == pytest.approx((5 * 0.6 + 4 * 0.2) / 0.8, abs=1e-9)
    assert rating.value == pytest.approx((4.75 - 1) / 4, abs=1e-9)
    assert rating.method == "expected"


def test_digit_tokens_that_differ_in_whitespace_count_as_one_digit() -> None:
    """Many tokenizers also have tokens for digits with a leading space."""
    rating = expected_rating({" 4": 0.3, "4": 0.3, "\n2": 0.2})

    assert rating.points == pytest.approx((4 * 0.6 + 2 * 0.2) / 0.8, abs=1e-9)
    assert rating.digits == pytest.approx({"2": 0.2, "4": 0.6})


def test_digits_with_too_little_probability_yield_no_rating() -> None:
    """If their total probability is at most one half, the judge was about to generate something else."""
    with pytest.raises(
        ScoringError, match=r"digits have a total probability of 0\.49; the most likely token is 'I'"
    ) as caught:
        expected_rating({"I": 0.51, "5": 0.49})

    assert caught.value.reason is UnscoredReason.UNPARSABLE
    assert expected_rating({"I": 0.49, "5": 0.51}).points == 5


@given(st.dictionaries(st.sampled_from("12345"), st.floats(0.01, 1), min_size=1))
def test_an_expected_rating_lies_between_its_lowest_and_highest_digit(weights: dict[str, float]) -> None:
    """The value is therefore between 0 and 1."""
    total = math.fsum(weights.values())

    rating = expected_rating({digit: weight / total for digit, weight in weights.items()})

    assert int(min(weights)) - 1e-9 <= rating.points <= int(max(weights)) + 1e-9
    assert -1e-9 <= rating.value <= 1 + 1e-9


@each(("points", "value"), [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75), (5, 1.0), (4.5, 0.875)])
def test_ratings_one_to_five_are_scaled_to_zero_to_one(points: float, value: float) -> None:
    """The value is (rating - 1) / 4."""
    assert Rating(points, "parsed").value == pytest.approx(value, abs=1e-9)


TEXTS = {
    "4": 4,
    " 4\n": 4,
    "**4**": 4,
    "4.": 4,
    "four": 4,
    "Four.": 4,
    "4/5": 4,
    "4 / 5": 4,
    "4 out of 5": 4,
    "Rating: 4": 4,
    "Rating: 4/5": 4,
    "4 = mostly": 4,
    "mostly": 4,
    "Not at all.": 1,
    '{"rating": 4}': 4,
    '{"rating": "four"}': 4,
    '{"score": 2}': 2,
    'Sure: {"reason": "good", "rating": 3}.': 3,
    "<think>Is it 2 or 3? Not 5.</think>4": 4,
    "4.5": 4.5,
    "4.5 (mostly)": 4.5,
    '{"Rating": 4}': 4,
    '{"score": 4, "rating": 4}': 4,
    '{"rating": 4, "Justification": "The reply names the pier.", "error": null}': 4,
}


@each(("text", "points"), TEXTS.items())
def test_a_rating_can_be_a_digit_a_word_or_json(text: str, points: float) -> None:
    """Short surrounding text is ignored."""
    assert parse_rating(text) == points


@each(
    "members",
    [
        {"type": "error"}, {"status": "failed"}, {"ok": False}, {"success": False}, {"flagged": True}, {"code": 503},
        {"error": "overloaded"}, {"errorMessage": "x"}, {"fault": "x"}, {"detail": "x"}, {"id": "req-1"},
        {"reason": "I'm sorry, but I can't assist with that."}, {"explanation": "Error: upstream timed out"},
    ],
)  # fmt: skip
def test_a_json_rating_with_unknown_fields_is_rejected(members: dict[str, object]) -> None:
    """Only rationales may accompany a rating, because a gateway's status object may also contain a rating."""
    with pytest.raises(UnreadableReply):
        parse_rating(json.dumps({"rating": 4, **members}))


@each(
    ("text", "reason"),
    [
        ("", UnscoredReason.UNPARSABLE),
        ("good", UnscoredReason.UNPARSABLE),
        ("Between 3 and 4", UnscoredReason.UNPARSABLE),
        ("I would rate it 4, since it answers most of it.", UnscoredReason.UNPARSABLE),
        ("{}", UnscoredReason.UNPARSABLE),
        ('{"rating": null}', UnscoredReason.UNPARSABLE),
        ('{"rating": true}', UnscoredReason.UNPARSABLE),
        ('{"rating": NaN}', UnscoredReason.OUT_OF_RANGE),
        ("7", UnscoredReason.OUT_OF_RANGE),
        ("0", UnscoredReason.OUT_OF_RANGE),
        ("5 - not at all", UnscoredReason.UNPARSABLE),
        ("1 = fully", UnscoredReason.UNPARSABLE),
        ("4: partly", UnscoredReason.UNPARSABLE),
        ('{"rating": 4, "score": 2}', UnscoredReason.UNPARSABLE),
        ('{"rating": {"rating": 4}', UnscoredReason.UNPARSABLE),
        ('{"rating": {"rating": 4}, ', UnscoredReason.UNPARSABLE),
        ('{"rating": {"rating": 4}, "', UnscoredReason.UNPARSABLE),
        ("-4", UnscoredReason.OUT_OF_RANGE),
        ("Rating: 9", UnscoredReason.OUT_OF_RANGE),
        ('{"rating": 50}', UnscoredReason.OUT_OF_RANGE),
    ],
)
def test_an_unparsable_rating_yields_a_reason_and_no_score(text: str, reason: UnscoredReason) -> None:
    """An unparsable rating never results in a value, nor does a rating inside an object that was cut off."""
    with pytest.raises(UnreadableReply) as caught:
        parse_rating(text)

    assert caught.value.reason is reason


SHOWN = {"question": "Can I return shoes?", "answer": "Shoes can be returned within thirty days."}


@each(
    ("reply", "rating"),
    [
        ("4\n\nReason: the answer covers the return of shoes.", 4.0),
        ("4\nReason: The answer is about shoes.", 4.0),
        ("**4**\n\nThe answer is about returning shoes within 30 days.", 4.0),
        ("Rating: 4\n\nExplanation: shoes can be returned.", 4.0),
        ("4/5\n\nReason: it answers the question", 4.0),
        ("5\n\nShoes can be returned within thirty days.\nThe answer says so.", 5.0),
        ("4\n\nReason: 4 of 5 points are covered", 4.0),
    ],
)
def test_a_rating_may_be_followed_by_its_reason(reply: str, rating: float) -> None:
    """Chat models write the rating on a line of its own, and explain it after a blank line or a label."""
    assert parse_rating(reply, SHOWN) == rating


@each(
    "reply",
    [
        "4\n\n5",
        "4\n\nReason: x\n\n3",
        "1\n2\n3",
        "4\nrequests remain in this minute.",
        "429\n\nToo many requests",
        "4\n\nI cannot rate this answer.",
        '4\n\n{"rating": 3}',
        "4\n\nError: rate limit exceeded",
        "Reason: it is fine\n\n4",
        "I cannot rate this.\n\nReason: there is no answer.",
    ],
)
def test_a_number_before_other_text_is_not_a_rating(reply: str) -> None:
    """A second number, a refusal, an error or a sentence that begins with the number give no rating."""
    with pytest.raises(UnreadableReply):
        parse_rating(reply, SHOWN)


@each("reply", ["4" + "\n" * 50_000 + "5", "4\n" + " \n" * 50_000 + "Reason", "\n" * 50_000 + "4"])
def test_blank_lines_do_not_slow_a_rating_down(reply: str) -> None:
    """A judge may repeat a token until its limit."""
    started = time.process_time()
    with contextlib.suppress(UnreadableReply):
        parse_rating(reply, SHOWN)

    assert time.process_time() - started < 5
