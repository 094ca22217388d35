"""Adds the tables ``worker`` and ``budget``, and columns for sampling probabilities, erasure and retries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

MOMENT = sa.DateTime(timezone=True)
OPEN = "not_before IS NOT NULL"
CANDIDATE = "state = 'pending' AND not_before IS NULL"
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the tables, columns and indexes."""
    op.add_column("exchange", sa.Column("capture_probability", sa.Float(), nullable=False, server_default="1"))
    op.add_column("exchange", sa.Column("proxy_probability", sa.Float()))
    op.add_column("exchange", sa.Column("erased_at", MOMENT))
    _partial("ix_exchange_candidate", "exchange", "started_at", "sampling_reason = 'candidate'")
    _partial("ix_exchange_text", "exchange", "started_at", "erased_at IS NULL")
    _scoring_task()
    op.add_column("score", sa.Column("proxy", sa.Float()))
    op.add_column("lease", sa.Column("cursor", sa.Text()))
    op.add_column("lease", sa.Column("renewed_at", MOMENT))
    op.add_column("feedback", sa.Column("considered_at", MOMENT))
    _partial("ix_feedback_unconsidered", "feedback", "created_at", "considered_at IS NULL")
    _partial("ix_feedback_comment", "feedback", "created_at", "comment IS NOT NULL")
    _worker()
    _budget()


def _partial(name: str, table: str, columns: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns.split(), sqlite_where=where, postgresql_where=where)


def _scoring_task() -> None:
    op.drop_index("ix_scoring_task_open", "scoring_task")
    op.add_column("scoring_task", sa.Column("tries", sa.Integer(), nullable=False, server_default="0"))
    _partial("ix_scoring_task_open", "scoring_task", "scorer fingerprint not_before first_pending_at", OPEN)
    _partial("ix_scoring_task_candidate", "scoring_task", "scorer fingerprint first_pending_at", CANDIDATE)


def _worker() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("scorers", JSON, nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
    )
    op.create_index("ix_worker_seen_at", "worker", ["seen_at"])


def _budget() -> None:
    op.create_table(
        "budget",
        sa.Column("day", sa.Text(), primary_key=True),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=False),
        sa.Column("picked", sa.BigInteger(), nullable=False),
    )
