"""Renames tables, columns and stored values to standard names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TABLES = (
    ("rollup_due", "rollup_dirty_hour", "hour"),
    ("arrival", "detector_input", "exchange_id"),
    ("mark", "marker", "at"),
)
"""Old table name, new table name, and indexed column."""
COLUMNS: dict[str, dict[str, str]] = {
    "exchange": {"draw": "sampling_key"},
    "scoring_task": {"tries": "retries", "attempts": "claims"},
    "budget": {"calls": "requests", "picked": "selected"},
    "alert": {"kind": "type"},
    "alert_event": {"what": "type"},
    "detector_input": {"zero": "is_zero"},
    "rollup": {
        "w": "sum_w",
        "w_zero": "sum_w_zero",
        "ww": "sum_w2",
        "ww_zero": "sum_w2_zero",
        "wy": "sum_wy",
        "wyy": "sum_wy2",
        "wwy": "sum_w2y",
        "wwyy": "sum_w2y2",
        "w_low": "sum_w_low",
        "w_noncommittal": "sum_w_noncommittal",
        "n_x": "n_with_x",
        "w_x": "sum_w_with_x",
        "ww_x": "sum_w2_with_x",
        "wx": "sum_wx",
        "wy_x": "sum_wy_with_x",
        "wxx": "sum_wx2",
        "wxy": "sum_wxy",
        "wyy_x": "sum_wy2_with_x",
        "wwx": "sum_w2x",
        "wwy_x": "sum_w2y_with_x",
        "wwxx": "sum_w2x2",
        "wwxy": "sum_w2xy",
    },
    "rollup_proxy": {
        "v": "sum_v",
        "vv": "sum_v2",
        "vx": "sum_vx",
        "vxx": "sum_vx2",
        "vvx": "sum_v2x",
        "vvxx": "sum_v2x2",
    },
}
REASONS = {"not_drawn": "not_sampled", "capture_limit": "exchange_limit"}
VALUES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("tally", "reason", REASONS),
    ("rollup_count", "reason", REASONS),
    ("scoring_task", "reason", REASONS),
    ("exchange", "sampling_reason", {"not_drawn": "not_sampled", "drawn": "sampled"}),
    (
        "score",
        "label",
        {"direct": "relevant", "mostly": "mostly_relevant", "partly": "partly_relevant", "off": "irrelevant"},
    ),
    ("notification", "status", {"dead": "undelivered"}),
)
RULE_TYPES = {"floor": "mean_threshold", "low_rate": "low_score_rate"}


def upgrade() -> None:
    """Rename tables and columns, then the stored values."""
    for old, new, column in TABLES:
        _rename_table(old, new, column)
    for table, columns in COLUMNS.items():
        _rename_columns(table, columns)
    for table, column, values in VALUES:
        _replace_values(table, column, values)
    _rename_history_key()
    _rename_alert_values()
    _replace_cursor_reason()


def _rename_table(old: str, new: str, column: str) -> None:
    op.rename_table(old, new)
    if op.get_bind().dialect.name == "sqlite":  # SQLite cannot rename an index
        op.drop_index(f"ix_{old}_{column}", new)
        op.create_index(f"ix_{new}_{column}", new, [column])
        return
    op.execute(f"ALTER INDEX ix_{old}_{column} RENAME TO ix_{new}_{column}")
    op.execute(f"ALTER INDEX IF EXISTS {old}_pkey RENAME TO {new}_pkey")
    op.execute(f"ALTER SEQUENCE IF EXISTS {old}_id_seq RENAME TO {new}_id_seq")


def _rename_columns(table: str, columns: Mapping[str, str]) -> None:
    # A batch operation would copy the whole table on SQLite.
    for old, new in columns.items():
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")


def _replace_values(table: str, column: str, values: Mapping[str, str]) -> None:
    target = sa.table(table, sa.column(column, sa.Text()))
    stored = target.c[column]
    op.execute(sa.update(target).where(stored.in_(list(values))).values({column: sa.case(dict(values), value=stored)}))


def _rename_history_key() -> None:
    exchange = sa.table("exchange", sa.column("id", sa.Text()), sa.column("history", JSON))
    query = sa.select(exchange).where(sa.cast(exchange.c.history, sa.Text) != "[]").order_by(exchange.c.id).limit(500)
    page = op.get_bind().execute(query).all()
    while page:
        for id_, history in page:
            _update(exchange, id_, history=[_with_key(message, "text", "content") for message in history])
        page = op.get_bind().execute(query.where(exchange.c.id > page[-1].id)).all()


def _rename_alert_values() -> None:
    """Rename rule types and JSON keys in alerts, notifications, silences and detector states."""
    connection = op.get_bind()
    texts = (sa.column(name, sa.Text()) for name in ("id", "key", "rule", "type"))
    alert = sa.table("alert", *texts, sa.column("labels", JSON), sa.column("body", JSON))
    for row in connection.execute(sa.select(alert)).mappings().all():
        changed = _with_rule_type(dict(row)) | {"body": _with_body_keys(row["body"])}
        if changed != dict(row):
            _update(alert, row["id"], **changed)
    notification = sa.table("notification", sa.column("id", sa.Text()), sa.column("payload", JSON))
    for id_, payload in connection.execute(sa.select(notification)).all():
        alerts = [_with_rule_type(_with_body_keys(_with_key(one, "kind", "type"))) for one in payload["alerts"]]
        _update(notification, id_, payload={**_with_key(payload, "what", "type"), "alerts": alerts})
    silence = sa.table("silence", sa.column("id", sa.Text()), sa.column("matchers", JSON))
    for id_, matchers in connection.execute(sa.select(silence)).all():
        if matchers.get("rule") in RULE_TYPES:
            _update(silence, id_, matchers={**matchers, "rule": RULE_TYPES[matchers["rule"]]})
    keys = [sa.column(name, sa.Text()) for name in ("rule", "service", "scorer")]
    detector = sa.table("detector", *keys, sa.column("state", JSON))
    for *key, stored in connection.execute(sa.select(detector)).all():
        state = _with_key(stored, "lead", "active_fingerprint")
        if (firing := (state.get("detector") or {}).get("firing")) is not None:
            state["detector"] = {**state["detector"], "firing": _with_key(firing, "carriers", "contributors")}
        same = sa.and_(*(column == value for column, value in zip(keys, key, strict=True)))
        connection.execute(sa.update(detector).where(same).values(state=state))


def _with_rule_type(alert: Mapping[str, Any]) -> dict[str, Any]:
    """Return an alert's values with the rule type renamed. A rule that is named after its type is renamed too."""
    if alert["type"] not in RULE_TYPES:
        return dict(alert)
    renamed = RULE_TYPES[alert["type"]]
    if alert["rule"] != alert["type"]:
        return {**alert, "type": renamed}
    text = json.dumps([renamed, sorted(alert["labels"].items())])
    return {**alert, "type": renamed, "rule": renamed, "key": sha256(text.encode()).hexdigest()[:32]}


def _with_body_keys(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **body,
        "shifts": [_with_key(shift, "kind", "dimension") for shift in body["shifts"]],
        "details": _with_key(body["details"], "carriers", "contributors"),
    }


def _replace_cursor_reason() -> None:
    """Replace the skip reason that the sampler has stored for the rest of an unfinished interval."""
    lease = sa.table("lease", sa.column("name", sa.Text()), sa.column("cursor", sa.Text()))
    for name, text in op.get_bind().execute(sa.select(lease).where(lease.c.cursor.is_not(None))).all():
        try:
            cursor = json.loads(text)
            cursor["remainder"]["reason"] = REASONS[cursor["remainder"]["reason"]]
        except (KeyError, TypeError, ValueError):
            continue
        changed = json.dumps(cursor, separators=(",", ":"))
        op.get_bind().execute(sa.update(lease).where(lease.c.name == name).values(cursor=changed))


def _with_key(record: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in record.items()}


def _update(table: sa.TableClause, id_: str, **values: Any) -> None:
    op.get_bind().execute(sa.update(table).where(table.c.id == id_).values(values))
