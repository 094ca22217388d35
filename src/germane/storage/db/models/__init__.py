"""The database tables, as SQLModel classes that work with SQLite and PostgreSQL.

They define the schema. Queries use :mod:`germane.storage.db.tables`, which is written from them and is faster to
import. There are no foreign keys, because exchanges are written on a hot path, and related rows may arrive before them.
"""

from __future__ import annotations

from germane.storage.db.models import alerting, anchors, counts, exchanges, received, running
from germane.storage.db.models.base import Base

__all__ = ["alerting", "anchors", "counts", "exchanges", "metadata", "received", "running"]

metadata = Base.metadata
