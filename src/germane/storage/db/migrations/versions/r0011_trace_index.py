"""Removes the index on ``exchange.trace_id``."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Drop the index. No query used it, and trace ids are random, so each insert changed another page."""
    op.drop_index("ix_exchange_trace_id", "exchange")
