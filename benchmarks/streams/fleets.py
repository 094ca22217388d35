"""Synthetic installations with several services, whose routes are steady except for at most one planted drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from common import new_exchange

from germane.alerting import AlertEvaluator
from germane.alerting.drop.scope import learn_from_store
from germane.score import NONCOMMITTAL, Score
from germane.settings import BudgetExhausted, Drop, NoData, ScorerError, load_settings
from germane.storage import BaselineKey, SamplingDecision, TrackingStore

NOW = datetime(2026, 11, 20, 10, 37, tzinfo=UTC)
SERVICES = ("shop", "support", "billing")
SCORER, FINGERPRINT = "answer_relevancy", "simulated"
HOLDER = ("evaluator", "benchmark")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAYS = 8
LEARNED = (DAYS * DAY, 2 * DAY)
"""Ages of the start and end of the period that baselines are learned from."""
ENOUGH = 25
"""Expected number of answers since a planted drop."""
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Planted:
    """A drop of one route."""

    service: str
    route: str
    at: datetime
    size: float


@dataclass(frozen=True, slots=True)
class Installation:
    """The answers of all services, and the drop, if there is one."""

    answers: Sequence[tuple[str, str, datetime, float]]
    """Service, route, time and score, oldest first."""
    drop: Planted | None

    @classmethod
    def draw(cls, seed: int, *, drop: bool, routes: int = 20, services: Sequence[str] = SERVICES) -> Installation:
        """Draw an installation with this number of routes in each service, and 20 to 50 answers a day on each.

        Every route has a level and a spread of its own, and 3% of the answers are refusals.
        """
        random = np.random.default_rng(seed)
        per_day = random.uniform(20, 50, (len(services), routes))
        place = int(random.integers(len(services))), int(random.integers(routes))
        # The drop began 4 to 30 hours ago, but long enough that a person would see it.
        hours = max(float(random.uniform(4, 30)), ENOUGH / per_day[place] * 24)
        size = float(random.uniform(0.2, 0.3))
        answers = []
        for index, count in np.ndenumerate(per_day):
            name = (services[index[0]], f"route-{index[1]:02}")
            level, spread = random.uniform(0.7, 0.9), random.uniform(0.08, 0.16)
            ages = random.uniform(0, DAYS * 24, random.poisson(count * DAYS))
            values = random.normal(level, spread, len(ages)) - (drop and index == place) * size * (ages < hours)
            values = np.where(random.random(len(ages)) < 0.03, 0.0, np.clip(values, 0, 1))
            answers += [(*name, NOW - age * HOUR, float(value)) for age, value in zip(ages, values, strict=True)]
        planted = Planted(services[place[0]], f"route-{place[1]:02}", NOW - hours * HOUR, size)
        return cls(sorted(answers, key=lambda answer: answer[2]), planted if drop else None)

    def write(self, store: TrackingStore) -> None:
        """Write all answers with their scores, as applications and workers do."""
        for start in range(0, len(self.answers), BATCH):
            batch = self.answers[start : start + BATCH]
            exchanges = [
                new_exchange(start + number, service=service, route=route, started_at=at)
                for number, (service, route, at, _) in enumerate(batch)
            ]
            values = {one.id: answer[3] for one, answer in zip(exchanges, batch, strict=True)}
            store.exchanges.add(exchanges)
            decisions = [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges]
            store.sampling.assign_tasks(decisions, {SCORER: FINGERPRINT})
            claims = store.queue.claim_tasks("benchmark", {SCORER: FINGERPRINT}, limit=BATCH, lease=DAY)
            results = []
            for claim in claims:
                for task in claim.tasks:
                    value = values[task.exchange_id]
                    label = NONCOMMITTAL if value == 0 else None
                    at = claim.exchange.started_at
                    results.append(
                        (task, Score(scorer=SCORER, fingerprint=FINGERPRINT, value=value, label=label, scored_at=at))
                    )
            store.queue.complete_tasks("benchmark", results)

    def learn(self, store: TrackingStore) -> None:
        """Activate a baseline for each service, learned before the drop. The periods differ by hours."""
        for number, service in enumerate(dict.fromkeys(answer[0] for answer in self.answers)):
            key = BaselineKey(service, SCORER, FINGERPRINT)
            since, until = NOW - LEARNED[0] + number * 5 * HOUR, NOW - LEARNED[1] - number * HOUR
            version = store.baselines.begin_learning(key, "first", since=since, until=until)
            assert version is not None
            found = learn_from_store(store, key, since, until)
            assert store.baselines.activate_baseline(version.id, found, ("model-1", "1"))

    def alert(self, store: TrackingStore) -> int:
        """Evaluate the drop rule now, and return the number of open alerts."""
        assert store.workers.acquire_lease(*HOLDER, ttl=DAY)
        rules = (Drop(), NoData(enabled=False), ScorerError(enabled=False), BudgetExhausted(enabled=False))
        settings = load_settings(database="sqlite://", rules=rules)
        channels = {"benchmark": lambda _: True}
        for _ in range(2):
            AlertEvaluator(
                store, settings, holder=HOLDER, scorers=[SCORER], channels=channels, clock=lambda: NOW
            ).evaluate()
        return sum(alert.state == "firing" for alert in store.alerts.list_open())
