"""SVG and HTML elements with escaped text and attributes, and ticks and labels for chart axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cache
from typing import Final, Literal, NamedTuple
from unicodedata import combining, east_asian_width

from markupsafe import Markup, escape

AttributeValue = str | int | float | None
_VOID_ELEMENTS: Final = frozenset({"path", "rect", "line", "circle"})
_INVALID_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even if escaped."""
_BIDI_CONTROLS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the surrounding text."""
LABEL_GAP: Final = 8.0
"""Gap between labels, in view box units. The gap between a label and its line is half as wide."""
_NARROW_LETTER: Final = 0.62
_WIDE_LETTER: Final = 1.1
"""Letter widths relative to the font size. Larger than in most fonts, because the visitor's font is unknown."""
_HOUR_STEPS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720))
_DAY_STEPS: Final = (1, 2, 7, 14)
_MONTH_STEPS: Final = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The root element of a chart."""

    width: int
    """Width of the view box, which the page scales."""
    height: int
    title: str
    """The accessible name."""
    description: str
    """The text alternative."""
    name: str
    """Id of the chart, unique on the page."""
    css_class: str = ""
    has_links: bool = False

    def render(self, *parts: Markup, data: str | None = None, **attributes: AttributeValue) -> Markup:
        """Return the SVG element that contains ``parts``."""
        id_ = safe_id(self.name)
        return tag(
            "svg",
            tag("title", self.title, id=f"{id_}-title"),
            tag("desc", self.description, id=f"{id_}-desc"),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width} {self.height}",
            role="group" if self.has_links else "img",  # the content of an image has no roles
            id=id_,
            class_=self.css_class or None,
            aria_labelledby=f"{id_}-title {id_}-desc",
            data_points=data,
            **attributes,
        )


def tag(name: str, *content: str, **attributes: AttributeValue) -> Markup:
    """Return an element. Underscores in attribute names become hyphens; None omits an attribute."""
    attribute_text = "".join(
        [
            f' {_attribute_name(key)}="{escape(clean(value)) if isinstance(value, str) else format_number(value)}"'
            for key, value in attributes.items()
            if value is not None
        ]
    )
    if name in _VOID_ELEMENTS:
        return Markup(f"<{name}{attribute_text}/>")  # noqa: S704 - all parts are escaped
    return Markup(f"<{name}{attribute_text}>{concat(*content)}</{name}>")  # noqa: S704 - all parts are escaped


@cache
def _attribute_name(key: str) -> str:
    return key.strip("_").replace("_", "-")


def concat(*content: str) -> Markup:
    """Concatenate content, escaping everything except markup."""
    parts = [part if isinstance(part, Markup) else escape(clean(part)) for part in content]
    return Markup("".join(parts))  # noqa: S704 - all parts are escaped


def clean(text: str) -> str:
    """Replace characters that are invalid in XML, and remove characters that change the text direction."""
    if text.isascii() and text.isprintable():  # nearly always
        return text
    return _BIDI_CONTROLS.sub("", _INVALID_XML.sub("\ufffd", text))


def format_number(value: float) -> str:
    """Return a number as text, rounded to one decimal place."""
    return f"{value:.1f}".removesuffix(".0")


def safe_id(name: str) -> str:
    """Return a name in which characters that are unsafe in an id are replaced by hyphens."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "chart"


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """A label next to its line, in one of the rows above the plot."""

    text: str
    x: float
    anchor: Literal["start", "end"]
    row: int


class Tick(NamedTuple):
    """A point in time on the axis, its label, and whether the label is a date."""

    at: datetime
    label: str
    is_day: bool


def text_width(text: str, size: float) -> float:
    """Return the estimated width of text in the given font size."""
    width = 0.0
    for letter in text:
        is_wide = east_asian_width(letter) in "WF" or letter > "\u2e80" or letter in "MW@%\u2014\u2026"
        width += 0.0 if combining(letter) else _WIDE_LETTER if is_wide else _NARROW_LETTER
    return width * size


def fit_text(text: str, width: float, size: float) -> str:
    """Return text truncated to a width."""
    if text_width(text, size) <= width:
        return text
    end = len(text)
    while end and text_width(f"{text[:end]}\u2026", size) > width:
        end -= 1
    return f"{text[:end].rstrip()}\u2026" if end else ""


def place_labels(
    wanted: Sequence[tuple[float, str]], left: float, right: float, *, rows: int, size: float
) -> list[PlacedLabel | None]:
    """Place labels in the given order. A label that does not fit becomes None.

    ``wanted`` has the x coordinate of each line, and the text of its label.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    return [_place_label(x, text, left, right, taken, size) for x, text in wanted]


def _place_label(
    x: float, text: str, left: float, right: float, taken: list[list[tuple[float, float]]], size: float
) -> PlacedLabel | None:
    shown = fit_text(text, (right - left) / 2 - LABEL_GAP, size)
    width = text_width(shown, size)
    for row, spans in enumerate(taken):
        for begin in (x + LABEL_GAP / 2, x - LABEL_GAP / 2 - width):
            span, line = (begin - 1, begin + width + 1), (x - 1, x + 1)
            fits = shown and begin >= left and begin + width <= right and not _overlaps(span, spans)
            if fits and not any(_overlaps(line, below) for below in taken[row:]):
                spans.append(span)
                for below in taken[row:]:
                    below.append(line)
                is_right = begin > x
                return PlacedLabel(shown, begin if is_right else begin + width, "start" if is_right else "end", row)
    return None


def _overlaps(span: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(span[0] < end and begin < span[1] for begin, end in others)


def axis_ticks(since: datetime, until: datetime, zone: tzinfo | None, limit: int) -> list[Tick]:
    """Return at most about ``limit`` ticks, at round times, days or months in the time zone."""
    # Use naive wall-clock times, so that steps stay on round times when clocks change.
    first, last = (moment.astimezone(zone).replace(tzinfo=None) for moment in (since, until))
    walls, label = _wall_times(first, last, limit)
    ticks: list[Tick] = []
    for wall in walls:
        at = wall.astimezone() if zone is None else wall.replace(tzinfo=zone)
        # When clocks are set back, a later wall-clock time may not be later in absolute time.
        if since <= at <= until and (not ticks or at.timestamp() > ticks[-1].at.timestamp()):
            ticks.append(Tick(at, label(wall), label is not _format_hour or wall == _midnight(wall)))
    return ticks


def _wall_times(first: datetime, last: datetime, limit: int) -> tuple[Iterator[datetime], Callable[[datetime], str]]:
    """Return wall-clock times and the format of their labels."""
    length, midnight = last - first, _midnight(first)
    for step in _HOUR_STEPS:
        if length <= step * limit:
            return _every(step, midnight + step * ((first - midnight) // step), last), _format_hour
    for days in _DAY_STEPS:
        if length <= timedelta(days=days) * limit:
            # Weeks start on Monday, because ordinal 1 is a Monday.
            monday = midnight - timedelta(days=(midnight.toordinal() - 1) % days)
            return _every(timedelta(days=days), monday, last), _format_day
    months = next(
        (months for months in _MONTH_STEPS if length <= timedelta(days=30 * months) * limit), _MONTH_STEPS[-1]
    )
    begin = (first.year * 12 + first.month - 1) // months * months
    starts = (
        midnight.replace(year=number // 12, month=number % 12 + 1, day=1)
        for number in range(begin, last.year * 12 + last.month, months)
        if number >= 12
    )
    return starts, lambda moment: f"{moment:%b %Y}"


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _every(step: timedelta, moment: datetime, last: datetime) -> Iterator[datetime]:
    while moment <= last:
        yield moment
        moment += step


def _format_hour(moment: datetime) -> str:
    return _format_day(moment) if moment == _midnight(moment) else f"{moment:%H:%M}"


def _format_day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"
