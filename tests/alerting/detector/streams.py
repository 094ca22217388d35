"""Simulated scores for tests."""

from __future__ import annotations

import numpy as np

from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.score_batch import ScoreBatch
from germane.baseline import Baseline

ROUTES = {"faq": (0.88, 40.0, 0.02, 0.5), "docs": (0.80, 20.0, 0.05, 0.35), "support": (0.72, 10.0, 0.15, 0.15)}
"""Mean of nonzero scores, concentration, probability of zero, and share, by route."""
DAY = 86_400.0


def scores(
    random: np.random.Generator, n: int, *, per_day: float = 300.0, since: float = 0.0, drop: float = 0.0,
    refusals: float = 0.0, wander: float = 0.0,
) -> ScoreBatch:  # fmt: skip
    """Return scores of three routes, evenly spread over time."""
    names = np.array(list(ROUTES))
    mean, concentration, zero, share = (np.array(column) for column in zip(*ROUTES.values(), strict=True))
    routes = random.choice(len(names), n, p=share)
    times = since + (np.arange(n) + 0.5) * DAY / per_day
    days = (times // DAY).astype(int)
    effect = random.normal(size=days.max(initial=0) + 1)[days] * wander
    centre = np.clip(mean[routes] - drop / (1 - zero[routes]) + effect, 0.02, 0.985)
    zeros = random.random(n) < zero[routes] + refusals
    values = random.beta(centre * concentration[routes], (1 - centre) * concentration[routes])
    return ScoreBatch(names[routes].tolist(), np.where(zeros, 0.0, values), zeros, times)


def cut(seen: ScoreBatch, since: int, until: int) -> ScoreBatch:
    """Return a slice of a batch."""
    part = slice(since, until)
    return ScoreBatch(seen.routes[part], seen.values[part], seen.zeros[part], seen.times[part])


def joined(*parts: ScoreBatch) -> ScoreBatch:
    """Concatenate batches."""
    return ScoreBatch(
        [route for part in parts for route in part.routes],
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.zeros for part in parts]),
        np.concatenate([part.times for part in parts]),
    )


def baseline(seed: int = 5, *, per_day: float = 300.0, wander: float = 0.01) -> Baseline:
    """Return a baseline learned from 14 days of scores."""
    seen = scores(np.random.default_rng(seed), int(14 * per_day), per_day=per_day, wander=wander)
    return learn_baseline(seen, service="shop", scorer="answer_relevancy", fingerprint="f1", since=0.0, until=14 * DAY)


def bad_and_good(seed: int = 7, *, per_day: float = 300.0) -> ScoreBatch:
    """Return scores that drop and recover, then turn into refusals and recover."""
    random, days = np.random.default_rng(seed), 14.0
    parts = []
    for length, drop, refusals in ((3, 0, 0), (3, 0.15, 0), (6, 0, 0), (3, 0, 0.2), (6, 0, 0)):
        n = int(length * per_day)
        parts.append(scores(random, n, per_day=per_day, since=days * DAY, drop=drop, refusals=refusals, wander=0.01))
        days += length
    return joined(*parts)
