"""Rollups, markers, baselines, detectors, alerts, notifications and silences: a part of ``fill.py``."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from germane.alert import (
    Alert,
    AlertChange,
    AlertEvent,
    AlertEventType,
    Notification,
    ScoreLevel,
    ScoreShift,
    Silence,
    alert_key,
)
from germane.alerting.detector import Detector, ScoreBatch
from germane.alerting.drop import DropWatcher
from germane.alerting.drop.session import rule_parameters_hash
from germane.annotation import Marker
from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline
from germane.settings import Drop
from germane.storage import AlertTransaction, BaselineKey, DeliveryOutcome, DetectorState, TrackingStore

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
LEASE = timedelta(hours=1)
OFFICE = ("watcher", "someone")
ODD = 'NUL \0, half a pair \ud800 and "quotes"; DROP TABLE alert; \U0001f468\u200d\U0001f469 \u00fc\u00df'
SHOP, CAFE = (BaselineKey(service, "relevancy", "f1") for service in ("shop", "caf\u00e9"))
RELEASE = ("gpt-4o-mini", "7")
RULE = Drop()
TAKEN = 6
"""Number of processed scores, out of eight that have arrived."""
BUCKET = ("start", "fingerprint", "group", "n", "mean")


def fill(store: TrackingStore) -> None:
    """Fill the tables."""
    _roll(store)
    store.trends.add_markers(
        [Marker(id="1", name="index v42", service="shop", at=NOON - 9 * LEASE, attributes={"by": ODD})]
    )
    store.trends.add_markers([Marker(id="2", name=ODD, service="caf\u00e9", at=NOON)])
    assert store.workers.acquire_lease(*OFFICE, ttl=LEASE)
    _learn(store)
    drop = _fire(store)
    _watch(store, drop)
    _alert(store)
    _tell(store, drop)
    _silence(store)


def _roll(store: TrackingStore) -> None:
    """Roll up all hours except the last ones, and change one hour after its rollup."""
    assert store.rollups.update(breakdowns=["model", "attributes.trial"], before=NOON - 3 * LEASE) > 9
    store.exchanges.count_dropped({("shop", "ask"): 2}, ["relevancy"], at=NOON - 5 * LEASE)


def a_baseline(key: BaselineKey, mean: float) -> Baseline:
    """Return a baseline in which most scores are nonzero and close to the mean."""
    rates: dict[str, Any] = {"committed": 570, "committed_deviation": 0.125, "zero_rate": 0.05}
    wander: dict[str, Any] = {"committed_wander": 0.015625, "zero_wander": 0.0078125}
    per_day: dict[str, Any] = {"scores_per_day": 40.0, "committed_per_day": 38.0}
    numbers = {**rates, **wander, **per_day, "committed_mean": mean}
    route = RouteBaseline(n=600, mean=mean * 0.95, deviation=0.25, **numbers)
    window: dict[str, Any] = {"since": NOON - 360 * LEASE, "until": NOON - 24 * LEASE, "sampling_rate": 0.999}
    return Baseline(
        **{name: getattr(key, name) for name in ("service", "scorer", "fingerprint")},
        **window,
        n=2400,
        mean=route.mean,
        deviation=route.deviation,
        scores_per_day=160.0,
        committed_per_day=152.0,
        routes=dict.fromkeys(("ask", "search", "ask/{id}", POOLED_ROUTE), route),
        pooled=frozenset({"about"}),
    )


def _learn(store: TrackingStore) -> None:
    """Write two replaced baselines and an active one. Baselines of the other judges are learning."""
    store.baselines.replace_baseline(SHOP, "imported", a_baseline(SHOP, 0.875), (None, None))
    store.baselines.replace_baseline(SHOP, "accepted", a_baseline(SHOP, 0.75), RELEASE)
    learned = a_baseline(CAFE, 0.5)
    learning = store.baselines.begin_learning(CAFE, "first", since=learned.since, until=learned.until, holder=OFFICE)
    assert learning is not None
    assert store.baselines.activate_baseline(learning.id, learned, RELEASE)
    scoped = BaselineKey("shop", "relevancy", "f1", '{"tenant": "acme*"}')
    assert store.baselines.begin_learning(scoped, "first", since=NOON - LEASE, until=NOON + 300 * LEASE) is not None


def _fire(store: TrackingStore) -> Alert:
    """Make the shop's detector fire, and write an alert with every field and event."""
    (active,) = [one for one in store.baselines.list_versions() if one.key == SHOP]
    assert active.baseline is not None
    detector = Detector(active.baseline)
    began = (NOON - 20 * LEASE).timestamp()
    times = began + np.linspace(0.0, 12000.0, 200)
    assert detector.process(ScoreBatch(["search"] * 200, np.zeros(200), np.ones(200, dtype=bool), times))
    assert detector.firing
    state = {"active_fingerprint": {"fingerprint": "f1", "votes": 20}, "detector": detector.state()}
    names: dict[str, Any] = {"rule": RULE.name, "service": "shop", "scorer": "relevancy"}
    more: dict[str, Any] = {"log_evidence": detector.log_evidence, "seen_at": NOON - 16 * LEASE}
    progress = DetectorState(**names, parameters=rule_parameters_hash(RULE), baseline_id=active.id, state=state, **more)
    alert = a_drop()
    pending = replace(alert, state="pending", fired_at=None, notified_at=None, acknowledged_at=None)
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, detector_states=[progress], changes=[_begun(pending)]))
    fired = replace(alert, acknowledged_at=None, acknowledged_by=None)
    assert store.alerts.commit(
        AlertTransaction(holder=OFFICE, changes=[_moved(pending, "fired", fired, alert.fired_at)])
    )
    assert store.alerts.commit(AlertTransaction(changes=[_moved(fired, "acknowledged", alert, alert.acknowledged_at)]))
    return alert


def a_drop() -> Alert:
    """Return a firing alert with every field set except those about its resolution."""
    usual, current = (
        ScoreLevel(mean=0.75, n=2400, interval=(0.74, 0.76)),
        ScoreLevel(mean=0.5, n=200, interval=(0.4, 0.6)),
    )
    labels = {"service": "shop", "scorer": "relevancy"}
    return Alert(
        id="a1",
        key=alert_key(RULE.name, labels),
        rule=RULE.name,
        type="drop",
        labels=labels,
        state="firing",
        severity="critical",
        cause="refusals_rising",
        message=ODD,
        fingerprint="f1",
        value=0.5,
        threshold=0.7,
        current=current,
        baseline=usual,
        window=86400.0,
        onset=NOON - 20 * LEASE,
        shifts=(ScoreShift(dimension="route", name="search", before=usual, since=current),),
        exchange_ids=(f"{1:032x}", f"{2:032x}"),
        starts_at=NOON - 18 * LEASE,
        fired_at=NOON - 17 * LEASE,
        evaluated_at=NOON - 16 * LEASE,
        notified_at=NOON - 17 * LEASE,
        acknowledged_at=NOON - LEASE,
        acknowledged_by="ann",
        details={"contributors": [], "said": ODD},
    )


def _watch(store: TrackingStore, drop: Alert) -> None:
    """Process some of the queued scores."""
    evaluation = DropWatcher(store, [RULE], holder=OFFICE, clock=lambda: NOON, batch=TAKEN).evaluate({drop.key: drop})
    assert len(evaluation.processed_score_ids) == TAKEN
    assert len(evaluation.detector_states) > 1
    assert store.alerts.commit(
        AlertTransaction(
            holder=OFFICE,
            detector_states=evaluation.detector_states,
            processed_score_ids=evaluation.processed_score_ids,
        )
    )


def _alert(store: TrackingStore) -> None:
    """Write a resolved alert, a recovering one with the same key, and a pending one."""
    labels = {"service": "caf\u00e9", "scorer": "relevancy", "route": "ask"}
    fields: dict[str, Any] = {
        "rule": "mean_threshold",
        "type": "mean_threshold",
        "key": alert_key("mean_threshold", labels),
        "labels": labels,
    }
    first = Alert(
        id="a2", state="firing", starts_at=NOON - 90 * LEASE, evaluated_at=NOON - 90 * LEASE,
        fired_at=NOON - 90 * LEASE, cause="retrieval_worse", message="worse", **fields,
    )  # fmt: skip
    ends = NOON - 80 * LEASE
    over = replace(first, state="resolved", resolved_at=ends, evaluated_at=ends, resolve_reason="recovered")
    second = replace(first, id="a3", starts_at=NOON - 9 * LEASE, fired_at=NOON - 9 * LEASE, evaluated_at=NOON)
    better = replace(second, state="recovering")
    silent = {"service": "shop", "scorer": "faithfulness"}
    maybe = Alert(
        id="a4", key=alert_key("no_data", silent), rule="no_data", type="no_data", labels=silent, state="pending",
        starts_at=NOON, evaluated_at=NOON,
    )  # fmt: skip
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, changes=[_begun(first), _begun(maybe)]))
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, changes=[_moved(first, "resolved", over, ends)]))
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, changes=[_begun(second)]))
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, changes=[_moved(second, "recovering", better, NOON)]))


def _begun(alert: Alert) -> AlertChange:
    what: AlertEventType = "fired" if alert.state == "firing" else "pending"
    happened = AlertEvent(id=f"{alert.id} {what}", alert_id=alert.id, at=alert.starts_at, type=what, after=alert.state)
    return AlertChange(alert=alert, event=happened, notify=alert.state == "firing")


def _moved(before: Alert, what: AlertEventType, alert: Alert, at: datetime | None) -> AlertChange:
    assert at is not None
    states: dict[str, Any] = {"before": before.state, "after": alert.state}
    event = AlertEvent(id=f"{alert.id} {what}", alert_id=alert.id, at=at, type=what, detail={"by": ODD}, **states)
    return AlertChange(alert=alert, before=before, event=event, notify=True)


def _tell(store: TrackingStore, drop: Alert) -> None:
    """Write notifications: delivered, undelivered, retrying with another one waiting, being delivered, and new."""
    busy = DeliveryOutcome(http_status=503, error="status 503", retry_after=timedelta(seconds=5))
    outcomes = {
        "hook": DeliveryOutcome(http_status=200),
        "pager": DeliveryOutcome(http_status=400, error=ODD),
        "oncall": busy,
    }
    channels = {"n1": "oncall", "n2": "oncall", "n3": "slack", "n4": "hook", "n5": "pager", "n6": "mail"}
    written = [_notification(id_, channel, drop) for id_, channel in channels.items()]
    assert store.alerts.commit(AlertTransaction(holder=OFFICE, notifications=written))
    for channel in ("oncall", "slack", "hook", "pager"):
        taken = store.notifications.claim(channel, "away", lease=LEASE)
        assert taken is not None
        if channel in outcomes:
            store.notifications.record_attempt(taken.id, "away", outcomes[channel])


def _notification(id_: str, channel: str, *alerts: Alert) -> Notification:
    return Notification(
        id=id_, channel=channel, idempotency_key=f"key of {id_}", type="escalated" if id_ == "n2" else "firing",
        alerts=alerts, event_ids=tuple(f"{alert.id} fired" for alert in alerts), created_at=NOON,
    )  # fmt: skip


def _silence(store: TrackingStore) -> None:
    """Write an active silence and a scheduled one."""
    matchers = {"route": "ask*", "rule": "mean_threshold"}
    fields = {"created_by": "ann", "comment": ODD}
    store.alerts.add_silence(
        Silence(id="s1", matchers=matchers, starts_at=NOON - LEASE, ends_at=NOON + LEASE, **fields)
    )
    store.alerts.add_silence(Silence(id="s2", matchers={}, starts_at=NOON + LEASE, ends_at=NOON + 9 * LEASE))


def read(store: TrackingStore) -> dict[str, Any]:
    """Return everything that the store reads back."""
    return {
        "due": store.rollups.count_dirty_hours(),
        "trend": [{name: getattr(one, name) for name in BUCKET} for by in (None, *BY) for one in _trend(store, by)],
        "coverage_trend": [asdict(one) for one in store.trends.coverage_over_time(**_WINDOW, bucket=LEASE)],
        "marks": [asdict(one) for one in store.trends.list_markers()],
        "arrivals": [asdict(one) for one in store.detectors.list_new_scores(99, attributes=True)],
        "baselines": [_version(one) for one in store.baselines.list_versions(superseded=True)],
        "learning": [one.id for one in store.baselines.list_learning()],
        "detectors": [asdict(one) for one in store.detectors.list_states()],
        "open_alerts": [one.as_dict() for one in store.alerts.list_open()],
        "alerts": [one.as_dict() for one in store.alerts.search()],
        "alert_events": [asdict(event) for one in store.alerts.search() for event in store.alerts.list_events(one.id)],
        "notifications": [asdict(one) for one in store.notifications.search()],
        "lanes": [asdict(one) for one in store.notifications.list_channel_queues()],
        "silences": [asdict(one) for one in store.alerts.list_silences()],
    }


BY = ("route", "model", "attributes.trial", "prompt_version")
"""The last one is not rolled up."""
_WINDOW: dict[str, Any] = {"scorer": "relevancy", "since": NOON - 48 * LEASE, "until": NOON + LEASE}


def _trend(store: TrackingStore, by: str | None) -> list[Any]:
    return [one for bucket in (LEASE, 24 * LEASE) for one in store.trends.over_time(**_WINDOW, bucket=bucket, by=by)]


def _version(one: Any) -> dict[str, Any]:
    """Return a baseline with its sets sorted."""
    found = asdict(one)
    return found if one.baseline is None else found | {"pooled": sorted(found["baseline"].pop("pooled"))}
