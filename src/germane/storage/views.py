"""Saved views: named links to pages of the dashboard."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select

from germane.annotation import SavedView
from germane.errors import UsageError
from germane.sanitize import clean_text
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import RecordMapper
from germane.storage.db.tables import saved_view
from germane.storage.db.upsert import insert_into

MAX_SAVED_VIEWS: Final = 200
"""Maximum number of saved views, because every overview loads all of them."""


_VIEWS: Final = RecordMapper(saved_view, SavedView)


class SavedViewStore(StoreComponent):
    """Reads and writes saved views."""

    def list_views(self) -> list[SavedView]:
        """Return all saved views, sorted by name."""
        query = select(saved_view).order_by(saved_view.c.name).limit(MAX_SAVED_VIEWS)
        with self._database.read() as connection:
            views = [_VIEWS.decode(row) for row in connection.execute(query).mappings()]
        return sorted(views, key=lambda view: (view.name.casefold(), view.name))

    def add_view(self, view: SavedView) -> None:
        """Store a view. Raise UsageError if a view with this name exists, or there are already 200 views."""
        row = _VIEWS.values(view)
        with self._write_values() as connection:
            statement = (
                insert_into(saved_view, connection.dialect.name).on_conflict_do_nothing().returning(saved_view.c.name)
            )
            has_space = connection.execute(select(func.count(saved_view.c.name))).scalar_one() < MAX_SAVED_VIEWS
            is_new = has_space and connection.execute(statement.values(row)).first() is not None
        if not has_space:
            raise UsageError(f"there are already {MAX_SAVED_VIEWS} saved views")
        if not is_new:
            raise UsageError(f"a view with the name {row['name']!r} already exists")

    def delete_view(self, name: str) -> bool:
        """Delete a view, and return whether it existed."""
        with self._write_values() as connection:
            return connection.execute(delete(saved_view).where(saved_view.c.name == clean_text(name))).rowcount > 0
