"""Adds the tables ``feedback`` and ``calibration``.

The ``answers`` view now takes the fingerprint and the weight from the score, if there is one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

MOMENT = sa.DateTime(timezone=True)
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
    """Create the tables, add ``scoring_task.scored_as``, and replace the ``answers`` view."""
    _feedback()
    _calibration()
    op.add_column("scoring_task", sa.Column("scored_as", sa.Text()))
    op.execute("DROP VIEW answers")
    op.execute(ANSWERS)


def _feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("comment", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_index("ix_feedback_created_at", "feedback", ["created_at"])
    op.create_index("ix_feedback_exchange_id", "feedback", ["exchange_id"])


def _calibration() -> None:
    op.create_table(
        "calibration",
        sa.Column("id", KEY, primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("embedder", "scorer", "fingerprint")),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("high", sa.Float(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
    )
    op.create_index("ix_calibration_made_at", "calibration", ["made_at"])
