"""SVG and HTML elements. Every text and attribute is escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

AttributeValue = str | int | float | None
_VOID_ELEMENTS: Final = frozenset({"path", "rect", "line", "circle"})
_INVALID_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, escaped or not."""
_BIDI_CONTROLS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the surrounding text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The root element of a chart."""

    width: int
    """Of the view box; the page scales it."""
    height: int
    title: str
    """The accessible name."""
    description: str
    """The text alternative."""
    name: str
    """Its id, unique on the page."""
    css_class: str = ""

    def render(self, *parts: Markup, data: str | None = None) -> Markup:
        """Return the SVG element with its parts."""
        id_ = safe_id(self.name)
        return tag(
            "svg",
            tag("title", self.title, id=f"{id_}-title"),
            tag("desc", self.description, id=f"{id_}-desc"),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            id=id_,
            class_=self.css_class or None,
            aria_labelledby=f"{id_}-title {id_}-desc",
            data_points=data,
        )


def tag(name: str, *content: str, **attributes: AttributeValue) -> Markup:
    """Return an element. Underscores in attribute names become hyphens; None omits an attribute."""
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(format_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID_ELEMENTS:
        return Markup(f"<{name}{given}/>")  # noqa: S704 - every part of it is escaped
    return Markup(f"<{name}{given}>{concat(*content)}</{name}>")  # noqa: S704 - every part of it is escaped


def concat(*content: str) -> Markup:
    """Concatenate content and escape what is not markup."""
    return Markup("").join(part if isinstance(part, Markup) else escape(clean(part)) for part in content)


def clean(text: str) -> str:
    """Replace characters that are invalid in XML, and remove those that change the text direction."""
    return _BIDI_CONTROLS.sub("", _INVALID_XML.sub("\ufffd", text))


def format_attribute(value: AttributeValue) -> str:
    """Return an attribute's text. Numbers are rounded to a tenth of a pixel."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return clean(str(value))


def safe_id(name: str) -> str:
    """Return a name as part of an id."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "chart"
