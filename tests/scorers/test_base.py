"""Fingerprints, prompts, texts and vectors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.text import is_blank, shorten, strip_control_characters, truncate_utf8
from germane.scorers.base.vectors import mean_pairwise_cosine, normalize_rows
from germane.scorers.prompting.prompt import Prompt, load_prompt


def test_fingerprints_are_the_same_in_every_process() -> None:
    """Fingerprints are equal in every process and release, because stored scores are grouped by them."""
    made = fingerprint(
        scorer="s", version="1", parameters={"b": [1, 2], "a": 0.5}, prompt="Frage: {q}ü", judge="j", embedder=None
    )

    assert made == "385cc165be57"
    assert len(made) == 12


def test_parameter_order_does_not_change_the_fingerprint() -> None:
    """Only the names and values of parameters matter."""
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}

    assert fingerprint(scorer="s", version="1", parameters=one) == fingerprint(
        scorer="s", version="1", parameters=other
    )


@each("name", ["question_of_answer", "questions_of_answer", "question_and_vote", "questions_and_votes", "few_shot"])
def test_prompt_files_are_part_of_the_package(name: str) -> None:
    """Each prompt has a version, starts with a system message, and has a placeholder for the answer."""
    prompt = load_prompt(name)

    assert prompt.version.isdigit()
    assert prompt.messages[0].role == "system"
    assert "{answer}" in prompt.messages[-1].content


def test_placeholders_in_filled_values_are_not_replaced() -> None:
    """An answer may contain placeholder names."""
    prompt = Prompt(version="1", messages=(Message("user", "{fence} {answer} {other}"),), text="")

    (turn,) = prompt.fill(fence="f", answer="{fence} {answer}")

    assert turn.content == "f {fence} {answer} {other}"


@each("text", ["", " \n\t", "\x00\x07", "\u200b\u200f\ufeff", "\u00a0"])
def test_text_of_invisible_characters_counts_as_blank(text: str) -> None:
    """Whitespace, control characters and zero-width characters are invisible."""
    assert is_blank(text)


@each("text", ["a", "?", "7", "👍", " € "])
def test_text_with_a_visible_character_does_not_count_as_blank(text: str) -> None:
    """Letters, numbers, punctuation and symbols are visible."""
    assert not is_blank(text)
    assert not is_blank("\u200b" * 200 + text), "however late it comes"


def test_control_characters_are_removed() -> None:
    """Lone surrogates are also removed. Line breaks and tabs are kept."""
    assert strip_control_characters("a\x00b\ud800c\n\td\x9f") == "a b c\n\td "
    json.dumps(strip_control_characters("\udfff")).encode()
    strip_control_characters("\ud83d x \udfff").encode()


@each("text", ["abcdef", "äöü", "日本語", "👍👍", "a\ud800b"])
def test_truncation_never_splits_a_character(text: str) -> None:
    """The result is a prefix that does not exceed the byte limit."""
    for limit in range(8):
        kept = truncate_utf8(text, limit)
        assert len(kept.encode()) <= limit
        assert text.encode("utf-8", "replace").startswith(kept.encode())


def test_shortened_text_ends_in_an_ellipsis() -> None:
    """The result, including the ellipsis, does not exceed the character limit."""
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"


def test_rows_of_vectors_are_normalized_to_unit_length() -> None:
    """Rows are normalized exactly, in double precision."""
    assert normalize_rows([[3, 4], [0, -2]], 2).tolist() == [[0.6, 0.8], [0.0, -1.0]]


@each(
    "rows",
    [[[1.0]], [[1.0], [0.0]], [[1.0], [float("nan")]], [[1.0], [float("inf")]], [[1.0], [1.0, 2.0]], [["a"], ["b"]],
     [None, None], [1.0, 2.0], [[], []], 7, [[1.0], [10**400]], [[1.0], [1e200]]],
)  # fmt: skip
def test_invalid_embedding_vectors_are_rejected(rows: object) -> None:
    """Vectors must not be empty, zero, infinite or non-numeric, and their count and dimensions must match."""
    with pytest.raises(ScoringError, match="the embedder returned"):
        normalize_rows(rows, 2)  # type: ignore[arg-type]  # on purpose


def test_mean_pairwise_cosine_covers_all_pairs() -> None:
    """Two rows are one pair. The mean is None for a single row."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])

    assert mean_pairwise_cosine(rows) == pytest.approx(1 / 3)
    assert mean_pairwise_cosine(rows[::2]) == pytest.approx(1)
    assert mean_pairwise_cosine(rows[:1]) is None
