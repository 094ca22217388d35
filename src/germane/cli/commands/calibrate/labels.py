"""Answers that people labelled, with their scores: from feedback, or from a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

if TYPE_CHECKING:
    from germane.evaluation.result import RowScores
    from germane.storage import Labelled, Store

MOST = 20_000
"""Labels that are read, newest first: more make no interval narrower that matters, and each brings its texts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled answer."""

    exchange: Exchange
    label: float
    """0 to 1."""
    scores: tuple[Score, ...] = ()
    group: str = ""
    """Rows to be ranked against each other: those of one question, unless a file says otherwise."""
    unit: str = ""
    """What was drawn independently: the group, unless a file says otherwise."""


def by_feedback(store: Store) -> list[Row]:
    """Return what people said in this database. Of one person's labels of an answer the latest counts."""
    given: dict[str, list[Labelled]] = {}
    for one in store.feedback(limit=MOST):
        given.setdefault(one.exchange.id, []).append(one)
    labels = {exchange_id: _mean_label(found) for exchange_id, found in given.items()}
    return _with_scores(store, {found[0].exchange.id: found[0].exchange for found in given.values()}, labels)


def _mean_label(found: Sequence[Labelled]) -> float:
    """Return the mean over people. Newest come first; who gave no name may be anybody."""
    latest: dict[str, float] = {}
    for one in found:
        latest.setdefault(one.feedback.user or f"\0{one.feedback.id}", one.feedback.score)
    return sum(latest.values()) / len(latest)


def by_file(store: Store, path: Path) -> list[Row]:
    """Return exchanges of this database that a file labels, by its columns ``exchange_id`` and ``label``.

    Raises:
        UsageError: a row lacks one of them, or its label is none.
    """
    from germane.evaluation.files import records_of

    labels: dict[str, float] = {}
    for place, record in records_of(path):
        identity = record.get("exchange_id") if isinstance(record, Mapping) else None
        if not isinstance(identity, str) or "label" not in record:
            raise UsageError(f"{place} has no exchange_id and label; rows with question and answer go to --file")
        labels[identity] = _label(record["label"], place)
    return _with_scores(store, store.exchanges_of(list(labels)), labels)


def _with_scores(store: Store, exchanges: Mapping[str, Exchange], labels: Mapping[str, float]) -> list[Row]:
    scores = store.scores_of(list(exchanges))
    return [_row(one, labels[id_], scores.get(id_, ())) for id_, one in exchanges.items()]


def _row(exchange: Exchange, label: float, scores: Iterable[Score], group: str = "", unit: str = "") -> Row:
    from germane.scorers.base.text import folded

    # An erased question is taken for one that nobody else asked.
    group = group or (exchange.id if exchange.question is None else folded(exchange.question))
    return Row(exchange, label, tuple(scores), group, unit or group)


def scored_now(
    path: Path, scorers: Sequence[str] = (), columns: Mapping[str, str] | None = None
) -> tuple[list[Exchange], list[Row]]:
    """Score a file, by the settings' scorers or these; return its exchanges, and those rows that have a ``label``.

    Raises:
        UsageError: the file cannot be read, or a label is none.
        SettingsError: nothing can be scored.
    """
    from germane.evaluation import evaluate

    rows = evaluate(path, list(scorers) or None, columns=columns).rows
    labelled = [row for row in rows if row.exchange.attributes.get("label") not in {None, ""}]
    return [row.exchange for row in rows], [_file_row(row) for row in labelled]


def _file_row(row: RowScores) -> Row:
    given = row.exchange.attributes
    group, unit = (str(given.get(name) or "") for name in ("group", "unit"))
    return _row(row.exchange, _label(given["label"], row.place), row.scores.values(), group, unit)


def _label(value: Any, place: str) -> float:
    try:
        label = float(value)
    except (TypeError, ValueError):
        label = math.nan
    if not 0 <= label <= 1:
        raise UsageError(f"{place} has a label that is no number from 0 to 1")
    return label
