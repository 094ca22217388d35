"""Writes src/germane/storage/db/tables.py, the tables for queries, from the SQLModel classes.

    python .ci/tables.py

A test fails if the file does not match the classes.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column

from germane.storage.db.models import metadata
from germane.storage.db.types import Key

PATH = Path(__file__).parents[1] / "src/germane/storage/db/tables.py"
HEADER = '''"""The tables for queries, without constraints and indexes. Written by .ci/tables.py; do not edit.

Building the SQLModel classes takes longer, and more memory, than a page or a report needs for everything else.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, MetaData, Table, Text

from germane.storage.db.types import Json, Key, UtcDateTime

metadata = MetaData()
'''


def type_name(column: Column[object]) -> str:
    """Return the expression for a column's type."""
    return "Key" if column.type is Key else type(column.type).__name__


def render() -> str:
    """Return the content of the file."""
    parts = [HEADER]
    for table in metadata.tables.values():
        parts.append(f'{table.name} = Table(\n    "{table.name}",\n    metadata,\n')
        for column in table.columns:
            options = ", primary_key=True" if column.primary_key else "" if column.nullable else ", nullable=False"
            if column.server_default is not None:
                options += f', server_default="{column.server_default.arg}"'
            parts.append(f'    Column("{column.name}", {type_name(column)}{options}),\n')
        parts.append(")\n")
    return "".join(parts)


if __name__ == "__main__":
    PATH.write_text(render())
