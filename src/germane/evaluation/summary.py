"""Summaries of a data set's scores per scorer, and threshold checks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import MIN_SAMPLES, NONCOMMITTAL, UNCALIBRATED, Score

if TYPE_CHECKING:
    from germane.storage import Estimate

ROUNDING_TOLERANCE = 1e-9
"""A mean that is below a threshold by no more than this passes, to allow for rounding errors."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """One row of a data set, and its scores by scorer name."""

    exchange: Exchange
    scores: Mapping[str, Score]
    location: str = ""
    """Location of the row, such as ``row 0`` or ``answers.csv, line 2``."""


@dataclass(frozen=True, slots=True)
class ScoringProblem:
    """A low or failed score."""

    row: RowScores
    score: Score


@dataclass(frozen=True, slots=True)
class AnswerProblem:
    """An answer with at least one problematic score."""

    rows: tuple[RowScores, ...]
    """The rows with this question and answer."""
    issues: tuple[Score, ...]
    """The scores of the first row that are low, below the threshold, or failed."""

    @property
    def row(self) -> RowScores:
        """The first row."""
        return self.rows[0]

    @property
    def lowest(self) -> float | None:
        """The lowest value among the problematic scores; None if all of them failed."""
        return min((score.value for score in self.issues if score.value is not None), default=None)


@dataclass(frozen=True, slots=True)
class ScorerSummary:
    """Summary of one scorer's scores with one fingerprint. Scores with different fingerprints are never averaged
    together.
    """

    scorer: str
    rows: int
    """Number of rows in the data set."""
    estimate: Estimate | None
    """The mean with its sample size and interval; None if no row has a score."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Number of rows without a score, by reason."""
    fingerprint: str = ""
    """Fingerprint of the scores, or of the unscored attempts if no row has a score."""
    scored: int = 0
    """Number of rows with a score, across all fingerprints: a server may change its model during a run."""
    minimum: float | None = None
    """The lowest score; None if no row has a score."""
    maximum: float | None = None
    """The highest score."""
    total: float = 0.0
    """The sum of the scores."""

    @property
    def n(self) -> int:
        """Number of scores with this fingerprint."""
        return self.estimate.n if self.estimate else 0

    @property
    def coverage(self) -> float:
        """Share of rows that have a score, from 0 to 1; 0 if there are no rows."""
        return self.scored / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """The threshold check for one scorer."""

    scorer: str
    failed: bool
    """Whether the coverage, or the mean of at least 20 scores, is below its threshold."""
    has_min_samples: bool
    message: str


@dataclass(frozen=True, slots=True)
class EvaluationCheck:
    """The result of checking a data set against thresholds."""

    results: tuple[ThresholdResult, ...]

    @property
    def failed(self) -> bool:
        """Whether any scorer is below a threshold."""
        return any(result.failed for result in self.results)

    @property
    def has_min_samples(self) -> bool:
        """Whether every scorer has at least 20 scores with one fingerprint."""
        sufficient = {result.scorer for result in self.results if result.has_min_samples}
        return bool(self.results) and sufficient == {result.scorer for result in self.results}

    @property
    def passed(self) -> bool:
        """Whether every scorer has enough scores and meets all thresholds."""
        return self.has_min_samples and not self.failed

    def __str__(self) -> str:
        return "\n".join(result.message for result in self.results) or "There are no rows."


def summarize(rows: Sequence[RowScores]) -> list[ScorerSummary]:
    """Return a summary per scorer and fingerprint, with each scorer's most frequent fingerprint first."""
    summaries = []
    for name in dict.fromkeys(name for row in rows for name in row.scores):
        scores = [row.scores[name] for row in rows]
        by_fingerprint: dict[str, list[Score]] = {}
        for score in scores:
            if score.value is not None:
                by_fingerprint.setdefault(score.fingerprint, []).append(score)
        groups = sorted(by_fingerprint.items(), key=lambda group: -len(group[1]))
        summaries += [
            ScorerSummary(
                scorer=scores[0].scorer,
                rows=len(scores),
                estimate=_estimate(group) if group else None,
                reasons=Counter(str(score.reason) for score in scores if score.reason is not None),
                fingerprint=fingerprint,
                scored=sum(map(len, by_fingerprint.values())),
                minimum=min(_values(group), default=None),
                maximum=max(_values(group), default=None),
                total=math.fsum(_values(group)),
            )
            for fingerprint, group in groups or [(scores[0].fingerprint, [])]
        ]
    return summaries


def find_problems(rows: Sequence[RowScores]) -> list[ScoringProblem]:
    """Return the low scores, lowest first, followed by the failed scores in row order."""
    problems = [
        ScoringProblem(row, score)
        for row in rows
        for score in row.scores.values()
        if score.state == "failed" or score.is_low
    ]
    return sorted(problems, key=lambda problem: (problem.score.value is None, problem.score.value or 0.0))


def find_problem_answers(rows: Sequence[RowScores], threshold: float) -> list[AnswerProblem]:
    """Return the answers with low scores, failed scores, or scores below the threshold, lowest first.

    The threshold applies to the value that determines the label: the calibrated value if there is one.

    Raises:
        UsageError: the threshold is not finite.
    """
    if not math.isfinite(threshold):
        raise UsageError(f"threshold is {threshold}: it must be a finite number")
    by_answer: dict[tuple[object, ...], list[RowScores]] = {}
    for row in rows:
        exchange = row.exchange
        key = (exchange.question, exchange.answer, exchange.contexts, exchange.history)
        by_answer.setdefault(key, []).append(row)
    problems = []
    for group in by_answer.values():
        issues = tuple(score for score in group[0].scores.values() if _is_issue(score, threshold))
        if issues:
            problems.append(AnswerProblem(tuple(group), issues))
    return sorted(problems, key=lambda problem: (problem.lowest is None, problem.lowest or 0.0))


def _is_issue(score: Score, threshold: float) -> bool:
    if score.value is None:
        return score.state == "failed"
    calibrated = score.details.get("calibrated")
    value = calibrated if isinstance(calibrated, float) else score.value
    return score.is_low or (value < threshold and score.label != UNCALIBRATED)


def check_thresholds(
    summaries: Sequence[ScorerSummary], min_mean: float | None, min_coverage: float | None
) -> EvaluationCheck:
    """Check each scorer's mean and coverage against thresholds.

    A mean below ``min_mean`` fails even if the threshold lies inside its interval, which the message includes. The mean
    of fewer than 20 scores is not checked. Coverage is always checked, because it is exact.

    Raises:
        UsageError: ``min_mean`` is not finite, or ``min_coverage`` is not from 0 to 1.
    """
    if min_mean is not None and not math.isfinite(min_mean):
        raise UsageError(f"min_mean is {min_mean}: it must be a finite number")
    if min_coverage is not None and not 0 <= min_coverage <= 1:
        raise UsageError(f"min_coverage is {min_coverage}: it must be a share of the rows, from 0 to 1")
    fingerprints = Counter(summary.scorer for summary in summaries)
    results = []
    for summary in summaries:
        mean_message, mean_failed = _check_mean(summary, min_mean)
        coverage_message = f"{summary.scored} of {summary.rows} rows scored"
        coverage_failed = min_coverage is not None and summary.rows > 0 and summary.coverage < min_coverage
        if min_coverage is not None:
            coverage_message += f", {'below' if coverage_failed else 'at least'} {min_coverage:.1%}"
        if summary.reasons:
            reasons = ", ".join(f"{count} {reason}" for reason, count in summary.reasons.items())
            coverage_message += f" ({reasons})"
        is_only_one = fingerprints[summary.scorer] == 1
        name = summary.scorer if is_only_one else f"{summary.scorer} (fingerprint {summary.fingerprint})"
        results.append(
            ThresholdResult(
                scorer=summary.scorer,
                failed=mean_failed or coverage_failed,
                has_min_samples=summary.n >= MIN_SAMPLES,
                message=f"{name}: {mean_message}; {coverage_message}.",
            )
        )
    return EvaluationCheck(tuple(results))


def _check_mean(summary: ScorerSummary, minimum: float | None) -> tuple[str, bool]:
    estimate = summary.estimate
    if estimate is None or estimate.n < MIN_SAMPLES:
        return f"not enough data (n={summary.n}, need {MIN_SAMPLES})", False
    low, high = estimate.interval or (estimate.mean, estimate.mean)
    message = f"mean {estimate.mean:.3f} (n={estimate.n}, 95 % interval {low:.3f} to {high:.3f})"
    if minimum is None:
        return message, False
    failed = estimate.mean < minimum - ROUNDING_TOLERANCE
    uncertain = ", which is inside the interval" if low <= minimum <= high else ""
    return f"{message} is {'below' if failed else 'at least'} {minimum:g}{uncertain}", failed


def _estimate(scores: Sequence[Score]) -> Estimate:
    from germane.storage import WeightedSums, estimate_mean

    values = _values(scores)
    sums = WeightedSums.of_equal_weights(
        n=len(values),
        n_zero=values.count(0.0),
        total=sum(values),
        squares=sum(value * value for value in values),
        low=sum(score.is_low for score in scores),
        noncommittal=sum(score.label == NONCOMMITTAL for score in scores),
    )
    return estimate_mean(sums, scores[0].scorer, scores[0].fingerprint)


def _values(scores: Sequence[Score]) -> list[float]:
    return [score.value for score in scores if score.value is not None]
