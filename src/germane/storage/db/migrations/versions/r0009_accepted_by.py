"""Adds the name of the person who accepted a baseline, and removes ``alert.evidence``."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add and drop the columns.

    ``alert.evidence`` measured the rarity of a drop, but always at the threshold at which alerts fire, so it contained
    no information about the individual drop.
    """
    op.drop_column("alert", "evidence")
    op.add_column("baseline", sa.Column("accepted_by", sa.Text()))
