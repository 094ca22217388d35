"""Many expressions are searched as one, with the same result."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.scorers.refusals.phrases import TEXT, AnyOf, _sections, words_needed

PHRASES = _sections(TEXT)["does not know"]
ONE = re.compile("|".join(PHRASES))
WORDS = sorted({word for phrase in PHRASES for word in re.findall(r"[\w']+", phrase)})


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (r"\bno idea\b", {"no idea"}),
        (r"\b(?:i|we) (?:do not|don't) know", {" know"}),
        (r"does ?not", {"does"}),
        (r"docu?ments?", {"ments"[:4]}),
        (r"(?:no|not any) words?", {" word"}),
        (r"(?:abc|de)+f", {"abc", "de"}),
        (r"(?:abc)?def*", {"de"}),
        (r"(?:abc){0,2}xy", {"xy"}),
        (r"ab(?! hoc)", {"ab"}),
        (r"[abc]{2,} (?:long|short)", {"long", "short"}),
        (r"first|second", {"first", "second"}),
        (r"first|\w+", set()),
        (r"a\.b[]x]c", set()),
    ],
)
def test_what_a_match_must_hold_is_read_from_the_expression(expression: str, words: set[str]) -> None:
    """The most telling words of which one is in every match; none where anything may match."""
    assert words_needed(expression) == words


def test_what_cannot_be_read_is_refused() -> None:
    """Looking behind, for one: what stands there need not be in the match."""
    with pytest.raises(ValueError, match="looking ahead"):
        AnyOf([r"(?<!not )sure"])


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_the_result_is_that_of_one_expression(text: str) -> None:
    """For anything that is made of the words of the phrases."""
    assert AnyOf(PHRASES).search(text) == (ONE.search(text) is not None)
