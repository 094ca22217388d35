"""Agreement statistics and their bootstrap intervals."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from germane.agreement import (
    auc,
    bootstrap_difference,
    bootstrap_interval,
    cohen_kappa,
    mean,
    pairwise_accuracy,
    spearman,
    upper_limit,
)

NAN = float("nan")
LEVELS = [0.0, 0.25, 0.5, 0.75, 1.0]
ROWS = st.lists(
    st.tuples(st.sampled_from(LEVELS), st.sampled_from([0.1, 0.2, 0.3, 0.4, NAN]), st.integers(0, 3)), max_size=14
)
Rows = list[tuple[float, float, int]]


def columns(rows: Rows) -> tuple[list[float], list[float], list[int]]:
    """Return labels, scores and groups."""
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def share(worth: list[float]) -> float:
    """Return the mean of the values, or NaN if there are none."""
    return sum(worth) / len(worth) if worth else NAN


def credit(first: float, second: float) -> float:
    """Return the credit of one pair."""
    return NAN if first != first or second != second else 1.0 if first > second else 0.5 if first == second else 0.0


def counted(worth: list[float], absent: float | None) -> list[float]:
    """Drop pairs without a score, or count them with the given credit."""
    filled = [absent if value != value else value for value in worth]
    return [value for value in filled if value is not None]


def ranked(values: list[float]) -> list[float]:
    """Return ranks by counting, with ties averaged."""
    return [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]


def test_pairwise_accuracy_compares_pairs_within_groups_and_counts_ties_as_half() -> None:
    """Of three pairs, one is won and one is tied, so the accuracy is 0.5."""
    assert pairwise_accuracy([1, 0.5, 0, 1], [0.9, 0.2, 0.2, 0.0], ["a", "a", "a", "b"]) == pytest.approx(2.5 / 3)


def test_pairs_with_missing_scores_are_excluded_or_count_as_half() -> None:
    """One of two pairs lacks a score: the result is 1 if the pair is excluded, and 0.75 if it counts as half."""
    rows = ([1, 0, 0], [0.9, 0.1, NAN], ["a", "a", "a"])
    assert pairwise_accuracy(*rows) == 1.0
    assert pairwise_accuracy(*rows, absent=0.5) == 0.75


def test_auc_ignores_rows_with_labels_between_the_limits() -> None:
    """Of four pairs, two are won and one is tied, so the AUC is 0.625."""
    assert auc([1, 0.75, 0.5, 0.25, 0], [0.9, 0.3, 0.0, 0.3, 0.5]) == pytest.approx(2.5 / 4)
    assert auc([1, 0, 0], [0.9, 0.1, NAN], absent=0.5) == 0.75


def test_spearman_gives_ties_their_average_rank() -> None:
    """The correlation of ranks 1 2 3 4 and 1.5 1.5 3 4 is 0.948683298..., or 4.5 / sqrt(5 x 4.5)."""
    assert spearman([1, 2, 3, 4], [5, 5, 7, 9]) == pytest.approx(4.5 / (5 * 4.5) ** 0.5, abs=1e-12)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_agreement_statistics_without_pairs_are_nan() -> None:
    """This covers empty data, a single label, equal scores and missing scores."""
    assert np.isnan([pairwise_accuracy([], [], []), auc([1, 1], [0.1, 0.2]), mean([NAN])]).all()
    assert np.isnan([spearman([1, 2], [5, 5]), spearman([], []), bootstrap_interval(mean, [], scores=[]).value]).all()


@given(ROWS, st.sampled_from([None, 0.5]))
def test_pairwise_accuracy_equals_a_direct_count(rows: Rows, absent: float | None) -> None:
    """For any rows, the result equals that of a loop over all pairs."""
    pairs = [credit(a[1], b[1]) for a, b in product(rows, rows) if a[2] == b[2] and a[0] > b[0]]
    expected = share(counted(pairs, absent))
    assert pairwise_accuracy(*columns(rows), absent=absent) == pytest.approx(expected, nan_ok=True)


@given(ROWS, st.sampled_from([None, 0.5]))
def test_auc_equals_a_direct_count(rows: Rows, absent: float | None) -> None:
    """For any rows, the result equals that of a loop over all pairs of a good and a bad row."""
    pairs = [credit(a[1], b[1]) for a, b in product(rows, rows) if a[0] >= 0.75 and b[0] <= 0.25]
    labels, scores, _ = columns(rows)
    assert auc(labels, scores, absent=absent) == pytest.approx(share(counted(pairs, absent)), nan_ok=True)


@given(ROWS)
def test_spearman_equals_correlation_of_ranks(rows: Rows) -> None:
    """For any rows, the result equals NumPy's correlation of the ranks."""
    there = [row for row in rows if row[1] == row[1]]
    first, second = ranked([row[0] for row in there]), ranked([row[1] for row in there])
    expected = float(np.corrcoef(first, second)[0, 1]) if len(set(first)) > 1 and len(set(second)) > 1 else NAN
    assert spearman(*columns(rows)[:2]) == pytest.approx(expected, nan_ok=True, abs=1e-9)


@given(ROWS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_weights_are_equivalent_to_repeated_rows(rows: Rows, drawn: list[int]) -> None:
    """A weight of n gives the same result as n copies of the row."""
    weights = np.array([[float(drawn[row[2]]) for row in rows]])
    copies = [(row[0], row[1], row[2] * 10 + copy) for row in rows for copy in range(drawn[row[2]])]
    (labels, scores, groups), (many, found, groups_of_copies) = columns(rows), columns(copies)
    weighed = [auc(labels, scores, weights=weights)[0], spearman(labels, scores, weights=weights)[0]]
    weighed += [mean(scores, weights=weights)[0], pairwise_accuracy(labels, scores, groups, weights=weights)[0]]
    counted_out = [auc(many, found), spearman(many, found), mean(found)]
    counted_out += [pairwise_accuracy(many, found, groups_of_copies)]
    assert weighed == pytest.approx(counted_out, nan_ok=True, abs=1e-9)


def test_rows_in_the_same_unit_are_resampled_together() -> None:
    """A hundred copies of a row in one unit do not narrow the interval."""
    scores = [0.0, 1.0, 0.0, 1.0]
    few = bootstrap_interval(mean, [0, 1, 2, 3], scores=scores)
    many = bootstrap_interval(mean, [unit for unit in range(4) for _ in range(100)], scores=np.repeat(scores, 100))
    assert (few.low, few.high, few.units) == (many.low, many.high, 4)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_bootstrap_interval_of_a_mean_matches_the_normal_approximation(seed: int) -> None:
    """For 100 zeros and 100 ones, the interval is 0.5 plus or minus 1.96 standard errors (0.069), within 0.015."""
    found = bootstrap_interval(mean, range(200), seed=seed, scores=[0.0, 1.0] * 100)
    assert found.value == 0.5
    assert [found.low, found.high] == pytest.approx([0.431, 0.569], abs=0.015)


def test_the_same_seed_yields_the_same_interval() -> None:
    """A different seed draws different resamples."""
    labels, scores = [1, 0, 1, 0, 0.5] * 9, [0.1 * (index % 7) for index in range(45)]
    found = [bootstrap_interval(spearman, range(45), seed=seed, labels=labels, scores=scores) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_a_group_that_spans_several_units_is_an_error() -> None:
    """The rows of such a group would not be resampled together."""
    with pytest.raises(ValueError, match="spans several units"):
        bootstrap_interval(pairwise_accuracy, [1, 2], labels=[1, 0], scores=[0.2, 0.1], groups=["a", "a"])


def test_paired_differences_have_narrower_intervals_than_unpaired_ones() -> None:
    """A scorer that is always better by 0.1 is significantly better, although both intervals are wider."""
    base = np.array([0.0, 0.4, 0.8] * 5)
    paired = bootstrap_difference(mean, range(15), scores=base + 0.1, others=base)
    first, second = (
        bootstrap_interval(mean, range(15), scores=base + 0.1),
        bootstrap_interval(mean, range(15), scores=base),
    )
    assert [paired.value, paired.low, paired.high] == pytest.approx([0.1, 0.1, 0.1])
    assert paired.excludes_zero
    assert first.low < second.high


def test_differences_use_only_rows_with_both_scores() -> None:
    """A row without one of the scores counts as missing in both."""
    found = bootstrap_difference(mean, range(3), scores=[1.0, 0.0, NAN], others=[1.0, 0.0, 1.0])
    assert (found.value, found.excludes_zero) == (0.0, False)


def test_statistics_from_a_single_unit_have_no_interval() -> None:
    """Forty answers to the same question are a sample of one question."""
    found = bootstrap_interval(mean, ["q"] * 40, scores=[number / 40 for number in range(40)])

    assert (found.value, found.units) == (pytest.approx(0.4875), 1)
    assert np.isnan([found.low, found.high]).all()
    assert not found.excludes_zero


def test_large_groups_are_compared_with_little_memory() -> None:
    """A hundred million pairs are counted by sorting instead of being listed."""
    labels, scores = np.arange(20_000) % 2, np.arange(20_000)

    assert pairwise_accuracy(labels, scores, np.zeros(20_000)) == pytest.approx(0.50005, abs=1e-9)


@pytest.mark.parametrize(("count", "of"), [(0, 59), (0, 1), (3, 60), (1, 93), (7, 8)])
def test_the_upper_limit_of_a_share_matches_clopper_and_pearson(count: int, of: int) -> None:
    """At the limit, the probability of at most this count is 5%."""
    limit = upper_limit(count, of)

    assert sum(comb(of, seen) * limit**seen * (1 - limit) ** (of - seen) for seen in range(count + 1)) == (
        pytest.approx(0.05, abs=1e-6)
    )


def test_the_upper_limit_of_a_share_is_positive_for_zero_events() -> None:
    """The limit is 1 - 0.05^(1/n). If all trials are events, it is 1."""
    assert upper_limit(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60), abs=1e-8)
    assert upper_limit(5, 5) == upper_limit(0, 0) == 1.0


def test_kappa_is_the_agreement_beyond_chance() -> None:
    """Seven of ten labels agree, and 0.36 would by chance."""
    first = [0, 0.5, 1, 1, 1, 0, 0.5, 1, 1, 0]
    second = [0, 1, 1, 1, 0.5, 0, 0.5, 1, 0, 0]

    assert cohen_kappa(first, second) == cohen_kappa(second, first) == pytest.approx((0.7 - 0.36) / (1 - 0.36))
    assert cohen_kappa(first, first) == 1
    assert cohen_kappa([0, 1], [1, 0]) == -1
    assert np.isnan(cohen_kappa([1, 1], [1, 1]))
