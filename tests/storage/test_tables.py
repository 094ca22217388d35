"""Queries use tables that are written from the SQLModel classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from germane.storage.db import models, tables

REPOSITORY = Path(__file__).parents[2]


def test_tables_for_queries_match_the_models() -> None:
    """Both have the same tables, columns, types, primary keys and defaults. To update: python .ci/tables.py."""
    described = [
        {
            table.name: [
                (
                    column.name,
                    repr(column.type),
                    column.primary_key,
                    column.nullable,
                    getattr(column.server_default, "arg", None),
                )
                for column in table.columns
            ]
            for table in metadata.tables.values()
        }
        for metadata in (models.metadata, tables.metadata)
    ]

    assert described[0] == described[1]
    assert all(getattr(tables, name) is table for name, table in tables.metadata.tables.items())


def test_reading_imports_neither_models_nor_the_other_dialect(tmp_path: Path) -> None:
    """Opening a database and reading its trends imports no SQLModel, no ORM, and no dialect but its own."""
    program = (
        "import sys\nfrom germane.storage import TrackingStore\n"
        f"store = TrackingStore('sqlite:///{tmp_path}/germane.db')\n"
        "store.check() if len(sys.argv) > 1 else store.migrate()\n"
        "store.trends.coverage()\n"
        "heavy = {'alembic', 'numpy', 'sqlalchemy.orm', 'sqlalchemy.dialects.postgresql', 'sqlmodel'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))"
    )

    subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY)
    ended = subprocess.run([sys.executable, "-c", program, "again"], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "loaded:"
