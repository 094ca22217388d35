"""Removes the rarity of a drop, which was measured once at the threshold and said nothing about the drop."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Drop the column."""
    op.drop_column("alert", "evidence")
