"""Scores as a pandas frame."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.evaluation.files import PANDAS

if TYPE_CHECKING:
    from germane.evaluation.result import RowScores

COLUMNS = ("id", "question", "answer", "contexts")


def frame(rows: Sequence[RowScores]) -> Any:
    """Return one row for each row.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise UsageError(f"to_pandas() needs pandas; {PANDAS}") from None
    found = pandas.DataFrame([_record(row) for row in rows], columns=None if rows else list(COLUMNS))
    scorers = dict.fromkeys(name for row in rows for name in row.scores)
    return found.astype(dict.fromkeys(scorers, float))


def _record(row: RowScores) -> dict[str, Any]:
    exchange = row.exchange
    record: dict[str, Any] = {
        "id": exchange.id,
        "question": exchange.question,
        "answer": exchange.answer,
        "contexts": [context.text for context in exchange.contexts],
    }
    record |= {name: value for name, value in exchange.attributes.items() if name not in record}
    for name, score in row.scores.items():
        reason = None if score.reason is None else str(score.reason)
        record |= {name: score.value, f"{name}_label": score.label, f"{name}_reason": reason}
        record[f"{name}_explanation"] = score.explanation
    return record
