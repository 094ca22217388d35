"""How verbs speak: one JSON object on stdout, or text that a terminal cannot be tricked with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from germane.sanitize import harmless as harmless

SCHEMA_VERSION = 1
COMPLETE = "_GERMANE_COMPLETE"
"""The variable by which a shell asks what it may complete, however the command is started."""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""Seconds of what a span may be given in."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
database = click.option("--database", metavar="URL", help="Database, when it is not the one of the settings.")


class Since(click.ParamType[datetime | None]):
    """A time in the past: ``24h``, ``7d``, ``30m``, or a moment in ISO 8601, local unless it names a zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click passes what is converted already
        try:
            if value[-1:] in UNITS and value[:-1].isdecimal():
                return datetime.now(UTC) - timedelta(seconds=int(value[:-1]) * UNITS[value[-1]])
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a span such as 24h or 7d nor a moment in ISO 8601", param, ctx)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one object with the version of its shape."""
    click.echo(dumped(content))


def dumped(content: Mapping[str, Any]) -> str:
    """Return one object of JSON, on one line, with the version of its shape."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, default=_plain, allow_nan=False)


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns; all but the first are aligned to the right. Some letters take two columns, others none."""
    from rich.cells import cell_len

    widths = [max(cell_len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    for row in [headings, *rows]:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            blank + cell if column else cell + blank
            for column, (cell, blank) in enumerate(zip(row, blanks, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())
