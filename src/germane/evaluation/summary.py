"""What one scorer says of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    from germane.storage.estimate import Sums, estimate

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
