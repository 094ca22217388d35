"""The phrases of :mod:`germane.scorers.refusals.rules`: several languages, kept in ``phrases.txt``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

LEAST = 2
"""Characters. A shorter word is in most texts anyway."""
_ITEM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?[:!=])?|[?*+]\??|\{\d*,?\d*\}\??|.", re.DOTALL)
"""An escape, a class, how a group begins, how often, or a character."""
Words = frozenset[str]
_NONE: Words = frozenset()


class AnyOf:
    """Whether one of many expressions is found in a text, as ``re.search("first|second|...")`` would tell.

    One expression of many alternatives is tried alternative by alternative at each character of the text. But most of
    them need certain words, and those are looked for in a fraction of the time.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        """``expressions`` have no flags, no references to groups, and look ahead only.

        Raises:
            ValueError: one has some.
        """
        self._expressions = [(words_needed(each), re.compile(each)) for each in expressions]
        self._words = frozenset().union(*(words for words, _ in self._expressions))
        self._plain = frozenset(word for word in self._words if word.isascii())

    def search(self, text: str) -> bool:
        """Return whether one of them is found."""
        there = {word for word in (self._plain if text.isascii() else self._words) if word in text}
        return any(
            expression.search(text) is not None
            for words, expression in self._expressions
            if not (words and words.isdisjoint(there))
        )


def words_needed(expression: str) -> Words:
    """Return words of which every match holds at least one; none where that is not easily seen."""
    return _Reader(_ITEM.findall(expression)).alternatives()


class _Reader:
    """Reads an expression item by item."""

    def __init__(self, items: list[str]) -> None:
        self._items = items[::-1]

    def alternatives(self) -> Words:
        """Read until the group ends. A match needs what one of its alternatives does: each must need something."""
        found = [self._sequence()]
        while self._items and self._items.pop() == "|":
            found.append(self._sequence())
        return frozenset().union(*found) if all(found) else _NONE

    def _sequence(self) -> Words:
        """Read one alternative, and return the most telling of what it needs."""
        needed, run = [_NONE], ""
        while self._items and self._items[-1] not in ("|", ")"):
            item = self._items.pop()
            if len(item) == 1 and (item.isalnum() or item in " '") and not self._may_lack():
                run += item
                continue
            needed.append(_word(run))
            run = ""
            if item.startswith("("):
                needed.append(self._group(item))
        return max(*needed, _word(run), key=_tells)

    def _group(self, opening: str) -> Words:
        if opening == "(" and self._items[-1][0] == "?":
            raise ValueError("only plain groups and looking ahead are read")
        words = self.alternatives()
        return _NONE if opening in ("(?!", "(?=") or self._may_lack() else words

    def _may_lack(self) -> bool:
        """Return whether what stands before may be left out."""
        return bool(self._items) and (self._items[-1][0] in "?*" or self._items[-1].startswith(("{0", "{,")))


def _word(run: str) -> Words:
    return frozenset({run}) if len(run) >= LEAST else _NONE


def _tells(words: Words) -> tuple[int, int]:
    """Return how much words tell: the longer the shortest of them, and the fewer they are, the more."""
    return min(map(len, words), default=0), -len(words)


TEXT = (files("germane.scorers.refusals") / "phrases.txt").read_text(encoding="utf-8")


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section, with named parts put in their places."""
    parts: dict[str, str] = {}
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, defines, expression = line.partition(" := ")
        if defines:
            parts[name] = expression
        elif line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        else:
            current.append(re.sub(r"<(\w+)>", lambda place: parts[place[1]], line))
    return sections


_SECTIONS = _sections(TEXT)


def _any_of(section: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(_SECTIONS[section])}){after}")


DOES_NOT_KNOW = AnyOf(_SECTIONS["does not know"])
"""Somebody does not know, will not say, or found nothing in the sources."""

APOLOGY = _any_of(
    "apology",
    r"^\W*",
    r"(?: (?:about|for) (?:that|this|the (?:confusion|inconvenience|trouble)|any (?:inconvenience|confusion)))?\W*$",
)
"""A clause that only apologises."""

OFFER = _any_of("offer", r"\b")
"""A clause that offers help or sends the reader elsewhere: it counts neither for nor against."""

COURTESY = _any_of("courtesy", r"\b")
"""A closing question that only asks whether more help is wanted."""

MEANING = _any_of("what was meant", r"\b")
"""A question about what was meant."""

WHOLE_ANSWERS = frozenset(_SECTIONS["whole answers"])
"""Answers that say nothing more than this."""
