"""Figures of what services were told, each with its standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streams.cases import PHASE
from streams.recipe import BASELINE_DAYS
from streams.watched import Outcome, first_alarm

WEEK = 24 * 7
RESAMPLES = 1000
BOOTSTRAP = 7


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure."""

    value: float
    error: float
    """Standard error; for a median half of what holds the middle 68 % of bootstrapped ones; nan: not to be had."""
    count: int
    """Services it is from."""


def alarms(outcomes: Sequence[Outcome], days: float = PHASE, *, from_onset: bool = False) -> Measured:
    """Return alarms per service over so many days, from the end of the baseline or from the onset on."""
    begins = [outcome.onset if from_onset else 24.0 * BASELINE_DAYS for outcome in outcomes]
    return mean([len(_fired(one, at, at + 24 * days)) for one, at in zip(outcomes, begins, strict=True)])


def found(outcomes: Sequence[Outcome], within: float) -> Measured:
    """Return the share of services whose change was told within so many hours of its onset."""
    return share([first_alarm(outcome) <= within for outcome in outcomes])


def delay(outcomes: Sequence[Outcome]) -> Measured:
    """Return the median hours from the onset to the first alarm; infinite: most changes were not told."""
    return quantile([first_alarm(outcome) for outcome in outcomes], 0.5)


def notifications(outcomes: Sequence[Outcome]) -> Measured:
    """Return how often it fired or resolved per service while the drop lasted: of each drop found, best once."""
    return mean([_during(outcome) for outcome in outcomes])


def told(outcomes: Sequence[Outcome]) -> Measured:
    """Return the share of services whose drop was told while it lasted."""
    return share([bool(_fired(outcome, outcome.onset, outcome.end)) for outcome in outcomes])


def per_drop(outcomes: Sequence[Outcome]) -> Measured:
    """Return how often it fired or resolved while the drop lasted, per drop that it found: at best once."""
    return mean([_during(one) for one in outcomes if _fired(one, one.onset, one.end)])


def in_all_per_drop(outcomes: Sequence[Outcome]) -> Measured:
    """Return how often it fired or resolved per drop that it found, up to a month after the recovery: at best twice."""
    return mean([sum(at >= one.onset for at, _ in one.turns) for one in outcomes if _fired(one, one.onset, one.end)])


def premature(outcomes: Sequence[Outcome]) -> Measured:
    """Return the resolves while the drop lasted, per drop that it found."""
    drops = [one for one in outcomes if _fired(one, one.onset, one.end)]
    return mean([sum(not fires and _first(one) < at < one.end for at, fires in one.turns) for one in drops])


def back(outcomes: Sequence[Outcome], share_of: float) -> Measured:
    """Return after how many hours of recovery this share of what was firing then had resolved."""
    return quantile([_resolved(outcome) for outcome in outcomes if _firing_at(outcome, outcome.end)], share_of)


def mean(values: Sequence[float]) -> Measured:
    """Return a mean; where all values are alike its error is that of one that differs by one."""
    many = len(values)
    if not many:
        return Measured(math.nan, math.nan, 0)
    deviation = float(np.std(values, ddof=1)) if many > 1 else 0.0
    return Measured(float(np.mean(values)), max(deviation / math.sqrt(many), 1 / many), many)


def share(values: Sequence[bool]) -> Measured:
    """Return a share and its binomial error, never less than that of one service."""
    many, value = len(values), float(np.mean(values))
    return Measured(value, max(math.sqrt(value * (1 - value) / many), 1 / many), many)


def quantile(values: Sequence[float], which: float) -> Measured:
    """Return a quantile, and by bootstrap how far it may be off."""
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
    return [at for at, fires in outcome.turns if fires and since <= at < until]


def _during(outcome: Outcome) -> int:
    return sum(outcome.onset <= at < outcome.end for at, _ in outcome.turns)


def _first(outcome: Outcome) -> float:
    return _fired(outcome, outcome.onset, outcome.end)[0]


def _firing_at(outcome: Outcome, moment: float) -> bool:
    before = [fires for at, fires in outcome.turns if at < moment]
    return bool(before) and before[-1]


def _resolved(outcome: Outcome) -> float:
    return min((at - outcome.end for at, fires in outcome.turns if not fires and at >= outcome.end), default=math.inf)
