"""Lists of ratings in one reply: the expected rating at each position."""

from __future__ import annotations

import asyncio

import pytest
from tests.cases import each

from germane.exchange import Message
from germane.scorers import Reply
from germane.scorers.base.protocols import Token
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.prompting.rating import expected_ratings
from germane.testing import FakeJudge

LIST = [Token('{"'), Token("ratings"), Token('":'), Token(" [")]


def test_each_rating_in_a_list_is_the_expected_digit_at_its_position() -> None:
    """Digits are weighted by probability. Other tokens are ignored."""
    first = Token("5", {"5": 0.5, "4": 0.25, "x": 0.25})
    second = Token(" 2", {" 2": 0.6, "2": 0.2, "1": 0.2})

    ratings = expected_ratings([*LIST, first, Token(","), second, Token("]}")], [5, 2])

    assert ratings is not None
    assert [rating.points for rating in ratings] == pytest.approx([(5 * 0.5 + 4 * 0.25) / 0.75, 1.8], abs=1e-9)
    assert {rating.method for rating in ratings} == {"expected"}


def test_ratings_are_read_from_tokens_that_contain_punctuation() -> None:
    """Tokenizers can combine digits with brackets and commas."""
    tokens = [
        Token('{"ratings":'),
        Token("[3", {"[3": 0.5, "[4": 0.5}),
        Token(",1", {",1": 1.0}),
        Token("5]", {"5]": 1}),
    ]

    ratings = expected_ratings([*tokens, Token("}")], [3, 1, 5])

    assert ratings is not None
    assert [rating.points for rating in ratings] == pytest.approx([3.5, 1.0, 5.0], abs=1e-9)


def test_digits_in_reasoning_before_the_list_are_ignored() -> None:
    """Lists in the reasoning are ignored, too."""
    thought = [Token("<think>"), Token("["), Token("1"), Token("] is"), Token("4"), Token("</think>")]

    ratings = expected_ratings([*thought, *LIST, Token("2", {"2": 1.0}), Token("]}")], [2])

    assert ratings is not None
    assert ratings[0].points == 2


@each(
    ("tokens", "written"),
    [
        ([], [3]),
        ([*LIST, Token("3", {"3": 1.0})], [4]),
        ([*LIST, Token("3", {"3": 1.0})], [3, 3]),
        ([*LIST, Token("3"), Token(".5")], [3.5]),
        ([*LIST, Token("3", {"3": 0.3, "The": 0.7})], [3]),
        ([*LIST, Token("3")], [3]),
        ([Token("3", {"3": 1.0})], [3]),
    ],
)
def test_unusable_log_probabilities_yield_no_expected_ratings(tokens: list[Token], written: list[float]) -> None:
    """The ratings are parsed from the text if the list or the log probabilities are missing, if digits differ or belong
    to longer numbers, or if their probability is too low.
    """
    assert expected_ratings(tokens, written) is None


def test_a_judge_returns_log_probabilities_of_every_token_on_request(fake: FakeJudge) -> None:
    """Unless they are requested, the judge returns none."""
    fake.first_token = {"4": 0.75, "5": 0.25}

    async def ask(top_tokens: int) -> Reply:
        judge = OpenAIJudge("fake-judge", ModelServer(api_key="test", base_url=fake.base_url))
        try:
            return await judge.ask([Message("user", "Rate.")], max_tokens=1, top_tokens=top_tokens)
        finally:
            await judge.aclose()

    requested, unrequested = asyncio.run(ask(2)), asyncio.run(ask(0))

    assert [token.text for token in requested.tokens] == ["4"]
    assert requested.tokens[0].alternatives == requested.first_token == pytest.approx({"4": 0.75, "5": 0.25}, abs=1e-9)
    assert (unrequested.tokens, unrequested.first_token) == ((), {})
