"""Alembic migrations, run by :mod:`germane.storage.db.migrate`."""

from __future__ import annotations
