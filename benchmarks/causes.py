"""Named causes of simulated drops: python benchmarks/causes.py [--drops N] [--seed N] [--database URL].

Each drop is written to a real store, and the message of its alert is read. In four of five drops, no model, version or
tenant differs from the others, but groups may be bad all along, appear with the drop, become more frequent, or wander
from day to day. In the others, one group with at least 50 answers on both sides carries the drop. The goals are that
at most 5% of the messages of the former name a group, and at least 90% of the latter name the right one. The exit code
is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import new_exchange

from germane.alert import Alert, alert_key
from germane.alerting import alert_message
from germane.alerting.evidence import EvidenceCollector
from germane.score import NONCOMMITTAL, Score
from germane.storage import SamplingDecision, TrackingStore

SCORER, FINGERPRINT = "answer_relevancy", "simulated"
ONSET = datetime(2026, 3, 10, 9, 30, tzinfo=UTC)
DIMENSIONS = ("model", "prompt_version", "attributes.tenant", "attributes.plan")
KINDS = ("lower scores", "refusals", "0 or 1")
TWISTS = ("none", "bad group", "new group", "mix shift", "wander")
MAX_NAMED, MIN_FOUND = 0.05, 0.9
BEFORE, SINCE = timedelta(days=7), timedelta(hours=8)
MIN_CARRIED = 50
PER_DATABASE = 10
"""Number of services in each file, because an alert is explained from the summaries of all services."""


@dataclass(frozen=True)
class Drop:
    """One simulated drop."""

    kind: str
    twist: str
    groups: dict[str, np.ndarray]
    """The group of each answer, by dimension."""
    routes: np.ndarray
    times: list[datetime]
    values: np.ndarray
    carrier: tuple[str, int] | None
    """The dimension and the group that carries the drop, or None."""

    @property
    def expected(self) -> str | None:
        """The group that the message should name."""
        return self.carrier and f"{self.carrier[0].removeprefix('attributes.')}={_label(self.carrier[1])}"


@dataclass(frozen=True)
class Named:
    """What a message named."""

    kind: str
    twist: str
    expected: str | None
    found: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the drops and print the figures; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--drops", type=int, default=250)
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--database", help="URL of an empty database; by default a temporary SQLite file")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        outcomes = [
            outcome
            for start in range(0, given.drops, PER_DATABASE)
            for outcome in run(
                given.database or f"sqlite:///{Path(folder) / f'{start}.db'}",
                range(start, min(start + PER_DATABASE, given.drops)),
                given.seed,
            )
        ]
    alike = [outcome for outcome in outcomes if outcome.expected is None]
    carried = [outcome for outcome in outcomes if outcome.expected is not None]
    print(f"{'drop':16}{'twist':12}{'alike':>7}{'named':>7}{'carried':>9}{'found':>7}{'wrong':>7}")
    for kind in KINDS:
        for twist in TWISTS:
            print(
                f"{kind:16}{twist:12}" + _row([each for each in outcomes if (each.kind, each.twist) == (kind, twist)])
            )
    print(f"{'all':28}{_row(outcomes)}")
    named = sum(outcome.found is not None for outcome in alike)
    right = sum(outcome.found == outcome.expected for outcome in carried)
    met = named <= MAX_NAMED * len(alike) and right >= MIN_FOUND * len(carried)
    print("all goals are met" if met else "a goal is missed")
    return 0 if met else 1


def run(url: str, drops: Iterable[int], seed: int) -> Iterator[Named]:
    """Write drops to a database, each in its own service, and yield what the message of each names."""
    store = TrackingStore(url, clock=lambda: ONSET + SINCE)
    store.migrate()
    for number in drops:
        random = np.random.default_rng([seed, number])
        drop = simulate(random, carried=number % 5 == 4)
        service = f"shop-{seed}-{number}"
        write(store, service, drop)
        labels = {"service": service, "scorer": SCORER} | ({"route": "r0"} if len(set(drop.routes)) == 1 else {})
        alert = Alert(
            id="a", key=alert_key("drop", labels), rule="drop", type="drop", labels=labels, state="firing",
            fingerprint=FINGERPRINT, onset=ONSET, starts_at=ONSET, fired_at=ONSET + SINCE, evaluated_at=ONSET + SINCE,
        )  # fmt: skip
        message = alert_message(EvidenceCollector(store, list(drop.groups)).add_to(alert))
        found = message.partition("the drop is largest where ")[2].partition(";")[0].rstrip(".") or None
        yield Named(drop.kind, drop.twist, drop.expected, found)
    store.close()


def simulate(random: np.random.Generator, *, carried: bool) -> Drop:
    """Draw a drop. Traffic, scores, dimensions, groups and routes differ between drops."""
    while True:
        drop = _draw(random, carried=carried)
        if drop.carrier is None:
            return drop
        inside = drop.groups[drop.carrier[0]] == drop.carrier[1]
        late = np.array([at >= ONSET for at in drop.times])
        if min(np.bincount(2 * inside + late, minlength=4)) >= MIN_CARRIED:
            return drop


def _draw(random: np.random.Generator, *, carried: bool) -> Drop:
    kind, twist = str(random.choice(KINDS)), str(random.choice(TWISTS))
    n_before, n_since = int(random.integers(200, 2000)), int(random.integers(100, 600))
    days = random.uniform(-BEFORE.days, 0, n_before)
    days = np.concatenate([np.sort(days), np.sort(random.uniform(0, SINCE.total_seconds() / 86400, n_since))])
    late, day = days >= 0, np.floor(days).astype(int) + BEFORE.days
    routes = random.integers(0, random.choice([1, 1, 3]), len(days))
    level = 0.8 - 0.1 * routes + random.normal(0, 0.02, BEFORE.days + 1)[day]
    groups: dict[str, np.ndarray] = {}
    for dimension in random.permutation(DIMENSIONS)[: random.integers(1, len(DIMENSIONS) + 1)].tolist():
        size = int(np.exp(random.uniform(0, np.log(31))))
        shares = random.dirichlet(np.ones(size))
        group = random.choice(size, len(days), p=shares)
        if twist == "mix shift":
            group[late] = random.choice(size, n_since, p=random.dirichlet(np.ones(size)))
        if groups and random.random() < 0.3:  # most tenants use one model
            group = np.where(random.random(len(days)) < 0.6, next(iter(groups.values())) % size, group)
        if twist == "new group" and random.random() < 0.5:
            group[late & (random.random(len(days)) < 0.3)] = size
            level = level - 0.2 * (group == size)
        groups[dimension] = group
        if twist in ("bad group", "mix shift"):
            level = level - random.uniform(0.2, 0.4) * (group == random.integers(size))
        if twist == "wander":
            level = level + random.normal(0, 0.02, (size + 1, BEFORE.days + 1))[group, day]
    level = np.maximum(level, 0.5)  # otherwise, scores that cannot fall below 0 would hide the drop of a bad group
    carrier, falls, size_of_drop = None, late, random.uniform(0.1, 0.35)
    if carried:
        dimension = str(random.choice(list(groups)))
        carrier = (dimension, int(random.choice(groups[dimension])))
        falls, size_of_drop = late & (groups[dimension] == carrier[1]), random.uniform(0.25, 0.45)
    return Drop(
        kind=kind,
        twist=twist,
        groups=groups,
        routes=np.array([f"r{route}" for route in routes]),
        times=[ONSET + timedelta(days=float(at)) for at in days],
        values=_scores(random, kind, level, falls * size_of_drop),
        carrier=carrier,
    )


def _scores(random: np.random.Generator, kind: str, level: np.ndarray, fall: np.ndarray) -> Any:
    """Return the scores: 0 for a refusal, and otherwise scattered around the level, or 0 or 1 with that mean."""
    if kind == "0 or 1":
        return (random.random(len(level)) < np.clip(level - fall, 0, 1)).astype(float)
    scattered = random.normal(level - (0 if kind == "refusals" else fall), 0.15)
    refuses = random.random(len(level)) < 0.03 + (fall if kind == "refusals" else 0)
    return np.where(refuses, 0.0, np.clip(scattered, 0.01, 1.0))


def write(store: TrackingStore, service: str, drop: Drop) -> None:
    """Write the answers and scores of a drop as the tracer and workers write them."""
    values = {}
    exchanges = []
    for at, value in enumerate(drop.values):
        labels: dict[str, Any] = {name: _label(group[at]) for name, group in drop.groups.items()}
        attributes = {name.partition(".")[2]: labels.pop(name) for name in list(labels) if "." in name}
        made = new_exchange(
            at, service=service, route=drop.routes[at], started_at=drop.times[at], attributes=attributes, **labels
        )
        exchanges.append(made)
        values[made.id] = float(value)
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(made.id, 1.0, "sampled") for made in exchanges], {SCORER: FINGERPRINT}
    )
    claims = store.queue.claim_tasks("benchmark", {SCORER: FINGERPRINT}, limit=len(exchanges), lease=timedelta(days=1))
    refuses = drop.kind == "refusals"
    store.queue.complete_tasks("benchmark", [
        (task, Score(
            scorer=SCORER, fingerprint=FINGERPRINT, value=values[task.exchange_id], scored_at=claim.exchange.started_at,
            label=NONCOMMITTAL if refuses and not values[task.exchange_id] else None,
        ))
        for claim in claims for task in claim.tasks
    ])  # fmt: skip


def _row(outcomes: Sequence[Named]) -> str:
    counts = Counter(
        name
        for each in outcomes
        for name, holds in (
            ("alike", each.expected is None),
            ("named", each.expected is None and each.found is not None),
            ("carried", each.expected is not None),
            ("found", each.expected is not None and each.found == each.expected),
            ("wrong", each.expected is not None and each.found not in {None, each.expected}),
        )
        if holds
    )
    widths = {"alike": 7, "named": 7, "carried": 9, "found": 7, "wrong": 7}
    return "".join(f"{counts[name]:>{width}}" for name, width in widths.items())


def _label(group: int) -> str:
    return f"g{group}"


if __name__ == "__main__":
    sys.exit(main())
