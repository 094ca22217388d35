"""Simulated drops in the first two weeks: python benchmarks/early.py [--services N] [--seed N] [--processes N].

Until the baseline has been learned, scores are compared with a provisional baseline. The services are synthetic
(benchmarks/streams/recipe.py) and start on a random day of the week; the change begins at the latest on day 9. The
goals are at most 0.1 false alerts per service, and 90% of the drops of 0.20 found if there are at least 100 scores a
day. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np
from streams.families import part
from streams.production import BEGINS, DAY, learn, score_batch
from streams.recipe import BASELINE_DAYS, START, Change, Stream, stream

from germane.alerting.detector.detector import Detector
from germane.alerting.drop.baselines import MIN_PROVISIONAL_SCORES, PROVISIONAL_SPAN, widen

PER_DAY, WANDER = (30, 100, 300, 1000), (0.01, 0.02)
MAX_FALSE_ALERTS, MIN_FOUND = 0.1, 0.9
CASES = {
    "nothing": None,
    "traffic triples": None,
    "shift 0.05": Change(shift=0.05),
    "shift 0.10": Change(shift=0.10),
    "shift 0.20": Change(shift=0.20),
    "refusal 0.10": Change(refusal=0.10),
    "refusal 0.20": Change(refusal=0.20),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the simulation and print the figures; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--services", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    print(f"{'scores per day, wander and case':38}{'false alerts':>14}{'found':>8}{'hours':>8}")
    missed = 0
    with ProcessPoolExecutor(given.processes) as pool:
        for per_day, wander, case in ((n, wander, case) for n in PER_DAY for wander in WANDER for case in CASES):
            run = partial(simulate, given.seed, per_day, wander, case)
            outcomes = list(pool.map(run, range(given.services), chunksize=10))
            missed += not report(per_day, wander, case, outcomes)
    print(f"{missed} goals missed" if missed else "all goals are met")
    return 1 if missed else 0


def report(per_day: int, wander: float, case: str, outcomes: list[tuple[int, float]]) -> bool:
    """Print one row; return whether its goals are met."""
    false_alerts = sum(count for count, _ in outcomes) / len(outcomes)
    text = f"{f'{per_day}, {wander:g}, {case}':38}{false_alerts:>14.2f}"
    is_met = false_alerts <= MAX_FALSE_ALERTS
    if CASES[case] is not None:
        delays = [delay for _, delay in outcomes]
        found = float(np.isfinite(delays).mean())
        text += f"{found:>8.2f}{np.median(delays):>8.0f}"
        is_met &= found >= MIN_FOUND or case != "shift 0.20" or per_day < PER_DAY[1]
    print(text if is_met else f"{text}  missed", flush=True)
    return is_met


def simulate(seed: int, per_day: int, wander: float, case: str, number: int) -> tuple[int, float]:
    """Simulate the first 14 days of one service.

    Returns the number of false alerts, and the hours from the change to the first alert, infinite without one.
    """
    # The names of earlier versions, so that the figures in docs/research/detector.md can be reproduced.
    random = np.random.default_rng(
        [seed, per_day, round(1000 * wander), crc32(case.replace(" 0.", " .").encode()), number]
    )
    first_day, change_day = int(random.integers(7)), int(random.integers(3, 10))
    growth = 3.0 if case == "traffic triples" else 1.0
    found = started(
        stream(
            random, per_day * growth, wander, days=7 + BASELINE_DAYS, change=CASES[case],
            onset_day=first_day + change_day,
        ),
        DAY * first_day,
    )  # fmt: skip
    if growth > 1:
        share = (1 + (growth - 1) * found.hours / BEGINS) / growth
        found = part(found, random.random(len(found.hours)) < share)
    begins = provisional_until(found.hours)
    if begins >= BEGINS:
        return 0, np.inf
    transitions = Detector(widen(learn(found, 0, begins, most=np.inf))).process(score_batch(found, begins, BEGINS))
    fired = [(transition.at - START) / 3600 for transition in transitions if transition.state == "firing"]
    onset = found.onset if CASES[case] else np.inf
    return sum(at < onset for at in fired), min((at - onset for at in fired if at >= onset), default=np.inf)


def provisional_until(hours: np.ndarray) -> float:
    """Return the hour at which a provisional baseline starts: after one day and 200 scores."""
    if len(hours) < MIN_PROVISIONAL_SCORES:
        return np.inf
    return max(PROVISIONAL_SPAN.total_seconds() / 3600, float(hours[MIN_PROVISIONAL_SCORES - 1]) + 1 / 6)


def started(found: Stream, hour: float) -> Stream:
    """Return a stream without the scores before an hour, which becomes hour 0."""
    rest = part(found, found.hours >= hour)
    return replace(rest, hours=rest.hours - hour, onset=rest.onset - hour, end=rest.end - hour)


if __name__ == "__main__":
    sys.exit(main())
