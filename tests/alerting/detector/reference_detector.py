"""A reference detector: plain Python, one score at a time, directly from the formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from germane.alerting.detector.score_batch import ScoreBatch
from germane.baseline import POOLED_ROUTE, Baseline


class ReferenceDetector:
    """The detector as plain formulas, one score at a time, without code shared with the implementation."""

    def __init__(self, baseline: Baseline, *, min_drop: float = 0.05, false_alerts_per_year: float = 1.0) -> None:
        self.baseline, self.min_drop = baseline, min_drop
        self.threshold = math.log(365 * baseline.scores_per_day / false_alerts_per_year)
        self.streams: list[str | None] = [None, *baseline.routes]
        self.transitions: list[tuple[Any, ...]] = []
        self.index = -1
        self.contributors: list[tuple[str | None, str]] | None = None
        self.clear()

    def clear(self) -> None:
        cells = [(stream, half, i) for stream in self.streams for half in ("committed", "zero") for i in range(8)]
        self.logs = dict.fromkeys(cells, -math.inf)
        self.rises = dict.fromkeys(cells, 0.0)
        self.starts = dict.fromkeys(cells, 0.0)

    def null_and_bet(self, stream: str | None, route: str, half: str, i: int) -> tuple[float, float]:
        one = self.baseline.routes[route]
        whole: Any = self.baseline if stream is None else self.baseline.routes[stream]
        z = 1.5 if i < 4 else 3.5
        if half == "committed":
            a = 0.6 * self.min_drop
            d = a * (0.4 / a) ** (i / 7)
            u = 2 * whole.committed_per_day * one.committed_wander**2 if i < 4 else 0
            sd = one.committed_deviation
            margin = self.margin(stream, "committed_per_day", "committed_wander", "committed", z, lambda each: (
                each.committed_deviation**2
            ), one)  # fmt: skip
            m = one.committed_mean - margin
            return m, min(d / (sd**2 + u + d**2), 0.9 / (1 - m))
        b, p = 0.8 * self.min_drop, one.zero_rate
        e = b * (0.5 / b) ** (i / 7)
        w = 2 * whole.scores_per_day * one.zero_wander**2 if i < 4 else 0
        margin = self.margin(stream, "scores_per_day", "zero_wander", "n", z, lambda each: (
            each.zero_rate * (1 - each.zero_rate)
        ), one)  # fmt: skip
        rate = min(0.9, p + margin)
        return rate, min(e / (rate * (1 - rate) + 0.01 + w), 0.9 / rate)

    def margin(
        self, stream: str | None, per_day: str, wander: str, count: str, z: float, variance: Any, one: Any
    ) -> float:
        """Return the tolerance for wander and for the error of the stream's baseline."""
        routes = list(self.baseline.routes.values())
        whole: Any = self.baseline if stream is None else one
        shared, own = 2 * getattr(whole, per_day) * getattr(one, wander) ** 2, variance(one)
        share = shared / (shared + own) if shared + own else 0.0
        if stream is None:
            counts = [max(1, getattr(each, count)) if count == "committed" else each.n for each in routes]
            errors = [n * variance(each) for n, each in zip(counts, routes, strict=True)]
            error = math.sqrt(sum(errors)) / max(1, sum(counts))
        else:
            error = math.sqrt(own / max(1, getattr(one, count)))
        days = (self.baseline.until - self.baseline.since).total_seconds() / 86_400
        error = math.sqrt(error**2 + getattr(one, wander) ** 2 * min(1.0, 3 / days))
        return math.hypot(max(0.4 * self.min_drop, z * getattr(one, wander) * share), 1.5 * error)

    def feed_all(self, seen: ScoreBatch) -> None:
        for one in zip(seen.routes, seen.values.tolist(), seen.zeros.tolist(), seen.times.tolist(), strict=True):
            self.feed(*one)

    def feed(self, route: str, value: float, zero: bool, time: float) -> None:
        self.index += 1
        route = POOLED_ROUTE if route in self.baseline.pooled else route
        if route not in self.baseline.routes:
            return
        x = min(1.0, max(0.0, value))
        zero = zero or value <= 0
        if self.contributors is None:
            self.forward(route, x, zero, time)
        else:
            self.recover(route, x, zero, time)

    def forward(self, route: str, x: float, zero: bool, time: float) -> None:
        for cell in self.logs:
            stream, half, i = cell
            if stream not in (None, route) or not self.learns(route, half, zero):
                continue
            null, bet = self.null_and_bet(stream, route, half, i)
            log = math.log1p(bet * (null - x) if half == "committed" else bet * (zero - null))
            self.logs[cell] = np.logaddexp(0, self.logs[cell]) + log
            if self.rises[cell] <= 0:
                self.starts[cell] = time
            self.starts[cell] = min(self.starts[cell], time)
            self.rises[cell] = max(self.rises[cell], 0) + log
        if self.evidence > self.threshold:
            self.fire(time)

    def learns(self, route: str, half: str, zero: bool) -> bool:
        one = self.baseline.routes[route]
        if half == "committed":
            return one.committed >= 2 and not zero
        return one.zero_rate + 0.4 * self.min_drop <= 0.9

    @property
    def evidence(self) -> float:
        each = [log_sum([v for cell, v in self.logs.items() if cell[0] == s]) - math.log(16) for s in self.streams]
        return log_sum(each) - math.log(len(self.streams))

    def fire(self, time: float) -> None:
        strength = {
            (stream, half): log_sum([v for cell, v in self.logs.items() if cell[:2] == (stream, half)])
            for stream in self.streams
            for half in ("committed", "zero")
        }
        near = [one for one, value in strength.items() if value >= max(strength.values()) - math.log(10)]
        self.contributors = sorted(near, key=lambda one: -strength[one])
        self.capital = {one: [0.0, 0.0, 0.0] for one in near}
        onset = self.starts[max(self.rises, key=lambda cell: self.rises[cell])]
        self.fired = (onset, self.contributors)
        self.transitions.append((self.index, time, "firing", *self.fired))

    def recover(self, route: str, x: float, zero: bool, time: float) -> None:
        over = True
        for (stream, half), capital in self.capital.items():
            whole: Any = self.baseline if stream is None else self.baseline.routes[stream]
            enough = max(20.0, 10 * whole.scores_per_day)
            if stream in (None, route) and self.learns(route, half, zero):
                for j, size in enumerate((0.5, 1.0, 2.0)):
                    factor = self.recovery_factor(whole, route, half, x, zero, size)
                    capital[j] = min((1 + capital[j]) * factor, 10 * enough)
            over = over and sum(capital) / 3 > enough
        if over:
            self.transitions.append((self.index, time, "resolved", *self.fired))
            self.contributors = None
            self.clear()

    def capital_in_order(self) -> list[list[float]]:
        return [self.capital[one] for one in self.contributors or []]

    def recovery_factor(self, whole: Any, route: str, half: str, x: float, zero: bool, size: float) -> float:
        one = self.baseline.routes[route]
        null = self.null_and_bet(None if whole is self.baseline else route, route, half, 0)[0]
        if half == "committed":
            h = (one.committed_mean - null) / 2
            q, r, u = size * h, one.committed_mean - h, whole.committed_per_day * one.committed_wander**2
            bet = q / (one.committed_deviation**2 + u + q**2)
            return 1 + (min(bet, 0.9 / r) if r > 0 else bet) * (x - r)
        h = (null - one.zero_rate) / 2
        q, r, w = size * h, one.zero_rate + h, whole.scores_per_day * one.zero_wander**2
        return 1 + min(q / (r * (1 - r) + w + q**2), 0.9 / (1 - r)) * (r - zero)


def log_sum(logs: list[float]) -> float:
    """Return log(sum(exp(logs)))."""
    largest = max(logs)
    return largest + math.log(sum(math.exp(one - largest) for one in logs)) if largest > -math.inf else largest


def state_of(reference: ReferenceDetector) -> Mapping[str, Any]:
    """Return logs, rises and starts by stream, in the order of the implementation."""
    return {
        name: [[value for cell, value in values.items() if cell[0] == stream] for stream in reference.streams]
        for name, values in (("logs", reference.logs), ("rises", reference.rises), ("starts", reference.starts))
    }
