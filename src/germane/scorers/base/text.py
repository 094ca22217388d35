"""Texts of users, made fit for a request: they may hold anything and be of any size."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SHOWS = frozenset("LNPS")
_FIRST = 100
"""Characters that mostly tell. Of what follows each is looked at once, or a megabyte of blanks would take long."""


def is_blank(text: str) -> bool:
    """Return whether nothing of it can be seen: white space, control and zero-width characters only."""
    text = text.strip()
    return not (_shows(text[:_FIRST]) or _shows(set(text[_FIRST:])))


def _shows(characters: Iterable[str]) -> bool:
    return any(unicodedata.category(character)[0] in _SHOWS for character in characters)


def folded(text: str | None) -> str:
    """Return the text as it is compared with others: neither case nor blanks make it another one."""
    return " ".join((text or "").casefold().split())


def has_letters(text: str) -> bool:
    """Return whether there is a letter in it, of any script."""
    return any(character.isalpha() for character in text)


def clean(text: str) -> str:
    """Return the text without control characters and halves of surrogate pairs: those break JSON and tokenizers."""
    return _UNWANTED.sub(" ", text)


def cut(text: str, limit: int) -> str:
    """Return the start of the text, at most ``limit`` bytes of UTF-8: no tokenizer makes more tokens than bytes."""
    encoded = text[:limit].encode("utf-8", "replace")
    return encoded[:limit].decode("utf-8", "ignore")


def shorten(text: str, limit: int) -> str:
    """Return the text, or its start and an ellipsis: at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u200c\u200d"
)
"""Marks that belong to the letter before them: ``\\w`` alone cuts Hindi and Thai words there."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Scripts that set no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_WORD = re.compile(rf"[{_UNSPACED}{_MARKS}]*[{_UNSPACED}][{_UNSPACED}{_MARKS}]*|(?:(?![{_UNSPACED}])[\w{_MARKS}])+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def words(text: str) -> list[str]:
    """Return the words in lower case, in their order; where a script sets no spaces, each two letters side by side."""
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).lower()):
        found += _pairs(match[0]) if _IS_UNSPACED.match(match[0]) else [match[0]]
    return found


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]
