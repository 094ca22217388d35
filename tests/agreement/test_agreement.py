"""Agreement: the statistics are exact, and their intervals are over what was drawn independently."""

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
    """Return labels, scores, groups."""
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def share(worth: list[float]) -> float:
    """Return their mean, NaN of none."""
    return sum(worth) / len(worth) if worth else NAN


def credit(first: float, second: float) -> float:
    """Return what a pair counts."""
    return NAN if first != first or second != second else 1.0 if first > second else 0.5 if first == second else 0.0


def counted(worth: list[float], absent: float | None) -> list[float]:
    """Leave absent pairs out, or give them their value."""
    filled = [absent if value != value else value for value in worth]
    return [value for value in filled if value is not None]


def ranked(values: list[float]) -> list[float]:
    """Return ranks by counting, ties averaged."""
    return [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]


def test_pairs_count_within_a_group_only_and_a_tie_counts_half() -> None:
    """Of three pairs one is won and one is tied: .5; pairs across groups are none."""
    assert pairwise_accuracy([1, 0.5, 0, 1], [0.9, 0.2, 0.2, 0.0], ["a", "a", "a", "b"]) == pytest.approx(2.5 / 3)


def test_an_absent_score_leaves_its_pairs_out_or_counts_them_half() -> None:
    """One of two pairs lacks a score: 1 without it, .75 with it as a half."""
    rows = ([1, 0, 0], [0.9, 0.1, NAN], ["a", "a", "a"])
    assert pairwise_accuracy(*rows) == 1.0
    assert pairwise_accuracy(*rows, absent=0.5) == 0.75


def test_auc_compares_good_with_bad_and_ignores_the_middle() -> None:
    """Of four pairs two are won and one is tied: .625; the row labelled .5 is in none."""
    assert auc([1, 0.75, 0.5, 0.25, 0], [0.9, 0.3, 0.0, 0.3, 0.5]) == pytest.approx(2.5 / 4)
    assert auc([1, 0, 0], [0.9, 0.1, NAN], absent=0.5) == 0.75


def test_spearman_averages_the_ranks_of_ties() -> None:
    """Ranks 1 2 3 4 against 1.5 1.5 3 4: .948683298..., by hand 4.5 / sqrt(5 x 4.5)."""
    assert spearman([1, 2, 3, 4], [5, 5, 7, 9]) == pytest.approx(4.5 / (5 * 4.5) ** 0.5, abs=1e-12)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_nothing_to_compare_is_no_number() -> None:
    """No rows, one label, equal scores, absent scores: NaN, and never 0 or .5."""
    assert np.isnan([pairwise_accuracy([], [], []), auc([1, 1], [0.1, 0.2]), mean([NAN])]).all()
    assert np.isnan([spearman([1, 2], [5, 5]), spearman([], []), bootstrap_interval(mean, [], scores=[]).value]).all()


@given(ROWS, st.sampled_from([None, 0.5]))
def test_pairwise_accuracy_is_what_counting_finds(rows: Rows, absent: float | None) -> None:
    """Whatever the rows: the same as going through all pairs."""
    pairs = [credit(a[1], b[1]) for a, b in product(rows, rows) if a[2] == b[2] and a[0] > b[0]]
    expected = share(counted(pairs, absent))
    assert pairwise_accuracy(*columns(rows), absent=absent) == pytest.approx(expected, nan_ok=True)


@given(ROWS, st.sampled_from([None, 0.5]))
def test_auc_is_what_counting_finds(rows: Rows, absent: float | None) -> None:
    """Whatever the rows: the same as going through all pairs of a good and a bad one."""
    pairs = [credit(a[1], b[1]) for a, b in product(rows, rows) if a[0] >= 0.75 and b[0] <= 0.25]
    labels, scores, _ = columns(rows)
    assert auc(labels, scores, absent=absent) == pytest.approx(share(counted(pairs, absent)), nan_ok=True)


@given(ROWS)
def test_spearman_is_the_correlation_of_counted_ranks(rows: Rows) -> None:
    """Whatever the rows: the same as numpy's correlation of ranks found by counting."""
    there = [row for row in rows if row[1] == row[1]]
    first, second = ranked([row[0] for row in there]), ranked([row[1] for row in there])
    expected = float(np.corrcoef(first, second)[0, 1]) if len(set(first)) > 1 and len(set(second)) > 1 else NAN
    assert spearman(*columns(rows)[:2]) == pytest.approx(expected, nan_ok=True, abs=1e-9)


@given(ROWS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_weight_is_a_row_drawn_so_often(rows: Rows, drawn: list[int]) -> None:
    """Weights give what the rows give when they are written down that often."""
    weights = np.array([[float(drawn[row[2]]) for row in rows]])
    copies = [(row[0], row[1], row[2] * 10 + copy) for row in rows for copy in range(drawn[row[2]])]
    (labels, scores, groups), (many, found, groups_of_copies) = columns(rows), columns(copies)
    weighed = [auc(labels, scores, weights=weights)[0], spearman(labels, scores, weights=weights)[0]]
    weighed += [mean(scores, weights=weights)[0], pairwise_accuracy(labels, scores, groups, weights=weights)[0]]
    counted_out = [auc(many, found), spearman(many, found), mean(found)]
    counted_out += [pairwise_accuracy(many, found, groups_of_copies)]
    assert weighed == pytest.approx(counted_out, nan_ok=True, abs=1e-9)


def test_rows_of_one_unit_are_drawn_together() -> None:
    """A hundred copies of a row make no interval narrower when they are one unit."""
    scores = [0.0, 1.0, 0.0, 1.0]
    few = bootstrap_interval(mean, [0, 1, 2, 3], scores=scores)
    many = bootstrap_interval(mean, [unit for unit in range(4) for _ in range(100)], scores=np.repeat(scores, 100))
    assert (few.low, few.high, few.units) == (many.low, many.high, 4)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_interval_of_a_mean_is_the_textbook_one(seed: int) -> None:
    """Of 200 zeros and ones, half of each: .5 plus or minus 1.96 standard errors (.069), within .015."""
    found = bootstrap_interval(mean, range(200), seed=seed, scores=[0.0, 1.0] * 100)
    assert found.value == 0.5
    assert [found.low, found.high] == pytest.approx([0.431, 0.569], abs=0.015)


def test_the_same_seed_gives_the_same_interval() -> None:
    """Nothing is left to chance between two runs; another seed draws otherwise."""
    labels, scores = [1, 0, 1, 0, 0.5] * 9, [0.1 * (index % 7) for index in range(45)]
    found = [bootstrap_interval(spearman, range(45), seed=seed, labels=labels, scores=scores) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_a_group_that_spans_units_is_refused() -> None:
    """Its rows would be drawn apart, and the pairs would not be those of the group."""
    with pytest.raises(ValueError, match="spans units"):
        bootstrap_interval(pairwise_accuracy, [1, 2], labels=[1, 0], scores=[0.2, 0.1], groups=["a", "a"])


def test_a_paired_difference_is_sure_where_two_intervals_are_not() -> None:
    """A scorer always .1 above another one is better, though both means are uncertain by more than that."""
    base = np.array([0.0, 0.4, 0.8] * 5)
    paired = bootstrap_difference(mean, range(15), scores=base + 0.1, others=base)
    first, second = (
        bootstrap_interval(mean, range(15), scores=base + 0.1),
        bootstrap_interval(mean, range(15), scores=base),
    )
    assert [paired.value, paired.low, paired.high] == pytest.approx([0.1, 0.1, 0.1])
    assert paired.excludes_zero
    assert first.low < second.high


def test_a_difference_compares_like_with_like() -> None:
    """A row that one scorer left out counts for neither."""
    found = bootstrap_difference(mean, range(3), scores=[1.0, 0.0, NAN], others=[1.0, 0.0, 1.0])
    assert (found.value, found.excludes_zero) == (0.0, False)


def test_of_one_unit_there_is_no_interval() -> None:
    """Forty answers to one question say nothing of other questions."""
    found = bootstrap_interval(mean, ["q"] * 40, scores=[number / 40 for number in range(40)])

    assert (found.value, found.units) == (pytest.approx(0.4875), 1)
    assert np.isnan([found.low, found.high]).all()
    assert not found.excludes_zero


def test_a_question_asked_thousands_of_times_takes_no_memory() -> None:
    """Its pairs are counted by sorting: a hundred million of them in a moment."""
    labels, scores = np.arange(20_000) % 2, np.arange(20_000)

    assert pairwise_accuracy(labels, scores, np.zeros(20_000)) == pytest.approx(0.50005, abs=1e-9)


@pytest.mark.parametrize(("count", "of"), [(0, 59), (0, 1), (3, 60), (1, 93), (7, 8)])
def test_the_limit_of_a_share_is_that_of_clopper_and_pearson(count: int, of: int) -> None:
    """At the limit so few or fewer are seen in one of twenty samples."""
    limit = upper_limit(count, of)

    assert sum(comb(of, seen) * limit**seen * (1 - limit) ** (of - seen) for seen in range(count + 1)) == (
        pytest.approx(0.05, abs=1e-6)
    )


def test_none_of_many_is_not_none() -> None:
    """Where none was seen the limit is 1 - .05^(1/n); where all were, it is 1."""
    assert upper_limit(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60), abs=1e-8)
    assert upper_limit(5, 5) == upper_limit(0, 0) == 1.0
