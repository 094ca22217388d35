"""The lines of an export file on their way into the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from germane.errors import UsageError
from germane.storage.transfer.record import ExchangeRecord, ExportedItem, parse_line

MAX_ITEMS: Final = 500
"""Maximum number of items per transaction."""
MAX_BYTES: Final = 4_000_000
"""Maximum size of a transaction. On SQLite, capturing applications wait for it."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The numbers of imported rows that were not in the database before."""

    exchanges: int = 0
    tasks: int = 0


class ImportBatch:
    """Parses lines, writes their items in transactions of limited size, and counts them.

    ``restore`` writes items in one transaction.
    """

    def __init__(self, restore: Callable[[Sequence[ExportedItem]], ImportResult]) -> None:
        self.max_line_bytes = 64_000_000
        self.read = self.new_exchanges = self.new_tasks = 0
        self._restore = restore
        self._items: list[ExportedItem] = []
        self._bytes = 0

    def add_line(self, line: bytes) -> None:
        """Parse a line, and add its item. Empty lines are ignored.

        Raises:
            UsageError: The line is invalid.
        """
        if len(line) >= self.max_line_bytes:
            raise UsageError(f"the line is longer than {self.max_line_bytes // 1_000_000} MB")
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError("the line is not valid UTF-8") from None
        if text.strip():
            self._items.append(parse_line(text))
            self._bytes += len(line)
        if len(self._items) >= MAX_ITEMS or self._bytes >= MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all added items."""
        restored = self._restore(self._items)
        self.read += sum(isinstance(item, ExchangeRecord) for item in self._items)
        self.new_exchanges += restored.exchanges
        self.new_tasks += restored.tasks
        self._items, self._bytes = [], 0
