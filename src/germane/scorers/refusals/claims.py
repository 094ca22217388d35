"""Claims of an answer by rule: its sentences, except those that claim nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from germane.scorers.base.question_parser import QUESTION_MARKS
from germane.scorers.base.text import has_letters
from germane.scorers.refusals.phrases import COURTESY, OFFER
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH, find_noncommittal

VERSION = "1"
SENTENCE_RULES_HASH = hashlib.sha256(f"{VERSION} {REFUSAL_RULES_HASH}".encode()).hexdigest()[:12]
"""Part of fingerprints: changes with every rule."""
_END = re.compile(
    r"(?<![.!?\u061f\u06d4\u0964])[.!?\u061f\u06d4\u0964]++[\"'\u201d\u00bb)\]*_]*+(?:\s++|\Z)"
    r"|[\u3002\uff01\uff1f]++[\u300d\u201d]*+\s*+|\n++"
)
"""Possessive, so that thousands of marks in a row take linear time."""
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|no|vs|fig|approx|ca|cf|jr|sr|inc|ltd|e\.g|i\.e|z\.b|bzw|[a-z]))\.\s*\Z",
    re.IGNORECASE,
)
"""A period after these does not end a sentence: a title, an initial, "e.g."."""
_BULLET = re.compile(r"\A\s*(?:[-*+\u2022>#]+\s+|\(?\d{1,2}[.)]\s+|\d{1,2}[.)]\s*\Z)+")
_EMPHASIS = re.compile(r"\*\*|__|`")


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without bullets and heading marks."""
    start = 0
    for end in _END.finditer(text):
        if "\n" not in end[0] and _ABBREVIATION.search(text[max(start, end.end() - 12) : end.end()]):
            continue
        if sentence := _strip_markup(text[start : end.end()]):
            yield sentence
        start = end.end()
    if sentence := _strip_markup(text[start:]):
        yield sentence


def claim_sentences(answer: str) -> list[str]:
    """Return the sentences that claim something: no questions, offers of help, headings, or "I don't know"."""
    claims = []
    for sentence in split_sentences(answer):
        if not has_letters(sentence) or sentence.endswith((*QUESTION_MARKS.replace(";", ""), ":")):
            continue
        plain = sentence.lower()
        if not (OFFER.match(plain) or COURTESY.match(plain) or find_noncommittal(sentence)):
            claims.append(sentence)
    return claims


def _strip_markup(sentence: str) -> str:
    return " ".join(_EMPHASIS.sub("", _BULLET.sub("", sentence)).split()).lstrip("#> ").strip("*_ ")
