"""Alembic's entry point, which runs the migrations in the transaction of the connection that is passed to it."""

from __future__ import annotations

from alembic import context

from germane.storage.db.migrate import VERSION_TABLE
from germane.storage.db.models import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
context.run_migrations()
