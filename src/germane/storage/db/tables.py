"""The tables for queries, without constraints and indexes. ``python .ci/tables.py`` writes them from the models.

Building the SQLModel classes takes longer, and more memory, than a page or a report needs for everything else.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Float, Integer, LargeBinary, MetaData, Table, Text

from germane.storage.db.columns import parse_columns
from germane.storage.db.types import Json, Key, UtcDateTime

TYPES: Final[dict[str, Any]] = {
    "text": Text(),
    "integer": Integer(),
    "bigint": BigInteger(),
    "float": Float(),
    "boolean": Boolean(),
    "bytes": LargeBinary(),
    "time": UtcDateTime(),
    "json": Json(),
    "serial": Key,
}


def _table(name: str, columns: str) -> Table:
    return Table(name, metadata, *parse_columns(columns, TYPES))


metadata = MetaData()
detector_input = _table(
    "detector_input",
    "id serial key, service text, route text, scorer text, fingerprint text, exchange_id text, value float, "
    "is_zero boolean, arrived_at time",
)
baseline = _table(
    "baseline",
    "id serial key, service text, scorer text, fingerprint text, scope text, version integer, status text, "
    "reason text, since time, until time, n bigint, mean float null, deviation float null, numbers json, "
    "model text null, prompt_version text null, created_at time, accepted_by text null",
)
detector = _table(
    "detector",
    "rule text key, service text key, scorer text key, parameters text, baseline_id bigint, state json, "
    "log_evidence float null, seen_at time null, row_version bigint",
)
alert = _table(
    "alert",
    "id text key, key text, rule text, type text, labels json, state text, severity text, cause text null, "
    "message text, fingerprint text null, value float null, threshold float null, window float null, onset time null, "
    "body json, starts_at time, fired_at time null, resolved_at time null, evaluated_at time, notified_at time null, "
    "acknowledged_at time null, acknowledged_by text null, resolve_reason text null",
)
alert_event = _table(
    "alert_event",
    "id text key, alert_id text, at time, type text, before text null, after text, detail json",
)
silence = _table(
    "silence",
    "id text key, matchers json, starts_at time, ends_at time, created_by text null, comment text null",
)
anchor = _table(
    "anchor",
    "id serial key, exchange_id text, scorer text, fingerprint text null, baseline float null, "
    "baseline_count integer, created_at time, retired_at time null",
)
anchor_score = _table(
    "anchor_score",
    "anchor_id bigint key, round integer key, started_at time, cause text, fingerprint text null, judge text null, "
    "value float null, reason text null, is_baseline boolean, scored_at time null",
)
tally = _table(
    "tally",
    "minute time key, service text key, route text key, scorer text key, process text key, outcome text key, "
    "reason text key, count bigint",
)
watched_trace = _table(
    "watched_trace",
    "hour time key, service text key, scope text key, outcome text key, count bigint",
)
rollup = _table(
    "rollup",
    "span integer key, dimension text key, start time key, service text key, route text key, scorer text key, "
    "fingerprint text key, label text key, n bigint, n_zero bigint, sum_w float, sum_w_zero float, sum_w2 float, "
    "sum_w2_zero float, sum_wy float, sum_wy2 float, sum_w2y float, sum_w2y2 float, sum_w_low float, "
    "sum_w_noncommittal float, n_with_x bigint, sum_w_with_x float, sum_w2_with_x float, sum_wx float, "
    "sum_wy_with_x float, sum_wx2 float, sum_wxy float, sum_wy2_with_x float, sum_w2x float, sum_w2y_with_x float, "
    "sum_w2x2 float, sum_w2xy float, latest time, histogram bytes",
)
rollup_count = _table(
    "rollup_count",
    "span integer key, dimension text key, start time key, service text key, route text key, scorer text key, "
    "outcome text key, reason text key, count bigint",
)
rollup_proxy = _table(
    "rollup_proxy",
    "span integer key, dimension text key, start time key, service text key, route text key, n bigint, sum_v float, "
    "sum_v2 float, sum_vx float, sum_vx2 float, sum_v2x float, sum_v2x2 float",
)
rollup_dirty_hour = _table("rollup_dirty_hour", "id serial key, hour time")
rollup_dimension = _table("rollup_dimension", "name text key")
archived_day = _table(
    "archived_day",
    "day time key, location text, state text, removed_before time, manifest json, dimensions json, "
    "has_stale_files boolean, has_lowest boolean null, labels bigint null, written_at time, verified_at time null, "
    "removed_at time null",
)
archived_lowest = _table(
    "archived_lowest",
    "dimension text key, day time key, service text key, route text key, scorer text key, fingerprint text key, "
    "entries bytes",
)
exchange = _table(
    "exchange",
    "id text key, trace_id text, span_id text, service text, route text, question text null, answer text null, "
    "contexts json, history json, model text null, prompt_version text null, session text null, user text null, "
    "attributes json, status text, error text null, started_at time, duration float, sampling_key float, "
    "traced boolean, capture_probability float = 1, proxy float null, proxy_probability float null, "
    "sampling_probability float null, sampling_reason text null, erased_at time null, span_holder text null",
)
scoring_task = _table(
    "scoring_task",
    "id serial key, exchange_id text, scorer text, fingerprint text, state text, reason text null, error text null, "
    "claims integer, first_pending_at time, due_at time null, lease_owner text null, scored_as text null, "
    "retries integer = 0",
)
score = _table(
    "score",
    "id serial key, exchange_id text, scorer text, fingerprint text, service text, route text, started_at time, "
    "sampling_probability float null, proxy float null, value float, label text null, explanation text null, "
    "details json, judge text null, embedder text null, input_tokens bigint null, output_tokens bigint null, "
    "cost float null, latency float null, scored_at time null",
)
feedback = _table(
    "feedback",
    "id text key, exchange_id text, score float, comment text null, user text null, created_at time, "
    "considered_at time null, wave text null",
)
label_draw = _table(
    "label_draw",
    "wave text key, exchange_id text key, scorer text, fingerprint text, since time, until time, service text, "
    "route text, probability float, drawn_at time, position integer, state text, settled_at time null, "
    "settled_by text null",
)
marker = _table("marker", "id text key, name text, service text, at time, attributes json")
received_trace = _table(
    "received_trace",
    "trace_id text key, options text key, due_at float null, deadline float, wait float, spans integer, size integer, "
    "dropped integer, lease_owner text null, finished_at float null, span_keys bytes null",
)
received_span = _table(
    "received_span",
    "trace_id text key, options text key, key text key, is_log boolean, service text, scope text, payload bytes",
)
unreadable_trace = _table(
    "unreadable_trace",
    "trace_id text key, service text, scope text, reason text, started_at time, sampled_at time, spans json, "
    "spans_omitted integer",
)
lease = _table("lease", "name text key, owner text, expires_at time, cursor text null, renewed_at time null")
rate_limit = _table("rate_limit", "name text key, arrival float, waited float, used_at time")
worker = _table(
    "worker",
    "id text key, host text, pid integer, service text, version text, scorers json, concurrency integer, "
    "in_flight integer, problem text null, settings json null, started_at time, seen_at time",
)
job = _table("job", "process text key, name text key, every float null, runs json")
saved_view = _table("saved_view", "name text key, path text, created_at time, created_by text null")
budget = _table("budget", "day text key, requests bigint, tokens float, usd float, selected bigint")
calibration = _table(
    "calibration",
    "id serial key, embedder text, scorer text, fingerprint text, floor float, topic_floor float, n integer, "
    "made_at time",
)
history_run = _table(
    "history_run",
    "id text key, kind text, since time, until time, selection json, partition_size integer, partitions integer, "
    "exchanges bigint, created_at time, finished_at time null",
)
partition = _table(
    "partition",
    "run_id text key, number integer key, first_at time, first_id text, last_at time, last_id text, "
    "exchanges integer, attempts integer, due_at time null, lease_owner text null, error text null, scored integer, "
    "failed integer, skipped integer, cost float null, checksum text, remaining json null",
)
delivery = _table(
    "delivery",
    "id serial key, kind text, target text, order_keys json = [], payload json, size integer = 0, "
    "status text = waiting, attempt integer = 0, due_at time null, lease_owner text null, http_status integer null, "
    "error text null, created_at time, settled_at time null, trace_id text null, span_id text null, "
    "exchange_id text null, changes integer = 0, body bytes null",
)
