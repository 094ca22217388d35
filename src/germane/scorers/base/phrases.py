"""Words and regular expressions in text files: the format of such files, and the sections of ``phrases.txt``."""

from __future__ import annotations

import re
from importlib.resources import files


def load_sections(text: str) -> dict[str, list[str]]:
    """Return the regular expressions by section name. Named parts are substituted."""
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


_SECTIONS = load_sections((files("germane.scorers.base") / "phrases.txt").read_text(encoding="utf-8"))


def words_in(section: str) -> frozenset[str]:
    """Return the words of a section of ``phrases.txt``."""
    return frozenset(" ".join(_SECTIONS[section]).split())


def any_of(section: str) -> str:
    """Return a regular expression that matches any expression of a section of ``phrases.txt``."""
    return "|".join(_SECTIONS[section])
