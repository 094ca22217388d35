"""Migrations, one file per revision."""

from __future__ import annotations
