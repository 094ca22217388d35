"""What a page is about where nobody has chosen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from germane.insights.context import choose_scorer, choose_second_scorer, choose_service
from germane.insights.formatting import scorer_title


@dataclass(frozen=True)
class Some:
    """Scores of a service."""

    scorer: str
    n: int
    service: str = "shop"


MANY = [Some("faithfulness", 500), Some("question_answer_similarity", 90), Some("answer_relevancy", 3)]


@pytest.mark.parametrize(
    ("found", "asked", "expected"),
    [
        (MANY, None, "answer_relevancy"),
        (MANY, "faithfulness", "faithfulness"),
        (MANY[:2], None, "question_answer_similarity"),
        ([Some("tone", 5), Some("faithfulness", 9)], None, "faithfulness"),
        ([Some("b", 5), Some("a", 5)], None, "a"),
        ([], "tone", "tone"),
        ([], None, None),
    ],
)
def test_relevancy_is_shown_before_similarity_and_that_before_others(
    found: list[Some], asked: str | None, expected: str | None
) -> None:
    """Unless another one is asked for; of the others the one with most scores."""
    assert choose_scorer(found, asked) == expected


def test_beside_the_first_one_stands_faithfulness_or_another() -> None:
    """Never the same again."""
    assert choose_second_scorer(MANY, "answer_relevancy") == "faithfulness"
    assert choose_second_scorer(MANY, "faithfulness") == "question_answer_similarity"
    assert choose_second_scorer(MANY[:1], "faithfulness") is None


def test_the_service_with_most_scores_is_shown() -> None:
    """Over all its scorers; another one where it is asked for."""
    found = [Some("a", 5, "shop"), Some("b", 5, "shop"), Some("a", 9, "blog")]

    assert choose_service(found) == "shop"
    assert choose_service(found, "blog") == "blog"
    assert choose_service([]) is None


def test_means_are_called_by_what_they_are_of() -> None:
    """Relevancy and similarity are never swapped."""
    assert [scorer_title(one) for one in ("answer_relevancy", "question_answer_similarity", "my_own", None)] == [
        "Relevancy",
        "Similarity",
        "My own",
        "Relevancy",
    ]
