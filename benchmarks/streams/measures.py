"""Statistics over the outcomes of simulated services, each with its standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streams.cases import PHASE
from streams.recipe import BASELINE_DAYS
from streams.watched import Outcome, first_alert

WEEK = 24 * 7
RESAMPLES = 1000
BOOTSTRAP = 7


@dataclass(frozen=True, slots=True)
class Measured:
    """A statistic with its standard error."""

    value: float
    error: float
    """Standard error. For quantiles, half the width of the middle 68% of bootstrap resamples. nan if undefined."""
    count: int
    """Number of services."""


def alerts(outcomes: Sequence[Outcome], days: float = PHASE, *, from_onset: bool = False) -> Measured:
    """Return the number of alerts per service over ``days``, counted from the end of the baseline or from the onset."""
    begins = [outcome.onset if from_onset else 24.0 * BASELINE_DAYS for outcome in outcomes]
    return mean([len(_fired(one, at, at + 24 * days)) for one, at in zip(outcomes, begins, strict=True)])


def found(outcomes: Sequence[Outcome], within: float) -> Measured:
    """Return the share of services with an alert at most ``within`` hours after the onset."""
    return share([first_alert(outcome) <= within for outcome in outcomes])


def delay(outcomes: Sequence[Outcome]) -> Measured:
    """Return the median number of hours from the onset to the first alert; infinite if most changes are missed."""
    return quantile([first_alert(outcome) for outcome in outcomes], 0.5)


def notifications(outcomes: Sequence[Outcome]) -> Measured:
    """Return the notifications (firing or resolved) per service while the drop lasts; ideal: 1 per detected drop."""
    return mean([_during(outcome) for outcome in outcomes])


def alerted(outcomes: Sequence[Outcome]) -> Measured:
    """Return the share of services with an alert while the drop lasts."""
    return share([bool(_fired(outcome, outcome.onset, outcome.end)) for outcome in outcomes])


def per_drop(outcomes: Sequence[Outcome]) -> Measured:
    """Return the number of notifications per detected drop while the drop lasts; ideal: 1."""
    return mean([_during(one) for one in outcomes if _fired(one, one.onset, one.end)])


def in_all_per_drop(outcomes: Sequence[Outcome]) -> Measured:
    """Return the number of notifications per detected drop up to a month after the recovery; ideal: 2."""
    return mean(
        [sum(at >= one.onset for at, _ in one.transitions) for one in outcomes if _fired(one, one.onset, one.end)]
    )


def premature(outcomes: Sequence[Outcome]) -> Measured:
    """Return the number of resolutions per detected drop while the drop lasts."""
    drops = [one for one in outcomes if _fired(one, one.onset, one.end)]
    return mean([sum(not fires and _first(one) < at < one.end for at, fires in one.transitions) for one in drops])


def recovery_delay(outcomes: Sequence[Outcome], share_of: float) -> Measured:
    """Return the number of hours after the recovery within which this share of the firing alerts resolves."""
    return quantile([_resolved(outcome) for outcome in outcomes if _firing_at(outcome, outcome.end)], share_of)


def mean(values: Sequence[float]) -> Measured:
    """Return a mean. If all values are equal, its error is the same as if one service differed by 1."""
    many = len(values)
    if not many:
        return Measured(math.nan, math.nan, 0)
    deviation = float(np.std(values, ddof=1)) if many > 1 else 0.0
    return Measured(float(np.mean(values)), max(deviation / math.sqrt(many), 1 / many), many)


def share(values: Sequence[bool]) -> Measured:
    """Return a share with its binomial error, which is at least as large as if one service differed."""
    many, value = len(values), float(np.mean(values))
    return Measured(value, max(math.sqrt(value * (1 - value) / many), 1 / many), many)


def quantile(values: Sequence[float], which: float) -> Measured:
    """Return a quantile and its bootstrap error."""
    if not values:
        return Measured(math.nan, math.nan, 0)
    sorted_values = np.sort(values)
    picks = np.random.default_rng(BOOTSTRAP).integers(len(values), size=(RESAMPLES, len(values)))
    resampled = np.quantile(sorted_values[picks], which, axis=1, method="higher")
    low, high = np.quantile(resampled, [0.16, 0.84], method="higher")
    return Measured(float(np.quantile(sorted_values, which, method="higher")), _half(low, high), len(values))


def _half(low: float, high: float) -> float:
    return math.nan if math.isinf(high) else float(high - low) / 2


def _fired(outcome: Outcome, since: float, until: float) -> list[float]:
    return [at for at, fires in outcome.transitions if fires and since <= at < until]


def _during(outcome: Outcome) -> int:
    return sum(outcome.onset <= at < outcome.end for at, _ in outcome.transitions)


def _first(outcome: Outcome) -> float:
    return _fired(outcome, outcome.onset, outcome.end)[0]


def _firing_at(outcome: Outcome, moment: float) -> bool:
    before = [fires for at, fires in outcome.transitions if at < moment]
    return bool(before) and before[-1]


def _resolved(outcome: Outcome) -> float:
    return min(
        (at - outcome.end for at, fires in outcome.transitions if not fires and at >= outcome.end), default=math.inf
    )
