"""Phrase patterns match the same texts as a plain alternation of their expressions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.scorers.base.phrases import load_sections
from germane.scorers.refusals.judge_replies import _PHRASES as JUDGE_PHRASES
from germane.scorers.refusals.rules import PHRASES_TEXT, PhrasePattern

SECTIONS = [[*load_sections(text).values()] for text in (PHRASES_TEXT, JUDGE_PHRASES)]
EXPRESSIONS = [
    section for sections in SECTIONS for section in sections if any(part.startswith(r"\b") for part in section)
]
PATTERNS = [(PhrasePattern(section), re.compile("|".join(section))) for section in EXPRESSIONS]
WORDS = sorted({word for section in EXPRESSIONS for phrase in section for word in re.findall(r"[\w']+", phrase)})
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
PHRASES = st.sampled_from([phrase for section in EXPRESSIONS for phrase in section]).flatmap(st.from_regex)


@given(st.one_of(SENTENCES, PHRASES, st.tuples(SENTENCES, PHRASES, SENTENCES).map("".join)))
def test_grouping_expressions_by_first_letter_does_not_change_matches(text: str) -> None:
    """This holds for texts that match an expression, and for texts made of words from the phrases."""
    for pattern, plain in PATTERNS:
        assert pattern.search(text) == bool(plain.search(text))


@each(
    ("text", "matches"),
    [
        ("no idea", True),
        ("casino idea", False),
        ("no one", True),
        ("x: 我不知道", True),
        ("say (no)", False),
        ("", False),
    ],
)
def test_expressions_with_and_without_word_boundary_are_combined(text: str, *, matches: bool) -> None:
    """The boundary applies only to the alternatives that start with it."""
    pattern = PhrasePattern([r"\b(?:no|some) (?:idea|one)\b|^\(no\)", "我不知道"])

    assert pattern.search(text) == matches


def test_alternatives_in_a_repeated_group_are_not_separated() -> None:
    """The quantifier of a group applies to all of its alternatives. Brackets in sets are not groups."""
    pattern = PhrasePattern([r"\b(?:un|in)?clear[(|)]", r"\b(?:a\)|b)c?"])

    assert [pattern.search(text) for text in ("clear|", "inclear(", "x unclear)", "clear", "a)", "d")] == [
        True, True, True, False, True, False,
    ]  # fmt: skip
