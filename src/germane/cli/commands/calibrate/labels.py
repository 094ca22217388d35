"""Answers that people labeled, with their scores: from feedback or from a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

if TYPE_CHECKING:
    from germane.storage import LabeledExchange, TrackingStore

MAX_LABELS: Final = 20_000
"""Newest labels that are read. More would hardly narrow the intervals, and each comes with its texts."""


@dataclass(frozen=True, slots=True)
class LabeledAnswer:
    """A labeled answer with its scores."""

    exchange: Exchange
    label: float
    """0 to 1."""
    scores: tuple[Score, ...] = ()
    group: str = ""
    """Answers with the same group are ranked against each other: those to one question, unless a file differs."""
    unit: str = ""
    """Independently sampled unit, which is resampled: the group, unless a file differs."""


def load_feedback_labels(store: TrackingStore) -> list[LabeledAnswer]:
    """Return answers with feedback. The label is the mean over people, of each person's latest label."""
    feedback: dict[str, list[LabeledExchange]] = {}
    for labeled in store.labels.list_feedback(limit=MAX_LABELS):
        feedback.setdefault(labeled.exchange.id, []).append(labeled)
    labels = {}
    for exchange_id, given in feedback.items():
        latest: dict[str, float] = {}
        for labeled in given:  # newest first; feedback without a user may be from anyone
            latest.setdefault(labeled.feedback.user or f"\0{labeled.feedback.id}", labeled.feedback.score)
        labels[exchange_id] = sum(latest.values()) / len(latest)
    exchanges = {exchange_id: given[0].exchange for exchange_id, given in feedback.items()}
    return _add_scores(store, exchanges, labels)


def load_file_labels(store: TrackingStore, path: Path) -> list[LabeledAnswer]:
    """Return exchanges of the database that a file labels in the columns ``exchange_id`` and ``label``.

    Raises:
        UsageError: A row lacks one of them, or its label is invalid.
    """
    from germane.evaluation import iterate_records

    labels: dict[str, float] = {}
    for place, record in iterate_records(path):
        exchange_id = record.get("exchange_id") if isinstance(record, Mapping) else None
        if not isinstance(exchange_id, str) or "label" not in record:
            raise UsageError(f"{place} has no exchange_id and label; pass rows with question and answer to --file")
        labels[exchange_id] = _parse_label(record["label"], place)
    return _add_scores(store, store.answers.get_exchanges(list(labels)), labels)


def score_labeled_file(
    path: Path, scorers: Sequence[str] = (), columns: Mapping[str, str] | None = None
) -> tuple[list[Exchange], list[LabeledAnswer]]:
    """Score a file with the configured or the given scorers; return its exchanges, and the rows with a ``label``.

    Raises:
        UsageError: The file cannot be read, or a label is invalid.
        SettingsError: No scorer can run.
    """
    from germane.evaluation import evaluate

    rows = evaluate(path, list(scorers) or None, columns=columns).rows
    answers = []
    for row in rows:
        attributes = row.exchange.attributes
        if attributes.get("label") not in {None, ""}:
            group, unit = (str(attributes.get(name) or "") for name in ("group", "unit"))
            label = _parse_label(attributes["label"], row.location)
            answers.append(_labeled_answer(row.exchange, label, row.scores.values(), group, unit))
    return [row.exchange for row in rows], answers


def _add_scores(
    store: TrackingStore, exchanges: Mapping[str, Exchange], labels: Mapping[str, float]
) -> list[LabeledAnswer]:
    scores = store.answers.get_scores(list(exchanges))
    return [_labeled_answer(exchange, labels[id_], scores.get(id_, ())) for id_, exchange in exchanges.items()]


def _labeled_answer(
    exchange: Exchange, label: float, scores: Iterable[Score], group: str = "", unit: str = ""
) -> LabeledAnswer:
    from germane.scorers import normalize_for_comparison

    # An erased question counts as a question that nobody else asked.
    group = group or (exchange.id if exchange.question is None else normalize_for_comparison(exchange.question))
    return LabeledAnswer(exchange, label, tuple(scores), group, unit or group)


def _parse_label(value: Any, place: str) -> float:
    try:
        label = float(value)
    except (TypeError, ValueError):
        label = math.nan
    if not 0 <= label <= 1:
        raise UsageError(f"{place}: the label is not a number from 0 to 1")
    return label
