"""What the columns of a row may be called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from germane.errors import UsageError
from germane.shown import harmless

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "user_input"),
    "answer": ("answer", "response"),
    "contexts": ("contexts", "retrieved_contexts"),
    "history": ("history", "meta.history"),
    "id": ("id",),
    "route": ("route",),
    "model": ("model",),
}
"""Ours, then those of Ragas. Any other column is an attribute of its exchange."""
NEEDED = frozenset({"question", "answer"})
_ABSENT = object()


class Columns:
    """Finds the cells of a row under your names for them; a name like ``meta.history`` looks into a nested object."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """Take ``names``: ours to yours.

        Raises:
            UsageError: it maps what is no column of ours.
        """
        unknown = sorted(set(names or ()) - set(COLUMNS))
        if unknown:
            raise UsageError(f"columns maps {', '.join(COLUMNS)} to names of yours, and knows no {', '.join(unknown)}")
        mapped = {name: (column,) for name, column in (names or {}).items()}
        self.names: Mapping[str, tuple[str, ...]] = {**COLUMNS, **mapped}
        self._must = NEEDED | mapped.keys()
        self._taken = {column for known in self.names.values() for column in known}

    def cell(self, row: Mapping[str, Any], name: str) -> Any:
        """Return what stands under one of our names; None where nothing does.

        Raises:
            UsageError: there is no such column, and it is needed, or you named it.
        """
        found = self.find(row, name)
        if found is not _ABSENT:
            return found
        if name not in self._must:
            return None
        wanted, there = " or ".join(self.names[name]), ", ".join(harmless(str(column), 60) for column in row) or "none"
        raise UsageError(
            f"has no column {wanted}; its columns are {there}. Name the right one: columns={{{name!r}: '...'}}, "
            f"or --columns {name}=..."
        )

    def has(self, row: Mapping[str, Any], name: str) -> bool:
        """Return whether a row has that column."""
        return self.find(row, name) is not _ABSENT

    def find(self, row: Mapping[str, Any], name: str) -> Any:
        """Return what stands under one of our names, or a mark that nothing does."""
        for column in self.names[name]:
            if column in row:
                return row[column]
            if (nested := _nested(row, column)) is not _ABSENT:
                return nested
        return _ABSENT

    def others(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that are none of ours."""
        return {str(column): cell for column, cell in row.items() if column not in self._taken}


def _nested(row: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    inner = row.get(head) if rest else None
    if not isinstance(inner, Mapping):
        return _ABSENT
    return inner[rest] if rest in inner else _nested(inner, rest)
