"""Migrations, one file per revision. They cannot be undone: to return to an older version, restore a backup."""

from __future__ import annotations
