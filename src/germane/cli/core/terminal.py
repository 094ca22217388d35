"""Capabilities of standard output, and fitting text to its width."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, Final

import click

DEFAULT_WIDTH: Final = 80
"""Columns if standard output is not a terminal."""
MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Terminal:
    """How text is displayed."""

    width: int = DEFAULT_WIDTH
    """Columns."""
    has_unicode: bool = False
    """Whether to use colors and Unicode drawing characters instead of plain ASCII."""
    is_interactive: bool = False
    """Whether output goes to a terminal: wrap long lines and fit tables to the width."""

    def style(self, text: str, **style: Any) -> str:
        """Style text with :func:`click.style` if the terminal supports it."""
        return click.style(text, **style) if self.has_unicode else text

    def wrap_line(self, line: str, indent: int) -> str:
        """Wrap a line to the width of an interactive terminal, indenting continuation lines by ``indent`` columns."""
        return "\n".join(wrap(line, self.width, " " * indent)) if self.is_interactive else line

    def symbol(self, unicode: str, ascii: str) -> str:  # noqa: A002 - names the alternative
        """Return the Unicode symbol if the terminal supports it, otherwise the ASCII one."""
        return unicode if self.has_unicode else ascii


def detect_terminal() -> Terminal:
    """Detect what standard output supports. Honors ``NO_COLOR`` (no-color.org) and ``TERM=dumb``."""
    if not sys.stdout.isatty():
        return Terminal()
    width = min(max(shutil.get_terminal_size().columns, MIN_WIDTH), MAX_WIDTH)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Terminal(width, has_unicode=encoding == "utf8" and not is_plain, is_interactive=True)


def fit(text: str, width: int) -> str:
    """Truncate or pad text to exactly ``width`` columns. Some characters take two columns, others none."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width or width <= 3:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 3) + "..."


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap text to lines of at most ``width`` columns, with ``indent`` before all lines but the first."""
    from rich.cells import chop_cells

    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return [part for line in lines for part in chop_cells(line, width)] or [""]


def open_in_browser(url: str) -> bool:
    """Open a URL in a graphical browser, if there is one. Text browsers would take over the terminal."""
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform not in {"darwin", "win32"} and not has_display:
        return False
    import webbrowser

    return webbrowser.open(url)
