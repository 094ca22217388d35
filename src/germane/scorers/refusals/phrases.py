"""Regular expressions of refusals and related phrases in several languages, loaded from ``phrases.txt``."""

from __future__ import annotations

import re
from importlib.resources import files

PHRASES_TEXT = (files("germane.scorers.refusals") / "phrases.txt").read_text(encoding="utf-8")


def load_sections(text: str) -> dict[str, list[str]]:
    """Return the expressions of each section, with named parts substituted."""
    parts: dict[str, str] = {}
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, is_definition, expression = line.partition(" := ")
        if is_definition:
            parts[name] = expression
        elif line.startswith("[") and line.endswith("]"):
            section = sections.setdefault(line[1:-1], [])
        else:
            section.append(re.sub(r"<(\w+)>", lambda part: parts[part[1]], line))
    return sections


def compile_any(expressions: list[str]) -> re.Pattern[str]:
    r"""Compile one alternation of all expressions.

    The leading ``\b`` of most expressions is factored out, so that they are only tried where a word starts or ends.
    """
    at_boundary = [f"(?:{each[2:]})" for each in expressions if each.startswith(r"\b")]
    others = [each for each in expressions if not each.startswith(r"\b")]
    return re.compile("|".join([rf"\b(?:{'|'.join(at_boundary)})"] * bool(at_boundary) + others))


_SECTIONS = load_sections(PHRASES_TEXT)

DOES_NOT_KNOW = compile_any(_SECTIONS["does not know"])
"""The speaker does not know or refuses, or the sources do not say."""

APOLOGY = re.compile(
    rf"^\W*(?:{'|'.join(_SECTIONS['apology'])})"
    r"(?: (?:about|for) (?:that|this|the (?:confusion|inconvenience|trouble)|any (?:inconvenience|confusion)))?\W*$"
)
"""A clause that only apologizes."""

OFFER = re.compile(rf"\b(?:{'|'.join(_SECTIONS['offer'])})")
"""A clause that offers help or refers the reader to somebody. It counts neither for nor against."""

COURTESY = re.compile(rf"\b(?:{'|'.join(_SECTIONS['courtesy'])})")
"""A closing question whether more help is wanted."""

MEANING = re.compile(rf"\b(?:{'|'.join(_SECTIONS['what was meant'])})")
"""A question about what was meant."""

WHOLE_ANSWERS = frozenset(_SECTIONS["whole answers"])
"""Answers that say nothing else."""
