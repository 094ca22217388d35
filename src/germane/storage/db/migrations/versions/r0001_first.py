"""Adds the tables ``exchange``, ``scoring_task``, ``score``, ``tally`` and ``lease``, and the ``answers`` view."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

ANSWERS = """
CREATE VIEW answers AS
SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model,
    exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer,
    exchange.status, scoring_task.scorer, scoring_task.fingerprint, scoring_task.state, scoring_task.reason,
    score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at,
    1.0 / NULLIF(exchange.sampling_probability, 0) AS weight
FROM scoring_task
JOIN exchange ON exchange.id = scoring_task.exchange_id
LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer
    AND score.fingerprint = scoring_task.fingerprint
"""


def upgrade() -> None:
    """Create the tables and the view."""
    _exchange()
    _scoring_task()
    _score()
    _tally()
    _lease()
    op.execute(ANSWERS)


def _exchange() -> None:
    op.create_table(
        "exchange",
        sa.Column("id", sa.Text(), primary_key=True),
        *_texts("trace_id", "span_id", "service", "route"),
        *_maybe_texts("question", "answer"),
        sa.Column("contexts", JSON, nullable=False),
        sa.Column("history", JSON, nullable=False),
        *_maybe_texts("model", "prompt_version", "session", "user"),
        sa.Column("attributes", JSON, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("duration", sa.Float(), nullable=False),
        sa.Column("draw", sa.Float(), nullable=False),
        sa.Column("traced", sa.Boolean(), nullable=False),
        sa.Column("proxy", sa.Float()),
        sa.Column("sampling_probability", sa.Float()),
        sa.Column("sampling_reason", sa.Text()),
    )
    op.create_index("ix_exchange_started_at", "exchange", ["started_at", "route"])
    _partial_index("ix_exchange_unsampled", "exchange", ["started_at"], "sampling_reason IS NULL")


def _scoring_task() -> None:
    op.create_table(
        "scoring_task",
        sa.Column("id", KEY, primary_key=True),
        *_texts("exchange_id", "scorer", "fingerprint", "state"),
        *_maybe_texts("reason", "error"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_pending_at", MOMENT, nullable=False),
        sa.Column("not_before", MOMENT),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", MOMENT),
        sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_scoring_task"),
    )
    open_columns = ["not_before", "first_pending_at"]
    _partial_index("ix_scoring_task_open", "scoring_task", open_columns, "not_before IS NOT NULL")
    _partial_index("ix_scoring_task_lease_owner", "scoring_task", ["lease_owner"], "lease_owner IS NOT NULL")
    op.create_index("ix_scoring_task_state", "scoring_task", ["state", "reason"])


def _score() -> None:
    op.create_table(
        "score",
        sa.Column("id", KEY, primary_key=True),
        *_texts("exchange_id", "scorer", "fingerprint", "service", "route"),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("sampling_probability", sa.Float()),
        sa.Column("value", sa.Float(), nullable=False),
        *_maybe_texts("label", "explanation"),
        sa.Column("details", JSON, nullable=False),
        *_maybe_texts("judge", "embedder"),
        sa.Column("input_tokens", sa.BigInteger()),
        sa.Column("output_tokens", sa.BigInteger()),
        sa.Column("cost", sa.Float()),
        sa.Column("latency", sa.Float()),
        sa.Column("scored_at", MOMENT),
        sa.UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_score"),
    )
    covering = ["started_at", "scorer", "service", "route", "fingerprint", "value", "label", "sampling_probability"]
    op.create_index("ix_score_started_at", "score", covering)
    op.create_index("ix_score_value", "score", ["value"])


def _tally() -> None:
    key = ("service", "route", "scorer", "process", "outcome", "reason")
    op.create_table(
        "tally",
        sa.Column("minute", MOMENT, primary_key=True),
        *(sa.Column(name, sa.Text(), primary_key=True) for name in key),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,  # the key is nearly the whole row
    )


def _lease() -> None:
    op.create_table(
        "lease",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
    )


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _maybe_texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text()) for name in names]


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
