"""The default scorer and service of a page."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cases import each

from germane.insights.context import choose_scorer, choose_second_scorer, choose_service
from germane.insights.formatting import scorer_title


@dataclass(frozen=True)
class ServiceScores:
    """Scores of a service."""

    scorer: str
    n: int
    service: str = "shop"


MANY = [
    ServiceScores("faithfulness", 500),
    ServiceScores("question_answer_similarity", 90),
    ServiceScores("answer_relevancy", 3),
]


@each(
    ("found", "asked", "expected"),
    [
        (MANY, None, "answer_relevancy"),
        (MANY, "faithfulness", "faithfulness"),
        (MANY[:2], None, "question_answer_similarity"),
        ([ServiceScores("tone", 5), ServiceScores("faithfulness", 9)], None, "faithfulness"),
        ([ServiceScores("b", 5), ServiceScores("a", 5)], None, "a"),
        ([], "tone", "tone"),
        ([], None, None),
    ],
)
def test_the_default_scorer_is_relevancy_or_otherwise_similarity(
    found: list[ServiceScores], asked: str | None, expected: str | None
) -> None:
    """A selected scorer takes precedence. Without relevancy or similarity, the scorer with the most scores is used."""
    assert choose_scorer(found, asked) == expected


def test_the_default_second_scorer_is_faithfulness_or_any_other_scorer() -> None:
    """The second scorer is never the first scorer again."""
    assert choose_second_scorer(MANY, "answer_relevancy") == "faithfulness"
    assert choose_second_scorer(MANY, "faithfulness") == "question_answer_similarity"
    assert choose_second_scorer(MANY[:1], "faithfulness") is None


def test_the_default_service_is_the_one_with_the_most_scores() -> None:
    """The scores of all its scorers count. A selected service takes precedence."""
    found = [ServiceScores("a", 5, "shop"), ServiceScores("b", 5, "shop"), ServiceScores("a", 9, "blog")]

    assert choose_service(found) == "shop"
    assert choose_service(found, "blog") == "blog"
    assert choose_service([]) is None


def test_titles_of_means_name_the_scorer() -> None:
    """Relevancy and similarity are never confused."""
    assert [scorer_title(one) for one in ("answer_relevancy", "question_answer_similarity", "my_own", None)] == [
        "Relevancy",
        "Similarity",
        "My own",
        "Relevancy",
    ]
