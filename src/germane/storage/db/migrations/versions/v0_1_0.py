"""The tables of germane 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from germane.storage.db.columns import parse_columns

revision = "0.1.0"
down_revision = None

TYPES = {
    "text": sa.Text(),
    "integer": sa.Integer(),
    "bigint": sa.BigInteger(),
    "float": sa.Float(),
    "boolean": sa.Boolean(),
    "bytes": sa.LargeBinary(),
    "time": sa.DateTime(timezone=True),
    "json": sa.JSON().with_variant(postgresql.JSONB(), "postgresql"),
    "serial": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
}
TABLES = {
    # Exchanges, scoring tasks, scores, labels, drawn answers and markers.
    "exchange": (
        "id text key, trace_id text, span_id text, service text, route text, question text null, answer text null, "
        "contexts json, history json, model text null, prompt_version text null, session text null, user text null, "
        "attributes json, status text, error text null, started_at time, duration float, sampling_key float, "
        "traced boolean, capture_probability float = 1, proxy float null, proxy_probability float null, "
        "sampling_probability float null, sampling_reason text null, erased_at time null, span_holder text null"
    ),
    "scoring_task": (
        "id serial key, exchange_id text, scorer text, fingerprint text, state text, reason text null, "
        "error text null, claims integer, first_pending_at time, due_at time null, lease_owner text null, "
        "scored_as text null, retries integer = 0"
    ),
    "score": (
        "id serial key, exchange_id text, scorer text, fingerprint text, service text, route text, started_at time, "
        "sampling_probability float null, proxy float null, value float, label text null, explanation text null, "
        "details json, judge text null, embedder text null, input_tokens bigint null, output_tokens bigint null, "
        "cost float null, latency float null, scored_at time null"
    ),
    "feedback": (
        "id text key, exchange_id text, score float, comment text null, user text null, created_at time, "
        "considered_at time null, wave text null"
    ),
    "label_draw": (
        "wave text key, exchange_id text key, scorer text, fingerprint text, since time, until time, service text, "
        "route text, probability float, drawn_at time, position integer, state text, settled_at time null, "
        "settled_by text null"
    ),
    "marker": "id text key, name text, service text, at time, attributes json",
    # Counts and rollups.
    "tally": (
        "minute time key, service text key, route text key, scorer text key, process text key, outcome text key, "
        "reason text key, count bigint"
    ),
    "watched_trace": "hour time key, service text key, scope text key, outcome text key, count bigint",
    "rollup": (
        "span integer key, dimension text key, start time key, service text key, route text key, scorer text key, "
        "fingerprint text key, label text key, n bigint, n_zero bigint, sum_w float, sum_w_zero float, sum_w2 float, "
        "sum_w2_zero float, sum_wy float, sum_wy2 float, sum_w2y float, sum_w2y2 float, sum_w_low float, "
        "sum_w_noncommittal float, n_with_x bigint, sum_w_with_x float, sum_w2_with_x float, sum_wx float, "
        "sum_wy_with_x float, sum_wx2 float, sum_wxy float, sum_wy2_with_x float, sum_w2x float, "
        "sum_w2y_with_x float, sum_w2x2 float, sum_w2xy float, latest time, histogram bytes"
    ),
    "rollup_count": (
        "span integer key, dimension text key, start time key, service text key, route text key, scorer text key, "
        "outcome text key, reason text key, count bigint"
    ),
    "rollup_proxy": (
        "span integer key, dimension text key, start time key, service text key, route text key, n bigint, "
        "sum_v float, sum_v2 float, sum_vx float, sum_vx2 float, sum_v2x float, sum_v2x2 float"
    ),
    "rollup_dirty_hour": "id serial key, hour time",
    "rollup_dimension": "name text key",
    # Baselines, detectors and alerts.
    "detector_input": (
        "id serial key, service text, route text, scorer text, fingerprint text, exchange_id text, value float, "
        "is_zero boolean, arrived_at time"
    ),
    "baseline": (
        "id serial key, service text, scorer text, fingerprint text, scope text, version integer, status text, "
        "reason text, since time, until time, n bigint, mean float null, deviation float null, numbers json, "
        "model text null, prompt_version text null, created_at time, accepted_by text null"
    ),
    "detector": (
        "rule text key, service text key, scorer text key, parameters text, baseline_id bigint, state json, "
        "log_evidence float null, seen_at time null, row_version bigint"
    ),
    "alert": (
        "id text key, key text, rule text, type text, labels json, state text, severity text, cause text null, "
        "message text, fingerprint text null, value float null, threshold float null, window float null, "
        "onset time null, body json, starts_at time, fired_at time null, resolved_at time null, evaluated_at time, "
        "notified_at time null, acknowledged_at time null, acknowledged_by text null, resolve_reason text null"
    ),
    "alert_event": "id text key, alert_id text, at time, type text, before text null, after text, detail json",
    "silence": "id text key, matchers json, starts_at time, ends_at time, created_by text null, comment text null",
    # Workers, leases and limits.
    "lease": "name text key, owner text, expires_at time, cursor text null, renewed_at time null",
    "rate_limit": "name text key, arrival float, waited float, used_at time",
    "worker": (
        "id text key, host text, pid integer, service text, version text, scorers json, concurrency integer, "
        "in_flight integer, problem text null, settings json null, started_at time, seen_at time"
    ),
    "job": "process text key, name text key, every float null, runs json",
    "saved_view": "name text key, path text, created_at time, created_by text null",
    "budget": "day text key, requests bigint, tokens float, usd float, selected bigint",
    "calibration": (
        "id serial key, embedder text, scorer text, fingerprint text, floor float, topic_floor float, n integer, "
        "made_at time"
    ),
    # Anchors.
    "anchor": (
        "id serial key, exchange_id text, scorer text, fingerprint text null, baseline float null, "
        "baseline_count integer, created_at time, retired_at time null"
    ),
    "anchor_score": (
        "anchor_id bigint key, round integer key, started_at time, cause text, fingerprint text null, "
        "judge text null, value float null, reason text null, is_baseline boolean, scored_at time null"
    ),
    # Received spans and traces.
    "received_trace": (
        "trace_id text key, options text key, due_at float null, deadline float, wait float, spans integer, "
        "size integer, dropped integer, lease_owner text null, finished_at float null, span_keys bytes null"
    ),
    "received_span": (
        "trace_id text key, options text key, key text key, is_log boolean, service text, scope text, payload bytes"
    ),
    "unreadable_trace": (
        "trace_id text key, service text, scope text, reason text, started_at time, sampled_at time, spans json, "
        "spans_omitted integer"
    ),
    # Notifications, forwarded requests, and exchanges with scores or labels for sinks.
    "delivery": (
        "id serial key, kind text, target text, order_keys json = [], payload json, size integer = 0, "
        "status text = waiting, attempt integer = 0, due_at time null, lease_owner text null, "
        "http_status integer null, error text null, created_at time, settled_at time null, trace_id text null, "
        "span_id text null, exchange_id text null, changes integer = 0, body bytes null"
    ),
    # Runs over the history.
    "history_run": (
        "id text key, kind text, since time, until time, selection json, partition_size integer, partitions integer, "
        "exchanges bigint, created_at time, finished_at time null"
    ),
    "partition": (
        "run_id text key, number integer key, first_at time, first_id text, last_at time, last_id text, "
        "exchanges integer, attempts integer, due_at time null, lease_owner text null, error text null, "
        "scored integer, failed integer, skipped integer, cost float null, checksum text, remaining json null"
    ),
    # Archived days.
    "archived_day": (
        "day time key, location text, state text, removed_before time, manifest json, dimensions json, "
        "has_stale_files boolean, has_lowest boolean null, labels bigint null, written_at time, "
        "verified_at time null, removed_at time null"
    ),
    "archived_lowest": (
        "dimension text key, day time key, service text key, route text key, scorer text key, fingerprint text key, "
        "entries bytes"
    ),
}
UNIQUE = {
    "scoring_task": sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_scoring_task"),
    "score": sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_score"),
    "baseline": sa.UniqueConstraint("service", "scorer", "fingerprint", "scope", "version", name="uq_baseline"),
}
WITHOUT_ROWID = {
    "tally",
    "watched_trace",
    "rollup",
    "rollup_count",
    "rollup_proxy",
    "rollup_dimension",
    "archived_day",
    "archived_lowest",
}
AUTOINCREMENT = {"rollup_dirty_hour", "detector_input"}
INDEXES = """
CREATE INDEX ix_exchange_candidate ON exchange (started_at) WHERE sampling_reason = 'candidate';
CREATE INDEX ix_exchange_proxy
    ON exchange (started_at, service, route, proxy, proxy_probability, capture_probability) WHERE proxy IS NOT NULL;
CREATE INDEX ix_exchange_route ON exchange (route, started_at, service, duration);
CREATE INDEX ix_exchange_started_at ON exchange (started_at);
CREATE INDEX ix_exchange_text ON exchange (started_at) WHERE erased_at IS NULL;
CREATE INDEX ix_exchange_unsampled ON exchange (started_at) WHERE sampling_reason IS NULL;
CREATE INDEX ix_scoring_task_candidate
    ON scoring_task (scorer, fingerprint, first_pending_at) WHERE state = 'pending' AND due_at IS NULL;
CREATE INDEX ix_scoring_task_lease_owner ON scoring_task (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX ix_scoring_task_open
    ON scoring_task (scorer, fingerprint, due_at, first_pending_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_scoring_task_state ON scoring_task (state, reason);
CREATE INDEX ix_score_started_at
    ON score (started_at, scorer, service, route, fingerprint, value, label, sampling_probability, proxy);
CREATE INDEX ix_score_value ON score (value, scorer, started_at, route, label);
CREATE INDEX ix_score_low ON score (scorer, started_at, service, route, fingerprint, value, label)
    WHERE label = 'irrelevant' OR value < 0.5 AND (label IS NULL OR label NOT IN \
('relevant', 'mostly_relevant', 'partly_relevant', 'irrelevant', 'uncalibrated'));
CREATE INDEX ix_feedback_comment ON feedback (created_at) WHERE comment IS NOT NULL;
CREATE INDEX ix_feedback_created_at ON feedback (created_at);
CREATE INDEX ix_feedback_exchange_id ON feedback (exchange_id);
CREATE INDEX ix_feedback_unconsidered ON feedback (created_at) WHERE considered_at IS NULL;
CREATE INDEX ix_label_draw_exchange_id ON label_draw (exchange_id);
CREATE INDEX ix_label_draw_window ON label_draw (since, until);
CREATE INDEX ix_label_draw_settled_by ON label_draw (settled_by) WHERE settled_by IS NOT NULL;
CREATE INDEX ix_marker_at ON marker (at);
CREATE INDEX ix_rollup_dirty_hour_hour ON rollup_dirty_hour (hour);
CREATE INDEX ix_detector_input_exchange_id ON detector_input (exchange_id);
CREATE INDEX ix_baseline_status ON baseline (status);
CREATE INDEX ix_alert_starts_at ON alert (starts_at);
CREATE UNIQUE INDEX uq_alert_open ON alert ("key") WHERE state <> 'resolved';
CREATE INDEX ix_alert_event_alert_id ON alert_event (alert_id);
CREATE INDEX ix_silence_ends_at ON silence (ends_at);
CREATE INDEX ix_worker_seen_at ON worker (seen_at);
CREATE INDEX ix_calibration_made_at ON calibration (made_at);
CREATE INDEX ix_anchor_scorer ON anchor (scorer, retired_at);
CREATE INDEX ix_received_trace_due_at ON received_trace (options, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_received_trace_finished_at ON received_trace (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_unreadable_trace_reason ON unreadable_trace (service, scope, reason, sampled_at);
CREATE INDEX ix_unreadable_trace_sampled_at ON unreadable_trace (sampled_at);
CREATE INDEX ix_delivery_created_at ON delivery (kind, created_at);
CREATE INDEX ix_delivery_exchange_id ON delivery (exchange_id) WHERE exchange_id IS NOT NULL;
CREATE UNIQUE INDEX ix_delivery_sink ON delivery (target, exchange_id) WHERE kind = 'sink';
CREATE INDEX ix_delivery_sink_due ON delivery (target, due_at) WHERE kind = 'sink' AND due_at IS NOT NULL;
CREATE UNIQUE INDEX ix_delivery_span ON delivery (trace_id, span_id, target) WHERE trace_id IS NOT NULL;
CREATE INDEX ix_delivery_waiting ON delivery (kind, target, created_at, size) WHERE due_at IS NOT NULL;
"""
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
    """Create the tables, the indexes and the view."""
    for name, columns in TABLES.items():
        op.create_table(
            name,
            *parse_columns(columns, TYPES),
            *([UNIQUE[name]] if name in UNIQUE else []),
            sqlite_with_rowid=name not in WITHOUT_ROWID,
            sqlite_autoincrement=name in AUTOINCREMENT,
        )
    for statement in INDEXES.strip().split(";\n"):
        op.execute(statement)
    op.execute(ANSWERS)
