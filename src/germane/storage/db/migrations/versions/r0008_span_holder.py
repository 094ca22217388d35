"""Adds the process that delays an exchange's span, which scores the exchange before others may."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column. The spans of existing exchanges wait no longer."""
    op.add_column("exchange", sa.Column("span_holder", sa.Text()))
