"""Labeled rows of the quality benchmark: halves, samples and exchanges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from labelled.rows import Row, by_hash, exchange, half, sampled, unit

ROW = Row("r", "How far?", "Two miles.", ("It is two miles.",), 1.0, "good", "Roads/test", "roads-1", "relevancy")


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("xquad-de-12ab", "12ab"),
        ("clapnq--77", "-77"),
        ("clapnq-frac-77", "77"),
        ("tpl-77-x", "77"),
        ("bipia-77", "77"),
        ("mtragun-5a6<::>2", "5a6"),
        ("mtrag-f-5a6<::>3", "5a6"),
        ("mtrag-completeness-5a6<::>8", "5a6"),
        ("mtrag-appropriateness-5a6<::>1", "5a6"),
        ("selqa-101", "selqa-101"),
    ],
)
def test_a_unit_is_the_question_or_conversation_behind_a_group(group: str, name: str) -> None:
    """Prefixes and suffixes that depend on the data set are removed."""
    assert name == unit(group)


def test_all_rows_of_a_unit_belong_to_the_same_half() -> None:
    """A question that several data sets share is in the report half of all of them or of none."""
    for number in range(50):
        assert half(f"clapnq-{number}") == half(f"tpl-{number}-x") == half(f"mtrag-f-{number}<::>3")


def test_the_last_digit_of_the_digest_of_a_unit_determines_its_half() -> None:
    """An even digit selects the tuning half, and an odd digit the report half.

    The digests of tune:a and tune:b end in 0 and 1.
    """
    halves = {name: half(name) for name in "abcdefgh"}
    assert {"tune", "report"} == set(halves.values())
    assert halves == {name: half(f"{name}<::>7") for name in halves}


def test_a_sample_keeps_groups_whole_and_contains_every_smaller_sample() -> None:
    """The sample does not depend on the order of the rows."""
    rows = [replace(ROW, id=f"{group}-{place}", group=f"g{group}") for place in range(2) for group in range(9)]
    small, large = sampled(rows, 3), sampled(list(reversed(rows)), 6)
    assert len(small) == 6
    assert [row.group for row in small] == [row.group for row in large[:6]]
    assert by_hash(row.group for row in rows)[:3] == list(dict.fromkeys(row.group for row in small))


def test_a_sample_takes_the_same_number_of_groups_from_each_source() -> None:
    """Sources are never pooled."""
    rows = [replace(ROW, id=f"{name}{n}", source=name, group=f"{name}-{n}") for name in ("A", "B") for n in range(4)]
    assert {name: sum(row.origin == name for row in sampled(rows, 2)) for name in ("A", "B")} == {"A": 2, "B": 2}


def test_earlier_messages_become_the_history_of_the_exchange() -> None:
    """The role "agent" becomes "assistant"."""
    row = replace(ROW, meta={"history": ["user: Is it far: yes or no?", "agent: No."]})
    turns = [(turn.role, turn.content) for turn in exchange(row).history]
    assert turns == [("user", "Is it far: yes or no?"), ("assistant", "No.")]


def test_a_passage_replaces_a_missing_answer_only_on_request() -> None:
    """A cosine needs a text, but a judge that rates contexts must see that there is no answer."""
    row = replace(ROW, answer="")
    assert exchange(row).answer is None
    assert exchange(row, passage=True).answer == "It is two miles."
