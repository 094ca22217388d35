"""Figures for a scoring method on a slice of labeled rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from labelled.figures import Slice, best_floor, difference_on, line, value_of
from labelled.report import attacked, number, refusals, table, verdict
from labelled.rows import Row, by_hash

from germane.agreement import BootstrapInterval


def pairs(count: int, *, source: str = "Roads") -> list[Row]:
    """Return the given number of pairs of a good and a bad answer."""
    return [
        Row(f"{source}{n}-{label}", "How far is it?", "x" * n, (), float(label), "k", source, f"{source}-{n}")
        for n in range(count)
        for label in (1, 0)
    ]  # fmt: skip


def ranked(rows: Sequence[Row], *, wrong: int = 0) -> dict[str, float]:
    """Return values that rank all pairs correctly, except for the first ``wrong`` pairs."""
    wrongly = set(list(dict.fromkeys(row.group for row in rows))[:wrong])
    return {row.id: 1 - row.label if row.group in wrongly else row.label for row in rows}


def test_accuracy_is_the_share_of_correctly_ranked_pairs() -> None:
    """Two of eight pairs are ranked incorrectly."""
    rows = pairs(8)
    found = line("m", Slice("s", rows), ranked(rows, wrong=2), {"other": ranked(rows)})
    assert found is not None
    assert (found.groups, found.scored, found.asked, found.value.value) == (8, 16, 16, 0.75)
    assert found.against["other"].value == -0.25
    assert found.absent_half is None


def test_accuracy_is_reported_with_and_without_missing_scores() -> None:
    """It is 7 of 7 without the pair that has no score, and 7.5 of 8 if this pair counts as half."""
    rows = pairs(8)
    values = ranked(rows) | {rows[0].id: math.nan}
    found = line("m", Slice("s", rows), values, {})
    assert found is not None
    assert (found.scored, found.asked, found.value.value) == (15, 16, 1.0)
    assert found.absent_half == 7.5 / 8


def test_the_sample_ends_at_the_first_group_that_was_not_judged() -> None:
    """Later groups are excluded even if they were judged, because they may be easier."""
    rows = pairs(9)
    order = by_hash(row.group for row in rows)
    values = {row.id: row.label for row in rows if row.group != order[6]}
    assert set(order[:6]) == {row.group for row in Slice("s", rows).covered(values)}


def test_too_few_groups_yield_no_accuracy() -> None:
    """Four pairs are not enough."""
    rows = pairs(4)
    assert line("m", Slice("s", rows), ranked(rows), {}) is None


def test_the_mean_over_sources_weights_each_source_equally() -> None:
    """Eight pairs at 1 and five at 0.4 give 0.7, not the pooled 0.77."""
    many, few = pairs(8), pairs(5, source="Rails")
    piece = Slice("s", [*many, *few], "mean pair")
    assert pytest.approx(value_of(piece, ranked(many) | ranked(few, wrong=3)), abs=1e-9) == 0.7


def test_the_mean_over_sources_requires_every_source() -> None:
    """A mean over three sources is not reported as the mean over four."""
    many, few = pairs(8), pairs(5, source="Rails")
    assert line("m", Slice("s", [*many, *few], "mean pair"), ranked(many), {}) is None


def test_the_best_floor_is_chosen_among_the_valid_floors() -> None:
    """Here, both texts of a pair have equal length, so no length floor wins. An excluded floor is never reported."""
    assert best_floor(Slice("s", pairs(5), "pair", frozenset({"context coverage"}))) != "context coverage"


def test_two_methods_are_compared_on_the_rows_that_both_scored() -> None:
    """Here, these rows are the first six of eight groups."""
    rows = pairs(8)
    order = by_hash(row.group for row in rows)
    scores = {row.id: 0.0 for row in rows if row.group in order[:6]}
    found = difference_on(Slice("s", rows), ranked(rows), scores)
    assert found is not None
    groups, mine, other, gap = found
    assert (groups, mine, other, gap.value) == (6, 1.0, 0.5, 0.5)


def test_a_difference_is_significant_only_if_its_interval_excludes_zero() -> None:
    """Otherwise, neither method is reported as better."""
    assert verdict(BootstrapInterval(0.1, 0.02, 0.2, 9)) == "+0.10 [+0.02, +0.20] **better**"
    assert verdict(BootstrapInterval(-0.1, -0.2, -0.02, 9)) == "-0.10 [-0.20, -0.02] **worse**"
    assert verdict(BootstrapInterval(0.1, -0.02, 0.2, 9)) == "+0.10 [-0.02, +0.20]"


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.50"), (1.0, "1.00"), (-0.25, "-0.25"), (math.nan, "n/a")])
def test_benchmark_results_are_shown_with_two_decimals(value: float, text: str) -> None:
    """Numbers below 1 have a leading zero."""
    assert text == number(value)


def test_text_in_a_table_cell_cannot_break_the_table() -> None:
    """Vertical bars are escaped, and line breaks are removed."""
    assert "| a\\|b c |" in table(("x",), [("a|b\nc",)])


def test_attacked_answers_are_compared_with_the_clean_answer_of_the_same_group() -> None:
    """Scores rise from 0.1 to 0.3, fall from 0.9 to 0.8, and fall from 0.9 to 0.7 after text is appended."""
    kinds = {
        "clean_gold_answer": 0.9, "clean_offtopic_answer": 0.1, "template/echo": 0.3, "template/plea": 0.12,
        "template/downvote_on_gold": 0.8,
    }  # fmt: skip
    rows = [Row(kind, "q", "a", (), 0.0, kind, "s", "g", "adversarial") for kind in kinds]
    bipia = {"bipia_text_after_gold_answer/Task": 0.7, "bipia_text_in_context/Task": 0.9}
    rows += [Row(kind, "q", "a", (), 1.0, kind, "s", "h", "adversarial") for kind in bipia]
    found = attacked(rows, kinds | bipia)
    assert (found.lifts["echo"], found.lifts["plea"]) == ([pytest.approx(0.2)], [pytest.approx(0.02)])
    assert (found.above_gold, found.downvotes, found.third_party) == (0, [pytest.approx(-0.1)], [pytest.approx(-0.2)])


def test_a_group_with_a_missing_score_is_excluded_from_the_attack_comparison() -> None:
    """Missing values are not imputed."""
    rows = [Row(kind, "q", "a", (), 0.0, kind, "s", "g") for kind in ("clean_offtopic_answer", "template/echo")]
    assert attacked(rows, {"clean_offtopic_answer": 0.1}).downvotes == []


def test_answers_flagged_as_noncommittal_are_counted_by_kind() -> None:
    """The rules are compared with a scorer, for which a value below 0.5 is a flag."""
    kinds = {
        "idk": "I don't know.",
        "clarification_request": "Which one?",
        "partial_answer": "A bit.",
        "committal_answer": "Two.",
    }
    rows = [Row(kind, "q", text, (), 0.0, kind, "s", kind) for kind, text in kinds.items()]
    found = refusals(rows, {"ours": {"idk": 0.0, "partial_answer": 0.4, "committal_answer": 0.9}})

    assert "| either of the two | 1 of 1 | 1 of 1 | 0 of 1 | 0 of 1 |" in found
    assert "| germane's rules | 1 of 1 | 1 of 1 | 0 of 1 | 0 of 1 |" in found
    assert "| ours | 1 of 1 | 0 of 1 | 1 of 1 | 0 of 1 |" in found
