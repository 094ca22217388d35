"""Guarded relevancy: a rating times a cosine, both computed without copies of the question."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.scorers import DirectRelevancy, GuardedRelevancy, Reply
from germane.testing import FakeEmbedder, Fault

Make = Callable[..., Exchange]
ASKED = "Where does the ferry to the island leave?"
ANSWER = "The ferry leaves from pier four, behind the fish market."


@pytest.fixture
def guarded(bench: Any) -> Any:
    """Return a bench with a rating of 4.7 and a cosine of 0.6."""
    bench.make = GuardedRelevancy
    bench.fake.first_token = {"5": 0.7, "4": 0.3}
    bench.fake.vectors = {ASKED: [1.0, 0.0], ANSWER: [0.6, 0.8]}
    return bench


def test_guarded_relevancy_is_the_rating_times_the_cosine(guarded: Any) -> None:
    """The value is (4.7 - 1) / 4 * 0.6. The details contain both factors, and each model receives one request."""
    (score,) = guarded.score()

    assert score.value == pytest.approx(0.925 * 0.6, abs=1e-9)
    assert score.details["direct"] == pytest.approx(0.925, abs=1e-9)
    assert score.details["cosine"] == pytest.approx(0.6, abs=1e-9)
    assert (len(guarded.fake.chat_requests), len(guarded.fake.embedding_requests)) == (1, 1)
    assert (score.judge, score.embedder, score.label) == ("fake-judge", "fake-embedder", "relevant")


def test_a_negative_cosine_counts_as_zero(guarded: Any) -> None:
    """The value stays within 0 to 1. The original cosine is kept."""
    guarded.fake.vectors = {ASKED: [1.0, 0.0], ANSWER: [-0.6, 0.8]}

    (score,) = guarded.score()

    assert (score.value, score.label) == (0.0, "irrelevant")
    assert score.details["cosine"] == pytest.approx(-0.6, abs=1e-9)


def test_repeating_the_question_in_the_answer_raises_neither_factor(guarded: Any, exchange: Make) -> None:
    """The judge and the embedder only see the rest of the answer."""
    guarded.score(exchange(answer=f"{ASKED} {ASKED} Bananas are rich in potassium."))

    assert "ferry" not in guarded.fake.chat_requests[0].answer
    assert [text.strip() for text in guarded.fake.embedding_requests[0].body["input"]] == [
        ASKED,
        "Bananas are rich in potassium.",
    ]


def test_an_answer_that_only_repeats_the_question_scores_zero(guarded: Any, exchange: Make) -> None:
    """There is nothing left to judge. The score has the fingerprint of judged answers."""
    echo, answer = guarded.score(exchange(answer=f"{ASKED} - {ASKED.upper()}"), exchange())

    assert (echo.value, echo.explanation) == (0.0, "The answer only repeats the question.")
    assert echo.fingerprint == answer.fingerprint
    assert len(guarded.fake.embedding_requests) == 1


def test_the_judge_request_is_identical_to_that_of_direct_relevancy(guarded: Any) -> None:
    """The texts are identical, so one request serves both scorers."""
    guarded.score()
    guarded.make = lambda judge, embedder, **options: DirectRelevancy(judge, **options)
    guarded.score()

    first, second = guarded.fake.chat_requests
    assert first.body == second.body


def test_a_refusal_keeps_its_value_and_is_labeled_noncommittal(guarded: Any, exchange: Make) -> None:
    """Refusals are treated in the same way as in direct relevancy."""
    guarded.fake.vectors["I don't know."] = [0.8, 0.6]

    (score,) = guarded.score(exchange(answer="I don't know."))

    assert score.value == pytest.approx(0.925 * 0.8, abs=1e-9)
    assert score.label == "noncommittal"


@pytest.mark.parametrize("kind", ["nan", "zeros", "wrong_dimension", "uneven_dimension", "wrong_count"])
def test_a_failed_embedding_yields_no_score(guarded: Any, kind: Any) -> None:
    """One factor alone is not a score."""
    guarded.fake.embedding_faults.append(Fault(kind))

    (score,) = guarded.score()

    assert (score.value, score.reason) == (None, UnscoredReason.EMBEDDER_ERROR)


class IdleJudge:
    """Judge that must not be called."""

    model = "judge-1"

    async def identify(self) -> str:
        return self.model

    async def ask(self, messages: Any, **options: Any) -> Any:
        raise AssertionError("nobody was to ask")


class RatingJudge(IdleJudge):
    """Judge that always returns the same rating."""

    def __init__(self, first_token: dict[str, float]) -> None:
        self.first_token = first_token

    async def ask(self, messages: Any, **options: Any) -> Reply:
        return Reply((max(self.first_token, key=lambda token: self.first_token[token]),), first_token=self.first_token)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(likely=st.floats(0, 1), angle=st.floats(0, math.pi))
def test_guarded_relevancy_never_exceeds_either_factor(exchange: Make, score: Any, likely: float, angle: float) -> None:
    """The value is between 0 and 1."""
    judge = RatingJudge({"5": likely, "1": 1 - likely})
    embedder = FakeEmbedder({ASKED: [1.0, 0.0], ANSWER: [math.cos(angle), math.sin(angle)]})

    (guarded,) = score(GuardedRelevancy(judge, embedder), exchange())

    assert guarded.value == pytest.approx(likely * max(math.cos(angle), 0), abs=1e-9)
    assert 0 <= guarded.value <= min(likely, max(math.cos(angle), 0)) + 1e-9


def test_the_fingerprint_does_not_change_by_accident() -> None:
    """To change the fingerprint, change the version or the prompt."""
    scorer = GuardedRelevancy(IdleJudge(), FakeEmbedder())

    assert scorer.fingerprint == "3dfa7a1a29d7"
    assert scorer.fingerprint_for("judge-1", rated="parsed") == "b2dfaf035639"
    other = GuardedRelevancy(IdleJudge(), FakeEmbedder(), remove_question_echo=False)
    assert other.fingerprint != scorer.fingerprint
