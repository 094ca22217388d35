"""Where text goes: a terminal that a person looks at, or a file, a pipe, a log."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, Final

import click

_WIDTH: Final = 80
"""Columns where nobody looks."""
_NARROWEST, _WIDEST = 60, 120


@dataclass(frozen=True, slots=True)
class Terminal:
    """How text may look."""

    width: int = _WIDTH
    """Columns."""
    fancy: bool = False
    """Whether lines may be drawn and coloured; else plain ASCII."""
    watched: bool = False
    """Whether a person looks: long lines are folded, and tables made to fit."""

    def styled(self, text: str, **style: Any) -> str:
        """Return text in a colour, or as it is."""
        return click.style(text, **style) if self.fancy else text

    def folded(self, line: str, indent: int) -> str:
        """Return a line as several, where a person looks and it is too long; ``indent`` is of all but the first."""
        if not self.watched:
            return line
        first, *others = wrapped(line, self.width, " " * indent)
        return "\n".join([first, *others])

    def chosen(self, drawn: str, plain: str) -> str:
        """Return what is drawn, or what stands for it in ASCII."""
        return drawn if self.fancy else plain


def terminal() -> Terminal:
    """Return what standard output is: fancy is only a terminal that knows UTF-8, without NO_COLOR (no-color.org)."""
    if not sys.stdout.isatty():
        return Terminal()
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Terminal(width, fancy=encoding == "utf8" and not plain, watched=True)


def fitted(text: str, width: int) -> str:
    """Return text of exactly so many columns, cut or filled up: some letters take two columns, others none."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 3) + "..." if width > 3 else set_cell_size(text, width)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return text in lines of at most so many columns; ``indent`` stands before all but the first."""
    from rich.cells import chop_cells

    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return [part for line in lines for part in chop_cells(line, width)] or [""]
