"""Answers that people labelled, with their scores: how well each metric agrees with the labels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

if TYPE_CHECKING:
    from germane.agreement import Interval, Statistic
    from germane.storage import Labelled, Store

ENOUGH = 20
"""Labelled scores without which nothing is said of a metric."""
GOOD = 0.75
"""Label of an answer that people hold for good."""
VOTES_NEEDED = 60
"""Good answers without which nothing is said of the judge's votes."""
FALSE_VOTES = 0.05
"""Share of good answers that its votes may hold for noncommittal."""
MOST = 100_000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled answer."""

    exchange: Exchange
    label: float
    """0 to 1."""
    scores: tuple[Score, ...] = ()
    group: str = ""
    """Rows to be ranked against each other; by default those of one question."""
    unit: str = ""
    """What was drawn independently; by default the group."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one metric agrees with the labels; a statistic is None where there is nothing to compare."""

    metric: str
    fingerprint: str
    n: int
    """Labelled rows with a score."""
    of: int
    """Labelled rows."""
    spearman: Interval | None = None
    auc: Interval | None = None
    pairs: Interval | None = None
    """Pairwise accuracy within groups."""
    pairs_absent_half: Interval | None = None
    """The same, where a pair that lacks a score counts half."""

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Votes:
    """What the judge's noncommittal votes say of answers that people hold for good."""

    n: int
    """Good answers that the judge voted on."""
    false: Interval | None
    """Share of them whose votes say noncommittal."""

    @property
    def may_count(self) -> bool | None:
        """Whether they may make a score noncommittal; None where there are too few to say."""
        if self.n < VOTES_NEEDED or self.false is None:
            return None
        return self.false.value <= FALSE_VOTES

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {**asdict(self), "may_count": self.may_count, "needed": VOTES_NEEDED, "limit": FALSE_VOTES}


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
    from germane.evaluation.sources import records_of

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


def _row(exchange: Exchange, label: float, scores: Iterable[Score]) -> Row:
    group = str(exchange.attributes.get("group") or " ".join((exchange.question or "").casefold().split()))
    return Row(exchange, label, tuple(scores), group, str(exchange.attributes.get("unit") or group))


def scored_now(path: Path) -> tuple[list[Exchange], list[Row]]:
    """Score a file by the settings' scorers; return its exchanges, and those rows that have a ``label``.

    Raises:
        UsageError: the file cannot be read, or a label is none.
        SettingsError: nothing can be scored.
    """
    from germane.evaluation import evaluate

    rows = evaluate(path).rows
    labelled = [row for row in rows if row.exchange.attributes.get("label") not in {None, ""}]
    return [row.exchange for row in rows], [
        _row(row.exchange, _label(row.exchange.attributes["label"], row.place), row.scores.values()) for row in labelled
    ]


def _label(value: Any, place: str) -> float:
    try:
        label = float(value)
    except (TypeError, ValueError):
        label = math.nan
    if not 0 <= label <= 1:
        raise UsageError(f"{place} has a label that is no number from 0 to 1")
    return label


def agreements(rows: Sequence[Row]) -> list[Agreement]:
    """Return how well each metric agrees with the labels, then the floors: what needs no model.

    Raises:
        UsageError: a group spans units.
    """
    scored: dict[tuple[str, str], dict[int, float]] = {}
    for place, row in enumerate(rows):
        for score in row.scores:
            if score.value is not None:
                scored.setdefault((score.scorer, score.fingerprint), {})[place] = score.value
    places = range(len(rows))
    metrics = [(*key, [found.get(place, math.nan) for place in places]) for key, found in sorted(scored.items())]
    floors = [(name, "", [measure(row.exchange) for row in rows]) for name, measure in _FLOORS.items()]
    return [_agreement(rows, *metric) for metric in [*metrics, *(floors if rows else [])]]


def _agreement(rows: Sequence[Row], metric: str, fingerprint: str, scores: Sequence[float]) -> Agreement:
    from germane.agreement import auc, pairwise_accuracy, spearman

    n = sum(not math.isnan(score) for score in scores)
    found = Agreement(metric, fingerprint, n, len(rows))
    if n < ENOUGH:
        return found
    groups = [row.group for row in rows]
    return replace(
        found,
        spearman=_interval(rows, spearman, scores=scores),
        auc=_interval(rows, auc, scores=scores),
        pairs=_interval(rows, pairwise_accuracy, scores=scores, groups=groups),
        pairs_absent_half=_interval(rows, _absent_half, scores=scores, groups=groups),
    )


def _absent_half(**arrays: Any) -> Any:
    from germane.agreement import pairwise_accuracy

    return pairwise_accuracy(**arrays, absent=0.5)


def _interval(rows: Sequence[Row], statistic: Statistic, **arrays: Sequence[Any]) -> Interval | None:
    from germane.agreement import interval

    units = [row.unit for row in rows]
    try:
        found = interval(partial(statistic, labels=[row.label for row in rows], **arrays), units)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return None if math.isnan(found.value) else found


def _overlap(exchange: Exchange) -> float:
    """Return the share of the question's words that the answer has."""
    asked = set(_WORD.findall((exchange.question or "").lower()))
    return len(asked & set(_WORD.findall((exchange.answer or "").lower()))) / len(asked) if asked else 0.0


_FLOORS = {
    "longer answer": lambda exchange: float(len(exchange.answer or "")),
    "shorter answer": lambda exchange: -float(len(exchange.answer or "")),
    "question overlap": _overlap,
}


def votes(rows: Sequence[Row]) -> Votes:
    """Return how often the judge's votes hold an answer for noncommittal that people hold for good."""
    from germane.agreement import interval, mean

    good = [(row, vote) for row in rows if row.label >= GOOD and (vote := _vote(row)) is not None]
    if not good:
        return Votes(0, None)
    found = interval(mean, [row.unit for row, _ in good], scores=[float(vote) for _, vote in good])
    return Votes(len(good), found)


def _vote(row: Row) -> bool | None:
    """Return what a strict majority of the votes in a score's details says; None where there are none."""
    for score in row.scores:
        questions = score.details.get("questions") if score.scorer == "answer_relevancy" else None
        told = [one.get("noncommittal") for one in questions or () if isinstance(one, Mapping)]
        if votes := [vote for vote in told if isinstance(vote, bool)]:
            return 2 * sum(votes) > len(votes)
    return None
