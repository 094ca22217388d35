"""Shares of answers with poor contexts, unsupported answers and refusals, before and since the onset of a drop.

What counts as poor is measured on the installation's own scores: the lowest tenth before the onset. Fixed limits would
call most good answers of some applications poor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from germane.alert import Interval
from germane.alerting import effective_sample_size
from germane.score import MIN_SAMPLES
from germane.statistics import wilson_interval
from germane.storage import RouteMean, TrackingStore

REFERENCE_PERIOD: Final = timedelta(days=7)
"""Length of the period before the onset."""
LOWEST_SHARE: Final = 0.1
"""Share of the scores before the onset that count as poor."""
_SYMPTOMS: Final = {
    "context_relevance": "Contexts of low relevance to the question",
    "context_similarity": "Contexts of low similarity to the question",
    "faithfulness": "Answers that the contexts support poorly",
    "context_coverage": "Answers with few words of the contexts",
}
"""What a low score means, by scorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLevel:
    """A share of answers with its interval."""

    share: float
    """In [0, 1]."""
    interval: Interval
    """95% Wilson score interval."""
    n: int
    """Number of scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseShare:
    """The share of answers with a symptom, before and since the onset."""

    symptom: str
    below: float | None
    """Scores below this have the symptom, in [0, 1]; None for refusals."""
    before: ShareLevel
    since: ShareLevel

    @property
    def has_risen(self) -> bool:
        """Whether the share is higher since the onset, and the intervals do not overlap."""
        return self.since.interval[0] > self.before.interval[1]


def load_cause_shares(
    store: TrackingStore, onset: datetime, until: datetime, *, scorer: str, service: str | None, route: str | None
) -> list[CauseShare]:
    """Return the shares on a route, or in a whole service, for the scorers that have enough scores on both sides.

    Refusals are those that ``scorer`` detects.
    """

    def load(name: str, since: datetime, end: datetime) -> list[RouteMean]:
        means = store.trends.means(scorer=name, since=since, until=end, route=route, service=service)
        return [mean for mean in means if mean.newest]

    shares: list[CauseShare | None] = []
    for name in dict.fromkeys((*_SYMPTOMS, scorer)):
        since = load(name, onset, until)
        judges = {mean.fingerprint for mean in since}  # scores of different judges are not comparable
        before = [mean for mean in load(name, onset - REFERENCE_PERIOD, onset) if mean.fingerprint in judges]
        if min(sum(mean.n for mean in means) for means in (before, since)) >= MIN_SAMPLES:
            shares.append(_poor_share(name, before, since) if name in _SYMPTOMS else _refusal_share(before, since))
    return [share for share in shares if share is not None]


def _poor_share(scorer: str, before: Sequence[RouteMean], since: Sequence[RouteMean]) -> CauseShare:
    weights, after = _sum_weights(before), _sum_weights(since)
    below = [weight / sum(weights) for weight in accumulate(weights, initial=0.0)]
    # Many scores may be equal, so that no limit has exactly a tenth below it.
    limit = min(range(len(below)), key=lambda number: (abs(below[number] - LOWEST_SHARE), -number))
    shares = (below[limit], sum(after[:limit]) / sum(after))
    return _cause_share(_SYMPTOMS[scorer], (before, since), shares, below=limit / len(weights))


def _refusal_share(before: Sequence[RouteMean], since: Sequence[RouteMean]) -> CauseShare | None:
    shares = []
    for means in (before, since):
        if any(mean.noncommittal_share is None for mean in means):
            return None
        totals = [sum(_sum_weights([mean])) for mean in means]
        refused = sum(total * (mean.noncommittal_share or 0.0) for mean, total in zip(means, totals, strict=True))
        shares.append(refused / sum(totals))
    return _cause_share("Refusals", (before, since), shares)


def _sum_weights(means: Iterable[RouteMean]) -> list[float]:
    histograms = [mean.histogram.weights for mean in means if mean.histogram is not None]
    return [sum(column) for column in zip(*histograms, strict=True)]


def _cause_share(
    symptom: str, sides: Iterable[Sequence[RouteMean]], shares: Sequence[float], *, below: float | None = None
) -> CauseShare:
    before, since = (
        ShareLevel(
            share=share,
            interval=wilson_interval(share, sum(map(effective_sample_size, means))),
            n=sum(mean.n for mean in means),
        )
        for means, share in zip(sides, shares, strict=True)
    )
    return CauseShare(symptom=symptom, below=below, before=before, since=since)
