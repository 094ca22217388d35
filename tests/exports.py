"""Exchanges as an export contains them."""

from __future__ import annotations

from germane.storage import ExportSelection, TrackingStore
from germane.storage.db.sanitize import to_json
from germane.storage.transfer.record import VERSION, ExchangeRecord, escape_unsafe, parse_line, plain_row


def load_records(
    store: TrackingStore, selection: ExportSelection | None = None, *, limit: int = 500
) -> list[ExchangeRecord]:
    """Return the exchanges of an export's first page, as an import reads them."""
    stored = store.transfer.load_stored(selection or ExportSelection(), limit=limit)
    return [record for line in stored if isinstance(record := parse_line(line.dump()), ExchangeRecord)]


def dump_record(record: ExchangeRecord) -> str:
    """Return the line of an exchange in an export."""
    parts = {"tasks": record.tasks, "scores": record.scores, "feedback": record.feedback, "draws": record.draws}
    rows = {name: [plain_row(row) for row in part] for name, part in parts.items() if part}
    return escape_unsafe(to_json({"version": VERSION, "exchange": plain_row(record.exchange), **rows}))
