"""Labels of which there are very many: the most frequent of an hour and route are kept, the others count as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from germane.storage.histogram import summed

MOST: Final = 100
"""Labels of one dimension, service and route within one hour or day, ``OTHER`` included."""
OTHER: Final = "other"
Row = dict[str, Any]
_NO_SUMS: Final = frozenset({"dimension", "service", "route", "scorer", "fingerprint", "label", "latest", "histogram"})


def bounded(rows: Iterable[Row]) -> list[Row]:
    """Return rows of one dimension with no more than 100 labels for each service and route."""
    rows = list(rows)
    frequent = _frequent(rows)
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        label = row["label"] if row["label"] in frequent[row["service"], row["route"]] else OTHER
        names = (row["service"], row["route"], row["scorer"], row["fingerprint"], label)
        found.setdefault(names, []).append({**row, "label": label})
    return [_together(some) for some in found.values()]


def _frequent(rows: Iterable[Row]) -> Mapping[tuple[str, str], set[str]]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counts.setdefault((row["service"], row["route"]), Counter())[row["label"]] += row["n"]
    return {key: _first(labels) for key, labels in counts.items()}


def _first(labels: Counter[str]) -> set[str]:
    if len(labels) <= MOST:
        return set(labels)
    ordered = sorted(labels, key=lambda label: (-labels[label], label))
    return set(ordered[: MOST - 1])


def _together(rows: list[Row]) -> Row:
    if len(rows) == 1:
        return rows[0]
    sums = {name: sum(row[name] for row in rows) for name in rows[0] if name not in _NO_SUMS}
    latest = max(row["latest"] for row in rows)
    return {**rows[0], **sums, "latest": latest, "histogram": summed(row["histogram"] for row in rows)}
