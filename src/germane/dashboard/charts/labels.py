"""Labels that neither overlap nor run out of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from unicodedata import combining, east_asian_width

_NARROW: Final = 0.62
_WIDE: Final = 1.1
"""Width of a letter in parts of its height: more than most fonts take, for the visitor's is not known."""
GAP: Final = 8.0
"""Units between two labels, and half of it between a label and its line."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A label beside its line, on one of the rows over the plot."""

    text: str
    x: float
    anchor: Literal["start", "end"]
    row: int


def width_of(text: str, size: float) -> float:
    """Return about how wide a text is in letters of that size."""
    return sum(0.0 if combining(one) else _WIDE if _is_wide(one) else _NARROW for one in text) * size


def _is_wide(letter: str) -> bool:
    return east_asian_width(letter) in "WF" or letter > "\u2e80" or letter in "MW@%\u2014\u2026"


def fitted(text: str, width: float, size: float) -> str:
    """Return a text cut to a width."""
    if width_of(text, size) <= width:
        return text
    end = len(text)
    while end and width_of(f"{text[:end]}\u2026", size) > width:
        end -= 1
    return f"{text[:end].rstrip()}\u2026" if end else ""


def placed(
    wanted: Sequence[tuple[float, str]], left: float, right: float, *, rows: int, size: float
) -> list[Placed | None]:
    """Return where each label goes, in the order given; None where there is no room: its line stands alone.

    Args:
        wanted: Where the line lies, and the text.
        left: Where the room for labels begins.
        right: Its end.
        rows: How many lie one under another.
        size: Height of the letters.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    return [_place(x, text, left, right, taken, size) for x, text in wanted]


def _place(
    x: float, text: str, left: float, right: float, taken: list[list[tuple[float, float]]], size: float
) -> Placed | None:
    shown = fitted(text, (right - left) / 2 - GAP, size)
    width = width_of(shown, size)
    for row, spans in enumerate(taken):
        for begin in (x + GAP / 2, x - GAP / 2 - width):
            span, line = (begin - 1, begin + width + 1), (x - 1, x + 1)
            fits = shown and begin >= left and begin + width <= right and not _meets(span, spans)
            if fits and not any(_meets(line, below) for below in taken[row:]):
                spans.append(span)
                for below in taken[row:]:
                    below.append(line)
                return Placed(shown, begin, "start", row) if begin > x else Placed(shown, begin + width, "end", row)
    return None


def _meets(span: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(span[0] < end and begin < span[1] for begin, end in others)
