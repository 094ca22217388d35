"""Sentence templates, and the format of amounts.

In a template, ``{name}`` is replaced by a value, and ``[...]`` is omitted if one of its values is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Final

_OPTIONAL_PART: Final = re.compile(r"\[([^\[\]]*)\]")


def select_parts(template: str, values: Mapping[str, object]) -> str:
    """Return a template without brackets, and without the parts in brackets for which a value is None or not given."""

    def keep(part: re.Match[str]) -> str:
        names = [name for _, name, _, _ in Formatter().parse(part[1]) if name]
        return "" if any(values.get(name) is None for name in names) else part[1]

    while (reduced := _OPTIONAL_PART.sub(keep, template)) != template:  # inner parts first
        template = reduced
    return template


def fill(template: str, /, **values: object) -> str:
    """Return the sentence of a template. Braces and brackets in values are kept as text.

    Raises:
        KeyError: A value outside brackets is not given.
    """
    return select_parts(template, values).format_map(values)


def fill_if_known(template: str, /, **values: object) -> str | None:
    """Return the sentence of a template, or None if a value outside brackets is missing."""
    return fill(f"[{template}]", **values) or None


def format_amount(value: float) -> str:
    """Format a number of requests, tokens or US dollars for display, such as "2,000,000" or "0.0034"."""
    return f"{value:,.4f}".rstrip("0").rstrip(".")
