"""Removal of copies of the question from the answer."""

from __future__ import annotations

import pytest
from tests.cases import each

from germane.scorers.prompting.prompt import remove_question_echo

QUESTION = "Where does the ferry leave?"


@each(
    ("answer", "rest"),
    [
        ("From pier four.", "From pier four."),
        ("Where does the ferry leave? From pier four.", " From pier four."),
        ("WHERE, does the... ferry leave!! From pier four.", " From pier four."),
        ("From pier four. Where does the ferry leave", "From pier four. "),
        ("Where does the ferry leave? Where does the ferry leave?", ""),
        ("Where does the ferry leave Where does the ferry leave for? Pier.", " for? Pier."),
        ("Where does the old ferry leave? From pier four.", "Where does the old ferry leave? From pier four."),
        ("Nowhere does the ferry leave.", "Nowhere does the ferry leave."),
        ("Where does the ferry leaves from?", "Where does the ferry leaves from?"),
        ("", ""),
    ],
)
def test_only_copies_of_the_question_are_removed(answer: str, rest: str) -> None:
    """A copy has all words in order, without other words in between. Case and punctuation may differ."""
    assert remove_question_echo(answer, QUESTION).split() == rest.split()


@each("question", ["", "Why?", "Refund policy?", "???"])
def test_questions_of_fewer_than_three_words_are_not_removed(question: str) -> None:
    """Their words can be part of the answer."""
    answer = "Refund policy? Why? See page four."

    assert remove_question_echo(answer, question) == answer


def test_copies_of_the_question_are_matched_in_any_script() -> None:
    """Case and the encoding of accents are ignored."""
    assert remove_question_echo("WO LIEGT DIE FÄHRE? Am Kai.", "Wo liegt die Fähre?").strip() == "Am Kai."
    assert remove_question_echo("नौका कहाँ से जाती है? घाट चार से।", "नौका कहाँ से जाती है?").strip() == "घाट चार से।"


@pytest.mark.slow
@each("answer", ["a " * 300_000, "a b " * 150_000, " " * 600_000, "!" * 600_000])
def test_copies_in_long_texts_are_removed_in_linear_time(answer: str) -> None:
    """Quadratic time would take hours and exceed pytest's time limit."""
    remove_question_echo(answer, "a " * 100_000 + "z")
    remove_question_echo(answer, "a b a")
