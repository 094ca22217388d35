"""Scores in a file, as a baseline is learned from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.monitor.watching import Example

NO_ROUTE = "evaluation"
"""Of rows that name none."""
_ZERO = "noncommittal"
_TRUE = {"1", "true", "yes"}


@dataclass(frozen=True, slots=True)
class Examples:
    """Scores of one scorer and one judge."""

    scorer: str
    fingerprint: str | None
    """None where the file does not say."""
    examples: list[Example]


def examples_in(path: Path, scorer: str | None) -> Examples:
    """Return the scores of a file: of a report in JSON, or of rows.

    Raises:
        UsageError: a row has no number, or scores are of more than one scorer or judge.
    """
    rows = [row for row in _rows(path) if scorer is None or row.get("scorer", scorer) == scorer]
    scorers = {row["scorer"] for row in rows if row.get("scorer")} or ({scorer} if scorer else set())
    marks = {row["fingerprint"] for row in rows if row.get("fingerprint")}
    if not scorers:
        raise UsageError(f"{path} does not say of which scorer its scores are: say it with --scorer")
    if len(scorers) > 1:
        names = ", ".join(sorted(scorers))
        raise UsageError(f"{path} holds scores of {names}: say which with --scorer")
    if len(marks) > 1:
        raise UsageError(f"{path} holds scores of the judges {', '.join(sorted(marks))}: scores of one compare alone")
    return Examples(str(scorers.pop()), marks.pop() if marks else None, [_example(path, row) for row in rows])


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    from germane.evaluation.sources import records_of

    report = _report(path)
    if report is not None:
        yield from report
        return
    for place, record in records_of(path):
        if not isinstance(record, Mapping):
            raise UsageError(f"{place} is no row of names and values")
        yield {str(name): value for name, value in record.items() if value not in (None, "")}


def _report(path: Path) -> list[dict[str, Any]] | None:
    """Return the scores of a report in JSON; None where the file is none."""
    if path.suffix.lower() != ".json":
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # whoever reads rows says what is wrong
    if not isinstance(content, dict) or not {"schema_version", "rows"} <= content.keys():
        return None
    scores = [{**row, **score} for row in content["rows"] for score in row["scores"].values()]
    # When an evaluation was run says nothing of when answers were given.
    return [{name: value for name, value in one.items() if value is not None} for one in scores if _has_value(one)]


def _has_value(score: Mapping[str, Any]) -> bool:
    return score.get("value") is not None


def _example(path: Path, row: Mapping[str, Any]) -> Example:
    from germane.monitor.watching import Example

    zero = row.get("label") == _ZERO or str(row.get(_ZERO, "")).lower() in _TRUE
    return Example(
        route=str(row.get("route", NO_ROUTE)),
        value=_number(path, row),
        zero=zero,
        at=_moment(path, row["at"]) if "at" in row else None,
    )


def _number(path: Path, row: Mapping[str, Any]) -> float:
    given = row.get("value", row.get("score"))
    try:
        found = float(given)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{path}: a row's value is {str(given)[:40]!r}, which is no number")
    return found


def _moment(path: Path, given: Any) -> datetime:
    try:
        found = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise UsageError(f"{path}: at is {str(given)[:40]!r}, which is no moment in ISO 8601") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
