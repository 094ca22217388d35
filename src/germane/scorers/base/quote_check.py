"""Verification that a judge's quotations occur in the quoted texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from germane.scorers.base.text import split_words

_ELLIPSIS = re.compile(r"\.{3,}|\u2026|\[\s*\]|\(\s*\)")
"""Marks for words that a quotation leaves out."""
MIN_QUOTE_PART_WORDS = 3
"""Minimum words between ellipses. Shorter parts could be combined to say anything."""


class QuotableTexts:
    """Texts that can be quoted. A quotation has the same words in the same order; case and punctuation may differ."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_normalize(text) for text in texts]

    def contains(self, quotation: str) -> bool:
        """Return whether one of the texts holds the quotation, or all its parts in order if it has ellipses.

        A quotation without words is never contained.
        """
        parts = [part for piece in _ELLIPSIS.split(quotation) if (part := _normalize(piece)).strip()]
        if len(parts) > 1 and any(len(part.split()) < MIN_QUOTE_PART_WORDS for part in parts):
            return False
        return bool(parts) and any(_holds_in_order(text, parts) for text in self._texts)


def _holds_in_order(text: str, parts: Sequence[str]) -> bool:
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part) - 1  # the space that ends one part begins the next
    return True


def _normalize(text: str) -> str:
    return f" {' '.join(split_words(text))} "
