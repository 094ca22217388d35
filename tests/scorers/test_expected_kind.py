"""The kind of information that a question asks for, and answers that do not contain it."""

from __future__ import annotations

from tests.cases import each

from germane.scorers.base.expected_kind import find_missing_kind

MISSING = [
    ("When was the Eiffel Tower completed?", "The Eiffel Tower is 330 meters tall.", "a time"),
    ("In what year did the bridge open?", "The bridge was painted red by its owner.", "a time"),
    ("Who built the mill, and when?", "A family of bakers built the mill.", "a time"),
    ("How many seats does the hall have?", "The hall has a stage and a bar.", "a quantity"),
    ("How long is the bridge?", "The bridge is made of steel.", "a quantity"),
]
PRESENT = [
    ("When was the Eiffel Tower completed?", "In March 1889."),
    ("When was the Eiffel Tower completed?", "Construction ended in '89, two years after it began."),
    ("When does the shop open?", "It opens at 8:30."),
    ("When is syrup lighter?", "Syrup harvested earlier in the season is lighter."),
    ("When should I restart the router?", "If the red light is on."),
    ("When is a game a draw?", "Whenever both players agree."),
    ("When did the Western Roman Empire fall?", "The empire fell in 476, and its eastern half lived on."),
    ("When will the parcel arrive?", "That depends on the carrier."),
    ("How much does the repair cost?", "It varies with the model."),
    ("How many seats does the hall have?", "Four hundred."),
    ("How much does it cost?", "It is free for members."),
    ("How long may I keep the book?", "Until you have finished it."),
    ("How far is the station?", "Only a short walk of a mile."),
]
OTHER = [
    ("How do I reset my password?", "Press the button."),
    ("What happens when the tank is empty?", "The pump stops."),
    ("Where is the station, and which line stops there?", "It is behind the church."),
    ("Wann wurde der Turm gebaut?", "Der Turm ist hoch."),
    ("When was the tower built?", "Im M\u00e4rz."),
    ("", ""),
]


@each(("question", "answer", "kind"), MISSING)
def test_an_answer_without_the_requested_kind_of_information_is_detected(question: str, answer: str, kind: str) -> None:
    """An answer that lacks it cannot answer the question."""
    assert find_missing_kind(question, answer) == kind


@each(("question", "answer"), PRESENT)
def test_one_word_of_the_requested_kind_of_information_is_enough(question: str, answer: str) -> None:
    """Good answers must not be flagged."""
    assert find_missing_kind(question, answer) is None


@each(("question", "answer"), OTHER)
def test_questions_without_a_requested_kind_of_information_are_not_checked(question: str, answer: str) -> None:
    """Questions and answers in other languages are not checked either."""
    assert find_missing_kind(question, answer) is None
