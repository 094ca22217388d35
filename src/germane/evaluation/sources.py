"""Where rows come from: mappings, frames, data sets, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from germane.errors import UsageError
from germane.evaluation.files import records_in


def records_of(rows: Any) -> Iterator[tuple[str, Any]]:
    """Return the records of whatever holds some, each with its place.

    Raises:
        UsageError: it holds none, or a file cannot be read.
    """
    if isinstance(rows, (str, os.PathLike)):
        return records_in(Path(rows))
    return ((f"row {number}", record) for number, record in enumerate(_records(rows)))


def _records(rows: Any) -> Iterable[Any]:
    if isinstance(rows, Mapping):
        raise UsageError(_refusal(rows))
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):  # pandas
        records: Iterable[Any] = rows.to_dict("records")
        return records
    if not isinstance(rows, Iterable):
        raise UsageError(f"rows is a {type(rows).__name__}: give mappings, a pandas frame, a data set or a file's name")
    return rows


def _refusal(rows: Mapping[Any, Any]) -> str:
    names = [str(name) for name in rows]
    if names and all(hasattr(part, "column_names") for part in rows.values()):
        return f"rows is a {type(rows).__name__} of the splits {', '.join(names)}: give one, such as rows[{names[0]!r}]"
    return (
        "rows is one mapping: give a list of mappings, one for each row. A mapping of columns to lists becomes that "
        "by pandas.DataFrame(rows)"
    )
