"""Adds tables for saved views, watched and unreadable traces, received spans, requests to be forwarded, runs over
history, and archived days.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the tables and indexes."""
    json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    op.create_table(
        "saved_view",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.Text()),
    )
    op.create_table(
        "watched_trace",
        sa.Column("hour", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "received_trace",
        sa.Column("trace_id", sa.Text(), primary_key=True),
        sa.Column("due_at", sa.Float()),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("wait", sa.Float(), nullable=False),
        sa.Column("spans", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("finished_at", sa.Float()),
        sa.Column("span_keys", sa.LargeBinary()),
    )
    for column in ("due_at", "finished_at"):
        where = sa.text(f"{column} IS NOT NULL")
        name = f"ix_received_trace_{column}"
        op.create_index(name, "received_trace", [column], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "received_span",
        sa.Column("trace_id", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("is_log", sa.Boolean(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "unreadable_trace",
        sa.Column("trace_id", sa.Text(), primary_key=True),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sampled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("spans", json, nullable=False),
        sa.Column("spans_omitted", sa.Integer(), nullable=False),
    )
    op.create_index("ix_unreadable_trace_sampled_at", "unreadable_trace", ["sampled_at"])
    op.create_index("ix_unreadable_trace_reason", "unreadable_trace", ["service", "scope", "reason", "sampled_at"])
    op.create_table(
        "forwarded_request",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("signal", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("trace_id", sa.Text()),
        sa.Column("span_id", sa.Text()),
        sa.Column("exchange_id", sa.Text()),
        sa.Column("attributes", json),
    )
    op.create_index("ix_forwarded_request_due_at", "forwarded_request", ["due_at", "size"])
    op.create_table(
        "history_run",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("selection", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("partition_size", sa.Integer(), nullable=False),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.Column("exchanges", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "partition",
        sa.Column("run_id", sa.Text(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_id", sa.Text(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_id", sa.Text(), nullable=False),
        sa.Column("exchanges", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("error", sa.Text()),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float()),
        sa.Column("checksum", sa.Text(), nullable=False),
        sa.Column("remaining", json),
    )
    op.create_table(
        "archived_day",
        sa.Column("day", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("removed_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("manifest", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("dimensions", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("has_stale_files", sa.Boolean(), nullable=False),
        sa.Column("has_lowest", sa.Boolean()),
        sa.Column("labels", sa.BigInteger()),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verified_at", sa.DateTime(timezone=True)),
        sa.Column("removed_at", sa.DateTime(timezone=True)),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "archived_lowest",
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("day", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_exchange_trace_id", "exchange", ["trace_id"])
    for name, columns in (("span", ["trace_id", "span_id"]), ("exchange_id", ["exchange_id"])):
        where = sa.text(f"{columns[0]} IS NOT NULL")
        op.create_index(
            f"ix_forwarded_request_{name}",
            "forwarded_request",
            columns,
            unique=name == "span",
            sqlite_where=where,
            postgresql_where=where,
        )
