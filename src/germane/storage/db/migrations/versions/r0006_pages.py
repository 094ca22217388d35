"""Adds the ``job`` table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the ``job`` table."""
    op.create_table(
        "job",
        sa.Column("process", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("every", sa.Float()),
        sa.Column("runs", JSON, nullable=False),
    )
