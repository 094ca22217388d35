"""Synthetic services replayed on a database, with production storage and alert evaluation and a simulated clock.

Every hour, that hour's scores are written as workers write them, and all rules are evaluated. The detector's production
code also processes the same scores in one pass in memory. Alerts must fire and resolve in the same hours in both runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import numpy as np
from common import new_exchange

from germane.alerting import AlertEvaluator
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.limiter import StreamLimiter, UserLimit
from germane.alerting.detector.score_batch import ScoreBatch, sampling_draw
from germane.score import NONCOMMITTAL, Score
from germane.settings import Settings
from germane.storage import SamplingDecision, TrackingStore
from streams.families import TWELVE, Family, Service
from streams.production import simulated
from streams.recipe import BASELINE_DAYS, START, Change

SCORER, FINGERPRINT = "answer_relevancy", "simulated"
HOLDER = ("evaluator", "benchmark")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CHANNEL = {"type": "email", "host": "mail.example.com", "sender": "a@example.com", "to": ["b@example.com"]}
ONE_ROUTE = Change(shift=0.4, only="route-03")

REPLAYED = (
    (Family("quiet, wander 0.02", 100, 0.02), 42),
    (Family("traffic times 10", 50, 0.02, growth=10), 24),
    (Family("bursts, user sd 0.1", 100, 0.01, user_deviation=0.1), 35),
    (Family("weekly cycle 0.03", 100, 0.01, weekly=0.03), 35),
    (Family("long-memory wander 0.02", 100, 0.02, long_memory=True), 42),
    (Family("shift 0.10", 100, 0.02, change=Change(shift=0.1), lasts=14), 42),
    (Family("shift 0.20", 300, 0.02, change=Change(shift=0.2), lasts=7), 30),
    (Family("third of twelve routes 0.40", 100, 0.02, change=ONE_ROUTE, lasts=14, routes=TWELVE), 42),
    (Family("refusals, mean 0.10 lower", 100, 0.02, change=Change(refusal=0.1), lasts=14), 42),
    (Family("two hours 0.40", 300, 0.02, change=Change(shift=0.4), lasts=2 / 24), 22),
)  # fmt: skip
"""Families and the number of days that are replayed."""


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    """One service's alerts on a database and in memory."""

    family: str
    days: int
    scores: int
    changes: list[float]
    """Hours at which the drop alert fires and resolves on the database."""
    expected: list[float]
    """Hours at which the drop alert fires and resolves in memory."""
    notifications: int
    """Number of notifications, without reminders."""
    reminders: int

    @property
    def misses(self) -> list[str]:
        """The missed goals. The goal is the same changes, to the hour."""
        is_same = len(self.changes) == len(self.expected) and all(
            abs(at - other) <= 1 for at, other in zip(self.changes, self.expected, strict=True)
        )
        return [] if is_same else ["difference"]


def replay(seed: int, url: str | None, number: int) -> DatabaseRow:
    """Replay one service on a database, by default a temporary SQLite file."""
    family, days = REPLAYED[number]
    made = simulated(seed, family, days, 0)[1]
    ids = [
        UUID(int=int.from_bytes(np.random.default_rng([seed, number, at]).bytes(16))).hex
        for at in range(len(made.stream.hours))
    ]
    with TemporaryDirectory() as folder:
        changes, notifications, reminders = _on_database(
            url or f"sqlite:///{Path(folder) / 'germane.db'}", f"shop-{number}", made, ids, days
        )
    expected = _in_memory(f"shop-{number}", made, ids)
    return DatabaseRow(family.title, days, len(ids), changes, expected, notifications, reminders)


def _on_database(url: str, name: str, made: Service, ids: list[str], days: int) -> tuple[list[float], int, int]:
    """Return the hours at which the drop alert fires and resolves, and the number of notifications and reminders."""
    now = datetime.fromtimestamp(START, UTC)
    store = TrackingStore(url, clock=lambda: now)
    store.migrate()
    store.workers.acquire_lease(*HOLDER, ttl=10_000 * DAY)
    settings = Settings.model_validate({"service": name, "rules": [{"type": "drop"}], "channels": {"mail": CHANNEL}})
    evaluator = AlertEvaluator(
        store,
        settings,
        holder=HOLDER,
        scorers=[SCORER],
        channels={key: channel.matches for key, channel in settings.channels.items()},
        clock=lambda: now,
    )
    edges = np.searchsorted(made.stream.hours, np.arange(24 * days + 1))
    for first, last in pairwise(edges.tolist()):
        _write_scores(store, name, made, ids, range(first, last))
        now += HOUR
        evaluator.evaluate()
    found = [
        record.notification
        for record in store.notifications.search(limit=10_000)
        if record.notification.alerts[0].service == name
    ]
    changes = {each.created_at for each in found if each.type in ("firing", "resolved")}
    store.close()
    reminders = sum(each.type == "repeated" for each in found)
    hours = sorted((at.timestamp() - START) / 3600 for at in changes)
    return hours, len(found) - reminders, reminders


def _write_scores(store: TrackingStore, name: str, made: Service, ids: list[str], scores: range) -> None:
    stream = made.stream
    exchanges = [
        new_exchange(
            at,
            id=ids[at],
            trace_id=ids[at],
            service=name,
            route=stream.names[stream.routes[at]],
            user=None if made.users is None else str(made.users[at]),
            started_at=_moment(stream.hours[at]),
        )
        for at in scores
    ]
    if not exchanges:
        return
    values = {ids[at]: float(stream.values[at]) for at in scores}
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(each.id, 1.0, "sampled") for each in exchanges], {SCORER: FINGERPRINT}
    )
    claims = store.queue.claim_tasks("benchmark", {SCORER: FINGERPRINT}, limit=len(exchanges), lease=DAY)
    claims.sort(key=lambda claim: claim.exchange.started_at)
    store.queue.complete_tasks(
        "benchmark",
        [
            (
                task,
                Score(
                    scorer=SCORER,
                    fingerprint=FINGERPRINT,
                    value=values[task.exchange_id],
                    label=None if values[task.exchange_id] else NONCOMMITTAL,
                    scored_at=claim.exchange.started_at,
                ),
            )
            for claim in claims
            for task in claim.tasks
        ],
    )


def _in_memory(name: str, made: Service, ids: list[str]) -> list[float]:
    """Return the hours, rounded up, at which the detector fires and resolves in one pass over all scores."""
    stream = made.stream
    times = np.array([_moment(hour).timestamp() for hour in stream.hours])
    since = times[0]
    until = since + 86_400 * BASELINE_DAYS
    limit, users = UserLimit(), [None if made.users is None else str(user) for user in _users(made)]
    admitted = np.array([limit.admits(user, at) for user, at in zip(users, times.tolist(), strict=True)])
    past = np.flatnonzero((times < until) & admitted)
    baseline = learn_baseline(
        _batch(made, times, past), service=name, scorer=SCORER, fingerprint=FINGERPRINT, since=since, until=until
    )
    after = np.flatnonzero(times >= until)
    selected = StreamLimiter(baseline).select(
        [stream.names[stream.routes[at]] for at in after],
        [users[at] for at in after],
        np.array([sampling_draw(ids[at]) for at in after]),
        times[after],
    )
    transitions = Detector(baseline).process(_batch(made, times, after[selected]))
    return [math.ceil((each.at - START) / 3600) for each in transitions]


def _users(made: Service) -> Iterator[object]:
    yield from range(len(made.stream.hours)) if made.users is None else made.users.tolist()


def _batch(made: Service, times: np.ndarray, which: np.ndarray) -> ScoreBatch:
    stream = made.stream
    routes = [stream.names[route] for route in stream.routes[which]]
    return ScoreBatch(routes, stream.values[which], stream.zeros[which], times[which])


def _moment(hour: float) -> datetime:
    return datetime.fromtimestamp(START, UTC) + timedelta(hours=float(hour))
