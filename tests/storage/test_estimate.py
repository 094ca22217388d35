"""How sure a share of refusals is, by the weights of the scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.storage.estimate import Sums, _trials


def sums(refused: list[float], others: list[float]) -> Sums:
    """Return the sums over refusals and other scores of these weights; what is not about shares is left at 0."""
    return Sums(
        n=len(refused) + len(others), n_zero=len(refused), w=sum(refused) + sum(others), w_zero=sum(refused),
        ww=sum(w * w for w in refused + others), ww_zero=sum(w * w for w in refused),
        wy=0.0, wyy=0.0, wwy=0.0, wwyy=0.0, w_low=0.0, w_noncommittal=0.0,
    )  # fmt: skip


def trials(refused: list[float], others: list[float]) -> float:
    found = sums(refused, others)
    return _trials(found, 1 - found.w_zero / found.w)


def test_with_equal_weights_each_score_is_a_trial() -> None:
    """Whatever the weight is; and where all or none refuse as well."""
    assert trials([3.0] * 4, [3.0] * 16) == pytest.approx(20, abs=1e-9)
    assert trials([], [0.5] * 16) == pytest.approx(16, abs=1e-9)


def test_few_refusals_of_large_weight_make_a_share_unsure() -> None:
    """p (1 - p) over the variance of the weighted share; what was picked more often makes it surer, up to n trials."""
    # p = .5: the squares are 1 * 16 * .25 + 4 * 1 * .25 of a total of 64.
    assert trials([4.0], [1.0] * 4) == pytest.approx(0.25 * 64 / (16 * 0.25 + 4 * 0.25), abs=1e-9)
    assert trials([1.0] * 10, [9.0] * 90) == 100


weights = st.lists(st.floats(1, 1000), max_size=30)


@given(refused=weights, others=weights)
def test_there_are_never_more_trials_than_scores(refused: list[float], others: list[float]) -> None:
    """And always some."""
    if refused or others:
        assert 0 < trials(refused, others) <= len(refused + others) * (1 + 1e-9)
