"""The database layer: engine, tables, migrations and row mapping."""

from __future__ import annotations
