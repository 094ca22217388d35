"""Whether what a judge quotes really stands in the texts that it quotes from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from germane.scorers.base.text import words

_LEFT_OUT = re.compile(r"\.{3,}|\u2026|\[\s*\]|\(\s*\)")
"""What stands for words that a quotation leaves out."""
LEAST_WORDS = 3
"""Of each part of a quotation with words left out: shorter ones could be put together to say anything."""


class Quotable:
    """Texts that may be quoted: equal words in equal order are a quotation, whatever case, marks and white space."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_joined(text) for text in texts]

    def holds(self, quotation: str) -> bool:
        """Return whether the quotation stands in one of the texts; of one with words left out, its parts in order.

        A quotation without a word stands nowhere.
        """
        parts = [joined for part in _LEFT_OUT.split(quotation) if (joined := _joined(part)).strip()]
        if len(parts) > 1 and any(len(part.split()) < LEAST_WORDS for part in parts):
            return False
        return bool(parts) and any(_in_order(parts, text) for text in self._texts)


def _in_order(parts: Sequence[str], text: str) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part) - 1  # the space that ends one part begins the next
    return True


def _joined(text: str) -> str:
    return f" {' '.join(words(text))} "
