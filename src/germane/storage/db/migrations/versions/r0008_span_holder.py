"""Adds the id of the process that holds an exchange's span. That process scores the exchange first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column. It is NULL for existing exchanges, so their spans are no longer delayed."""
    op.add_column("exchange", sa.Column("span_holder", sa.Text()))
