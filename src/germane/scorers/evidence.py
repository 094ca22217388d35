"""Whether what a judge quotes really stands in the texts that it quotes from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from germane.scorers.words import words

_LEFT_OUT = re.compile(r"\.{3,}|\u2026|\[\s*\]|\(\s*\)")
"""What stands for words that a quotation leaves out."""


class Quotable:
    """Texts that may be quoted: equal words in equal order are a quotation, whatever case, marks and white space."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_joined(text) for text in texts]

    def holds(self, quotation: str) -> bool:
        """Return whether the quotation stands in one of the texts; of one with words left out, each of its parts.

        A quotation without a word stands nowhere.
        """
        parts = [joined for part in _LEFT_OUT.split(quotation) if (joined := _joined(part)).strip()]
        return bool(parts) and any(all(part in text for part in parts) for text in self._texts)


def _joined(text: str) -> str:
    return f" {' '.join(words(text))} "
