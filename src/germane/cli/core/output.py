"""Command output: exit codes, common options, JSON and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import click

from germane.cli.core.terminal import Terminal, detect_terminal

EXIT_ERROR: Final = 1
EXIT_THRESHOLD_VIOLATED: Final = 3
EXIT_CHECK_FAILED: Final = 4
EXIT_NOT_ENOUGH_DATA: Final = 5
EXIT_INTERRUPTED: Final = 130
SCHEMA_VERSION: Final = 1
UNLIMITED_WIDTH: Final = 100_000
"""Columns of a table that is not printed to a terminal."""
COMPLETION_VARIABLE: Final = "_GERMANE_COMPLETE"
"""Environment variable that a shell sets to request completions."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
database = click.option("--database", metavar="URL", help="Database URL. Defaults to the `database` setting.")


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on one line, with the schema version."""
    click.echo(format_json(content))


def format_json(content: Mapping[str, Any]) -> str:
    """Return one JSON object on one line, with the schema version."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, default=_to_json, allow_nan=False)


def _to_json(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, as :func:`format_table` formats it."""
    click.echo("\n".join(format_table(headings, rows, detect_terminal())))


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], terminal: Terminal) -> list[str]:
    """Format a table whose columns, except the first, are right-aligned.

    On an interactive terminal, long cells wrap to fit its width. Elsewhere, each row is one line.
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
