"""Adds tables for rollups, markers and alerting."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = sa.text("state <> 'resolved'")
DUE = sa.text("next_attempt_at IS NOT NULL")


def upgrade() -> None:
    """Replace the indexes, create the tables, and mark all hours for rollup."""
    _indexes()
    _rollup()
    _rollup_count()
    _rollup_proxy()
    _rollup_due()
    _rollup_dimension()
    _all_due()
    _mark()
    _arrival()
    _baseline()
    _detector()
    _alert()
    _alert_event()
    _notification()
    _silence()


def _rollup() -> None:
    op.create_table(
        "rollup",
        sa.Column("span", sa.Integer(), primary_key=True),
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("start", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("label", sa.Text(), primary_key=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("n_zero", sa.BigInteger(), nullable=False),
        sa.Column("w", sa.Float(), nullable=False),
        sa.Column("w_zero", sa.Float(), nullable=False),
        sa.Column("ww", sa.Float(), nullable=False),
        sa.Column("ww_zero", sa.Float(), nullable=False),
        sa.Column("wy", sa.Float(), nullable=False),
        sa.Column("wyy", sa.Float(), nullable=False),
        sa.Column("wwy", sa.Float(), nullable=False),
        sa.Column("wwyy", sa.Float(), nullable=False),
        sa.Column("w_low", sa.Float(), nullable=False),
        sa.Column("w_noncommittal", sa.Float(), nullable=False),
        sa.Column("n_x", sa.BigInteger(), nullable=False),
        sa.Column("w_x", sa.Float(), nullable=False),
        sa.Column("ww_x", sa.Float(), nullable=False),
        sa.Column("wx", sa.Float(), nullable=False),
        sa.Column("wy_x", sa.Float(), nullable=False),
        sa.Column("wxx", sa.Float(), nullable=False),
        sa.Column("wxy", sa.Float(), nullable=False),
        sa.Column("wyy_x", sa.Float(), nullable=False),
        sa.Column("wwx", sa.Float(), nullable=False),
        sa.Column("wwy_x", sa.Float(), nullable=False),
        sa.Column("wwxx", sa.Float(), nullable=False),
        sa.Column("wwxy", sa.Float(), nullable=False),
        sa.Column("latest", MOMENT, nullable=False),
        sa.Column("histogram", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )


def _rollup_count() -> None:
    op.create_table(
        "rollup_count",
        sa.Column("span", sa.Integer(), primary_key=True),
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("start", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("reason", sa.Text(), primary_key=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )


def _rollup_proxy() -> None:
    op.create_table(
        "rollup_proxy",
        sa.Column("span", sa.Integer(), primary_key=True),
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("start", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("v", sa.Float(), nullable=False),
        sa.Column("vv", sa.Float(), nullable=False),
        sa.Column("vx", sa.Float(), nullable=False),
        sa.Column("vxx", sa.Float(), nullable=False),
        sa.Column("vvx", sa.Float(), nullable=False),
        sa.Column("vvxx", sa.Float(), nullable=False),
        sqlite_with_rowid=False,
    )


def _rollup_due() -> None:
    op.create_table(
        "rollup_due",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("hour", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_rollup_due_hour", "rollup_due", ["hour"])


def _rollup_dimension() -> None:
    op.create_table("rollup_dimension", sa.Column("name", sa.Text(), primary_key=True), sqlite_with_rowid=False)


def _all_due() -> None:
    """Mark every hour that contains rows as due for a rollup. Trends read an hour's rows until it is rolled up."""
    for table, column, condition in HOURS:
        hour = _HOUR[op.get_bind().dialect.name].format(column=column)
        op.execute(f"INSERT INTO rollup_due (hour) SELECT DISTINCT {hour} FROM {table} WHERE {condition}")  # noqa: S608 - constants


HOURS = (("score", "started_at", "true"), ("tally", "minute", "true"), ("exchange", "started_at", "proxy IS NOT NULL"))
_HOUR = {
    "sqlite": "strftime('%Y-%m-%d %H:00:00.000000', {column})",
    "postgresql": "date_trunc('hour', {column} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'",
}


def _indexes() -> None:
    """Replace the indexes.

    The new indexes contain all score and proxy columns that trends read. They also speed up searches for a scorer's
    lowest scores in a window, and for exchanges by route.
    """
    op.drop_index("ix_score_started_at", "score")
    op.create_index("ix_score_started_at", "score", [*SCORE, "proxy"])
    where = sa.text("proxy IS NOT NULL")
    op.create_index("ix_exchange_proxy", "exchange", [*PROXY], sqlite_where=where, postgresql_where=where)
    op.drop_index("ix_score_value", "score")
    op.create_index("ix_score_value", "score", ["value", "scorer", "started_at", "route"])
    op.drop_index("ix_exchange_started_at", "exchange")
    op.create_index("ix_exchange_started_at", "exchange", ["started_at"])
    op.create_index("ix_exchange_route", "exchange", ["route", "started_at"])


SCORE = ("started_at", "scorer", "service", "route", "fingerprint", "value", "label", "sampling_probability")
PROXY = ("started_at", "service", "route", "proxy", "proxy_probability", "capture_probability")


def _mark() -> None:
    op.create_table(
        "mark",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("attributes", JSON, nullable=False),
    )
    op.create_index("ix_mark_at", "mark", ["at"])


def _arrival() -> None:
    op.create_table(
        "arrival",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("zero", sa.Boolean(), nullable=False),
        sa.Column("arrived_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_arrival_exchange_id", "arrival", ["exchange_id"])


def _baseline() -> None:
    op.create_table(
        "baseline",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("mean", sa.Float()),
        sa.Column("deviation", sa.Float()),
        sa.Column("numbers", JSON, nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("service", "scorer", "fingerprint", "scope", "version", name="uq_baseline"),
    )
    op.create_index("ix_baseline_status", "baseline", ["status"])


def _detector() -> None:
    op.create_table(
        "detector",
        sa.Column("rule", sa.Text(), primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("baseline_id", sa.BigInteger(), nullable=False),
        sa.Column("state", JSON, nullable=False),
        sa.Column("log_evidence", sa.Float()),
        sa.Column("seen_at", MOMENT),
        sa.Column("row_version", sa.BigInteger(), nullable=False),
    )


def _alert() -> None:
    op.create_table(
        "alert",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text()),
        sa.Column("value", sa.Float()),
        sa.Column("threshold", sa.Float()),
        sa.Column("window", sa.Float()),
        sa.Column("evidence", sa.Float()),
        sa.Column("onset", MOMENT),
        sa.Column("body", JSON, nullable=False),
        sa.Column("starts_at", MOMENT, nullable=False),
        sa.Column("fired_at", MOMENT),
        sa.Column("resolved_at", MOMENT),
        sa.Column("evaluated_at", MOMENT, nullable=False),
        sa.Column("notified_at", MOMENT),
        sa.Column("acknowledged_at", MOMENT),
        sa.Column("acknowledged_by", sa.Text()),
        sa.Column("resolve_reason", sa.Text()),
    )
    op.create_index("ix_alert_starts_at", "alert", ["starts_at"])
    op.create_index("uq_alert_open", "alert", ["key"], unique=True, sqlite_where=OPEN, postgresql_where=OPEN)


def _alert_event() -> None:
    op.create_table(
        "alert_event",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("detail", JSON, nullable=False),
    )
    op.create_index("ix_alert_event_alert_id", "alert_event", ["alert_id"])


def _notification() -> None:
    op.create_table(
        "notification",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("event_ids", JSON, nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", MOMENT),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("http_status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("settled_at", MOMENT),
    )
    op.create_index("ix_notification_created_at", "notification", ["created_at"])
    op.create_index("ix_notification_due", "notification", ["next_attempt_at"], sqlite_where=DUE, postgresql_where=DUE)


def _silence() -> None:
    op.create_table(
        "silence",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("matchers", JSON, nullable=False),
        sa.Column("starts_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Text()),
        sa.Column("comment", sa.Text()),
    )
    op.create_index("ix_silence_ends_at", "silence", ["ends_at"])
