"""Simulated drops in the first two weeks: python benchmarks/early.py [--services N] [--seed N] [--processes N].

Learning a baseline takes 14 days. Until then, a provisional baseline from one day and 200 scores detects large drops.
The services are those of benchmarks/alerts.py (three routes, hours, weekends, daily variation). They start on a random
weekday, and in one case, their traffic triples in two weeks. The learner and the detector are the production code with
default parameters. Each row shows one kind of service and one case:

- **false alerts**: number per service before the change, or up to day 14 if nothing gets worse; at most 0.1
- **found**: share of the changes detected before day 14; each begins on a random day from 3 to 9 and does not end
- **hours**: median number of hours until the alert, over services; inf if fewer than half of the services have an alert

The provisional baseline is intended for large drops: at least 90% of the drops of 0.20 must be found. The final
baseline detects the drops that the provisional baseline misses.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np
from streams.recipe import BASELINE_DAYS, START, Change, Stream, stream
from streams.tables import readable
from streams.watched import score_batch

from germane.alerting.detector import Detector, learn_baseline
from germane.alerting.drop.baselines import MIN_PROVISIONAL_SCORES, PROVISIONAL_SPAN, widen

PER_DAY, WANDER = (30, 100, 300, 1000), (0.01, 0.02)
MAX_FALSE_ALERTS, MIN_FOUND = 0.1, 0.9
DAY = 24


@dataclass(frozen=True, slots=True)
class Case:
    """A change in the first two weeks."""

    name: str
    change: Change | None = None
    growth: float = 1.0
    """Factor by which traffic grows over two weeks."""


CASES = (
    Case("nothing"),
    Case("traffic triples", growth=3.0),
    Case("shift .05", Change(shift=0.05)),
    Case("shift .10", Change(shift=0.10)),
    Case("shift .20", Change(shift=0.20)),
    Case("refusal .10", Change(refusal=0.10)),
    Case("refusal .20", Change(refusal=0.20)),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Alerts of one service before its baseline is learned."""

    false_alerts: int
    delay: float
    """Hours from the change to the first alert after it; infinite if there is none before day 14."""


def main(arguments: list[str] | None = None) -> int:
    """Run the simulation and print the figures; return 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--services", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    print(f"{'scores per day, wander and case':38}{'false alerts':>14}{'found':>8}{'hours':>8}")
    missed = 0
    with ProcessPoolExecutor(given.processes) as pool:
        for per_day in PER_DAY:
            for wander in WANDER:
                for case in CASES:
                    run = partial(simulate, given.seed, per_day, wander, case)
                    outcomes = list(pool.map(run, range(given.services), chunksize=10))
                    missed += not report(f"{per_day}, {wander:g}, {readable(case.name)}", case, outcomes, per_day)
    print(f"{missed} limits missed" if missed else "all limits are met")
    return 1 if missed else 0


def report(name: str, case: Case, outcomes: list[Outcome], per_day: int) -> bool:
    """Print one row; return whether its limits are met."""
    false_alerts = sum(outcome.false_alerts for outcome in outcomes) / len(outcomes)
    text = f"{name:38}{false_alerts:>14.2f}"
    is_met = false_alerts <= MAX_FALSE_ALERTS
    if case.change is not None:
        delays = np.array([outcome.delay for outcome in outcomes])
        found = float(np.isfinite(delays).mean())
        text += f"{found:>8.2f}{np.median(delays):>8.0f}"
        is_met &= found >= MIN_FOUND or case.change.shift < 0.2 or per_day < PER_DAY[1]
    print(text if is_met else f"{text}  missed", flush=True)
    return is_met


def simulate(seed: int, per_day: int, wander: float, case: Case, number: int) -> Outcome:
    """Simulate the first 14 days of one service."""
    random = np.random.default_rng([seed, per_day, round(1000 * wander), crc32(case.name.encode()), number])
    first_day, change_day = int(random.integers(7)), int(random.integers(3, 10))
    found = stream(
        random,
        per_day * case.growth,
        wander,
        days=7 + BASELINE_DAYS,
        change=case.change,
        onset_day=first_day + change_day,
    )
    found = started(found, DAY * first_day)
    if case.growth > 1:
        share = (1 + (case.growth - 1) * found.hours / (DAY * BASELINE_DAYS)) / case.growth
        found = part(found, random.random(len(found.hours)) < share)
    begins = provisional_until(found.hours)
    onset = found.onset if case.change else np.inf
    if begins >= DAY * BASELINE_DAYS:
        return Outcome(0, np.inf)
    baseline = learn_baseline(
        score_batch(found, 0, begins),
        service="shop",
        scorer="answer_relevancy",
        fingerprint="simulated",
        since=START,
        until=START + begins * 3600,
    )
    transitions = Detector(widen(baseline)).process(score_batch(found, begins, DAY * BASELINE_DAYS))
    fired = [(transition.at - START) / 3600 for transition in transitions if transition.state == "firing"]
    return Outcome(sum(at < onset for at in fired), min((at - onset for at in fired if at >= onset), default=np.inf))


def provisional_until(hours: np.ndarray) -> float:
    """Return the hour at which a provisional baseline starts: after one day and 200 scores."""
    span = PROVISIONAL_SPAN.total_seconds() / 3600
    if len(hours) < MIN_PROVISIONAL_SCORES:
        return np.inf
    return max(span, float(hours[MIN_PROVISIONAL_SCORES - 1]) + 1 / 6)


def started(found: Stream, hour: float) -> Stream:
    """Return a stream without the scores before an hour, which becomes hour 0."""
    rest = part(found, found.hours >= hour)
    return replace(rest, hours=rest.hours - hour, onset=rest.onset - hour, end=rest.end - hour)


def part(found: Stream, kept: np.ndarray) -> Stream:
    """Return the selected scores of a stream."""
    return replace(found, routes=found.routes[kept], values=found.values[kept], hours=found.hours[kept])


if __name__ == "__main__":
    sys.exit(main())
