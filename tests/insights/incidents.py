"""Generated incidents: three services, a drop on one route at a random minute, deploys, with or without an alert."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal
from uuid import UUID

from germane.alert import Alert
from germane.alerting import AlertEvaluator
from germane.annotation import Marker
from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score
from germane.settings import BudgetExhausted, Drop, MeanThreshold, NoData, ScorerError, Settings, load_settings
from germane.storage import SamplingDecision, TrackingStore

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
SCORER, FINGERPRINT = "answer_relevancy", "f1"
HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)
HOLDER = ("leader", "me")
ROUTES = {"shop": ("ask", "search"), "handbook": ("docs", "faq"), "desk": ("chat",)}
OTHERS = (NoData(enabled=False), ScorerError(enabled=False), BudgetExhausted(enabled=False))
RULES = {
    "drop": (Drop(), *OTHERS),
    "mean": (MeanThreshold(threshold=0.7, window=6 * 3600.0), Drop(enabled=False), *OTHERS),
    "none": (Drop(enabled=False), *OTHERS),
}


@dataclass(frozen=True)
class Incident:
    """An incident and its database at :data:`NOW`."""

    store: TrackingStore
    settings: Settings
    service: str
    route: str
    began: datetime
    deploy: Literal["before", "after", "none"]
    """When the deploy of the incident's day was, compared with the drop."""
    alert: Alert | None
    """The open alert about the route or its service, if any."""


@contextmanager
def incident(seed: int, migrated: Path, folder: Path) -> Iterator[Incident]:
    """Write the scores of an incident, and evaluate the alert rules hour by hour if it has alerts.

    The seed decides about everything: every third incident has a baseline and the default rules, every third only a
    rule about the mean, which knows no onset, and every third no alerts.
    """
    made = random.Random(seed)
    kind = ("drop", "mean", "none")[seed % 3]
    service = made.choice(sorted(ROUTES))
    route, days = made.choice(ROUTES[service]), 17 if kind == "drop" else 6
    began = NOW - timedelta(minutes=made.uniform(5 * 60, 30 * 60))
    fall, refused = (made.uniform(0.2, 0.4), 0.03) if made.random() < 0.7 else (0.0, made.uniform(0.3, 0.6))
    per_day = {each: made.uniform(60, 150) for routes in ROUTES.values() for each in routes}
    levels = {each: made.uniform(0.78, 0.88) for each in per_day}
    clock = [NOW - days * DAY]
    store = TrackingStore(f"sqlite:///{shutil.copy(migrated, folder / f'{seed}.db')}", clock=lambda: clock[0])
    store.workers.acquire_lease(*HOLDER, ttl=1000 * DAY)
    settings = load_settings(database="sqlite://", rules=RULES[kind])
    deploy = made.choice(("before", "after", "none"))
    offset = {"before": -made.uniform(10, 90), "after": made.uniform(60, 240), "none": 0.0}[deploy] * MINUTE
    if deploy != "none":
        number = UUID(int=made.getrandbits(128)).hex
        store.trends.add_markers([Marker(id=number, name="index v42", service=service, at=began + offset)])
    evaluator = AlertEvaluator(
        store, settings, holder=HOLDER, scorers=[SCORER], channels={}, clock=lambda: clock[0],
        new_id=lambda: UUID(int=made.getrandbits(128)).hex,
    )  # fmt: skip
    wander = {(each, day): made.gauss(0, 0.015) for each in per_day for day in range(days + 1)}
    while clock[0] < NOW:
        step = HOUR if kind != "none" and NOW - clock[0] <= 2 * DAY else DAY
        since, until = clock[0], min(NOW, clock[0] + step)
        answers = []
        for name, routes in ROUTES.items():
            for each in routes:
                count = made.gauss(0, 1) * (per_day[each] * (step / DAY)) ** 0.5 + per_day[each] * (step / DAY)
                for _ in range(max(0, round(count))):
                    at = since + (until - since) * made.random()
                    is_bad = each == route and at >= began
                    mean = levels[each] + wander[each, (at - NOW + days * DAY) // DAY] - is_bad * fall
                    is_refusal = made.random() < (refused if is_bad else 0.03)
                    value = 0.0 if is_refusal else made.betavariate(12 * mean, 12 * (1 - mean))
                    answers.append((name, each, at, value))
        write(store, made, sorted(answers, key=lambda answer: answer[2]))
        clock[0] = until
        if kind != "none":
            evaluator.evaluate()
    found = [alert for alert in store.alerts.list_open() if alert.service == service and alert.route in {None, route}]
    yield Incident(store, settings, service, route, began, deploy, found[0] if found else None)
    store.close()


def write(store: TrackingStore, made: random.Random, answers: list[tuple[str, str, datetime, float]]) -> None:
    """Store scored answers, given by service, route, time and value."""
    exchanges, results = [], {}
    for service, route, at, value in answers:
        id_ = UUID(int=made.getrandbits(128)).hex
        label = NONCOMMITTAL if value == 0 else None
        results[id_] = Score(scorer=SCORER, fingerprint=FINGERPRINT, value=value, label=label, scored_at=at)
        exchanges.append(
            Exchange(
                id=id_, trace_id=id_, span_id=id_[:16], service=service, route=route, question="q", answer="a",
                started_at=at,
            )
        )  # fmt: skip
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(each, 1.0, "sampled") for each in results], {SCORER: FINGERPRINT})
    claims = store.queue.claim_tasks("me", {SCORER: FINGERPRINT}, limit=len(exchanges), lease=DAY)
    store.queue.complete_tasks("me", [(task, results[task.exchange_id]) for one in claims for task in one.tasks])
