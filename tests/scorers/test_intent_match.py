"""Intent match: a rating of how well the answer serves the intent of the question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import build_scorers, run_scorer
from germane.settings import load_settings
from germane.testing import FakeJudge, Fault

Make = Callable[..., Exchange]
AKS = "What are the benefits of using AKS?"
INTENT = "The asker wants to know what they gain by using AKS."


@pytest.fixture
def match(fake: FakeJudge, bare: Path) -> Callable[..., Score]:
    """Score one exchange with a judge that gives this reply."""

    def score(exchange: Exchange, reply: Any, **options: Any) -> Score:
        fake.replies = reply if callable(reply) else [reply, reply]
        name = "intent_match"
        settings = load_settings(service="tests", **fake.settings(), scorers=(name,), scorer_options={name: options})

        async def score_it() -> Score:
            scorer_set = build_scorers(settings)
            try:
                return await run_scorer(scorer_set.scorers[0], exchange)
            finally:
                await scorer_set.aclose()

        return asyncio.run(score_it())

    return score


@pytest.mark.parametrize(
    ("rating", "value", "words", "label"),
    [
        (1, 0.0, "does not fulfill", "irrelevant"),
        (2, 0.25, "barely fulfills", "irrelevant"),
        (3, 0.5, "partly fulfills", "partly_relevant"),
        (4, 0.75, "mostly fulfills", "mostly_relevant"),
        (5, 1.0, "fully fulfills", "relevant"),
    ],
)
def test_intent_match_is_the_rating_scaled_to_0_to_1(
    exchange: Make, match: Any, fake: FakeJudge, rating: int, value: float, words: str, label: str
) -> None:
    """The value is (rating - 1) / 4, from one request. The details and the explanation contain intent and rating."""
    score = match(exchange(AKS, "Less to operate."), {"intent": INTENT, "rating": rating})

    assert score.value == pytest.approx(value, abs=1e-9)
    assert (score.details["intent"], score.details["rating"], score.details["requests"]) == (INTENT, rating, 1)
    assert score.explanation == f'The answer {words} the intent: "{INTENT}"'
    assert (score.label, len(fake.chat_requests)) == (label, 1)


def test_an_answer_that_serves_the_intent_ranks_higher(exchange: Make, match: Any) -> None:
    """The question asks for the benefits of AKS, and the judge looks for them in the answer."""

    def judge(request: Any) -> dict[str, Any]:
        return {"intent": INTENT, "rating": 1 + 2 * sum(word in request.section("answer") for word in ("cost", "scal"))}

    good = "AKS lowers operating cost, and scales with the load."
    partial = "AKS scales with the load."
    off = "Kubernetes was first released in 2014."

    assert [match(exchange(AKS, answer), judge).value for answer in (good, partial, off)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("rating", ["4", "four", "4/5", 4.0, "80%"])
def test_a_rating_is_accepted_as_a_digit_a_word_or_json(
    exchange: Make, match: Any, fake: FakeJudge, rating: Any
) -> None:
    """No second request is needed."""
    score = match(exchange(), {"intent": INTENT, "rating": rating})

    assert score.value == pytest.approx(0.75, abs=1e-9)
    assert len(fake.chat_requests) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"intent": INTENT, "rating": 0}, UnscoredReason.OUT_OF_RANGE),
        ({"intent": INTENT, "rating": 6}, UnscoredReason.OUT_OF_RANGE),
        ({"intent": INTENT, "rating": -3}, UnscoredReason.OUT_OF_RANGE),
        ('{"intent": "x", "rating": NaN}', UnscoredReason.OUT_OF_RANGE),
        ({"intent": INTENT, "rating": "good"}, UnscoredReason.UNPARSABLE),
        ({"intent": INTENT, "rating": True}, UnscoredReason.UNPARSABLE),
        ({"intent": INTENT}, UnscoredReason.UNPARSABLE),
        ({"intent": " ", "rating": 4}, UnscoredReason.UNPARSABLE),
        ({"rating": 4}, UnscoredReason.UNPARSABLE),
        ("4", UnscoredReason.UNPARSABLE),
    ],
)
def test_two_unparsable_ratings_yield_no_score(
    exchange: Make, match: Any, fake: FakeJudge, reply: Any, reason: UnscoredReason
) -> None:
    """No default rating is used instead."""
    score = match(exchange(), reply)

    assert (score.value, score.reason) == (None, reason)
    assert len(fake.chat_requests) == 2


def test_an_unreachable_judge_yields_no_score(exchange: Make, match: Any, fake: FakeJudge) -> None:
    """The score can be retried."""
    fake.outage = Fault("status", status=503)

    score = match(exchange(), None)

    assert (score.value, score.reason) == (None, UnscoredReason.JUDGE_UNREACHABLE)


def test_an_answer_that_repeats_the_question_does_not_fulfill_the_intent(
    exchange: Make, match: Any, fake: FakeJudge
) -> None:
    """The echo is not sent to the judge for a rating."""
    score = match(exchange(AKS, AKS), {"intent": INTENT, "rating": 5})

    assert (score.value, score.label, score.explanation) == (0.0, "irrelevant", "The answer only repeats the question.")
    assert [request for request in fake.chat_requests if "rating" in request.text] == []


def test_contexts_that_the_scorer_does_not_use_are_not_reported_as_truncated(exchange: Make, match: Any) -> None:
    """The judge does not see the contexts."""
    score = match(exchange(AKS, "Less to operate.", "x" * 1_000_000), {"intent": INTENT, "rating": 4})

    assert "cut" not in score.details


def test_copies_of_the_question_are_kept_if_configured(exchange: Make, match: Any, fake: FakeJudge) -> None:
    """By default, the judge does not see the copies."""
    for options in ({}, {"remove_question_echo": False}):
        match(exchange(AKS, f"{AKS} Buy shoes."), {"intent": INTENT, "rating": 1}, **options)

    assert [request.section("answer").strip() for request in fake.chat_requests] == ["Buy shoes.", f"{AKS} Buy shoes."]


def test_summarizing_the_answer_with_the_judge_is_optional(exchange: Make, match: Any) -> None:
    """The summary helps the judge to rate and explains the rating, but does not affect the value."""
    score = match(exchange(), {"intent": INTENT, "given": "Fewer servers.", "rating": 3})

    assert score.details["given"] == "Fewer servers."
    assert score.explanation == f'The answer partly fulfills the intent: "{INTENT}"; the answer gives: "Fewer servers."'


def test_a_long_intent_is_shortened_in_the_details(exchange: Make, match: Any) -> None:
    """The details contain only the beginning of the intent."""
    score = match(exchange(), {"intent": "x" * 5_000, "rating": 3})

    assert len(score.details["intent"]) == 300


def test_non_latin_scripts_reach_the_judge_unchanged(exchange: Make, match: Any, fake: FakeJudge) -> None:
    """This covers right-to-left text, mixed scripts and combining characters."""
    texts = "ما هي عاصمة فرنسا؟ 東京?", "باريس ✓ é"

    score = match(exchange(*texts), {"intent": "معرفة العاصمة", "rating": 5})

    assert (fake.chat_requests[0].section("question"), fake.chat_requests[0].section("answer")) == texts
    assert score.details["intent"] == "معرفة العاصمة"


def test_the_fingerprint_does_not_change_by_accident(exchange: Make, match: Any) -> None:
    """The fingerprint covers prompt, schema, limits, version and judge. Update it if one of them changes on purpose."""
    assert match(exchange(), {"intent": INTENT, "rating": 3}).fingerprint == "f7dd245874ad"
