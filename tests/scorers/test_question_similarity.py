"""Answer relevancy with similarities rated by the judge, and the explanation of the mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.testing import JudgeRequest

Make = Callable[..., Exchange]
QUESTIONS = ["Where is the pier?", "Where does one board the ferry?", "What lies behind the market?"]


@pytest.fixture
def compared(bench: Any) -> Any:
    """Return a bench without an embedder whose judge rates the similarity of questions."""
    bench.options["similarity"] = "judge"
    bench.fake.questions = lambda answer: QUESTIONS
    return bench


def says(values: Sequence[Any]) -> Callable[[JudgeRequest], dict[str, Any] | None]:
    """Return the judge's reply to a comparison."""
    return lambda request: {"similarities": list(values)} if "similarities" in request.text else None


def test_judge_rated_relevancy_is_the_mean_of_the_similarity_ratings(compared: Any) -> None:
    """One request rates all pairs, and no embedder is needed."""
    compared.fake.replies = says([1, 0.75, 0.25])

    (score,) = compared.score()

    assert score.value == pytest.approx(2 / 3, abs=1e-9)
    assert [each["similarity"] for each in score.details["questions"]] == [1.0, 0.75, 0.25]
    assert (len(compared.fake.chat_requests), compared.fake.embedding_requests, score.embedder) == (2, [], None)
    assert score.details["requests"] == 2


def test_compared_questions_are_delimited_in_the_prompt(compared: Any) -> None:
    """The request contains the original question and the numbered generated questions."""
    compared.fake.replies = says([1, 0.5, 0])

    compared.score()

    request = compared.fake.chat_requests[1]
    assert request.section("question") == "Where does the ferry to the island leave?"
    assert request.section("questions") == "\n".join(f"{place}. {text}" for place, text in enumerate(QUESTIONS, 1))


def test_identical_questions_are_compared_once(compared: Any) -> None:
    """Each of the identical questions gets the same similarity."""
    compared.fake.questions = lambda answer: [QUESTIONS[0], QUESTIONS[1], QUESTIONS[0]]
    compared.fake.replies = says([1, 0.25])

    (score,) = compared.score()

    assert [each["similarity"] for each in score.details["questions"]] == [1.0, 0.25, 1.0]
    assert score.value == pytest.approx(0.75, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 0.8, 0.5], UnscoredReason.UNPARSABLE),
        ([1, 0.5], UnscoredReason.UNPARSABLE),
        ([1, 0.5, 0.5, 0], UnscoredReason.UNPARSABLE),
        ([1, 0.5, "much"], UnscoredReason.UNPARSABLE),
        ([1, 0.5, True], UnscoredReason.UNPARSABLE),
        ([1, 0.5, 2], UnscoredReason.OUT_OF_RANGE),
        ([1, 0.5, -0.25], UnscoredReason.OUT_OF_RANGE),
        ([1, 0.5, float("nan")], UnscoredReason.OUT_OF_RANGE),
    ],
)
def test_only_the_five_defined_similarity_ratings_are_accepted(
    compared: Any, values: list[Any], reason: UnscoredReason
) -> None:
    """After any other value, the ratings are requested once more. If they are still invalid, the score has no value."""
    compared.fake.replies = says(values)

    (score,) = compared.score()

    assert (score.value, score.reason, len(compared.fake.chat_requests)) == (None, reason, 3)


def test_a_similarity_rating_can_be_a_number_or_a_word(compared: Any) -> None:
    """Numbers are parsed leniently."""
    compared.fake.replies = says(["one", "0.75", "25%"])

    (score,) = compared.score()

    assert score.value == pytest.approx(2 / 3, abs=1e-9)


@pytest.mark.parametrize("count", range(1, 11))
def test_any_number_of_questions_is_compared_in_one_request(compared: Any, count: int) -> None:
    """N questions have N similarities."""
    compared.options["generated_questions"] = count
    compared.fake.questions = lambda answer: [f"Is this question {place} of the ferry?" for place in range(20)]
    compared.fake.replies = says([0.5] * count)

    (score,) = compared.score()

    assert (score.value, len(compared.fake.chat_requests)) == (0.5, 2)


def test_similarities_rated_by_the_judge_lie_between_zero_and_one(compared: Any) -> None:
    """Unlike cosines, they are never negative, and the declared range starts at zero."""
    compared.fake.replies = says([0, 0, 0])

    (score,) = compared.score()

    assert (score.value, score.label) == (0.0, "irrelevant")


# The explanation of the value


@pytest.mark.parametrize(
    ("values", "meaning"),
    [
        ([1, 1, 1], "The answer addresses the question"),
        ([1, 1, 0.5], "The answer mostly addresses the question"),
        ([0.75, 0.75, 0.5], "The answer only partly addresses the question"),
        ([0.5, 0.5, 0.25], "The answer does not address the question"),
        ([0.25, 0.25, 0.5], "The answer does not address the question"),
        ([0, 0, 0], "The answer does not address the question"),
    ],
)
def test_the_wording_of_the_explanation_depends_on_the_mean(compared: Any, values: list[float], meaning: str) -> None:
    """The explanation agrees with the label."""
    compared.fake.replies = says(values)

    (score,) = compared.score()

    assert score.explanation.startswith(f"{meaning}. ")


def test_the_explanation_names_the_nearest_and_the_farthest_question(compared: Any) -> None:
    """Both are shortened and shown with their similarity."""
    compared.fake.questions = lambda answer: [f"Where {'really ' * 20}is it?", *QUESTIONS[1:]]
    compared.fake.replies = says([0.25, 1, 0.75])

    (score,) = compared.score()

    assert (
        'Most similar generated question: "Where does one board the ferry?" (1.00); least similar: "Where'
        in score.explanation
    )
    assert score.explanation.endswith('…" (0.25).')
    assert len(score.explanation) < 250


def test_the_explanation_for_a_single_question_omits_the_farthest_question(compared: Any) -> None:
    """The explanation only names the nearest question."""
    compared.options["generated_questions"] = 1
    compared.fake.replies = says([1])

    (score,) = compared.score()

    assert score.explanation == (
        'The answer addresses the question. Most similar generated question: "Where is the pier?" (1.00).'
    )


# Examples


FRANCE = "Where is France and what is its capital?"
EXAMPLES = {
    "France": (
        FRANCE,
        ("France is in western Europe and Paris is its capital.", [1, 1, 1]),
        ("France is in western Europe.", [0.5, 0.5, 0.25]),
    ),
    "machine learning": (
        "What is machine learning?",
        ("Machine learning lets programs improve from data without being told each rule.", [1, 1, 0.75]),
        ("It is a popular subject with many books.", [0.25, 0, 0.25]),
    ),
    "Eiffel Tower": (
        "When was the Eiffel Tower built?",
        ("The Eiffel Tower was built from 1887 to 1889.", [1, 1, 1]),
        ("The Eiffel Tower is 330 metres tall.", [0.25, 0.25, 0.25]),
    ),
}


@pytest.mark.parametrize(("question", "better", "worse"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_relevant_answer_scores_higher_than_an_irrelevant_one(
    compared: Any, exchange: Make, question: str, better: Any, worse: Any
) -> None:
    """Complete answers rank above partial ones, and on-topic answers above off-topic ones."""
    ratings = dict([better, worse])
    asked: list[str] = []

    def replies(request: JudgeRequest) -> dict[str, Any] | None:
        if "similarities" in request.text:
            return {"similarities": ratings[asked[-1]]}
        asked.append(request.answer)
        return None

    compared.fake.replies = replies
    high, low = compared.score(exchange(question, better[0]), exchange(question, worse[0]))

    assert high.value == pytest.approx(sum(better[1]) / 3, abs=1e-9)
    assert low.value == pytest.approx(sum(worse[1]) / 3, abs=1e-9)
    assert high.value > low.value
