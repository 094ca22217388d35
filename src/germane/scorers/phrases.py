"""The phrases of :mod:`germane.scorers.noncommittal`: several languages, kept in ``phrases.txt``."""

from __future__ import annotations

import re
from importlib.resources import files

from germane.scorers.any_of import AnyOf

TEXT = (files("germane.scorers") / "phrases.txt").read_text(encoding="utf-8")


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
