"""What an answer claims, by rule: its sentences, without those that claim nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from germane.scorers.base.question_parser import MARKS
from germane.scorers.base.text import has_letters
from germane.scorers.refusals.phrases import COURTESY, OFFER
from germane.scorers.refusals.rules import RULES, find_noncommittal

VERSION = "1"
SENTENCE_RULES = hashlib.sha256(f"{VERSION} {RULES}".encode()).hexdigest()[:12]
"""Part of the fingerprint: changes with every rule."""
_END = re.compile(
    r"(?<![.!?\u061f\u06d4\u0964])[.!?\u061f\u06d4\u0964]++[\"'\u201d\u00bb)\]*_]*+(?:\s++|\Z)"
    r"|[\u3002\uff01\uff1f]++[\u300d\u201d]*+\s*+|\n++"
)
"""Never looks at a mark twice: answers may hold thousands of them in a row."""
_SHORT_FORM = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|no|vs|fig|approx|ca|cf|jr|sr|inc|ltd|e\.g|i\.e|z\.b|bzw|[a-z]))\.\s*\Z",
    re.IGNORECASE,
)
"""A full stop after these ends no sentence: a title, a single initial, "e.g."."""
_BULLET = re.compile(r"\A\s*(?:[-*+\u2022>#]+\s+|\(?\d{1,2}[.)]\s+|\d{1,2}[.)]\s*\Z)+")
_EMPHASIS = re.compile(r"\*\*|__|`")


def sentences(text: str) -> Iterator[str]:
    """Return the sentences of a text, one after another, without bullets and marks of headings."""
    start = 0
    for end in _END.finditer(text):
        if "\n" not in end[0] and _SHORT_FORM.search(text[max(start, end.end() - 12) : end.end()]):
            continue
        if sentence := _tidy(text[start : end.end()]):
            yield sentence
        start = end.end()
    if sentence := _tidy(text[start:]):
        yield sentence


def claiming_sentences(answer: str) -> list[str]:
    """Return the sentences that claim something: no questions, offers of help, headings, nor "I don't know"."""
    return [sentence for sentence in sentences(answer) if _claims(sentence)]


def _claims(sentence: str) -> bool:
    if not has_letters(sentence) or sentence.endswith((*MARKS.replace(";", ""), ":")):
        return False
    plain = sentence.lower()
    return not (OFFER.match(plain) or COURTESY.match(plain) or find_noncommittal(sentence))


def _tidy(sentence: str) -> str:
    return " ".join(_EMPHASIS.sub("", _BULLET.sub("", sentence)).split()).lstrip("#> ").strip("*_ ")
