"""Exporting and importing records."""

from __future__ import annotations

from collections.abc import Sequence

from germane.storage.db.component import StoreComponent
from germane.storage.transfer import export, import_
from germane.storage.transfer.export import ExportSelection
from germane.storage.transfer.import_ import ImportResult
from germane.storage.transfer.record import DroppedCount, ExchangeRecord


class TransferStore(StoreComponent):
    """Copies exchanges with their tasks, scores and labels from one database to another."""

    def load_records(
        self, chosen: ExportSelection, *, after: ExchangeRecord | None = None, limit: int = 500
    ) -> list[ExchangeRecord]:
        """Return the next page ordered by (started_at, id), starting after ``after`` or at the beginning."""
        with self._database.read() as connection:
            return export.load_page(connection, chosen, None if after is None else after.exchange, limit)

    def load_dropped(self, chosen: ExportSelection) -> list[DroppedCount]:
        """Return the counts of exchanges that were captured but not stored."""
        with self._database.read() as connection:
            return export.load_dropped(connection, chosen)

    def restore_records(self, records: Sequence[ExchangeRecord]) -> ImportResult:
        """Write records of another database. Existing rows are left alone."""
        with self._write_values() as connection:
            return import_.restore(connection, self._context.process, records)

    def restore_dropped(self, counts: Sequence[DroppedCount]) -> None:
        """Write counts of exchanges that were not stored. Counts that were restored already are left alone."""
        with self._write_values() as connection:
            import_.restore_dropped(connection, counts)
