"""Properties of texts that can be told without knowing their language: form, questions, and common content."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_END_NAMES: Final = ("FULL STOP", "QUESTION MARK", "EXCLAMATION MARK", "DANDA", "ELLIPSIS", "SIGN KHAN", "SIGN SECTION")
"""Parts of the Unicode names of marks that end a sentence."""
_CLOSING: Final = "\"'*_` \t\r\n"
_INNER_QUESTION_MARKS: Final = "\u00bf\u055e"
"""Question marks before or within a question: the Spanish and the Armenian one."""
_SYMBOLS: Final = frozenset("=;{}()<>[]_*/\\|@#$%&^~`")
_GRAM: Final = 3
GROUNDED: Final = 0.3
"""Minimum share of an answer's content that comes from its sources."""
_GREEK: Final = re.compile("[\u0370-\u03ff]")
_MAX_QUESTION: Final = 400
"""Maximum number of characters of a sentence in which a question mark is looked up."""
_MAX_LENGTH: Final = 20_000
"""Maximum number of characters of a text that are compared."""


def asks(text: str) -> bool:
    """Return whether a text ends with a question, in any language that marks questions."""
    end = _without_closing(text)[-_MAX_QUESTION:]
    if is_question_mark(end[-1:]) or (end.endswith(";") and _GREEK.search(end)):
        return True
    found = [mark for mark in _INNER_QUESTION_MARKS if mark in end]
    return bool(found) and any(mark in sentences_of(end)[-1] for mark in found)


def sentences_of(text: str) -> list[str]:
    """Return the beginning of a text in sentences."""
    sentences, start = list[str](), 0
    for position, character in enumerate(text[:_MAX_QUESTION]):
        is_last = not text[position + 1 : position + 2].strip() or not character.isascii()
        if is_last and _is_end(character):
            sentences.append(text[start : position + 1])
            start = position + 1
    rest = text[start:].strip()
    return [*sentences, rest] if any(map(str.isalpha, rest)) else sentences


def is_question_mark(character: str) -> bool:
    """Return whether a character is a question mark in any script. The Greek one may also be a semicolon."""
    name = unicodedata.name(character or " ", "")
    return "QUESTION MARK" in name or name == "INTERROBANG"


def is_finished(text: str) -> bool:
    """Return whether a text ends with the end of a sentence."""
    return _is_end(_without_closing(text)[-1:])


def _is_end(character: str) -> bool:
    """Return whether a character ends a sentence."""
    if not character or character in _INNER_QUESTION_MARKS or not unicodedata.category(character).startswith("P"):
        return False
    return any(name in unicodedata.name(character, "") for name in _END_NAMES)


def _without_closing(text: str) -> str:
    """Return a text without quotation marks, brackets and spaces at its end."""
    end = text.rstrip(_CLOSING)
    while end and unicodedata.category(end[-1]) in {"Pe", "Pf"}:
        end = end[:-1].rstrip(_CLOSING)
    return end


def is_code(text: str) -> bool:
    """Return whether a text may be code, such as a query of a database: symbols are more than one in thirty letters."""
    symbols = sum(character in _SYMBOLS for character in text)
    return symbols * 30 > sum(map(str.isalpha, text))


def grams(text: str) -> frozenset[str]:
    """Return the sequences of three letters or digits in a text's words, and its shorter words."""
    words = set(_WORD.findall(text[:_MAX_LENGTH].casefold()))
    return frozenset({word[start : start + _GRAM] for word in words for start in range(max(1, len(word) - _GRAM + 1))})


def share_from(text: str, sources: frozenset[str], known: frozenset[str]) -> float:
    """Return which part (0..1) of a text's content is from sources, apart from what was known without them.

    ``sources`` are the grams of the texts that it may be taken from, and ``known`` those of the question. Answers from
    documents have about .5 or more; titles, facts about the user and verdicts less than .3, because they repeat the
    question or say something else.
    """
    own = grams(text)
    return len(own & sources - known) / len(own) if own else 0.0
