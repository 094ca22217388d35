"""Sanitization of untrusted, captured text for terminals, Markdown, CSV and databases, and formatting of counts.

Import the module to call functions with short names: ``sanitize.line(text)``.
"""

from __future__ import annotations

import os
import re
from typing import Final, overload

REPLACEMENT: Final = "\ufffd"
_ZERO_WIDTH_JOINER = "\u200d"
"""The only unprintable character that is kept, because it joins emoji."""
_MARKDOWN_SYNTAX = re.compile(r"([\\`*_{}\[\]<>#|!~&:$]|(?<=www)\.)", re.IGNORECASE)
"""Characters with a special meaning inside a Markdown line. ``:`` and ``www.`` create links."""
_FORMULA_PREFIXES = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""The first characters of a spreadsheet formula; the last four are full-width forms."""
_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202d\u202e]")
"""Terminal control characters and bidirectional overrides, except line breaks and tabs."""
_SECRET_VARIABLE = re.compile("HEADERS|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|DSN|DATABASE", re.IGNORECASE)
_SECRET_PARTS = re.compile(
    r"(?<=://)[^\s/@]+(?=@)|(?<=\?)[^\s'\"]+|\b(?:bearer|basic)\s+[^\s'\",;]+|\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{20,}",
    re.IGNORECASE,
)
"""User information and query of a URL, credentials of an Authorization header, and long keys of letters and digits."""
_MIN_SECRET_LENGTH = 5


def line(text: str | None, width: int = 200) -> str:
    """Return text as one line without control characters, truncated to ``width`` characters."""
    joined = " ".join((text or "").split())
    printable = "".join(
        character if character.isprintable() or character == _ZERO_WIDTH_JOINER else "\ufffd" for character in joined
    )
    return printable if len(printable) <= width else printable[: width - 1] + "\u2026"


def text(value: str) -> str:
    """Return multi-line text without control characters, so that it is safe to print to a terminal."""
    return _CONTROL_CHARACTERS.sub("\ufffd", value)


def markdown(text: str | None, width: int = 200) -> str:
    """Return text as one Markdown line without links, images, tags, mentions or table delimiters."""
    escaped = _MARKDOWN_SYNTAX.sub(r"\\\1", line(text, width)).replace("\\<", "&lt;").replace("\\&", "&amp;")
    return escaped.replace("@", "@\u200b")  # prevents mentions and email addresses


def hide_secrets(text: str) -> str:
    """Return text with secrets replaced: values of environment variables with secrets, parts of URLs, and keys."""
    values = [value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name)]
    secrets = {part for value in values for part in (value, *re.split(r"[\s,;=]+|%20", value))}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_LENGTH:
            text = text.replace(secret, "***")
    return _SECRET_PARTS.sub("***", text)


def csv_cell(value: str) -> str:
    """Return text for a CSV cell: no control characters, and nothing that a spreadsheet interprets as a formula.

    A leading apostrophe marks the cell as text, even if invisible characters precede the formula.
    """
    if value.isprintable() and value.lstrip()[:1] not in _FORMULA_PREFIXES:  # almost every cell
        return value
    cell = text(value)
    first = next((character for character in cell if character.isprintable() and not character.isspace()), "")
    return f"'{cell}" if first in _FORMULA_PREFIXES or cell.lstrip(" \n")[:1] in {"\t", "\r"} else cell


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun: "1 exchange", "2 exchanges"."""
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:d} {noun}{plural}"


@overload
def clean_text(text: str) -> str: ...
@overload
def clean_text(text: None) -> None: ...
def clean_text(text: str | None) -> str | None:
    """Replace NUL characters, which PostgreSQL rejects, and lone surrogates, which cannot be encoded, with U+FFFD."""
    if text is None:
        return None
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii() or is_encodable(text):
        return text
    # Joins surrogate pairs, and replaces lone surrogates.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_encodable(text: str) -> bool:
    """Return whether a text contains no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
