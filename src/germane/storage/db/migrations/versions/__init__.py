"""Migrations, one file per revision. Migrations cannot be undone: to return to an older version, restore a backup."""

from __future__ import annotations
