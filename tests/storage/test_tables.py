"""Queries use tables that are written from the SQLModel classes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import migrated_file

from germane.storage.db import models, tables


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


def test_reading_imports_neither_models_nor_the_other_dialect(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Opening a database and reading its trends imports no SQLModel, no ORM, and no dialect but its own."""
    file = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "germane.db")
    program = (
        "import sys\nfrom germane.storage import TrackingStore\n"
        f"store = TrackingStore('sqlite:///{file}')\n"
        "store.check()\n"
        "store.trends.coverage()\n"
        "heavy = {'alembic', 'numpy', 'sqlalchemy.orm', 'sqlalchemy.dialects.postgresql', 'sqlmodel'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "loaded:"
