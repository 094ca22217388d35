"""Elements of SVG and HTML: every text and every attribute is escaped."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

_EMPTY: Final = frozenset({"path", "rect", "line", "circle"})
Value = str | int | float | None
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What may not stand in XML, escaped or not."""
_TURNS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What changes the direction of the letters beside it."""


def tag(name: str, *content: str, **attributes: Value) -> Markup:
    """Return an element; underscores of names become hyphens, and an attribute that is None is left out."""
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}/>")  # noqa: S704 - every part of it is escaped
    return Markup(f"<{name}{given}>{joined(*content)}</{name}>")  # noqa: S704 - every part of it is escaped


def joined(*content: str) -> Markup:
    """Return content one after another; what is not markup is escaped."""
    return Markup("").join(one if isinstance(one, Markup) else escape(clean(one)) for one in content)


def clean(text: str) -> str:
    """Return a name without what breaks XML or turns the letters around it."""
    return _TURNS.sub("", _NO_XML.sub("\ufffd", text))


def shown(value: Value) -> str:
    """Return an attribute's text; figures to a tenth of a pixel."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return clean(str(value))


def safe_id(name: str) -> str:
    """Return a name as a part of an id."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "chart"
