"""Rules that recognize noncommittal answers without a judge: "I don't know", refusals, and clarifying questions.

A phrase such as "cannot" is not enough: "we cannot accept returns after 30 days" answers a question. The phrase must be
about what the speaker or the sources know, and the rest of the answer must be short. ``phrases.txt`` contains the
phrases, as regular expressions in several languages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from germane.language import asks
from germane.scorers.base.phrases import load_sections
from germane.scorers.base.text import shorten

PHRASES_TEXT = (files("germane.scorers.refusals") / "phrases.txt").read_text(encoding="utf-8")
VERSION = "1"
REFUSAL_RULES_HASH = hashlib.sha256(f"{VERSION}\n{PHRASES_TEXT}".encode()).hexdigest()[:12]
"""A hash of the rules, which is part of fingerprints."""
MAX_NONCOMMITTAL_CHARACTERS = 4_000
"""Maximum length of a noncommittal answer. Longer answers are never noncommittal."""
MAX_WORDS_AFTER_PHRASE = 30
"""An answer that starts with a phrase is noncommittal if it has fewer other words than this."""
MAX_WORDS_BEFORE_PHRASE = 10
"""An answer that says something else before the phrase is noncommittal if it has fewer other words than this."""
MAX_WORDS_BEFORE_QUESTION = 20
"""An answer that ends with a question is noncommittal if it has fewer other words than this."""
MAX_WORDS_BEFORE_MEANING = 50
"""An answer that ends by asking what was meant is noncommittal if it has fewer other words than this. This is the
highest of these limits.
"""
_SENTENCE = re.compile(
    r"(?:.[^.!?\u061f\u3002\uff1f\uff01;\n]*+)+?"  # possessive, because it only ends at one of these characters
    r"(?:[.!?\u061f\u3002\uff1f\uff01;]+[\"'\u201d\u00bb)*_]*(?=\s|\Z)|[\u3002\uff1f\uff01\u061f]+|\n+|\Z)",
    re.DOTALL,
)
_CLAUSE_BOUNDARY = re.compile(
    r"[,;:]?\s+(?=(?:but|however|though|although|yet|aber|jedoch|mais|pero|ma|mas|maar)\b)|[;\u2014]\s*"
)
_QUOTED = re.compile(r'"[^"\n]{1,200}"|\u201c[^\u201d\n]{1,200}\u201d|\u00ab[^\u00bb\n]{1,200}\u00bb')
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]{1,2}|[^\W\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]+")
"""A word; in scripts without spaces, up to two characters."""
_EDGES = " \t\r\n*_#>-\u2013\u2014\"'\u201c\u201d\u00ab\u00bb()[]"


class PhrasePattern:
    r"""Many regular expressions, compiled so that most of a text is skipped quickly.

    Alternatives that start with ``\b`` are tried only where a word starts, based on its first letters. Those that start
    with ``^`` are tried only at the beginning, and those for scripts without word boundaries only in non-ASCII texts.
    """

    def __init__(self, expressions: Iterable[str]) -> None:
        at_words, at_start, elsewhere = list[str](), list[str](), list[str]()
        for alternative in (part for expression in expressions for part in _split_alternatives(expression)):
            if alternative.startswith(r"\b"):
                at_words += _leading_alternatives(alternative[2:])
            else:
                (at_start if alternative.startswith("^") else elsewhere).append(alternative)
        self._at_words = re.compile(rf"\b(?=\w)(?:{_factor_letters(at_words)})" if at_words else _NEVER)
        self._at_start = re.compile("|".join(at_start) or _NEVER)
        self._elsewhere = re.compile("|".join(elsewhere) or _NEVER)
        self._is_elsewhere_ascii = any(map(str.isascii, elsewhere))
        self.search = lru_cache(maxsize=64)(self._search)  # a text is searched alone and with the texts it is about
        """Return whether any of the expressions matches anywhere in a text."""

    def _search(self, text: str) -> bool:
        if self._at_start.match(text) or self._at_words.search(text):
            return True
        return (self._is_elsewhere_ascii or not text.isascii()) and self._elsewhere.search(text) is not None


_NEVER = "(?!)"
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""An element of a regular expression: an escaped character, a character set, or any other character."""
_LETTER_FIRST = re.compile(r"[^\W_](?![?*+{])")
_MAX_FACTORED = 3
"""The number of leading letters by which alternatives are grouped."""


def _split_alternatives(expression: str) -> list[str]:
    """Return the top-level alternatives of a regular expression."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _leading_alternatives(alternative: str) -> Iterator[str]:
    """Yield one expression per alternative in a leading group: "(?:a|b)c" yields "ac" and "bc"."""
    depth = end = 0
    for piece in _PIECE.findall(alternative) if alternative.startswith("(?:") else ():
        depth, end = depth + (piece == "(") - (piece == ")"), end + len(piece)
        if depth == 0:
            break
    if not end or alternative[end : end + 1] in {"?", "*", "+", "{"}:
        yield alternative
        return
    for inner in _split_alternatives(alternative[3 : end - 1]):
        yield from _leading_alternatives(inner + alternative[end:])


def _factor_letters(alternatives: Iterable[str], depth: int = _MAX_FACTORED) -> str:
    """Return an equivalent expression that groups the alternatives by their leading letters."""
    by_letter: dict[str, list[str]] = {}
    others = []
    for alternative in alternatives:
        if depth and _LETTER_FIRST.match(alternative):
            by_letter.setdefault(alternative[0], []).append(alternative[1:])
        else:
            others.append(alternative)
    groups = [f"{letter}(?:{_factor_letters(rests, depth - 1)})" for letter, rests in by_letter.items()]
    return "|".join(groups + others)


_SECTIONS = load_sections(PHRASES_TEXT)


DOES_NOT_KNOW = PhrasePattern(_SECTIONS["does not know"])
"""Matches text in which the speaker does not know or refuses, or the sources do not say."""


APOLOGY = re.compile(
    rf"^\W*(?:{'|'.join(_SECTIONS['apology'])})"
    r"(?: (?:about|for) (?:that|this|the (?:confusion|inconvenience|trouble)|any (?:inconvenience|confusion)))?\W*$"
)
"""Matches a clause that only apologizes."""


STARTS_WITH_APOLOGY = re.compile(rf"^\W*(?:{'|'.join(_SECTIONS['apology'])})")
"""Matches a text that starts with an apology."""


OFFER = re.compile(rf"\b(?:{'|'.join(_SECTIONS['offer'])})")
"""Matches a clause that offers help or refers the reader to someone. Such clauses are ignored."""


COURTESY = re.compile(rf"\b(?:{'|'.join(_SECTIONS['courtesy'])})")
"""Matches a closing question that offers more help."""


MEANING = re.compile(rf"\b(?:{'|'.join(_SECTIONS['what was meant'])})")
"""Matches a question about what was meant."""


WHOLE_ANSWERS = frozenset(_SECTIONS["whole answers"])
"""Phrases that are noncommittal only if they are the whole answer."""


@dataclass(frozen=True, slots=True)
class NoncommittalMatch:
    """A rule that an answer matched, and the matching words."""

    rule: str
    text: str

    def details(self) -> dict[str, str]:
        """Return the rule and the matching words as a dict that can be stored in the score's details."""
        return {"rule": self.rule, "text": shorten(self.text, 200)}


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    kind: Literal["phrase", "question", "apology", "offer", "content"]

    @property
    def words(self) -> int:
        return len(_WORD.findall(self.text))


@lru_cache(maxsize=32)  # several scorers ask about one answer
def find_noncommittal(answer: str) -> NoncommittalMatch | None:
    """Return the first rule that an answer matches, with the matching words, or None if no rule matches."""
    text = answer[: MAX_NONCOMMITTAL_CHARACTERS + 1].replace("\u2019", "'").strip(_EDGES)
    if len(text) > MAX_NONCOMMITTAL_CHARACTERS:
        return None
    if not WHOLE_ANSWERS.isdisjoint({text.lower(), text.rstrip(".!").lower()}):
        return NoncommittalMatch("it says that it does not know", text)
    clauses: list[_Clause] = []
    content_words = 0
    for text_of_sentence in split_into_sentences(text):
        sentence = _split_clauses(text_of_sentence)
        clauses += sentence
        content_words += sum(clause.words for clause in sentence if clause.kind == "content")
        if content_words >= MAX_WORDS_BEFORE_MEANING:  # no rule can match anymore
            return None
    only_apologizes = bool(clauses) and all(clause.kind == "apology" for clause in clauses)
    return (
        _match_phrase(clauses, content_words)
        or _match_question(clauses, content_words)
        or (NoncommittalMatch("it only apologizes", clauses[0].text) if only_apologizes else None)
    )


def _match_phrase(clauses: Sequence[_Clause], content_words: int) -> NoncommittalMatch | None:
    said = [clause for clause in clauses if clause.kind in {"phrase", "content"}]
    phrase = next((clause for clause in said if clause.kind == "phrase"), None)
    if phrase is None or content_words >= (MAX_WORDS_AFTER_PHRASE if said[0] is phrase else MAX_WORDS_BEFORE_PHRASE):
        return None
    return NoncommittalMatch("it says that it does not know, or refuses", phrase.text)


def _match_question(clauses: Sequence[_Clause], content_words: int) -> NoncommittalMatch | None:
    # A closing courtesy ("Does that help?") is not a clarifying question, unless the answer has no content.
    asking = list(clauses)
    while asking and COURTESY.search(asking[-1].text.lower()) and any(each.kind == "content" for each in asking):
        asking.pop()
    asking = [clause for clause in asking if clause.kind != "apology"]
    if asking and asking[-1].kind == "question":
        asks_meaning = MEANING.search(asking[-1].text.lower())
        if content_words < (MAX_WORDS_BEFORE_MEANING if asks_meaning else MAX_WORDS_BEFORE_QUESTION):
            return NoncommittalMatch("it ends with a clarifying question", asking[-1].text)
    return None


def split_into_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, except those that consist only of punctuation."""
    for match in _SENTENCE.finditer(text):
        if match[0].strip(_EDGES):
            yield match[0].strip()


def _split_clauses(sentence: str) -> list[_Clause]:
    if asks(sentence):
        return [_Clause(sentence, "question")]
    clauses = []
    for text in _CLAUSE_BOUNDARY.split(sentence):
        if not _WORD.search(text):
            continue
        plain = _QUOTED.sub(" quoted ", text).lower()
        if DOES_NOT_KNOW.search(plain):
            clauses.append(_Clause(text, "phrase"))
        elif APOLOGY.search(plain):
            clauses.append(_Clause(text, "apology"))
        else:
            clauses.append(_Clause(text, "offer" if OFFER.search(plain) else "content"))
    return clauses
