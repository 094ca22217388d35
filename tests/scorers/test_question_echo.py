"""Copies of the question are cut out of the answer."""

from __future__ import annotations

import pytest

from germane.scorers.prompting.inputs import remove_question_echo

QUESTION = "Where does the ferry leave?"


@pytest.mark.parametrize(
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
def test_every_copy_goes_and_nothing_else(answer: str, rest: str) -> None:
    """All words in order, whatever case and punctuation; other words between them make it no copy."""
    assert remove_question_echo(answer, QUESTION).split() == rest.split()


@pytest.mark.parametrize("question", ["", "Why?", "Refund policy?", "???"])
def test_questions_of_fewer_than_three_words_are_left_alone(question: str) -> None:
    """Their words may be the answer's own."""
    answer = "Refund policy? Why? See page four."

    assert remove_question_echo(answer, question) == answer


def test_other_scripts_are_matched_too() -> None:
    """Accents, combining marks and case are the same text."""
    assert remove_question_echo("WO LIEGT DIE FÄHRE? Am Kai.", "Wo liegt die Fähre?").strip() == "Am Kai."
    assert remove_question_echo("नौका कहाँ से जाती है? घाट चार से।", "नौका कहाँ से जाती है?").strip() == "घाट चार से।"


@pytest.mark.parametrize("answer", ["a " * 300_000, "a b " * 150_000, " " * 600_000, "!" * 600_000])
def test_long_texts_take_no_long_time(answer: str) -> None:
    """The time grows with the length, not with its square: that would take hours, and pytest's limit ends it."""
    remove_question_echo(answer, "a " * 100_000 + "z")
    remove_question_echo(answer, "a b a")
