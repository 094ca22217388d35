"""Markdown tables and number formatting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from germane.agreement import BootstrapInterval
from labelled.figures import Line

HEAD = ("method", "groups", "scored / asked", "figure [95%]", "minus plain cosine", "minus best floor")

ABSENT = "n/a"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Pipes and line breaks in cells are escaped."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (head, *lines)]
    rows = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]])


def lines(found: Iterable[Line | None], *, cosine: str, floor: str) -> str:
    """Return the table of one slice's methods."""
    return table(HEAD, [_cells(line, cosine, floor) for line in found if line is not None])


def number(value: float) -> str:
    """Format a figure with two decimals."""
    return ABSENT if math.isnan(value) else f"{value:.2f}"


def signed(value: float) -> str:
    """Format a difference with its sign."""
    text = number(value)
    return text if text.startswith(("-", ABSENT)) else f"+{text}"


def with_interval(found: BootstrapInterval) -> str:
    """Format a figure with its interval."""
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]"


def verdict(found: BootstrapInterval) -> str:
    """Format a difference with its interval, and "better" or "worse" if it is significant."""
    said = "" if not found.excludes_zero else " **better**" if found.value > 0 else " **worse**"
    return f"{signed(found.value)} [{signed(found.low)}, {signed(found.high)}]{said}"


def _cells(line: Line, cosine: str, floor: str) -> Sequence[str]:
    figure = with_interval(line.value)
    if line.absent_half is not None:
        figure += f"; missing as 0.5: {number(line.absent_half)}"
    if line.spread:
        figure += f"; runs {', '.join(map(number, line.spread))}"
    return (
        line.method,
        str(line.groups),
        f"{line.scored} / {line.asked}",
        figure,
        verdict(line.against[cosine]) if cosine in line.against else "",
        verdict(line.against[floor]) if floor in line.against else "",
    )
