"""The words of a text, in any script: to count which of them another text has, too."""

from __future__ import annotations

import re
import unicodedata

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
