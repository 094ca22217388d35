"""Calibration from texts in different exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.exchange import Exchange
from germane.scorers.calibration import DEFAULT_CALIBRATIONS, CosinePairs, distinct_exchanges, measure_cosine_pairs
from germane.testing import FakeEmbedder

NOW = datetime(2026, 11, 20, tzinfo=UTC)
Make = Callable[..., Exchange]


def cosines_of(rows: list[list[float]]) -> CosinePairs:
    """Return the cosine pairs of questions and answers."""
    return CosinePairs("question_answer_similarity", "mini", np.array(rows))


def test_pairs_from_the_same_exchange_are_excluded() -> None:
    """Three exchanges have six such pairs: the mean of 0.1 to 0.6 is 0.35."""
    found = cosines_of([[9.0, 0.1, 0.2], [0.3, 9.0, 0.4], [0.5, 0.6, 9.0]]).to_calibration(NOW)

    assert found.floor == pytest.approx(0.35, abs=1e-9)
    assert (found.n, found.embedder, found.made_at) == (3, "mini", NOW)


def test_same_topic_floor_is_the_75th_percentile_of_the_nearest_exchanges() -> None:
    """The nearest answers have similarities of 0.2, 0.4 and 0.6."""
    found = cosines_of([[9.0, 0.1, 0.2], [0.3, 9.0, 0.4], [0.5, 0.6, 9.0]]).to_calibration(NOW)

    assert found.topic_floor == pytest.approx(0.5, abs=1e-9)


def test_paraphrases_do_not_count_as_different_questions(exchange: Make) -> None:
    """This applies to questions with nearly the same words, and to exchanges with the same answer."""
    words = [f"w{n}" for n in range(50)]
    given = [exchange(f"where is {word}", f"{word} lies there") for word in words]
    given += [exchange(f"please tell where {word} lies", f"{word} lies there") for word in words]

    [questions, _] = asyncio.run(measure_cosine_pairs(given, FakeEmbedder(dimension=4096)))

    assert questions.are_different is not None
    assert not questions.are_different[np.arange(50), np.arange(50, 100)].any()
    assert questions.are_different[:50, :50].sum() == 50 * 49


def test_measured_same_topic_floor_is_not_lower_than_the_shipped_one() -> None:
    """Among exchanges on many topics, the nearest question may be about another topic."""
    pairs = CosinePairs("answer_relevancy", "local:all-MiniLM-L6-v2-int8", np.full((3, 3), 0.1))

    shipped = DEFAULT_CALIBRATIONS["local:all-MiniLM-L6-v2-int8", "answer_relevancy"]
    assert pairs.to_calibration(NOW).topic_floor == shipped.topic_floor


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_resampled_mean_equals_mean_of_repeated_exchanges(drawn: list[int]) -> None:
    """Copies of the same exchange do not form a pair."""
    rows = np.random.default_rng(0).random((4, 4))
    copies = [place for place, count in enumerate(drawn) for _ in range(count)]
    pairs = [rows[first, second] for first, second in product(copies, copies) if first != second]
    found = cosines_of(rows.tolist()).mean(weights=np.array([drawn], dtype=float))
    assert found[0] == pytest.approx(np.mean(pairs) if pairs else float("nan"), nan_ok=True)


def test_a_measured_floor_of_one_is_an_error() -> None:
    """With a floor of one, no scale remains."""
    with pytest.raises(ValueError, match="less than 1"):
        cosines_of([[1.0] * 3] * 3).to_calibration(NOW)


def test_each_distinct_question_with_an_answer_is_counted_once(exchange: Make) -> None:
    """Whitespace and case are ignored."""
    given = [exchange("Where?", "Here."), exchange(" where? ", "There."), exchange("When?", " "), exchange(None, "So.")]
    assert distinct_exchanges(given) == given[:1]


def test_a_floor_is_measured_for_each_cosine_scorer(exchange: Make) -> None:
    """Fifty exchanges with contexts are enough. With 49, there is no floor for contexts."""
    given = [exchange(f"q{n} is", f"a{n} was", f"c{n} of") for n in range(50)]
    found = asyncio.run(measure_cosine_pairs(given, FakeEmbedder(dimension=2048)))

    assert {one.scorer: one.pairs for one in found} == {
        "answer_relevancy": "two questions",
        "question_answer_similarity": "question and answer",
        "context_similarity": "question and context",
    }
    floors = [one.to_calibration(NOW).floor for one in found[:2]]
    assert floors == pytest.approx([0.5, 0.0], abs=0.02)

    given[0] = exchange("q0 is", "a0 was")
    assert len(asyncio.run(measure_cosine_pairs(given, FakeEmbedder()))) == 2


def test_nothing_is_embedded_if_there_are_fewer_than_fifty_exchanges(exchange: Make) -> None:
    """Embedding them would cost money without producing a result."""
    embedder = FakeEmbedder()
    assert asyncio.run(measure_cosine_pairs([exchange(f"q{n}", "a") for n in range(49)], embedder)) == []
    assert embedder.calls == []
