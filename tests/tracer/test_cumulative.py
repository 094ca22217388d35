"""Streams whose chunks contain everything so far, and streams that only look like it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

import germane
from germane.testing import collect

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters='\x00{["')
PIECES = st.lists(st.text(LETTERS, min_size=1, max_size=8), min_size=1, max_size=12)


def answer_to(chunks: list[Any], **options: Any) -> str | None:
    """Return the answer captured from a generator of these chunks."""

    @germane.observe(route="ask", **options)
    def ask(_question: str) -> Iterator[Any]:
        yield from chunks

    with collect() as exchanges:
        assert list(ask("Why?")) == chunks
    return exchanges[0].answer


def is_undecidable(pieces: list[str]) -> bool:
    """Return whether pieces contain the ones before, apart from punctuation, or the last one repeats all others."""
    words = ["".join(filter(str.isalnum, piece)) for piece in pieces]
    grows = any(after.startswith(before) and len(after) >= 8 for before, after in pairwise(words))
    strictly = all(after.startswith(before) for before, after in pairwise(pieces))
    return grows or strictly or pieces[-1] == "".join(pieces[:-1])


@given(PIECES)
def test_deltas_are_joined(pieces: list[str]) -> None:
    """Whatever the text and wherever it is split, the answer is all chunks, unless each begins with the one before."""
    if not is_undecidable(pieces):
        assert answer_to(pieces) == "".join(pieces)


@given(PIECES, st.lists(st.integers(0, 11), max_size=3), st.integers(0, 2))
def test_the_last_chunk_of_a_cumulative_stream_is_the_answer(
    pieces: list[str], repeated: list[int], empty: int
) -> None:
    """Empty chunks before the first text and repeated chunks make no difference."""
    texts = list(accumulate(["Shoes", *pieces, "."]))
    for index in sorted(repeated, reverse=True):
        texts[index % len(texts) : index % len(texts)] = [texts[index % len(texts)]]

    assert answer_to([""] * empty + texts) == texts[-1]


MARKS = st.sampled_from(["▌", "|", "...", "…", " ▍", "_", "**", " ", ",", "?", "\n█"])
PLACEHOLDERS = st.lists(st.sampled_from(["Thinking...", "Searching …", "⏳", "...", "One moment"]), max_size=3)


@given(st.lists(st.text("abcd ", min_size=1, max_size=8), min_size=2, max_size=12), MARKS, PLACEHOLDERS, st.booleans())
def test_cursors_and_placeholders_do_not_hide_a_cumulative_stream(
    pieces: list[str], mark: str, before: list[str], ends_with_mark: bool
) -> None:
    """A mark moves along with the end of the text. A text before the first one is replaced by it."""
    texts = list(accumulate(["Shoes", " can be", " returned", *pieces], lambda text, piece: text + piece))
    last = texts[-1] + mark if ends_with_mark else texts[-1] + "."

    assert answer_to([*before, *(text + mark for text in texts), last]) == last


@each(
    ("chunks", "expected"),
    [
        (["Shoes can,", "Shoes can be", "Shoes can be returned."], "Shoes can be returned."),
        (["Shoes **can", "Shoes **can** be", "Shoes can be it."], "Shoes can be it."),
        (["1. one\n", "1. one more\n"], "1. one\n1. one more\n"),
        (["a,", "ab", "abc"], "a,ababc"),
        (["Shoes can be.", "Hats can be", "Hats can be it"], "Shoes can be.Hats can beHats can be it"),
        (["Look: ", "Shoes can", "Shoes can be"], "Look: Shoes canShoes can be"),
        (["Thirty", "Thirty days"], "Thirty days"),
        (["N", "No", "Non"], "Non"),
        (["ha", "haha"], "hahaha"),
        (["0", "00", "000"], "000000"),
        (["ha", "ha"], "haha"),
        (["1", "10"], "110"),
        (["Yes.", "Yes."], "Yes.Yes."),
        (["Thirty", " days", "Thirty days"], "Thirty days"),
        (["a", "b", "ab"], "abab"),
        (["退货", "退货期", "退货期是"], "退货期是"),
        ([b"Thirty", b"Thirty days"], "Thirty days"),
        (["Thirty"], "Thirty"),
    ],
)
def test_how_short_streams_are_read(chunks: list[Any], expected: str) -> None:
    """Texts of fewer than three different characters repeat by accident; longer ones do not."""
    assert answer_to(chunks) == expected


def test_a_long_cumulative_stream_is_read_to_its_end(unconnected: Any) -> None:
    """Only the last chunk counts against the maximum length of the answer."""
    unconnected.connect(max_text_length=200)
    texts = list(accumulate(f"{number} " for number in range(60)))

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield from texts

    list(ask("Why?"))

    assert unconnected.exchange.answer == texts[-1]


@each("mark", ["", "▌"])
def test_a_long_cumulative_stream_with_a_placeholder_is_read_to_its_end(unconnected: Any, mark: str) -> None:
    """Neither the placeholder nor a cursor makes chunks that were replaced count against the maximum length."""
    unconnected.connect(max_text_length=200)
    texts = ["Thinking...", *(text + mark for text in accumulate(f"{number} " for number in range(60)))]

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield from texts

    list(ask("Why?"))

    assert unconnected.exchanges[-1].answer == texts[-1]


@each("size", [100, 60])
def test_chunks_after_the_maximum_length_of_the_answer_are_not_read(unconnected: Any, size: int) -> None:
    """A stream without an end takes neither time nor memory."""
    unconnected.connect(max_text_length=200)
    seen = []

    @germane.observe(chunk=lambda chunk: seen.append(chunk) or chunk)  # type: ignore[func-returns-value]
    def ask(_question: str) -> Iterator[str]:
        yield from (f"{number:{size}}" for number in range(20))

    list(ask("Why?"))

    assert len(seen) == -(-200 // size)


def test_a_function_that_joins_gets_all_chunks() -> None:
    """``join=`` decides, not germane."""
    assert answer_to(["Thirty", "Thirty days"], join="|".join) == "Thirty|Thirty days"


CONVERSATION = [{"role": "user", "content": "Why?"}]


@pytest.mark.parametrize("form", ["list", "tuple", "state"])
def test_conversations_that_grow_yield_the_last_message(form: str) -> None:
    """Messages about other steps, which the next chunk replaces, are not part of the answer."""
    texts = ["Searching ...", "Thirty", "Thirty days"]
    chunks: list[Any] = [CONVERSATION, *([*CONVERSATION, {"role": "assistant", "content": text}] for text in texts)]
    if form != "list":
        chunks = [("", chunk) if form == "tuple" else {"messages": chunk} for chunk in chunks]

    assert answer_to(chunks) == "Thirty days"


@pytest.mark.parametrize("mark", ["\u258c", " |", "_", "...", " \u25cf"])
def test_a_cursor_is_recognized_in_two_chunks(mark: str) -> None:
    """It is no punctuation that ends a sentence."""
    assert answer_to([f"You have{mark}", "You have thirty days."]) == "You have thirty days."
    assert answer_to(["Thank you. ", "Thank you very much."]) == "Thank you. Thank you very much."
    assert answer_to([f"You{mark}", "You have thirty days."]) == f"You{mark}You have thirty days."


@pytest.mark.parametrize("placeholder", ["Thinking...", "Suche l\u00e4uft \u2026", "_Searching..._"])
def test_a_placeholder_is_recognized_before_two_growing_chunks(placeholder: str) -> None:
    """It ends with dots."""
    assert answer_to([placeholder, "You have", "You have thirty days."]) == "You have thirty days."
    assert answer_to([placeholder, "Step two...", "You have", "You have thirty days."]) == "You have thirty days."
    assert answer_to(["Well, ", "you have", "you have thirty days."]) == "Well, you haveyou have thirty days."


@pytest.mark.parametrize("size", [3, 4, 5, 12])
def test_a_footer_after_a_growing_text_is_kept_with_it(size: int) -> None:
    """However many chunks there were before it."""
    text, footer = "You have thirty days.", "\n\nSources: a.md"
    chunks = [text[: -size + number] for number in range(1, size)] + [text]

    assert answer_to([*chunks, footer]) == text + footer
    assert answer_to([*chunks, footer, "\nb.md"]) == f"{text}{footer}\nb.md"
    assert answer_to([*chunks, text + footer]) == text + footer
    assert answer_to([f"\n{chunk}" for chunk in chunks]) == f"\n{text}"


def test_a_selector_of_chunks_gets_objects_in_prose() -> None:
    """It says what is text."""
    assert answer_to(["a", '{"x": 1}', "b"], chunk=lambda chunk: chunk[:1]) == "a{b"
