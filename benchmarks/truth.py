"""Coverage of the mean label of all answers, and delays until a changed judge is found.

Labels are graded (0, 0.5, 1), binary or bimodal, or 5% of the answers are bad. The judge's scores have a given
correlation with them, and a different bias on each of two routes. A budget scores some of the answers, preferably
suspicious ones, and a sample of these is labeled. With ``--rows FILE``, the labels of real answers are used too, with
the similarity of question and answer by the embedded embedder as scores. Sampling and estimation use the production
code. The same table shows what happens without weights, with labels from another window or of other routes, and if the
interval is looked at until it suits.

Then anchors are scored every day by a judge that does not change for years, and by one that does.

Goals: coverage of at least 0.93 for each case with 50 or more labels, and 0.94 on average; a bias of at most 0.005
unless bad answers are rare; intervals at most 1.03 times as wide as those of the labels alone, and half as wide for a
correlation of 0.9; at most 0.1 false alerts a year; 95% of all changes by 0.08 or more found within ten days. The exit
code is 1 if a goal is missed.

Run: python benchmarks/truth.py [--repetitions N] [--years N] [--seed N] [--rows relevancy.jsonl]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from germane.monitor.sampling.priority_sampling import build_mixture
from germane.scorers.local.minilm import MiniLM
from germane.statistics.anchors import JudgeShift, estimate_shift, find_judge_shift
from germane.statistics.estimate import WeightedSums, estimate_mean
from germane.statistics.label_sample import allot, systematic_sample
from germane.statistics.labeled_mean import LabeledMean, estimate_labeled_mean

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIZES = (30, 50, 100, 200)
CORRELATIONS = (0.3, 0.6, 0.9)
ANSWERS, SCORED = 10_000, 4_200
"""Number of answers in a window, and number of scored answers."""
TRAFFIC = (0.7, 0.3)
"""Shares of the two routes."""
BIAS_SHARE = 0.1
"""Share of the variance of the judge's errors that is due to its bias on each route."""
PROXY_CORRELATION = 0.6
FALL = 0.15
MIN_COVERAGE, MIN_MEAN_COVERAGE, MAX_BIAS, MAX_RATIO, MAX_RATIO_OF_GOOD_JUDGE = 0.93, 0.94, 0.005, 1.03, 0.5
MAX_ALERTS, MAX_DELAY, MIN_FOUND = 0.1, 10, 0.95


@dataclass(frozen=True, slots=True)
class Window:
    """The answers of a window, with the labels that people would give and the scores that the judge would give."""

    y: Floats
    f: Floats
    routes: Integers


class Source(Protocol):
    """A process that generates answers."""

    name: str
    truths: Floats
    """Mean labels: of all answers, of the first route and of the second one."""

    def window(self, random: np.random.Generator) -> Window:
        """Return the answers of a window."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A distribution of labels: beta distributions, or single values if their concentration is infinite."""

    name: str
    means: Floats
    concentration: float
    shares: Floats
    """Shares of the distributions, with shape (routes, distributions)."""

    def moments(self) -> tuple[Floats, float]:
        """Return the mean labels of all answers and of each route, and the standard deviation of all."""
        spread = self.means * (1 - self.means) / (self.concentration + 1)
        of_routes = self.shares @ self.means
        mean = float(TRAFFIC @ of_routes)
        squares = float(TRAFFIC @ (self.shares @ (self.means**2 + spread)))
        return np.array([mean, *of_routes]), math.sqrt(squares - mean**2)


KINDS = (
    Kind("graded", np.array([0, 0.5, 1]), math.inf, np.array([[0.15, 0.3, 0.55], [0.3, 0.3, 0.4]])),
    Kind("binary", np.array([0.0, 1]), math.inf, np.array([[0.2, 0.8], [0.4, 0.6]])),
    Kind("bimodal", np.array([0.2, 0.9]), 8.0, np.array([[0.2, 0.8], [0.4, 0.6]])),
    Kind("5% bad", np.array([0.0, 1]), math.inf, np.array([[0.05, 0.95], [0.05, 0.95]])),
)
RARE = KINDS[-1].name


class Simulated:
    """Answers with labels of a kind, and scores with a given correlation; after a fall if ``fall`` is positive."""

    def __init__(self, kind: Kind, correlation: float, fall: float = 0.0) -> None:
        self.name, self._kind, self._correlation = kind.name, kind, correlation
        self._all, self._deviation = kind.moments()
        self._falling = fall / (self._all[0] - kind.means[0])
        self.truths = self._all - self._falling * (self._all - kind.means[0])

    def window(self, random: np.random.Generator) -> Window:
        kind, r = self._kind, self._correlation
        routes = np.searchsorted(np.cumsum(TRAFFIC)[:-1], random.random(ANSWERS))
        parts = (random.random(ANSWERS)[:, np.newaxis] > np.cumsum(kind.shares, axis=1)[routes][:, :-1]).sum(axis=1)
        parts[random.random(ANSWERS) < self._falling] = 0
        y = kind.means[parts]
        if math.isfinite(kind.concentration):
            y = random.beta(y * kind.concentration, (1 - y) * kind.concentration)
        bias = (routes - TRAFFIC[1]) / math.sqrt(TRAFFIC[0] * TRAFFIC[1])
        errors = math.sqrt(BIAS_SHARE) * bias + math.sqrt(1 - BIAS_SHARE) * random.standard_normal(ANSWERS)
        z = r * (y - self._all[0]) / self._deviation + math.sqrt(1 - r**2) * errors
        return Window(y, np.clip(0.6 + 0.12 * z, 0, 1), routes)


class Rows:
    """Labeled rows, drawn with replacement. One data set is a route, and all others are the second route."""

    name = "real rows"

    def __init__(self, y: Floats, f: Floats, routes: Integers) -> None:
        self._rows = Window(y, f, routes)
        self.correlation = float(np.corrcoef(y, f)[0, 1])
        self.truths = np.array([y.mean(), *(y[routes == route].mean() for route in (0, 1))])

    @classmethod
    def read(cls, path: Path) -> Rows:
        """Read labeled rows, and score them with the embedded embedder."""
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        embedder = MiniLM()
        questions, answers = (embedder.embed_now([row[key] for row in rows]) for key in ("question", "answer"))
        routes = np.array([not row["source"].startswith("CLAPnq") for row in rows], dtype=np.int64)
        return cls(np.array([float(row["label"]) for row in rows]), (questions * answers).sum(axis=1), routes)

    def window(self, random: np.random.Generator) -> Window:
        at = random.integers(0, len(self._rows.y), ANSWERS)
        return Window(self._rows.y[at], self._rows.f[at], self._rows.routes[at])


@dataclass(frozen=True, slots=True)
class Scored:
    """The scored answers of a window."""

    y: Floats
    f: Floats
    routes: Integers
    w: Floats
    """1 / the probability of being scored."""
    traffic: dict[str, float]

    @classmethod
    def of(cls, window: Window, random: np.random.Generator) -> Scored:
        """Select answers by priority sampling, with proxy scores that have a correlation of 0.6 with the scores."""
        f, noise = window.f, random.standard_normal(ANSWERS)
        z = PROXY_CORRELATION * (f - f.mean()) / f.std() + math.sqrt(1 - PROXY_CORRELATION**2) * noise
        proxies = np.clip(0.7 + 0.15 * z, 0, 1)
        mixture = build_mixture(window.routes, proxies)
        priorities = mixture.weights(window.routes, proxies) / (1 - random.random(ANSWERS))
        rank = ANSWERS - SCORED - 1
        mixture = replace(mixture, threshold=float(np.partition(priorities, rank)[rank]))
        at = priorities > mixture.threshold
        w = 1 / mixture.probabilities(window.routes[at], proxies[at])
        traffic = dict(zip("01", np.bincount(window.routes).tolist(), strict=True))
        return cls(window.y[at], f[at], window.routes[at], w, traffic)

    def sums(self, route: int | None = None, *, weighted: bool = True) -> WeightedSums:
        """Return the sums that the database computes, of all routes or one."""
        of_route = slice(None) if route is None else self.routes == route
        f = self.f[of_route]
        w = self.w[of_route] if weighted else np.ones(len(f))
        plain: dict[str, Any] = {
            "sum_w": w.sum(), "sum_w2": w @ w, "sum_wy": w @ f, "sum_wy2": w @ f**2, "sum_w2y": w**2 @ f,
            "sum_w2y2": w**2 @ f**2,
        }  # fmt: skip
        return WeightedSums(
            n=len(f), n_zero=0, sum_w_zero=0.0, sum_w2_zero=0.0, sum_w_low=0.0, sum_w_noncommittal=0.0,
            **{name: float(value) for name, value in plain.items()},
        )  # fmt: skip

    def draw(self, count: int, random: np.random.Generator) -> tuple[Integers, Floats]:
        """Return the indexes of the answers to label, in random order, and 1 / their probabilities."""
        drawn, weights = [], []
        for route, number in allot(self.traffic, count).items():
            members = np.flatnonzero(self.routes == int(route))
            at, probabilities = systematic_sample(self.w[members], number, random)
            drawn.append(members[at])
            weights.append(self.w[members[at]] / probabilities)
        order = random.permutation(count)
        return np.concatenate(drawn)[order], np.concatenate(weights)[order]


def estimate(scored: Scored, at: Integers, v: Floats, sums: WeightedSums | None = None) -> LabeledMean:
    """Return the estimate from labels at indexes."""
    found = estimate_labeled_mean(scored.y[at], scored.f[at], v, scored.sums() if sums is None else sums)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """Figures for one source, correlation and number of labels."""

    source: str
    correlation: float
    n: int
    coverage: float
    bias: float
    width: float
    alone: float
    """Mean width of the intervals of the same labels alone."""
    widened: float
    """Share of widened intervals."""

    @property
    def missed(self) -> list[str]:
        """Names of the missed goals."""
        ratio = self.width / self.alone
        goals = {
            "coverage": self.n < 50 or self.coverage >= MIN_COVERAGE,
            "bias": self.source == RARE or abs(self.bias) <= MAX_BIAS,
            "width": ratio <= MAX_RATIO
            and (self.correlation < 0.9 or self.widened > 0.05 or ratio <= MAX_RATIO_OF_GOOD_JUDGE),
        }
        return [name for name, is_met in goals.items() if not is_met]

    def __str__(self) -> str:
        return (
            f"{self.source:12}{self.correlation:5.2f}{self.n:6}{self.coverage:10.3f}{self.bias:+9.4f}{self.width:8.3f}"
            f"{self.alone:8.3f}{self.width / self.alone:7.2f}{self.widened:9.2f}  {', '.join(self.missed)}".rstrip()
        )


HEADER = "labels          r     n  coverage     bias   width   alone  ratio  widened  missed"


def lines(source: Source, correlation: float, repetitions: int, seed: Sequence[int]) -> Iterator[Line]:
    """Yield a line for each number of labels. All of them are drawn from the same windows."""
    random, truth = np.random.default_rng(seed), source.truths[0]
    figures: dict[int, list[tuple[float, ...]]] = {n: [] for n in SIZES}
    for _ in range(repetitions):
        scored = Scored.of(source.window(random), random)
        sums = scored.sums()
        for n in SIZES:
            found = estimate(scored, *scored.draw(n, random), sums)
            low, high = found.interval
            alone = found.labels_only[1] - found.labels_only[0]
            figures[n].append((low <= truth <= high, found.mean - truth, high - low, alone, found.is_widened))
    for n, rows in figures.items():
        yield Line(source.name, correlation, n, *np.mean(rows, axis=0).tolist())


def contrasts(repetitions: int, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield what germane does not do: a name, a case, the coverage, and the mean error."""
    kind = KINDS[0]
    for n in (50, 100, 200):
        results: dict[str, list[tuple[bool, float]]] = {}
        random, source = np.random.default_rng([seed, n]), Simulated(kind, 0.6)
        for _ in range(repetitions):
            scored = Scored.of(source.window(random), random)
            at, v = scored.draw(n, random)
            uniform = random.choice(SCORED, n, replace=False)
            of_judge = estimate_mean(scored.sums())
            assert of_judge.interval is not None
            made = {
                "germane": (estimate(scored, at, v), source.truths[0]),
                "labels drawn uniformly among scored answers, no weights": (
                    estimate(scored, uniform, np.ones(n), scored.sums(weighted=False)),
                    source.truths[0],
                ),
                "all labels, for the second route": (estimate(scored, at, v, scored.sums(1)), source.truths[2]),
            }
            for name, (found, truth) in made.items():
                _record(results, name, found.interval, found.mean, truth)
            _record(results, "the judge's mean", of_judge.interval, of_judge.mean, source.truths[0])
        for name, rows in results.items():
            yield name, f"{n} labels, r = 0.6", *np.mean(rows, axis=0).tolist()
    yield from _carried(repetitions, seed)
    yield from _peeking(repetitions, seed)


def _record(
    results: dict[str, list[tuple[bool, float]]], name: str, interval: tuple[float, float], mean: float, truth: float
) -> None:
    results.setdefault(name, []).append((interval[0] <= truth <= interval[1], mean - truth))


def _carried(repetitions: int, seed: int) -> Iterator[tuple[str, str, float, float]]:
    for correlation in (0.5, 0.75, 0.9):
        random, results = np.random.default_rng([seed, int(100 * correlation)]), {}
        before, after = (Simulated(KINDS[0], correlation, fall) for fall in (0.0, FALL))
        for _ in range(repetitions):
            old, new = (Scored.of(source.window(random), random) for source in (before, after))
            found = estimate(old, *old.draw(100, random), new.sums())
            _record(results, "labels from before a fall of 0.15", found.interval, found.mean, after.truths[0])
        for name, rows in results.items():
            yield name, f"100 labels, r = {correlation}", *np.mean(rows, axis=0).tolist()


def _peeking(repetitions: int, seed: int) -> Iterator[tuple[str, str, float, float]]:
    random, source, results = np.random.default_rng([seed, 1]), Simulated(KINDS[0], 0.6), {}
    for _ in range(repetitions):
        scored = Scored.of(source.window(random), random)
        (at, v), sums = scored.draw(200, random), scored.sums()
        for n in range(20, 201, 5):
            found = estimate(scored, at[:n], v[:n], sums)
            if not found.interval[0] <= source.truths[0] <= found.interval[1]:
                break
        _record(results, "a look after every 5 labels", found.interval, found.mean, source.truths[0])
    for name, rows in results.items():
        yield name, "20 to 200 labels, r = 0.6", *np.mean(rows, axis=0).tolist()


@dataclass(frozen=True, slots=True)
class Noise:
    """How a judge scores 50 anchors."""

    name: str
    deviation: float = 0.06
    flips: float = 0.0
    """Share of scores that are 0 by mistake."""
    replaced: float = 0.0
    """Share of the anchors that are replaced every week."""
    missing: float = 0.0
    """Share of missing scores."""
    daily: float = 0.0
    """Standard deviation of an error that all scores of a day have in common."""


NOISES = (
    Noise("sigma 0.06"),
    Noise("sigma 0.12", 0.12),
    Noise("1% flips to 0", flips=0.01),
    Noise("10% replaced", replaced=0.1),
    Noise("all of these", 0.12, 0.01, 0.1, 0.05),
    Noise("common 0.01", daily=0.01),
)
ANCHORS, BASELINE_SCORES, NORMAL = 50, 5, np.array([NormalDist().inv_cdf((i + 0.5) / 400) for i in range(400)])


class Anchors:
    """Rounds of anchors that are scored by a judge whose scores are shifted from round ``at``."""

    def __init__(self, noise: Noise, rounds: int, random: np.random.Generator, shift: float = 0.0, at: int = 0) -> None:
        replaced = int(ANCHORS * noise.replaced)
        columns = ANCHORS + rounds // 7 * replaced
        self._noise, self._random, self._levels = noise, random, random.uniform(0.05, 0.98, columns)
        self.baselines = np.mean([self._score() for _ in range(BASELINE_SCORES)], axis=0)
        self.counts = np.full(columns, float(BASELINE_SCORES))
        active, self.values = np.arange(ANCHORS), np.full((rounds, columns), np.nan)
        for number in range(rounds):
            if number % 7 == 6:
                fresh = np.arange(replaced) + ANCHORS + number // 7 * replaced
                active = np.concatenate([random.permutation(active)[replaced:], fresh])
            scores = self._score(shift * (number >= at) + noise.daily * random.standard_normal())
            scores[random.random(columns) < noise.missing] = np.nan
            self.values[number, active] = scores[active]
        self.shift = self._expected(shift) - self._expected(0.0)

    @property
    def differences(self) -> Floats:
        """Scores minus baselines."""
        return self.values - self.baselines

    def _score(self, shift: float = 0.0) -> Floats:
        noise, columns = self._noise, len(self._levels)
        scores = self._levels + shift + noise.deviation * self._random.standard_normal(columns)
        return np.where(self._random.random(columns) < noise.flips, 0.0, np.clip(scores, 0, 1))

    def _expected(self, shift: float) -> float:
        scores = np.clip(self._levels[:, np.newaxis] + shift + self._noise.deviation * NORMAL, 0, 1)
        return float(scores.mean()) * (1 - self._noise.flips)


def count_alerts(noise: Noise, years: int, seed: int, days: int = 365) -> float:
    """Return the number of changes that are found per year, by looking every day, though the judge does not change."""
    random, count = np.random.default_rng([seed, 2]), 0
    for _ in range(years):
        year, was_found = Anchors(noise, days, random), False
        differences = year.differences
        for day in range(1, days + 1):
            is_found = find_judge_shift(differences[:day], year.counts) is not None
            count += is_found and not was_found
            was_found = is_found
    return count / years


@dataclass(frozen=True, slots=True)
class Found:
    """How a changed judge is found."""

    delays: Floats
    """Days until the change is found, infinite if it is not found within 60 days."""
    silent: float
    """Coverage of the interval of the change when it is found."""
    reported: float
    """Coverage of the interval of the shift between two known judges, from one round."""

    @property
    def in_time(self) -> float:
        """Share of changes found within ten days."""
        return float((self.delays <= MAX_DELAY).mean())

    def __str__(self) -> str:
        median, most = np.quantile(self.delays, [0.5, 0.75], method="higher")
        return f"{median:8.0f}{most:8.0f}{self.in_time:9.2f}{self.silent:9.3f}{self.reported:10.3f}"


def find_changes(noise: Noise, shift: float, repetitions: int, seed: int) -> Found:
    """Return the delays until a change of the judge is found, after 30 days without one."""
    random, delays, silent, reported = np.random.default_rng([seed, 3]), [], [], []
    for _ in range(repetitions):
        anchors = Anchors(noise, 90, random, shift, 30)
        delay, found = next(
            ((day - 30.0, found) for day in range(31, 91) if (found := _look(anchors, day))), (math.inf, None)
        )
        delays.append(delay)
        if found is not None:
            silent.append(found.interval[0] <= anchors.shift <= found.interval[1])
        known = estimate_shift(anchors.baselines, anchors.values[30], anchors.counts)
        assert known is not None
        reported.append(known.interval[0] <= anchors.shift <= known.interval[1])
    return Found(np.array(delays), float(np.mean(silent)) if silent else math.nan, float(np.mean(reported)))


def _look(anchors: Anchors, day: int) -> JudgeShift | None:
    return find_judge_shift(anchors.differences[:day], anchors.counts)


def sources(rows: Path | None) -> Iterator[tuple[Source, float]]:
    """Yield the sources and their correlations."""
    for kind in KINDS:
        for correlation in CORRELATIONS:
            yield Simulated(kind, correlation), correlation
    if rows is not None and rows.is_file():
        real = Rows.read(rows)
        yield real, real.correlation


def print_labels(repetitions: int, seed: int, rows: Path | None) -> list[str]:
    """Print the tables of labels, and return the missed goals."""
    print(HEADER)
    missed, coverages = [], []
    for place, (source, correlation) in enumerate(sources(rows)):
        for line in lines(source, correlation, repetitions, [seed, place]):
            print(line, flush=True)
            missed += [f"{line.source} r={line.correlation:.2f} n={line.n}: {name}" for name in line.missed]
            coverages += [line.coverage] if line.n >= 50 else []
    print(f"\nmean coverage with 50 or more labels: {np.mean(coverages):.3f}\n")
    print(f"{'graded labels':58}{'':26}coverage    error")
    for name, case, coverage, error in contrasts(repetitions // 2, seed):
        print(f"{name:58}{case:26}{coverage:8.3f}{error:+9.3f}", flush=True)
    return missed + ["mean coverage"] * bool(np.mean(coverages) < MIN_MEAN_COVERAGE)


def print_anchors(years: int, repetitions: int, seed: int) -> list[str]:
    """Print the tables of anchors, and return the missed goals."""
    missed = []
    print(f"\n{'judge':16}alerts per year")
    for noise in NOISES:
        rate = count_alerts(noise, years, seed)
        print(f"{noise.name:16}{rate:.2f}", flush=True)
        missed += [f"{noise.name}: alerts"] * (rate > MAX_ALERTS)
    print(f"\n{'judge':16}change  median  75% by  10 days   silent  reported")
    for noise in NOISES:
        for shift in (0.03, 0.05, 0.08, 0.12):
            found = find_changes(noise, -shift, repetitions, seed)
            print(f"{noise.name:16}{-shift:6.2f}{found}", flush=True)
            missed += [f"{noise.name} {shift}: delay"] * (shift >= 0.08 and found.in_time < MIN_FOUND)
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and the missed goals; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--years", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--rows", type=Path, help="labeled rows (JSON lines)")
    given = parser.parse_args(arguments)
    missed = print_labels(given.repetitions, given.seed, given.rows)
    missed += print_anchors(given.years, given.repetitions // 5, given.seed)
    print("\n".join(["", "missed:", *missed]) if missed else "\nall goals are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
