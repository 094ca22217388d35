"""A check of whether the answer contains a time or a quantity, for English questions that ask for one.

The check is lenient: an answer fails only if it contains no common word or digit of the expected kind at all. Other
questions, and questions and answers in other languages, always pass. No list of words is complete ("at dusk", "under
Queen Victoria"), so a failed check limits the label but does not decide it.
"""

from __future__ import annotations

import re
from typing import Final

from germane.scorers.base.phrases import any_of

VERSION: Final = "1"
_CLAUSE_START: Final = r"(?:\A|[,;:.]\s*|\b(?:and|or|in|on|at|since|until|from|by)\s+)"
_ASKS_FOR_TIME: Final = re.compile(
    rf"{_CLAUSE_START}(?:when|(?:what|which)\s+(?:year|date|day|month|time|century|decade))\b", re.IGNORECASE
)
_ASKS_FOR_QUANTITY: Final = re.compile(
    rf"{_CLAUSE_START}how\s+(?:many|much|long|old|tall|far|high|deep|heavy|wide|fast)\b", re.IGNORECASE
)
_TIME: Final = re.compile(
    r"\b(?:1\d{3}|2[01]\d\d)(?:s|\b)|\b(?:in|around|circa|about|c\.)\s+(?:the year\s+)?\d{3}\b(?!\s*[a-z])"
    rf"|\d:\d\d|\d\s*[ap]\.?m\b|\b\d{{1,2}}[./-]\d{{1,2}}\b|\b(?:{any_of('month')})\b"
    r"|\b\d+(?:st|nd|rd|th)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    rf"|\b(?:{any_of('time')})\b",
    re.IGNORECASE,
)
_QUANTITY: Final = re.compile(rf"\d|\b(?:{any_of('quantity')})\b", re.IGNORECASE)
_ENGLISH: Final = re.compile(r"\b(?:the|and|it|its|has|have|were|are|this|that|your?|we|they)\b", re.IGNORECASE)


def describe_missing_kind(kind: str) -> str:
    """Describe the missing kind that :func:`find_missing_kind` returned, in a sentence."""
    return f"The question asks for {kind}, but none was recognized in the answer."


def find_missing_kind(question: str, answer: str) -> str | None:
    """Return ``a time`` or ``a quantity`` if the question asks for one, but the answer has no common word for it."""
    if not _ENGLISH.search(answer):
        return None
    if _ASKS_FOR_TIME.search(question):
        return None if _TIME.search(answer) else "a time"
    if _ASKS_FOR_QUANTITY.search(question):
        return None if _QUANTITY.search(answer) else "a quantity"
    return None
