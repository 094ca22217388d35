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
    from germane.statistics import Estimate

ROUNDING_TOLERANCE = 1e-9
"""Tolerance for rounding errors: a mean passes if it is below the threshold by at most this amount."""


@dataclass(frozen=True, slots=True)
class RowScores:
    """One row of a data set, and its scores by scorer name."""

    exchange: Exchange
    scores: Mapping[str, Score]
    location: str = ""
    """Location of the row, such as ``row 0`` or ``answers.csv, line 2``."""
    has_id: bool = True
    """Whether the exchange's id comes from the row. Otherwise, it was generated."""


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
    """Summary of one scorer's scores with one fingerprint.

    Scores with different fingerprints are never averaged together.
    """

    scorer: str
    rows: int
    """Number of rows in the data set."""
    estimate: Estimate | None
    """The mean with its sample size and interval; None if no row has a score."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Number of rows without a score, by reason."""
    fingerprint: str = ""
    """Fingerprint of the scores. If no row has a score, it is the fingerprint of the failed or skipped scores."""
    scored: int = 0
    """Number of rows with a score, across all fingerprints. There can be several, because a server may change its model
    during a run."""
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


@dataclass(slots=True)
class FingerprintSums:
    """Sums over the scores with one fingerprint."""

    n: int = 0
    n_zero: int = 0
    total: float = 0.0
    squares: float = 0.0
    low: int = 0
    noncommittal: int = 0
    minimum: float = math.inf
    maximum: float = -math.inf

    def add(self, score: Score, value: float) -> None:
        """Add a score with its value."""
        self.n += 1
        self.n_zero += value == 0.0
        self.total += value
        self.squares += value * value
        self.low += score.is_low
        self.noncommittal += score.label == NONCOMMITTAL
        self.minimum, self.maximum = min(self.minimum, value), max(self.maximum, value)

    def merge(self, other: FingerprintSums) -> None:
        """Add the sums over other scores."""
        for name in ("n", "n_zero", "total", "squares", "low", "noncommittal"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.minimum, self.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)

    def estimate(self, scorer: str, fingerprint: str) -> Estimate:
        """Return the mean with its interval."""
        from germane.statistics import WeightedSums, estimate_mean

        sums = WeightedSums.of_equal_weights(
            n=self.n,
            n_zero=self.n_zero,
            total=self.total,
            squares=self.squares,
            low=self.low,
            noncommittal=self.noncommittal,
        )
        return estimate_mean(sums, scorer, fingerprint)


@dataclass(slots=True)
class ScorerSums:
    """Sums over one scorer's results."""

    rows: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    unscored_fingerprint: str = ""
    """Fingerprint of the first result, which is used if no row has a score."""
    fingerprints: dict[str, FingerprintSums] = field(default_factory=dict)


class SummarySums:
    """Running sums from which the summaries of any number of rows are computed."""

    def __init__(self) -> None:
        self.rows = 0
        self.scorers: dict[str, ScorerSums] = {}

    def add(self, scores: Mapping[str, Score]) -> None:
        """Add the scores of a row."""
        self.rows += 1
        for name, score in scores.items():
            sums = self.scorers.setdefault(name, ScorerSums(unscored_fingerprint=score.fingerprint))
            sums.rows += 1
            if score.value is not None:
                sums.fingerprints.setdefault(score.fingerprint, FingerprintSums()).add(score, score.value)
            if score.reason is not None:
                sums.reasons[str(score.reason)] += 1

    def merge(self, other: SummarySums) -> None:
        """Add the sums over other rows."""
        self.rows += other.rows
        for name, theirs in other.scorers.items():
            sums = self.scorers.setdefault(name, ScorerSums(unscored_fingerprint=theirs.unscored_fingerprint))
            sums.rows += theirs.rows
            sums.reasons.update(theirs.reasons)
            for fingerprint, group in theirs.fingerprints.items():
                sums.fingerprints.setdefault(fingerprint, FingerprintSums()).merge(group)

    def summaries(self) -> list[ScorerSummary]:
        """Return one summary for each scorer and fingerprint. Each scorer's most frequent fingerprint comes first."""
        summaries = []
        for name, sums in self.scorers.items():
            groups = sorted(sums.fingerprints.items(), key=lambda group: -group[1].n)
            empty = (sums.unscored_fingerprint, FingerprintSums())
            summaries += [
                ScorerSummary(
                    scorer=name,
                    rows=sums.rows,
                    estimate=group.estimate(name, fingerprint) if group.n else None,
                    reasons=dict(sums.reasons),
                    fingerprint=fingerprint,
                    scored=sum(each.n for each in sums.fingerprints.values()),
                    minimum=group.minimum if group.n else None,
                    maximum=group.maximum if group.n else None,
                    total=group.total,
                )
                for fingerprint, group in groups or [empty]
            ]
        return summaries


def summarize(rows: Sequence[RowScores]) -> list[ScorerSummary]:
    """Return one summary for each scorer and fingerprint. Each scorer's most frequent fingerprint comes first."""
    sums = SummarySums()
    for row in rows:
        sums.add(row.scores)
    return sums.summaries()


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
    """Return the answers with problems, lowest first; see :meth:`germane.Evaluation.problems`."""
    if not math.isfinite(threshold):
        raise UsageError(f"threshold must be a finite number, not {threshold}")
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
    is_known = score.label != UNCALIBRATED or isinstance(score.details.get("direct"), float)  # scale, or disagreement
    return score.is_low or (value < threshold and is_known)


def check_thresholds(
    summaries: Sequence[ScorerSummary], min_mean: float | None, min_coverage: float | None
) -> EvaluationCheck:
    """Check each scorer's mean and coverage against thresholds.

    A mean below ``min_mean`` fails even if the threshold lies inside the mean's interval, which the message shows. The
    mean of fewer than 20 scores is not checked. Coverage is always checked, because it is exact.

    Raises:
        UsageError: ``min_mean`` is not finite, or ``min_coverage`` is not from 0 to 1.
    """
    if min_mean is not None and not math.isfinite(min_mean):
        raise UsageError(f"min_mean must be a finite number, not {min_mean}")
    if min_coverage is not None and not 0 <= min_coverage <= 1:
        raise UsageError(f"min_coverage must be a share of the rows, from 0 to 1, not {min_coverage}")
    fingerprints = Counter(summary.scorer for summary in summaries)
    results = []
    for summary in summaries:
        mean_message, mean_failed = _check_mean(summary, min_mean)
        coverage_message = f"{summary.scored} of {summary.rows} rows scored"
        coverage_failed = min_coverage is not None and summary.coverage < min_coverage
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
    if estimate is None:
        return f"not enough data (n=0, need {MIN_SAMPLES})", False
    low, high = estimate.interval or (-1.0, 1.0)
    message = f"mean {estimate.mean:z.3f} (n={estimate.n}, 95% interval {low:z.3f} to {high:z.3f})"
    if estimate.n < MIN_SAMPLES:
        return f"{message}, not enough data to check it (need {MIN_SAMPLES})", False
    if minimum is None:
        return message, False
    failed = estimate.mean < minimum - ROUNDING_TOLERANCE
    uncertain = ", which is inside the interval" if low <= minimum <= high else ""
    return f"{message} is {'below' if failed else 'at least'} {minimum:g}{uncertain}", failed
