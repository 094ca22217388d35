"""What one scorer says of a data set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from germane.errors import UsageError
from germane.score import Score

if TYPE_CHECKING:
    from germane.storage import Estimate


@dataclass(frozen=True, slots=True)
class ScorerSummary:
    """What one scorer says of a data set: by one fingerprint, since scores that differ in it are never averaged."""

    scorer: str
    asked: int
    """Rows."""
    estimate: Estimate | None
    """Mean with n and interval; None when no row has a score."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score, by reason."""
    fingerprint: str = ""
    """Of the scores; where there is none, of what was tried."""
    scored: int = 0
    """Rows with a score, by whatever fingerprint: a judge's server may change its model halfway."""

    @property
    def n(self) -> int:
        """Scores of this fingerprint."""
        return self.estimate.n if self.estimate else 0

    @property
    def coverage(self) -> float:
        """Share of the rows that have a score, 0 to 1; 0 of no rows."""
        return self.scored / self.asked if self.asked else 0.0


def summaries_of(scores: Sequence[Score]) -> list[ScorerSummary]:
    """Return the summaries of one scorer's scores, that with most scores first."""
    found: dict[str, list[Score]] = {}
    for score in scores:
        if score.value is not None:
            found.setdefault(score.fingerprint, []).append(score)
    reasons = Counter(str(score.reason) for score in scores if score.reason is not None)
    name, scored = scores[0].scorer, sum(map(len, found.values()))
    groups = sorted(found.items(), key=lambda group: -len(group[1])) or [(scores[0].fingerprint, [])]
    return [
        ScorerSummary(name, len(scores), _estimate(group) if group else None, reasons, fingerprint, scored)
        for fingerprint, group in groups
    ]


def _estimate(scores: Sequence[Score]) -> Estimate:
    from germane.storage.stats.estimate import Sums, estimate

    values = [score.value or 0.0 for score in scores]
    n, zeros = len(values), values.count(0.0)
    total, squares = sum(values), sum(value * value for value in values)
    return estimate(
        Sums(
            n=n,
            n_zero=zeros,
            w=n,
            w_zero=zeros,
            ww=n,
            ww_zero=zeros,
            wy=total,
            wyy=squares,
            wwy=total,
            wwyy=squares,
            w_low=sum(score.is_low for score in scores),
            w_noncommittal=sum(score.label == "noncommittal" for score in scores),
        )
    )


ENOUGH = 20
"""Fewer scores than this are not enough data to judge by."""
NOISE = 1e-9
"""How far rounding may carry a mean under a threshold that it equals."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check says of one scorer."""

    scorer: str
    broken: bool
    """Whether a threshold is broken: coverage, or the mean of enough scores."""
    enough_data: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Check:
    """What the check says of a data set."""

    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether some threshold is broken."""
        return any(finding.broken for finding in self.findings)

    @property
    def enough_data(self) -> bool:
        """Whether every scorer gave at least 20 scores of one fingerprint."""
        enough = {finding.scorer for finding in self.findings if finding.enough_data}
        return bool(self.findings) and enough == {finding.scorer for finding in self.findings}

    @property
    def passed(self) -> bool:
        """Whether there are enough scores and all of them keep the thresholds."""
        return self.enough_data and not self.broken

    def __str__(self) -> str:
        return "\n".join(finding.sentence for finding in self.findings) or "There are no rows."


def check(summaries: Sequence[ScorerSummary], min_mean: float | None, min_coverage: float | None) -> Check:
    """Compare each scorer's mean and coverage with the least that they may be.

    A mean under ``min_mean`` breaks it, however wide its interval, which the sentence names. Of fewer than 20 scores
    the mean is not judged; coverage is a count, and always is.

    Raises:
        UsageError: ``min_mean`` is not finite, or ``min_coverage`` is not from 0 to 1.
    """
    if min_mean is not None and not math.isfinite(min_mean):
        raise UsageError(f"min_mean is {min_mean}: it must be a finite number")
    if min_coverage is not None and not 0 <= min_coverage <= 1:
        raise UsageError(f"min_coverage is {min_coverage}: it is a share of the rows, from 0 to 1")
    return Check(tuple(_finding(summary, summaries, min_mean, min_coverage) for summary in summaries))


def _finding(
    summary: ScorerSummary, others: Sequence[ScorerSummary], min_mean: float | None, min_coverage: float | None
) -> Finding:
    enough = summary.n >= ENOUGH
    low = enough and min_mean is not None and summary.estimate is not None and summary.estimate.mean < min_mean - NOISE
    thin = min_coverage is not None and summary.asked > 0 and summary.coverage < min_coverage
    alone = sum(other.scorer == summary.scorer for other in others) == 1
    name = summary.scorer if alone else f"{summary.scorer} (fingerprint {summary.fingerprint})"
    parts = [_of_mean(summary, min_mean, low=low), _of_coverage(summary, min_coverage, thin=thin)]
    return Finding(summary.scorer, low or thin, enough, f"{name}: {'; '.join(parts)}.")


def _of_mean(summary: ScorerSummary, least: float | None, *, low: bool) -> str:
    found = summary.estimate
    if found is None or found.n < ENOUGH:
        return f"not enough data (n={summary.n}, need {ENOUGH})"
    low_end, high_end = found.interval or (found.mean, found.mean)
    said = f"mean {found.mean:.3f} (n={found.n}, 95 % interval {low_end:.3f} to {high_end:.3f})"
    if least is None:
        return said
    unsure = ", which its interval includes" if low_end <= least <= high_end else ""
    return f"{said} {'is under' if low else 'keeps'} {least:g}{unsure}"


def _of_coverage(summary: ScorerSummary, least: float | None, *, thin: bool) -> str:
    said = f"{summary.scored} of {summary.asked} rows scored"
    why = ", ".join(f"{count} {reason}" for reason, count in summary.reasons.items())
    verdict = "" if least is None else f", {'under' if thin else 'at least'} {least:.1%}"
    return f"{said}{verdict}{f' ({why})' if why else ''}"
