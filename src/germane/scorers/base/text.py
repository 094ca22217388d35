"""Text functions that accept user text with any content and of any size."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

ONLY_QUESTION_ECHO = "The answer only repeats the question."
"""The explanation for a score of 0 if the answer adds nothing to the question."""
MAX_EMBEDDED_BYTES = 8_000
"""Maximum size of a text that is sent to an embedder, in bytes of UTF-8. Longer texts are truncated."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_VISIBLE_CATEGORIES = frozenset("LNPS")
_PREFIX = 100
"""Number of characters to check first. They are usually enough. The rest is deduplicated, so that a megabyte of blanks
is fast.
"""
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u200c\u200d"
)
"""Combining marks. ``\\w`` alone would split Hindi and Thai words at these characters."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_WORD = re.compile(rf"[{_UNSPACED}{_MARKS}]*[{_UNSPACED}][{_UNSPACED}{_MARKS}]*|(?:(?![{_UNSPACED}])[\w{_MARKS}])+")
_SPACED_WORD = re.compile(rf"[\w{_MARKS}]+")
"""The same for texts without letters of the other scripts, several times as fast."""
_UNSPACED_CHARACTER = re.compile(rf"[{_UNSPACED}]")


def is_blank(text: str) -> bool:
    """Return whether a text contains no visible characters: only whitespace, control and zero-width characters."""

    def has_visible(characters: Iterable[str]) -> bool:
        return any(unicodedata.category(character)[0] in _VISIBLE_CATEGORIES for character in characters)

    if text[:1].isalnum():  # almost every text
        return False
    text = text.strip()
    return not (has_visible(text[:_PREFIX]) or has_visible(set(text[_PREFIX:])))


def normalize_for_comparison(text: str | None) -> str:
    """Return a text with folded case and normalized whitespace, so that it can be compared.

    None becomes an empty string.
    """
    return " ".join((text or "").casefold().split())


def has_letters(text: str) -> bool:
    """Return whether a text contains a letter in any script."""
    return any(character.isalpha() for character in text)


def strip_control_characters(text: str) -> str:
    """Return a text with spaces instead of control characters and lone surrogates, which break JSON and tokenizers."""
    return _CONTROL.sub(" ", text)


def truncate_utf8(text: str, limit: int) -> str:
    """Return the start of a text, up to ``limit`` bytes of UTF-8. No tokenizer produces more tokens than bytes."""
    encoded = text[:limit].encode("utf-8", "replace")
    return encoded[:limit].decode("utf-8", "ignore")


def shorten(text: str, limit: int) -> str:
    """Return a text, truncated to ``limit`` characters, including an ellipsis, if it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def split_words(text: str) -> list[str]:
    """Return a text's words in order, in lowercase; in scripts without spaces, each pair of adjacent letters."""
    text = unicodedata.normalize("NFKC", text).lower()
    if not _UNSPACED_CHARACTER.search(text):
        return _SPACED_WORD.findall(text)
    words: list[str] = []
    for match in _WORD.finditer(text):
        run = match[0]
        if _UNSPACED_CHARACTER.match(run):
            words += [run[start : start + 2] for start in range(max(1, len(run) - 1))]
        else:
            words.append(run)
    return words
