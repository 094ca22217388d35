"""The tables of germane 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0.1.0"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

ANSWERS = """
CREATE VIEW answers AS
SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model,
    exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer,
    exchange.status, scoring_task.scorer, COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint,
    scoring_task.state, scoring_task.reason,
    score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at,
    1.0 / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), 0) AS weight
FROM scoring_task
JOIN exchange ON exchange.id = scoring_task.exchange_id
LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer
    AND score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint)
"""


def upgrade() -> None:
    """Create the tables and the view."""
    create_exchanges()
    create_counts()
    create_alerting()
    create_running()
    create_received()
    create_deliveries()
    create_history()
    create_archive()
    op.execute(ANSWERS)


def create_exchanges() -> None:
    """Create the tables of exchanges, scoring tasks, scores, labels and markers."""
    op.create_table(
        "exchange",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("question", sa.Text()),
        sa.Column("answer", sa.Text()),
        sa.Column("contexts", JSON, nullable=False),
        sa.Column("history", JSON, nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("session", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.Column("attributes", JSON, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("duration", sa.Float(), nullable=False),
        sa.Column("sampling_key", sa.Float(), nullable=False),
        sa.Column("traced", sa.Boolean(), nullable=False),
        sa.Column("capture_probability", sa.Float(), nullable=False, server_default="1"),
        sa.Column("proxy", sa.Float()),
        sa.Column("proxy_probability", sa.Float()),
        sa.Column("sampling_probability", sa.Float()),
        sa.Column("sampling_reason", sa.Text()),
        sa.Column("erased_at", MOMENT),
        sa.Column("span_holder", sa.Text()),
    )
    partial_index("ix_exchange_candidate", "exchange", ["started_at"], "sampling_reason = 'candidate'")
    partial_index(
        "ix_exchange_proxy",
        "exchange",
        ["started_at", "service", "route", "proxy", "proxy_probability", "capture_probability"],
        "proxy IS NOT NULL",
    )
    op.create_index("ix_exchange_route", "exchange", ["route", "started_at"])
    op.create_index("ix_exchange_started_at", "exchange", ["started_at"])
    partial_index("ix_exchange_text", "exchange", ["started_at"], "erased_at IS NULL")
    partial_index("ix_exchange_unsampled", "exchange", ["started_at"], "sampling_reason IS NULL")
    op.create_table(
        "scoring_task",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("first_pending_at", MOMENT, nullable=False),
        sa.Column("due_at", MOMENT),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("scored_as", sa.Text()),
        sa.Column("retries", sa.Integer(), nullable=False, server_default="0"),
        sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_scoring_task"),
    )
    partial_index(
        "ix_scoring_task_candidate",
        "scoring_task",
        ["scorer", "fingerprint", "first_pending_at"],
        "state = 'pending' AND due_at IS NULL",
    )
    partial_index("ix_scoring_task_lease_owner", "scoring_task", ["lease_owner"], "lease_owner IS NOT NULL")
    partial_index(
        "ix_scoring_task_open",
        "scoring_task",
        ["scorer", "fingerprint", "due_at", "first_pending_at"],
        "due_at IS NOT NULL",
    )
    op.create_index("ix_scoring_task_state", "scoring_task", ["state", "reason"])
    op.create_table(
        "score",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("sampling_probability", sa.Float()),
        sa.Column("proxy", sa.Float()),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("label", sa.Text()),
        sa.Column("explanation", sa.Text()),
        sa.Column("details", JSON, nullable=False),
        sa.Column("judge", sa.Text()),
        sa.Column("embedder", sa.Text()),
        sa.Column("input_tokens", sa.BigInteger()),
        sa.Column("output_tokens", sa.BigInteger()),
        sa.Column("cost", sa.Float()),
        sa.Column("latency", sa.Float()),
        sa.Column("scored_at", MOMENT),
        sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_score"),
    )
    op.create_index(
        "ix_score_started_at",
        "score",
        ["started_at", "scorer", "service", "route", "fingerprint", "value", "label", "sampling_probability", "proxy"],
    )
    op.create_index("ix_score_value", "score", ["value", "scorer", "started_at", "route"])
    op.create_table(
        "feedback",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("comment", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("considered_at", MOMENT),
    )
    partial_index("ix_feedback_comment", "feedback", ["created_at"], "comment IS NOT NULL")
    op.create_index("ix_feedback_created_at", "feedback", ["created_at"])
    op.create_index("ix_feedback_exchange_id", "feedback", ["exchange_id"])
    partial_index("ix_feedback_unconsidered", "feedback", ["created_at"], "considered_at IS NULL")
    op.create_table(
        "marker",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("attributes", JSON, nullable=False),
    )
    op.create_index("ix_marker_at", "marker", ["at"])


def create_counts() -> None:
    """Create the tables of counts and sums."""
    op.create_table(
        "tally",
        sa.Column("minute", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("process", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("reason", sa.Text(), primary_key=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "watched_trace",
        sa.Column("hour", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("outcome", sa.Text(), primary_key=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
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
        sa.Column("sum_w", sa.Float(), nullable=False),
        sa.Column("sum_w_zero", sa.Float(), nullable=False),
        sa.Column("sum_w2", sa.Float(), nullable=False),
        sa.Column("sum_w2_zero", sa.Float(), nullable=False),
        sa.Column("sum_wy", sa.Float(), nullable=False),
        sa.Column("sum_wy2", sa.Float(), nullable=False),
        sa.Column("sum_w2y", sa.Float(), nullable=False),
        sa.Column("sum_w2y2", sa.Float(), nullable=False),
        sa.Column("sum_w_low", sa.Float(), nullable=False),
        sa.Column("sum_w_noncommittal", sa.Float(), nullable=False),
        sa.Column("n_with_x", sa.BigInteger(), nullable=False),
        sa.Column("sum_w_with_x", sa.Float(), nullable=False),
        sa.Column("sum_w2_with_x", sa.Float(), nullable=False),
        sa.Column("sum_wx", sa.Float(), nullable=False),
        sa.Column("sum_wy_with_x", sa.Float(), nullable=False),
        sa.Column("sum_wx2", sa.Float(), nullable=False),
        sa.Column("sum_wxy", sa.Float(), nullable=False),
        sa.Column("sum_wy2_with_x", sa.Float(), nullable=False),
        sa.Column("sum_w2x", sa.Float(), nullable=False),
        sa.Column("sum_w2y_with_x", sa.Float(), nullable=False),
        sa.Column("sum_w2x2", sa.Float(), nullable=False),
        sa.Column("sum_w2xy", sa.Float(), nullable=False),
        sa.Column("latest", MOMENT, nullable=False),
        sa.Column("histogram", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
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
    op.create_table(
        "rollup_proxy",
        sa.Column("span", sa.Integer(), primary_key=True),
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("start", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("sum_v", sa.Float(), nullable=False),
        sa.Column("sum_v2", sa.Float(), nullable=False),
        sa.Column("sum_vx", sa.Float(), nullable=False),
        sa.Column("sum_vx2", sa.Float(), nullable=False),
        sa.Column("sum_v2x", sa.Float(), nullable=False),
        sa.Column("sum_v2x2", sa.Float(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup_dirty_hour",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("hour", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_rollup_dirty_hour_hour", "rollup_dirty_hour", ["hour"])
    op.create_table(
        "rollup_dimension",
        sa.Column("name", sa.Text(), primary_key=True),
        sqlite_with_rowid=False,
    )


def create_alerting() -> None:
    """Create the tables of baselines, detectors, alerts and notifications."""
    op.create_table(
        "detector_input",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("is_zero", sa.Boolean(), nullable=False),
        sa.Column("arrived_at", MOMENT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_detector_input_exchange_id", "detector_input", ["exchange_id"])
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
        sa.Column("accepted_by", sa.Text()),
        sa.UniqueConstraint("service", "scorer", "fingerprint", "scope", "version", name="uq_baseline"),
    )
    op.create_index("ix_baseline_status", "baseline", ["status"])
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
    op.create_table(
        "alert",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text()),
        sa.Column("value", sa.Float()),
        sa.Column("threshold", sa.Float()),
        sa.Column("window", sa.Float()),
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
    partial_index("uq_alert_open", "alert", ["key"], "state <> 'resolved'", unique=True)
    op.create_table(
        "alert_event",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("alert_id", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("detail", JSON, nullable=False),
    )
    op.create_index("ix_alert_event_alert_id", "alert_event", ["alert_id"])
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


def create_running() -> None:
    """Create the tables of workers, leases and limits."""
    op.create_table(
        "lease",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("cursor", sa.Text()),
        sa.Column("renewed_at", MOMENT),
    )
    op.create_table(
        "rate_limit",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("arrival", sa.Float(), nullable=False),
        sa.Column("waited", sa.Float(), nullable=False),
        sa.Column("used_at", MOMENT, nullable=False),
    )
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
    op.create_table(
        "job",
        sa.Column("process", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("every", sa.Float()),
        sa.Column("runs", JSON, nullable=False),
    )
    op.create_table(
        "saved_view",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Text()),
    )
    op.create_table(
        "budget",
        sa.Column("day", sa.Text(), primary_key=True),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=False),
        sa.Column("selected", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "calibration",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("topic_floor", sa.Float(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
    )
    op.create_index("ix_calibration_made_at", "calibration", ["made_at"])


def create_received() -> None:
    """Create the tables of received spans and traces."""
    op.create_table(
        "received_trace",
        sa.Column("trace_id", sa.Text(), primary_key=True),
        sa.Column("due_at", sa.Float()),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("wait", sa.Float(), nullable=False),
        sa.Column("spans", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("finished_at", sa.Float()),
        sa.Column("span_keys", sa.LargeBinary()),
    )
    partial_index("ix_received_trace_due_at", "received_trace", ["due_at"], "due_at IS NOT NULL")
    partial_index("ix_received_trace_finished_at", "received_trace", ["finished_at"], "finished_at IS NOT NULL")
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
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("sampled_at", MOMENT, nullable=False),
        sa.Column("spans", JSON, nullable=False),
        sa.Column("spans_omitted", sa.Integer(), nullable=False),
    )
    op.create_index("ix_unreadable_trace_reason", "unreadable_trace", ["service", "scope", "reason", "sampled_at"])
    op.create_index("ix_unreadable_trace_sampled_at", "unreadable_trace", ["sampled_at"])


def create_deliveries() -> None:
    """Create the table of notifications and forwarded requests."""
    op.create_table(
        "delivery",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("order_keys", JSON, nullable=False, server_default="[]"),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("size", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("status", sa.Text(), nullable=False, server_default="waiting"),
        sa.Column("attempt", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("due_at", MOMENT),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("http_status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("settled_at", MOMENT),
        sa.Column("trace_id", sa.Text()),
        sa.Column("span_id", sa.Text()),
        sa.Column("exchange_id", sa.Text()),
        sa.Column("body", sa.LargeBinary()),
    )
    op.create_index("ix_delivery_created_at", "delivery", ["kind", "created_at"])
    partial_index("ix_delivery_exchange_id", "delivery", ["exchange_id"], "exchange_id IS NOT NULL")
    partial_index("ix_delivery_span", "delivery", ["trace_id", "span_id"], "trace_id IS NOT NULL", unique=True)
    partial_index("ix_delivery_waiting", "delivery", ["kind", "target", "created_at", "size"], "due_at IS NOT NULL")


def create_history() -> None:
    """Create the tables of runs over the history."""
    op.create_table(
        "history_run",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.Column("selection", JSON, nullable=False),
        sa.Column("partition_size", sa.Integer(), nullable=False),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.Column("exchanges", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
    )
    op.create_table(
        "partition",
        sa.Column("run_id", sa.Text(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("first_at", MOMENT, nullable=False),
        sa.Column("first_id", sa.Text(), nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.Column("last_id", sa.Text(), nullable=False),
        sa.Column("exchanges", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", MOMENT),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float()),
        sa.Column("checksum", sa.Text(), nullable=False),
        sa.Column("remaining", JSON),
    )


def create_archive() -> None:
    """Create the tables of archived days."""
    op.create_table(
        "archived_day",
        sa.Column("day", MOMENT, primary_key=True),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("removed_before", MOMENT, nullable=False),
        sa.Column("manifest", JSON, nullable=False),
        sa.Column("dimensions", JSON, nullable=False),
        sa.Column("has_stale_files", sa.Boolean(), nullable=False),
        sa.Column("has_lowest", sa.Boolean()),
        sa.Column("labels", sa.BigInteger()),
        sa.Column("written_at", MOMENT, nullable=False),
        sa.Column("verified_at", MOMENT),
        sa.Column("removed_at", MOMENT),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "archived_lowest",
        sa.Column("dimension", sa.Text(), primary_key=True),
        sa.Column("day", MOMENT, primary_key=True),
        sa.Column("service", sa.Text(), primary_key=True),
        sa.Column("route", sa.Text(), primary_key=True),
        sa.Column("scorer", sa.Text(), primary_key=True),
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )


def partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    """Create an index of the rows that satisfy a condition."""
    condition = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
