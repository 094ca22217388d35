"""Labels, markers, baselines, alerts and a worker for the sample week."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tests.deliveries import Courier

from germane.alert import Alert, AlertChange, AlertEvent, AlertEventType, alert_key
from germane.alerting.drop.scope import learn_from_store
from germane.alerting.evaluator import AlertEvaluator
from germane.alerting.wording import alert_message
from germane.annotation import Feedback, Marker
from germane.exchange import Exchange
from germane.score import Score
from germane.settings import BudgetExhausted, Drop, NoData, ScorerError, load_settings
from germane.storage import AlertTransaction, BaselineKey, DeliveryOutcome, TrackingStore, WorkerHeartbeat

RELEVANCY = "answer_relevancy"
BASELINE = (timedelta(days=7), timedelta(days=2))
"""Ages of the start and end of the learning period."""
OFFICE = ("watcher", "worker-1")
LEASE = timedelta(minutes=2)
_ONLY_DROPS = (Drop(), NoData(enabled=False), ScorerError(enabled=False), BudgetExhausted(enabled=False))
_SAID = {
    True: ("exactly what I asked for", None, "solved it, thanks", None),
    False: ("this is about something else", "wrong page", None, "did not answer my question"),
}


def add_labels(store: TrackingStore, scored: Sequence[tuple[Exchange, Score]], chance: random.Random) -> None:
    """Label every 15th answer; one label in six disagrees with the judge."""
    relevancy = [pair for pair in scored if pair[1].scorer == RELEVANCY]
    given = []
    for number, (exchange, score) in enumerate(chance.sample(relevancy, len(relevancy) // 15)):
        good = ((score.value or 0.0) >= 0.5) != (chance.random() < 1 / 6)
        given.append(
            Feedback(
                id=f"{number:032x}",
                exchange_id=exchange.id,
                score=1.0 if good else 0.0,
                comment=chance.choice(_SAID[good]),
                user=f"reader-{number % 7}",
                created_at=exchange.started_at + timedelta(minutes=2),
            )
        )
    store.labels.add_feedback(given)


def add_markers(store: TrackingStore, service: str, now: datetime) -> None:
    """Add markers for two deploys: a prompt three days ago, and the rebuilt index just before the drop."""
    at = {"prompt 7": timedelta(days=3), "index v42": timedelta(hours=29, minutes=10)}
    more = {"prompt 7": {"commit": "4f2a9c1"}, "index v42": {"chunks": 512}}
    store.trends.add_markers(
        [
            Marker(id=f"mark-{name}", name=name, service=service, at=now - before, attributes=more[name])
            for name, before in at.items()
        ]
    )


def learn_baseline(store: TrackingStore, service: str, fingerprint: str, now: datetime) -> None:
    """Activate a baseline learned from the first five days, replacing an imported one."""
    key = BaselineKey(service, RELEVANCY, fingerprint)
    since, until = (now - before for before in BASELINE)
    store.baselines.replace_baseline(
        key, "imported", learn_from_store(store, key, since, since + timedelta(days=1)), ("larch-1", "6")
    )
    version = store.baselines.begin_learning(key, "first", since=since, until=until)
    assert version is not None
    assert store.baselines.activate_baseline(version.id, learn_from_store(store, key, since, until), ("larch-1", "6"))


def evaluate_rules(store: TrackingStore, now: datetime) -> None:
    """Evaluate the ``drop`` rule as of this time."""
    assert store.workers.acquire_lease(*OFFICE, ttl=LEASE)
    ids = (f"{int(now.timestamp()):x}-{number}" for number in range(1000))
    settings = load_settings(database="sqlite://", rules=_ONLY_DROPS)
    watch = AlertEvaluator(
        store,
        settings,
        holder=OFFICE,
        scorers=[RELEVANCY],
        channels={"slack": lambda _: True, "oncall": lambda _: True},
        clock=lambda: now,
        new_id=ids.__next__,
    )
    watch.evaluate()


def deliver_notifications(store: TrackingStore) -> None:
    """Deliver notifications on one channel, and let them fail on another."""
    outcomes = {
        "slack": DeliveryOutcome(http_status=200),
        "oncall": DeliveryOutcome(http_status=404, error="status 404"),
    }
    for channel, outcome in outcomes.items():
        Courier(store, channel, OFFICE[1]).deliver(outcome)


def add_resolved_alert(store: TrackingStore, service: str, now: datetime) -> str:
    """Write a resolved alert about two hours in which the judge was unreachable; return its id."""
    labels = {"service": service, "scorer": "faithfulness"}
    began, ended = now - timedelta(days=4, hours=2), now - timedelta(days=4)
    first = Alert(
        id="over",
        key=alert_key("scorer_error", labels),
        rule="scorer_error",
        type="scorer_error",
        labels=labels,
        state="firing",
        value=0.62,
        threshold=0.2,
        window=3600.0,
        starts_at=began,
        fired_at=began,
        evaluated_at=began,
        notified_at=began,
        details={"tried": 29, "failed": 18, "reason": "judge_unreachable"},
    )
    resolved = replace(
        first,
        state="resolved",
        resolved_at=ended,
        evaluated_at=ended,
        resolve_reason="recovered",
        value=0.0,
        details={**first.details, "tried": 31, "failed": 0},
    )
    notified = [replace(one, message=alert_message(one)) for one in (first, resolved)]
    assert store.alerts.commit(AlertTransaction(changes=[_change(notified[0], None, "fired", began)]))
    assert store.alerts.commit(AlertTransaction(changes=[_change(notified[1], notified[0], "resolved", ended)]))
    return first.id


def _change(alert: Alert, before: Alert | None, what: AlertEventType, at: datetime) -> AlertChange:
    event = AlertEvent(
        id=f"{alert.id}-{what}",
        alert_id=alert.id,
        at=at,
        type=what,
        before=None if before is None else before.state,
        after=alert.state,
    )
    return AlertChange(alert=alert, before=before, event=event)


def add_worker(store: TrackingStore, service: str, scorers: Mapping[str, str]) -> None:
    """Write the heartbeat of one worker."""
    presence = WorkerHeartbeat(
        id="worker-1", host="lighthouse", pid=4711, service=service, version="0.1.0", scorers=scorers, concurrency=16,
        in_flight=2,
    )  # fmt: skip
    store.workers.heartbeat(presence, [], lease=LEASE)
