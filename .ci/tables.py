"""Writes src/germane/storage/db/tables.py, the tables for queries, from the SQLModel classes.

    python .ci/tables.py

A test fails if the file does not match the classes.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from sqlalchemy import Column, Table

from germane.storage.db.models import metadata
from germane.storage.db.tables import TYPES
from germane.storage.db.types import Key

PATH = Path(__file__).parents[1] / "src/germane/storage/db/tables.py"
START = "\nmetadata = MetaData()\n"
"""The text after which the file is written again."""
NAMES = {type(value): name for name, value in TYPES.items() if value is not Key}
SPACE = "\N{NO-BREAK SPACE}"


def render_column(column: Column[object]) -> str:
    """Return the description of a column, see ``parse_columns``, without a space at which a line may end."""
    name = "serial" if column.type is Key else NAMES[type(column.type)]
    option = " key" if column.primary_key else " null" if column.nullable else ""
    default = "" if column.server_default is None else f" = {column.server_default.arg}"
    return f"{column.name} {name}{option}{default}".replace(" ", SPACE)


def render_table(table: Table) -> str:
    """Return the statement that defines a table."""
    columns = ", ".join(map(render_column, table.columns))
    lines = [line.replace(SPACE, " ") for line in textwrap.wrap(columns, 112)]
    statement = f'{table.name} = _table("{table.name}", "{lines[0]}")\n'
    if len(lines) == 1 and len(statement) <= 121:
        return statement
    text = ' "\n    "'.join(lines)
    return f'{table.name} = _table(\n    "{table.name}",\n    "{text}",\n)\n'


def render() -> str:
    """Return the content of the file."""
    header, start, _ = PATH.read_text().partition(START)
    return header + start + "".join(map(render_table, metadata.tables.values()))


if __name__ == "__main__":
    PATH.write_text(render())
