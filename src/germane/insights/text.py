"""How numbers, moments, names and captured text are written on a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from unicodedata import category
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from germane.insights.window import View

MINUS: Final = "\u2212"
_UNITS = (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 172_800), ("d", 86_400, float("inf")))
_REDACTED = re.compile(
    r"(?i:\[(?:redacted|removed|masked|hidden|erased)[^\]\n]{0,40}\])|\[[A-Z][A-Z0-9_ ]{2,30}\]|<[A-Z][A-Z_]{2,30}>"
    r"|\*{4,}|\u2588{2,}"
)
"""What redaction commonly leaves in place of what it took out."""
_DOTS = frozenset({"", ".", ".."})
"""Names of routes that a browser would take for a folder."""


def number(value: float | None, digits: int = 2) -> str:
    """Return "0.69"; a dash for what is not known, and never "-0.00"."""
    if value is None:
        return "\u2013"
    text = f"{abs(value):.{digits}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def signed(value: float | None, digits: int = 2) -> str:
    """Return "+0.03" or "\u22120.10"; nothing stands before a zero."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value > 0 and float(text) else text


def interval(ends: tuple[float, float] | None, digits: int = 2) -> str:
    """Return "0.64\u20130.75"; with a minus in it the word "to" stands between."""
    if ends is None:
        return "unknown"
    low, high = number(ends[0], digits), number(ends[1], digits)
    return f"{low} to {high}" if MINUS in low + high else f"{low}\u2013{high}"


def percent(share: float | None) -> str:
    """Return "12 %"; small shares with a digit more, so that few are not shown as none."""
    if share is None:
        return "\u2013"
    return f"{share * 100:.1f} %" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share * 100:.0f} %"


def count(value: int) -> str:
    """Return "12,345"."""
    return f"{value:,}"


def ago(moment: datetime, now: datetime) -> str:
    """Return "6 h ago", "in 3 min" or "now"."""
    passed = now - moment
    if abs(passed) < timedelta(seconds=1):
        return "now"
    return f"in {_length(-passed)}" if passed < timedelta() else f"{_length(passed)} ago"


def _length(passed: timedelta) -> str:
    seconds = passed.total_seconds()
    unit, size = next((unit, size) for unit, size, up_to in _UNITS if seconds < up_to)
    return f"{int(seconds // size)} {unit}"


def clock(moment: datetime, view: View | None = None) -> str:
    """Return "Fri 20 Nov 2026, 14:05 CET", in the visitor's zone."""
    local = moment.astimezone(None if view is None else view.zone)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}"


def exact(moment: datetime, view: View | None = None) -> str:
    """Return "2026-11-20 14:05:09 CET", in the visitor's zone."""
    return f"{moment.astimezone(None if view is None else view.zone):%Y-%m-%d %H:%M:%S %Z}"


def plain(name: str) -> str:
    """Return "Answer relevancy" for ``answer_relevancy``: the name of a scorer, a reason or a rule, as words."""
    words = name.replace("_", " ").strip() or name
    return words[:1].upper() + words[1:]


def cut(text: str | None, limit: int = 160) -> str:
    """Return the beginning of captured text in one line."""
    line = " ".join((text or "")[: 4 * limit].split())
    return line if len(line) <= limit and len(text or "") <= 4 * limit else line[: limit - 1].rstrip() + "\u2026"


def visible(text: str | None, otherwise: str = "(blank)") -> str:
    """Return a text; where nothing of it can be seen, so that nothing could be clicked, what is said otherwise."""
    return text if text and any(category(one)[0] not in "CZ" for one in text) else otherwise


def marked(text: str) -> Markup:
    """Return captured text, escaped, with what redaction left in it set apart."""
    parts, end = [], 0
    for found in _REDACTED.finditer(text):
        parts += [escape(text[end : found.start()]), _mark(found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _mark(left: str) -> Markup:
    return Markup('<mark class="redacted" title="redacted before it was kept">{}</mark>').format(left)


def route_path(name: str) -> str:
    """Return the path of a route's page, whatever the name has in it."""
    if name in _DOTS:
        return f"/r/?{urlencode({'name': name})}"
    return f"/r/{quote(name, safe='', errors='replace')}"


FILTERS: Final[Mapping[str, Any]] = {
    one.__name__: one
    for one in (number, signed, interval, percent, count, ago, clock, exact, plain, cut, visible, marked, route_path)
}
