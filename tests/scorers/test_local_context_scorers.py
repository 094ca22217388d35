"""Context scorers without a judge: word coverage, and the cosine of the question and each chunk."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import ContextCoverage, ContextSimilarity
from germane.scorers.base.text import split_words
from germane.scorers.prompting.context_blocks import aggregate_both, mean, position_weighted_mean
from germane.testing import FakeEmbedder

Make = Callable[..., Exchange]
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)

# Means over ranked chunks


def test_the_first_chunks_have_the_largest_weights() -> None:
    """The weight of a chunk is 0.9 to the power of its position."""
    assert position_weighted_mean([0.9, 0.8, 0.3, 0.2]) == pytest.approx(2.0088 / 3.439, abs=1e-9)
    assert round(position_weighted_mean([0.9, 0.8, 0.3, 0.2]), 3) == 0.584
    assert mean([0.9, 0.8, 0.3, 0.2]) == pytest.approx(0.55, abs=1e-9)


@given(VALUES)
def test_means_of_context_scores_lie_between_the_minimum_and_the_maximum(values: list[float]) -> None:
    """This holds for the weighted and the plain mean."""
    for value in aggregate_both(values).values():
        assert min(values) - 1e-9 <= value <= max(values) + 1e-9


@given(VALUES)
def test_the_weighted_mean_is_highest_if_the_best_chunks_come_first(values: list[float]) -> None:
    """The mean is lowest in ascending order and highest in descending order. The plain mean is always the same."""
    falling, rising = sorted(values, reverse=True), sorted(values)

    weighted = position_weighted_mean(values)
    assert position_weighted_mean(rising) - 1e-9 <= weighted <= position_weighted_mean(falling) + 1e-9
    assert mean(rising) == pytest.approx(mean(falling), abs=1e-12)


@given(VALUES)
def test_without_decay_the_weighted_mean_equals_the_plain_mean(values: list[float]) -> None:
    """The plain mean is the weighted mean with a decay of 1."""
    assert position_weighted_mean(values, decay=1.0) == pytest.approx(mean(values), abs=1e-9)


# Words


@each(
    ("text", "found"),
    [
        ("Hello, World's 3.5 km", ["hello", "world", "s", "3", "5", "km"]),
        ("cafe\u0301 \u0130", ["caf\u00e9", "i\u0307"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902\u0964",
         ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u092e\u0947\u0902"]),
        ("\u5317\u4eac\u5e02 in 2008", ["\u5317\u4eac", "\u4eac\u5e02", "in", "2008"]),
        ("\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd ok", ["\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "ok"]),
        ("\U0001f44d ...", []),
    ],
)  # fmt: skip
def test_words_are_recognized_in_every_script(text: str, found: list[str]) -> None:
    """Combining marks belong to their letters. In scripts without spaces, each pair of letters is a word."""
    assert split_words(text) == found


@given(st.text())
def test_words_do_not_depend_on_those_in_other_scripts(text: str) -> None:
    """A text without scripts that have no spaces is split in a faster way, into the same words."""
    assert split_words(f"{text} \u5317") == [*split_words(text), "\u5317"]


# Coverage


def test_scoring_huge_texts_does_not_block_the_event_loop(exchange: Make) -> None:
    """Other tasks on the event loop continue, and the value covers the whole text."""
    answer = " ".join(f"word{place}" for place in range(400_000))
    half = " ".join(f"word{place}" for place in range(200_000))

    async def turns_meanwhile() -> tuple[int, float | None]:
        task, turns = asyncio.create_task(ContextCoverage().score(exchange(None, answer, half, "none"))), 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0.001)
        return turns, (await task).value

    turns, value = asyncio.run(turns_meanwhile())
    assert (turns > 1, value) == (True, 0.5)  # one turn if it ran on the event loop itself


def test_word_coverage_is_the_share_of_distinct_answer_words_in_the_contexts(exchange: Make, score: Any) -> None:
    """The number of occurrences and spelling variants do not matter."""
    asked = exchange("Who?", "Guido GUIDO created Python quickly.", "Python is a language.", "guido, its father")

    (result,) = score(ContextCoverage(), asked)

    assert result.value == pytest.approx(2 / 4, abs=1e-9)
    assert result.details == {"words": 4, "found": 2, "not_found": ["created", "quickly"]}
    assert (result.label, result.judge, result.embedder, result.cost) == ("partly_relevant", None, None, None)


def test_relevant_contexts_cover_more_words_than_irrelevant_ones(exchange: Make, score: Any) -> None:
    """The answer is scored with the contexts that it was made from, and with unrelated ones."""
    answer = "Python was created by Guido van Rossum in 1991."
    good = exchange("q", answer, "Python was first released in 1991. It was created by Guido van Rossum.")
    poor = exchange("q", answer, "Pythons are large snakes that live in Africa and Asia.")

    first, second = score(ContextCoverage(), good, poor)

    assert first.value == 1
    assert second.value == pytest.approx(1 / 9, abs=1e-9)


def test_an_answer_without_words_is_skipped(exchange: Make, score: Any) -> None:
    """The score has no value, rather than 0 or 1."""
    (result,) = score(ContextCoverage(), exchange("q", "\U0001f44d", "text"))

    assert (result.value, result.reason) == (None, UnscoredReason.MISSING_INPUT)


def test_an_exchange_without_contexts_is_skipped(exchange: Make, score: Any) -> None:
    """Blank contexts count as missing."""
    results = score(ContextCoverage(), exchange("q", "a"), exchange("q", "a", " \n"))

    assert [result.reason for result in results] == [UnscoredReason.MISSING_INPUT] * 2


def test_local_context_scorers_score_huge_texts(exchange: Make, score: Any) -> None:
    """The answer and the contexts have a megabyte each. The details stay small."""
    (result,) = score(ContextCoverage(), exchange("q", "word " * 200_000 + "x" * 1_000_000, "word other " * 100_000))

    assert result.value == pytest.approx(1 / 2, abs=1e-9)
    assert len(str(result.details)) < 500


@given(st.text(max_size=50), st.text(max_size=50))
def test_adding_a_context_never_lowers_coverage(answer: str, context: str) -> None:
    """Additional contexts cannot remove a word that was found."""
    first = set(split_words(answer)) & set(split_words(context))

    assert first <= set(split_words(answer)) & set(split_words(f"{context}\n{answer}"))


# Similarity


def test_context_similarity_is_the_weighted_mean_of_cosines(exchange: Make, score: Any) -> None:
    """With fixed vectors, the mean is exact. The details contain the cosine of each chunk."""
    cosines = {"one": 0.9, "two": 0.8, "three": 0.3, "four": 0.2}
    vectors = {name: [value, math.sqrt(1 - value * value)] for name, value in cosines.items()}
    embedder = FakeEmbedder({"q": [1.0, 0.0], **vectors})

    (weighted,) = score(ContextSimilarity(embedder), exchange("q", None, *cosines))
    (plain,) = score(ContextSimilarity(embedder, aggregate="mean"), exchange("q", None, *cosines))

    assert weighted.value == weighted.details["position_weighted"] == pytest.approx(2.0088 / 3.439, abs=1e-9)
    assert plain.value == plain.details["mean"] == pytest.approx(0.55, abs=1e-9)
    assert weighted.details["chunks"] == pytest.approx(list(cosines.values()), abs=1e-9)
    assert weighted.fingerprint != plain.fingerprint


def test_blank_chunks_are_ignored_and_chunks_are_limited(exchange: Make, score: Any) -> None:
    """The beginnings of the first 20 chunks are used, and the details record it."""
    embedder = FakeEmbedder()
    chunks = [" ", "word " * 10_000, *(f"chunk {number}" for number in range(40))]

    (result,) = score(ContextSimilarity(embedder), exchange("q", None, *chunks))

    assert len(result.details["chunks"]) == 20
    assert result.details["cut"] == {
        "contexts": {"shown": 20, "of": 41},
        "context 0": {"shown": 8_000, "of": 50_000},
    }


def test_an_unknown_averaging_method_is_rejected() -> None:
    """The error is raised when the scorer is created, not when it scores."""
    with pytest.raises(ValueError, match="aggregate must be one of position_weighted, mean, not 'median'"):
        ContextSimilarity(FakeEmbedder(), aggregate="median")  # type: ignore[arg-type]  # on purpose


def test_fingerprints_of_local_scorers_do_not_change_by_accident() -> None:
    """A change to the computation needs a new version, which changes these lines."""
    assert ContextCoverage().fingerprint == "cf24367a6b2a"
    assert ContextSimilarity(FakeEmbedder()).fingerprint == "024d0f3d9209"
    assert repr(ContextCoverage()) == "ContextCoverage()"
    assert repr(ContextSimilarity(FakeEmbedder())) == (
        "ContextSimilarity('fake-embedder', aggregate='position_weighted')"
    )


def test_the_weight_decay_of_contexts_is_configurable(
    score: Callable[..., list[Score]], exchange: Callable[..., Exchange]
) -> None:
    """With a decay of 0.5, the second context has half the weight of the first. The fingerprint records the decay."""
    embedder = FakeEmbedder({"q": (1.0, 0.0), "near": (0.8, 0.6), "far": (0.6, 0.8)})
    usual, steep = ContextSimilarity(embedder), ContextSimilarity(embedder, decay=0.5)

    (found,) = score(steep, exchange("q", None, "near", "far"))

    assert found.value == pytest.approx((0.8 + 0.5 * 0.6) / 1.5, abs=1e-9)
    assert usual.fingerprint != steep.fingerprint
    assert usual.fingerprint == ContextSimilarity(embedder, decay=0.9).fingerprint


@each("decay", [0, 1.5, -0.5, float("nan"), True, "0.5"])
def test_invalid_weight_decays_are_rejected(decay: Any) -> None:
    """Such decays would give later contexts no weight, or more weight than earlier ones."""
    with pytest.raises((TypeError, ValueError), match="decay must be"):
        ContextSimilarity(FakeEmbedder(), decay=decay)
