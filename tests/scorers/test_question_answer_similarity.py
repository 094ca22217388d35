"""Question-answer similarity: the cosine of question and answer, without a judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.scorers import QuestionAnswerSimilarity
from germane.testing import FakeEmbedder

Make = Callable[..., Exchange]


def test_question_answer_similarity_is_the_cosine(exchange: Make, score: Any) -> None:
    """With fixed vectors, the cosine is exact."""
    embedder = FakeEmbedder({"q": [1.0, 0.0], "a": [0.6, 0.8]})

    (result,) = score(QuestionAnswerSimilarity(embedder), exchange("q", "a"))

    assert result.value == pytest.approx(0.6, abs=1e-9)
    assert (result.scorer, result.label, result.judge, result.embedder) == (
        "question_answer_similarity", "mostly_relevant", None, "fake-embedder",
    )  # fmt: skip


def test_a_long_answer_is_truncated_and_the_details_record_the_truncation(exchange: Make, score: Any) -> None:
    """Embedders read only the beginning of a text."""
    embedder = FakeEmbedder()

    (result,) = score(QuestionAnswerSimilarity(embedder), exchange("q", "word " * 100_000))

    assert result.details["cut"] == {"shown": 8_000, "of": 500_000}
    assert len(embedder.calls[0][1]) == 8_000


def test_an_exchange_without_an_answer_is_skipped(exchange: Make, score: Any) -> None:
    """The score has no value, rather than 0."""
    (result,) = score(QuestionAnswerSimilarity(FakeEmbedder()), exchange("q", None))

    assert result.reason is UnscoredReason.MISSING_INPUT


def test_the_fingerprint_covers_the_embedder() -> None:
    """Cosines from different embedders are not comparable."""
    other = FakeEmbedder()
    other.model = "another"

    assert QuestionAnswerSimilarity(FakeEmbedder()).fingerprint == "872c20ee0bd8"
    assert QuestionAnswerSimilarity(other).fingerprint != "872c20ee0bd8"


ECHO = "Where does the ferry leave?"


def test_copies_of_the_question_are_removed_if_configured(exchange: Make, score: Any) -> None:
    """By default, copies raise the value. Removing them changes the fingerprint."""
    embedder = FakeEmbedder({ECHO: [1.0, 0.0], "Pier four.": [0.6, 0.8]})
    scorer = QuestionAnswerSimilarity(embedder, remove_question_echo=True)

    (result,) = score(scorer, exchange(ECHO, f"{ECHO} Pier four."))

    assert result.value == pytest.approx(0.6, abs=1e-9)
    assert result.details["copies_removed"] is True
    assert result.fingerprint != QuestionAnswerSimilarity(embedder).fingerprint


def test_an_answer_that_only_repeats_the_question_scores_zero_if_copies_are_removed(exchange: Make, score: Any) -> None:
    """There is nothing left to embed. Without the option, an echo scores 1."""
    embedder = FakeEmbedder()

    (plain,) = score(QuestionAnswerSimilarity(embedder), exchange(ECHO, ECHO))
    (cut,) = score(QuestionAnswerSimilarity(embedder, remove_question_echo=True), exchange(ECHO, ECHO))

    assert plain.value == pytest.approx(1.0, abs=1e-9)
    assert (cut.value, cut.label, cut.explanation) == (0.0, "irrelevant", "The answer only repeats the question.")
    assert len(embedder.calls) == 1
