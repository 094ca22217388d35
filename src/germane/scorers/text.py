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
