"""How the tables came to be what they are; :mod:`germane.storage.db.migrate` runs it."""

from __future__ import annotations
