"""Records who accepted a baseline, and removes the rarity of a drop, which said nothing about the drop."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Change the columns. Rarity was measured once, at the threshold at which every drop fires."""
    op.drop_column("alert", "evidence")
    op.add_column("baseline", sa.Column("accepted_by", sa.Text()))
