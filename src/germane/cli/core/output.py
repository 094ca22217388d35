"""Command output: exit codes, JSON, tables, and text that fits the terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from germane import records, sanitize

DEFAULT_WIDTH: Final = 80
"""Output width, in columns, if standard output is not a terminal."""
MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 120
EXIT_ERROR: Final = 1
EXIT_THRESHOLD_VIOLATED: Final = 3
EXIT_CHECK_FAILED: Final = 4
EXIT_NOT_ENOUGH_DATA: Final = 5
EXIT_INTERRUPTED: Final = 130
SCHEMA_VERSION: Final = 1
UNLIMITED_WIDTH: Final = 100_000
"""Width, in columns, of a table that is not printed to a terminal."""
COMPLETION_VARIABLE: Final = "_GERMANE_COMPLETE"
"""Environment variable that a shell sets to request completions."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The display capabilities of standard output."""

    width: int = DEFAULT_WIDTH
    """Width in columns."""
    has_unicode: bool = False
    """Whether to use colors and Unicode drawing characters instead of plain ASCII."""
    is_interactive: bool = False
    """Whether standard output is a terminal. If so, long lines are wrapped, and tables fit its width."""

    def style(self, text: str, **style: Any) -> str:
        """Style text with :func:`click.style` if the terminal supports it."""
        return click.style(text, **style) if self.has_unicode else text

    def wrap_line(self, line: str, indent: int) -> str:
        """Wrap a line to the width of an interactive terminal, indenting continuation lines by ``indent`` columns."""
        return "\n".join(wrap(line, self.width, " " * indent)) if self.is_interactive else line

    def symbol(self, unicode: str, ascii: str) -> str:  # noqa: A002 - shadows the built-in on purpose
        """Return the Unicode symbol if the terminal supports it, otherwise the ASCII one."""
        return unicode if self.has_unicode else ascii


def detect_terminal() -> Terminal:
    """Detect what standard output supports. Honors ``NO_COLOR`` (no-color.org) and ``TERM=dumb``."""
    if sys.stdout is None or not sys.stdout.isatty():  # None if the caller closed it
        return Terminal()
    width = min(max(shutil.get_terminal_size().columns, MIN_WIDTH), MAX_WIDTH)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Terminal(width, has_unicode=encoding == "utf8" and not is_plain, is_interactive=True)


def fit(text: str, width: int) -> str:
    """Truncate or pad text to exactly ``width`` columns.

    Wide characters take two columns, and combining characters none.
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width or width <= 3:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 3) + "..."


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap text, and return lines of at most ``width`` columns. All lines but the first start with ``indent``."""
    from rich.cells import chop_cells

    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return [part for line in lines for part in chop_cells(line, width)] or [""]


def open_in_browser(url: str) -> bool:
    """Open a URL in a graphical browser, and return whether that succeeded.

    Text browsers are not used, because they would take over the terminal.
    """
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform not in {"darwin", "win32"} and not has_display:
        return False
    import webbrowser

    return webbrowser.open(url)


def log_line(line: str) -> None:
    """Print a line about what a server or worker does to standard error."""
    click.echo(sanitize.line(line, 1000), err=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print ``content`` and the schema version as a JSON object on one line."""
    click.echo(format_json(content))


def format_json(content: Mapping[str, Any]) -> str:
    """Return ``content`` and the schema version as a JSON object on one line. Records become objects."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, default=records.encode, allow_nan=False)


def write_output(text: str, file: Path | None) -> None:
    """Write text to a file, or to standard output without one."""
    if file is None:
        click.echo(text, nl=False)
    else:
        file.write_text(text, encoding="utf-8", errors="replace")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table formatted by :func:`format_table`."""
    click.echo("\n".join(format_table(headings, rows, detect_terminal())))


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], terminal: Terminal) -> list[str]:
    """Return the lines of a table. All columns except the first are right-aligned.

    On an interactive terminal, long cells are wrapped to fit its width. Otherwise, each row is one line.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column, heading in enumerate(headings):
        table.add_column(
            Text(heading),
            justify="right" if column else "left",
            no_wrap=not terminal.is_interactive,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    width = terminal.width if terminal.is_interactive else UNLIMITED_WIDTH
    console = Console(width=width, color_system=None, force_terminal=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]
