"""What is shown: captured text, which is hostile wherever it appears, made harmless; and counts."""

from __future__ import annotations

import re

_JOINER = "\u200d"
"""Holds emoji together."""
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|!~&:$]|(?<=www)\.)", re.IGNORECASE)
"""What means something in Markdown in the middle of a line; ``:`` and ``www.`` make links."""


def harmless(text: str | None, width: int = 200) -> str:
    """Return captured text for a terminal: one line, no control characters, cut."""
    line = " ".join((text or "").split())
    shown = "".join(one if one.isprintable() or one == _JOINER else "\ufffd" for one in line)
    return shown if len(shown) <= width else shown[: width - 1] + "\u2026"


def counted(count: int, noun: str) -> str:
    """Return "1 exchange", "2 exchanges"."""
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:d} {noun}{plural}"


def markdown(text: str | None, width: int = 200) -> str:
    """Return captured text for Markdown: one line in which nothing is a link, an image, a tag or the end of a cell."""
    escaped = _MARKS.sub(r"\\\1", harmless(text, width)).replace("\\<", "&lt;").replace("\\&", "&amp;")
    return escaped.replace("@", "@\u200b")  # names nobody, and is no address


_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet takes for the beginning of a formula, the last four in full width."""
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202d\u202e]")
"""What a terminal might obey, and what turns the direction of all letters; lines and tabs are left."""


def tame(text: str) -> str:
    """Return text of many lines without control characters: what is printed of it steers no terminal."""
    return _CONTROLS.sub("\ufffd", text)


def cell(text: str) -> str:
    """Return captured text for a cell of CSV: no control characters, and nothing that a spreadsheet reads as a formula.

    An apostrophe before it keeps it text, also where what is not seen comes first.
    """
    text = tame(text)
    first = next((one for one in text if one.isprintable() and not one.isspace()), "")
    return f"'{text}" if first in _FORMULA or text[:1] in {"\t", "\r"} else text
