"""Alembic migrations, which :mod:`germane.storage.db.migrate` runs."""

from __future__ import annotations
