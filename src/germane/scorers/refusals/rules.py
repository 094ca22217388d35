"""Answers that do not commit themselves: "I don't know", a refusal, a question back. By rules, with no judge.

A phrase alone proves little: "we cannot accept returns after 30 days" answers a question. So a phrase must be about
the speaker's own knowledge or the sources', and little else may be said besides. See ``phrases.py`` for the phrases.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from germane.scorers.base.question_parser import MARKS
from germane.scorers.base.text import shorten
from germane.scorers.refusals.phrases import APOLOGY, COURTESY, DOES_NOT_KNOW, MEANING, OFFER, TEXT, WHOLE_ANSWERS

VERSION = "1"
NONCOMMITTAL = "noncommittal"
"""Label of a score whose answer does not commit itself."""
RULES = hashlib.sha256(f"{VERSION}\n{TEXT}".encode()).hexdigest()[:12]
"""Part of the fingerprint: changes with every phrase."""
LONGEST = 4_000
"""Characters. A longer answer says something."""
LEFT_AFTER_PHRASE = 30
"""An answer that begins by not knowing, with fewer other words than this, does not commit itself."""
LEFT_BEFORE_PHRASE = 10
"""Likewise one that says something first and then does not know."""
LEFT_BEFORE_QUESTION = 20
"""Likewise one that ends with a question."""
LEFT_BEFORE_MEANING = 50
"""Likewise one that ends by asking what was meant."""

_SENTENCE = re.compile(
    r".+?(?:[.!?\u061f\u3002\uff1f\uff01;]+[\"'\u201d\u00bb)*_]*(?=\s|\Z)|[\u3002\uff1f\uff01\u061f]+|\n+|\Z)",
    re.DOTALL,
)
_CLAUSE = re.compile(
    r"[,;:]?\s+(?=(?:but|however|though|although|yet|aber|jedoch|mais|pero|ma|mas|maar)\b)|[;\u2014]\s*"
)
_QUOTED = re.compile(r'"[^"\n]{1,200}"|\u201c[^\u201d\n]{1,200}\u201d|\u00ab[^\u00bb\n]{1,200}\u00bb')
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]{1,2}|[^\W\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]+")
_EDGES = " \t\r\n*_#>-\u2013\u2014\"'\u201c\u201d\u00ab\u00bb()[]"


@dataclass(frozen=True, slots=True)
class Finding:
    """The rule that an answer fell under, and the words that made it."""

    rule: str
    text: str

    def details(self) -> dict[str, str]:
        """Return what of it goes into a score's details."""
        return {"rule": self.rule, "text": shorten(self.text, 200)}


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    kind: str
    """``phrase``, ``question``, ``apology``, ``offer``, or ``content``."""
    words: int


def find_noncommittal(answer: str) -> Finding | None:
    """Return why the answer does not commit itself, or None when it does."""
    text = answer[: LONGEST + 1].replace("\u2019", "'").strip(_EDGES)
    if len(text) > LONGEST:
        return None
    if text.lower() in WHOLE_ANSWERS or text.rstrip(".!").lower() in WHOLE_ANSWERS:
        return Finding("it says that it does not know", text)
    clauses = _clauses_until(text, LEFT_BEFORE_MEANING)
    if clauses is None:
        return None
    return _knows_not(clauses) or _asks_back(clauses) or _only_sorry(clauses)


def _clauses_until(text: str, limit: int) -> list[_Clause] | None:
    """Return the clauses, or None as soon as they say ``limit`` words of their own: no rule looks further."""
    clauses: list[_Clause] = []
    left = 0
    for match in _SENTENCE.finditer(text):
        found = _clauses(match[0].strip()) if match[0].strip(_EDGES) else []
        clauses += found
        left += _left(found)
        if left >= limit:
            return None
    return clauses


def _knows_not(clauses: list[_Clause]) -> Finding | None:
    phrases = [clause for clause in clauses if clause.kind == "phrase"]
    if not phrases:
        return None
    telling = [clause for clause in clauses if clause.kind in {"phrase", "content"}]
    limit = LEFT_AFTER_PHRASE if telling[0].kind == "phrase" else LEFT_BEFORE_PHRASE
    if _left(clauses) >= limit:
        return None
    return Finding("it says that it does not know, or refuses", phrases[0].text)


def _asks_back(clauses: list[_Clause]) -> Finding | None:
    """A closing courtesy ("Does that help?") is no question back, unless there is nothing else."""
    said = list(clauses)
    while said and COURTESY.search(said[-1].text.lower()) and any(clause.kind == "content" for clause in said):
        said.pop()
    said = [clause for clause in said if clause.kind != "apology"]
    if not said or said[-1].kind != "question":
        return None
    limit = LEFT_BEFORE_MEANING if MEANING.search(said[-1].text.lower()) else LEFT_BEFORE_QUESTION
    if _left(clauses) >= limit:
        return None
    return Finding("it ends with a question back", said[-1].text)


def _only_sorry(clauses: list[_Clause]) -> Finding | None:
    if clauses and all(clause.kind == "apology" for clause in clauses):
        return Finding("it only apologises", clauses[0].text)
    return None


def _left(clauses: list[_Clause]) -> int:
    return sum(clause.words for clause in clauses if clause.kind == "content")


def _clauses(sentence: str) -> list[_Clause]:
    if sentence.rstrip("*_ )").endswith(tuple(MARKS.replace(";", ""))):
        return [_Clause(sentence, "question", _count(sentence))]
    parts = [part for part in _CLAUSE.split(sentence) if _WORD.search(part)]
    return [_Clause(part, _kind(part), _count(part)) for part in parts]


def _kind(clause: str) -> str:
    plain = _QUOTED.sub(" quoted ", clause).lower()
    if DOES_NOT_KNOW.search(plain):
        return "phrase"
    if APOLOGY.search(plain):
        return "apology"
    return "offer" if OFFER.search(plain) else "content"


def _count(text: str) -> int:
    """Return the number of words; where a script sets no spaces, two letters count as one."""
    return sum(1 for _ in _WORD.finditer(text))
