"""Adds the ``rate_limit`` table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the ``rate_limit`` table."""
    op.create_table(
        "rate_limit",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("arrival", sa.Float(), nullable=False),
        sa.Column("waited", sa.Float(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
    )
