"""Answers that answer relevancy handles specially: refusals, echoes of the question, and refusal votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from germane.exchange import Exchange

Make = Callable[..., Exchange]

ASKED = "Where does the ferry to the island leave?"
QUESTIONS = ["Where is the pier?", "Where does one board the ferry?", "What lies behind the market?"]


def prompt_of(request: Any) -> str:
    """Return the complete text sent to the judge."""
    return "\n".join(message["content"] for message in request.body["messages"])


# Noncommittal answers


def test_a_refusal_found_by_rules_scores_zero_without_judging(bench: Any, exchange: Make) -> None:
    """The details name the matching rule. The judge is only asked for its name."""
    (score,) = bench.score(exchange(answer="I'm sorry, but I don't have that information."))

    assert (score.value, score.label, score.state) == (0.0, "noncommittal", "scored")
    assert score.details["noncommittal"]["rule"] == "it says that it does not know, or refuses"
    assert [prompt_of(request) for request in bench.fake.requests] == ["Reply with: ok"]


@pytest.mark.parametrize("supports_n", [True, False])
def test_rule_based_zeros_and_judged_scores_share_a_fingerprint(bench: Any, exchange: Make, supports_n: bool) -> None:
    """This holds in any order, both within a process and after a restart."""
    bench.fake.supports_n = supports_n
    refusal = exchange(answer="I don't know.")

    scores = [*bench.score(refusal, exchange()), *bench.score(exchange(), refusal)]

    assert len({score.fingerprint for score in scores}) == 1


def test_separate_choices_and_lists_have_different_fingerprints(bench: Any) -> None:
    """Questions in one list differ more from each other than N separate choices do."""
    (choices,) = bench.score()
    bench.fake.supports_n = False
    (listed,) = bench.score()

    assert choices.fingerprint != listed.fingerprint


def test_refusal_votes_are_requested_only_if_they_are_enabled(bench: Any) -> None:
    """Small judges vote incorrectly nine times out of ten, and a plain question takes fewer tokens."""
    bench.fake.noncommittal = True

    (score,) = bench.score()

    assert score.label != "noncommittal"
    assert [each["noncommittal"] for each in score.details["questions"]] == [None, None, None]
    assert "noncommittal" not in prompt_of(bench.fake.chat_requests[0])
    assert set(bench.fake.chat_requests[0].schema["properties"]) == {"question"}


@pytest.mark.parametrize(
    ("votes", "decided"),
    [([True, True, False], True), ([True, False, False], False), ([True, False], False), (None, False)],
)
def test_enabled_refusal_votes_are_decided_by_strict_majority(bench: Any, votes: Any, decided: bool) -> None:
    """Half of the votes is not a strict majority."""
    bench.options |= {"judge_detects_refusals": True, "generated_questions": len(votes or [1, 2])}
    bench.fake.noncommittal = votes
    bench.fake.questions = lambda answer: QUESTIONS[: len(votes or [1, 2])]

    (score,) = bench.score()

    assert (score.label == "noncommittal") is decided
    assert (score.value == 0.0) is decided


# Copies of the question


def test_an_answer_that_only_repeats_the_question_is_irrelevant(bench: Any, exchange: Make) -> None:
    """An echo scores 0, gets the lowest band, and is not sent to the judge."""
    (score,) = bench.score(
        exchange(answer="Where does the ferry to the island leave? WHERE DOES the ferry to the island leave")
    )

    assert (score.value, score.label) == (0.0, "irrelevant")
    assert score.explanation == "The answer only repeats the question."
    assert score.details["copies_removed"] is True
    assert [prompt_of(request) for request in bench.fake.requests] == ["Reply with: ok"]


def test_copies_of_the_question_in_the_answer_are_not_sent_to_the_judge(bench: Any, exchange: Make) -> None:
    """Repeating the question in the answer does not raise the score."""
    bench.score(exchange(answer=f"{ASKED} {ASKED.upper()} Bananas are rich in potassium."))

    assert "ferry" not in prompt_of(bench.fake.chat_requests[0]).lower()
    assert "Bananas are rich in potassium." in prompt_of(bench.fake.chat_requests[0])


def test_copies_of_the_question_are_kept_if_configured(bench: Any, exchange: Make) -> None:
    """An option determines whether they are removed."""
    bench.options["remove_question_echo"] = False

    (score,) = bench.score(exchange(answer=f"{ASKED} Bananas are rich in potassium."))

    assert "ferry" in prompt_of(bench.fake.chat_requests[0])
    assert "copies_removed" not in score.details
