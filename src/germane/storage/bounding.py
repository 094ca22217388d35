"""Rows of sums put together: over all routes, and of labels of which there are very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from germane.storage.histogram import summed

MOST: Final = 100
"""Labels of one dimension, service and route within one hour or day, ``OTHER`` included."""
OTHER: Final = "other"
Row = dict[str, Any]
_NAMES: Final = ("service", "scorer", "fingerprint", "label", "outcome", "reason")
_MADE: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {"latest": max, "histogram": summed}
_NO_SUMS: Final = frozenset({"dimension", "route", *_NAMES, *_MADE})


def bounded(rows: Iterable[Row]) -> list[Row]:
    """Return rows of one dimension with no more than 100 labels for each service and route, the most frequent."""
    rows = list(rows)
    frequent = _frequent(rows)
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        label = row["label"] if row["label"] in frequent[row["service"], row["route"]] else OTHER
        names = (row["service"], row["route"], row["scorer"], row["fingerprint"], label)
        found.setdefault(names, []).append({**row, "label": label})
    return [_together(some) for some in found.values()]


def over_routes(rows: Iterable[Row]) -> list[Row]:
    """Return the sums of rows that differ in the route alone, as of no dimension; scores, counts or proxies."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        names = tuple(row[name] for name in _NAMES if name in row)
        found.setdefault(names, []).append({**row, "dimension": "", "route": ""})
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
    more = {name: made(row[name] for row in rows) for name, made in _MADE.items() if name in rows[0]}
    return {**rows[0], **sums, **more}
