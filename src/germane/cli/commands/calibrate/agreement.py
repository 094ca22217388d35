"""Agreement of scores, and of simple text statistics, with human labels from feedback or a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from germane import evaluation
from germane.annotation import mean_label
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.records import select
from germane.score import Score

if TYPE_CHECKING:
    from germane.agreement import BootstrapInterval, Statistic
    from germane.storage import LabeledExchange, TrackingStore

MAX_LABELS: Final = 20_000
"""Maximum number of labels to load, newest first. More labels would take longer to load and barely narrow the
intervals."""
MIN_QUESTIONS: Final = 20
"""Minimum number of questions with labeled scores for measuring a metric's agreement."""
MIN_QUESTIONS_PER_CLASS: Final = 5
"""Minimum number of questions with good answers, and of questions with bad answers, for computing an AUC."""
MIN_GOOD_LABEL: Final = 0.75
MAX_BAD_LABEL: Final = 0.25
MAX_FALSE_REFUSAL_RATE: Final = 0.05
"""Maximum share of good answers that the judge may classify as refusals."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LabeledAnswer:
    """A labeled answer with its scores."""

    exchange: Exchange
    label: float
    """Label from 0 (bad) to 1 (good)."""
    scores: tuple[Score, ...] = ()
    group: str = ""
    """Answers in the same group are ranked against each other. By default, a group is the answers to a question."""
    unit: str = ""
    """Independently sampled unit. It is resampled as a whole. Defaults to the group."""


def load_feedback_labels(store: TrackingStore) -> list[LabeledAnswer]:
    """Return the answers that have feedback, each labeled with the mean of the users' latest labels."""
    feedback: dict[str, list[LabeledExchange]] = {}
    for labeled in store.labels.list_feedback(limit=MAX_LABELS):
        feedback.setdefault(labeled.exchange.id, []).append(labeled)
    labels = {id_: mean_label(one.feedback for one in reversed(newest_first)) for id_, newest_first in feedback.items()}
    exchanges = {exchange_id: labeled_exchanges[0].exchange for exchange_id, labeled_exchanges in feedback.items()}
    return _add_scores(store, exchanges, labels)


def load_file_labels(store: TrackingStore, path: Path) -> tuple[list[LabeledAnswer], int]:
    """Load the labels of stored answers from a file with ``exchange_id`` and ``label`` columns.

    Returns:
        The labeled answers, each with the mean of its labels, and the number of labels of unknown exchanges.

    Raises:
        UsageError: A row lacks one of the columns, or its label is invalid, or no labeled exchange is stored.
    """
    labels: dict[str, list[float]] = {}
    for place, record in evaluation.iterate_records(path):
        exchange_id = record.get("exchange_id") if isinstance(record, Mapping) else None
        if not isinstance(exchange_id, str) or "label" not in record:
            raise UsageError(f"{place} must have exchange_id and label; for rows with question and answer, use --file")
        labels.setdefault(exchange_id, []).append(_parse_label(record["label"], place))
    exchanges = store.answers.get_exchanges(list(labels))
    if not exchanges:
        raise UsageError(
            f"{path} contains no label of an exchange in the database. The column exchange_id must contain ids of "
            "exchanges, as 'germane export' writes them; to score the rows of a file, use --file"
        )
    unknown = sum(len(given) for exchange_id, given in labels.items() if exchange_id not in exchanges)
    return _add_scores(store, exchanges, {exchange_id: fmean(given) for exchange_id, given in labels.items()}), unknown


def score_labeled_file(
    path: Path, scorers: Sequence[str] = (), columns: Mapping[str, str] | None = None
) -> tuple[list[Exchange], list[LabeledAnswer]]:
    """Score a file with the given scorers, or by default the configured ones.

    Returns:
        The file's exchanges, and an answer for each row that has a ``label``.

    Raises:
        UsageError: The file cannot be read, or a label is invalid.
        SettingsError: No scorer can run.
    """
    rows = evaluation.evaluate(path, list(scorers) or None, columns=columns).rows
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

    # An erased question counts as unique.
    group = group or (exchange.id if exchange.question is None else normalize_for_comparison(exchange.question))
    return LabeledAnswer(exchange, label, tuple(scores), group, unit or group)


def _parse_label(value: Any, place: str) -> float:
    try:
        label = float(value)
    except (TypeError, ValueError):
        label = math.nan
    if not 0 <= label <= 1:
        raise UsageError(f"{place}: `label` must be a number from 0 to 1, not {str(value)!r:.60}")
    return label


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """Agreement between one metric and the labels. A statistic is None if there are too few answers to compare."""

    metric: str
    fingerprint: str
    n: int
    """Number of labeled answers with a score."""
    labeled: int
    """Number of labeled answers."""
    questions: int
    """Number of independent units among the answers with a score."""
    spearman: BootstrapInterval | None = None
    auc: BootstrapInterval | None = None
    pairs: BootstrapInterval | None = None
    """Pairwise accuracy within groups."""
    pairs_absent_half: BootstrapInterval | None = None
    """Pairwise accuracy that counts pairs with a missing score as half correct."""


def measure_agreement(answers: Sequence[LabeledAnswer]) -> list[MetricAgreement]:
    """Return the agreement of each metric with the labels, followed by that of simple text statistics.

    Raises:
        UsageError: A group contains several units.
    """
    units: dict[str, str] = {}
    for answer in answers:
        if units.setdefault(answer.group, answer.unit) != answer.unit:
            raise UsageError(
                f"group {answer.group!r:.60} contains several units; all rows of a group must have the same unit"
            )
    if not answers:
        return []
    values: dict[tuple[str, str], dict[int, float]] = {}
    for position, answer in enumerate(answers):
        for score in answer.scores:
            if score.value is not None:
                values.setdefault((score.scorer, score.fingerprint), {})[position] = score.value
    positions = range(len(answers))
    metrics = [
        (*key, [by_position.get(position, math.nan) for position in positions])
        for key, by_position in sorted(values.items())
    ]
    statistics = [(name, "", [measure(answer.exchange) for answer in answers]) for name, measure in _BASELINES.items()]
    return [_measure_metric(answers, *metric) for metric in [*metrics, *statistics]]


def _measure_metric(
    answers: Sequence[LabeledAnswer], metric: str, fingerprint: str, scores: Sequence[float]
) -> MetricAgreement:
    from germane.agreement import auc, bootstrap_interval, pairwise_accuracy, spearman

    scored = [answer for answer, score in zip(answers, scores, strict=True) if not math.isnan(score)]
    agreement = MetricAgreement(metric, fingerprint, len(scored), len(answers), questions=count_units(scored))
    if agreement.questions < MIN_QUESTIONS:
        return agreement

    def measure(statistic: Statistic, **arrays: Sequence[Any]) -> BootstrapInterval | None:
        labels, units = [answer.label for answer in answers], [answer.unit for answer in answers]
        interval = bootstrap_interval(partial(statistic, labels=labels, scores=scores, **arrays), units)
        return None if math.isnan(interval.value) else interval

    # With few good or few bad answers, an interval could be narrow by chance.
    good = count_units(answer for answer in scored if answer.label >= MIN_GOOD_LABEL)
    bad = count_units(answer for answer in scored if answer.label <= MAX_BAD_LABEL)
    has_classes = min(good, bad) >= MIN_QUESTIONS_PER_CLASS
    labels: dict[str, set[float]] = {}
    for answer in scored:
        labels.setdefault(answer.group, set()).add(answer.label)
    has_pairs = count_units(answer for answer in scored if len(labels[answer.group]) > 1) >= MIN_QUESTIONS
    groups = [answer.group for answer in answers]
    absent_half: Any = partial(pairwise_accuracy, absent=0.5)
    return replace(
        agreement,
        spearman=measure(spearman),
        auc=measure(partial(auc, high=MIN_GOOD_LABEL, low=MAX_BAD_LABEL)) if has_classes else None,
        pairs=measure(pairwise_accuracy, groups=groups) if has_pairs else None,
        pairs_absent_half=measure(absent_half, groups=groups) if has_pairs else None,
    )


def count_units(answers: Iterable[LabeledAnswer]) -> int:
    """Return the number of independently sampled units."""
    return len({answer.unit for answer in answers})


def _question_overlap(exchange: Exchange) -> float:
    """Return the share of the question's words that the answer contains."""
    words = set(_WORD.findall((exchange.question or "").lower()))
    return len(words & set(_WORD.findall((exchange.answer or "").lower()))) / len(words) if words else 0.0


_BASELINES: Final = {
    "longer answer": lambda exchange: float(len(exchange.answer or "")),
    "shorter answer": lambda exchange: -float(len(exchange.answer or "")),
    "question overlap": _question_overlap,
}


@dataclass(frozen=True, slots=True)
class RefusalVotes:
    """The judge's refusal votes on answers that humans labeled as good."""

    n: int = 0
    """Number of good answers that the judge voted on."""
    questions: int = 0
    """Number of independent units among these answers. Answers to one question are not independent."""
    false_rate: float | None = None
    """Share of these answers that the votes classify as refusals, or None if there are no such answers."""

    @property
    def max_false_rate(self) -> float | None:
        """Upper 95% confidence limit of ``false_rate``."""
        from germane.agreement import upper_limit

        return None if self.false_rate is None else upper_limit(self._false_questions, self.questions)

    @property
    def are_reliable(self) -> bool | None:
        """Whether the votes are reliable enough to detect refusals, or None if there is not enough data."""
        if self.false_rate is None or self.max_false_rate is None or self.questions < MIN_QUESTIONS:
            return None
        if self.max_false_rate <= MAX_FALSE_REFUSAL_RATE:
            return True
        return False if self.false_rate > MAX_FALSE_REFUSAL_RATE else None

    @property
    def needed_questions(self) -> int:
        """Number of questions needed to show that the votes are reliable, provided that no further vote is false."""
        from germane.agreement import upper_limit

        return next(
            questions
            for questions in count(1)
            if upper_limit(self._false_questions, questions) <= MAX_FALSE_REFUSAL_RATE
        )

    @property
    def _false_questions(self) -> int:
        return math.ceil((self.false_rate or 0.0) * self.questions - 1e-9)

    def as_dict(self) -> dict[str, Any]:
        """Return the votes as a dict for JSON output."""
        return {
            **select(self, "n", "questions", "false_rate", "max_false_rate", "are_reliable", "needed_questions"),
            "limit": MAX_FALSE_REFUSAL_RATE,
        }


def measure_refusal_votes(answers: Sequence[LabeledAnswer]) -> RefusalVotes:
    """Return the judge's refusal votes on good answers.

    Only the newest fingerprint counts, because other judges vote differently.
    """
    votes: list[tuple[LabeledAnswer, Score, bool]] = []
    for answer in answers:
        for score in answer.scores:
            questions = score.details.get("questions") if score.scorer == "answer_relevancy" else None
            given = [question.get("noncommittal") for question in questions or () if isinstance(question, Mapping)]
            cast = [vote for vote in given if isinstance(vote, bool)]
            if cast:  # a strict majority classifies the answer as a refusal
                votes.append((answer, score, 2 * sum(cast) > len(cast)))
    if not votes:
        return RefusalVotes()
    newest = max(votes, key=lambda vote: vote[1].scored_at or datetime.min.replace(tzinfo=UTC))[1].fingerprint
    good = [
        (answer, vote)
        for answer, score, vote in votes
        if answer.label >= MIN_GOOD_LABEL and score.fingerprint == newest
    ]
    if not good:
        return RefusalVotes()
    false_rate = sum(vote for _, vote in good) / len(good)
    return RefusalVotes(len(good), count_units(answer for answer, _ in good), false_rate)
