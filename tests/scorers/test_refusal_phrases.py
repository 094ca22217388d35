"""Refusal phrases are searched with one regular expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.scorers.refusals.rules import DOES_NOT_KNOW, PHRASES_TEXT, compile_any, load_sections

PHRASES = load_sections(PHRASES_TEXT)["does not know"]
PLAIN_ALTERNATION = re.compile("|".join(PHRASES))
WORDS = sorted({word for phrase in PHRASES for word in re.findall(r"[\w']+", phrase)})


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_factoring_out_word_boundaries_does_not_change_matches(text: str) -> None:
    """For any text that consists of the words of the phrases."""
    assert bool(DOES_NOT_KNOW.search(text)) == bool(PLAIN_ALTERNATION.search(text))


@pytest.mark.parametrize(("text", "matches"), [("no idea", True), ("casino idea", False), ("x: 我不知道", True)])
def test_expressions_with_and_without_word_boundary_are_combined(text: str, *, matches: bool) -> None:
    """The boundary applies only to the expressions that start with it."""
    assert bool(compile_any([r"\bno idea\b", "我不知道"]).search(text)) == matches
