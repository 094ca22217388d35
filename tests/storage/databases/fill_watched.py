"""Fills what the fifth revision brought: trends, marks, baselines, detectors, alerts, and what is told of them.

A part of ``fill.py``, which runs it with code that has these tables.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from germane.alert import Alert, Change, Event, Level, Notification, Shift, Silence, What, key_of
from germane.alerting.detector import Detector, Seen
from germane.alerting.drop import Watch
from germane.alerting.drop.session import hash_of
from germane.annotation import Mark
from germane.baseline import OTHER, Baseline, RouteBaseline
from germane.settings import Drop
from germane.storage import Advance, Key, Outcome, Progress, Store

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
LEASE = timedelta(hours=1)
OFFICE = ("watcher", "someone")
ODD = 'NUL \0, half a pair \ud800 and "quotes"; DROP TABLE alert; \U0001f468\u200d\U0001f469 \u00fc\u00df'
SHOP, CAFE = (Key(service, "relevancy", "f1") for service in ("shop", "caf\u00e9"))
RELEASE = ("gpt-4o-mini", "7")
RULE = Drop()
TAKEN = 6
"""Of eight scores that have arrived."""
BUCKET = ("start", "fingerprint", "group", "n", "mean")


def fill(store: Store) -> None:
    """Fill the tables."""
    _roll(store)
    store.add_marks([Mark(id="1", name="index v42", service="shop", at=NOON - 9 * LEASE, attributes={"by": ODD})])
    store.add_marks([Mark(id="2", name=ODD, service="caf\u00e9", at=NOON)])
    assert store.elect(*OFFICE, ttl=LEASE)
    _learn(store)
    drop = _fire(store)
    _watch(store, drop)
    _alert(store)
    _tell(store, drop)
    _silence(store)


def _roll(store: Store) -> None:
    """Leave the last hours due, and one that changed after it was rolled up."""
    assert store.roll(trend_by=["model", "attributes.trial"], before=NOON - 3 * LEASE) > 9
    store.count_dropped({("shop", "ask"): 2}, ["relevancy"], at=NOON - 5 * LEASE)


def a_baseline(key: Key, mean: float) -> Baseline:
    """Return one in which most scores are committed ones around its mean."""
    rates: dict[str, Any] = {"committed": 570, "committed_deviation": 0.125, "zero_rate": 0.05}
    wander: dict[str, Any] = {"committed_wander": 0.015625, "zero_wander": 0.0078125}
    per_day: dict[str, Any] = {"scores_per_day": 40.0, "committed_per_day": 38.0}
    numbers = {**rates, **wander, **per_day, "committed_mean": mean}
    route = RouteBaseline(n=600, mean=mean * 0.95, deviation=0.25, **numbers)
    window: dict[str, Any] = {"since": NOON - 360 * LEASE, "until": NOON - 24 * LEASE, "keep": 0.999}
    return Baseline(
        **{name: getattr(key, name) for name in ("service", "scorer", "fingerprint")},
        **window,
        n=2400,
        mean=route.mean,
        deviation=route.deviation,
        scores_per_day=160.0,
        committed_per_day=152.0,
        routes=dict.fromkeys(("ask", "search", "ask/{id}", OTHER), route),
        pooled=frozenset({"about"}),
    )


def _learn(store: Store) -> None:
    """Have two baselines gone by, and one that was; the watch begins to learn of the other judges."""
    store.supersede(SHOP, "imported", a_baseline(SHOP, 0.875), (None, None))
    store.supersede(SHOP, "accepted", a_baseline(SHOP, 0.75), RELEASE)
    learned = a_baseline(CAFE, 0.5)
    learning = store.begin_learning(CAFE, "first", since=learned.since, until=learned.until, holder=OFFICE)
    assert learning is not None
    assert store.freeze(learning.id, learned, RELEASE)
    scoped = Key("shop", "relevancy", "f1", '{"tenant": "acme*"}')
    assert store.begin_learning(scoped, "first", since=NOON - LEASE, until=NOON + 300 * LEASE) is not None


def _fire(store: Store) -> Alert:
    """Have the shop's detector fire, and an alert with all that it can have."""
    (active,) = [one for one in store.baselines() if one.key == SHOP]
    assert active.baseline is not None
    detector = Detector(active.baseline)
    began = (NOON - 20 * LEASE).timestamp()
    times = began + np.linspace(0.0, 12000.0, 200)
    assert detector.feed(Seen(["search"] * 200, np.zeros(200), np.ones(200, dtype=bool), times))
    assert detector.firing
    state = {"lead": {"fingerprint": "f1", "votes": 20}, "detector": detector.state()}
    names: dict[str, Any] = {"rule": RULE.name, "service": "shop", "scorer": "relevancy"}
    more: dict[str, Any] = {"log_evidence": detector.log_evidence, "seen_at": NOON - 16 * LEASE}
    progress = Progress(**names, parameters=hash_of(RULE), baseline_id=active.id, state=state, **more)
    alert = a_drop()
    pending = replace(alert, state="pending", fired_at=None, notified_at=None, acknowledged_at=None)
    assert store.advance(Advance(holder=OFFICE, progress=[progress], changes=[_begun(pending)]))
    fired = replace(alert, acknowledged_at=None, acknowledged_by=None)
    assert store.advance(Advance(holder=OFFICE, changes=[_moved(pending, "fired", fired, alert.fired_at)]))
    assert store.advance(Advance(changes=[_moved(fired, "acknowledged", alert, alert.acknowledged_at)]))
    return alert


def a_drop() -> Alert:
    """Return an alert that fires, every field of which is filled but those of its end."""
    usual, current = Level(mean=0.75, n=2400, interval=(0.74, 0.76)), Level(mean=0.5, n=200, interval=(0.4, 0.6))
    labels = {"service": "shop", "scorer": "relevancy"}
    return Alert(
        id="a1",
        key=key_of(RULE.name, labels),
        rule=RULE.name,
        kind="drop",
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
        evidence=0.02,
        onset=NOON - 20 * LEASE,
        shifts=(Shift(kind="route", name="search", before=usual, since=current),),
        exchange_ids=(f"{1:032x}", f"{2:032x}"),
        starts_at=NOON - 18 * LEASE,
        fired_at=NOON - 17 * LEASE,
        evaluated_at=NOON - 16 * LEASE,
        notified_at=NOON - 17 * LEASE,
        acknowledged_at=NOON - LEASE,
        acknowledged_by="ann",
        details={"carriers": [], "said": ODD},
    )


def _watch(store: Store, drop: Alert) -> None:
    """Have the watch take some of the scores that have arrived."""
    look = Watch(store, [RULE], holder=OFFICE, clock=lambda: NOON, batch=TAKEN).look({drop.key: drop})
    assert len(look.consumed) == TAKEN
    assert len(look.progress) > 1
    assert store.advance(Advance(holder=OFFICE, progress=look.progress, consumed=look.consumed))


def _alert(store: Store) -> None:
    """Have one alert that is over, one of the same key that recovers, and one that may come to nothing."""
    labels = {"service": "caf\u00e9", "scorer": "relevancy", "route": "ask"}
    told: dict[str, Any] = {"rule": "floor", "kind": "floor", "key": key_of("floor", labels), "labels": labels}
    first = Alert(
        id="a2", state="firing", starts_at=NOON - 90 * LEASE, evaluated_at=NOON - 90 * LEASE,
        fired_at=NOON - 90 * LEASE, cause="retrieval_worse", message="worse", **told,
    )  # fmt: skip
    ends = NOON - 80 * LEASE
    over = replace(first, state="resolved", resolved_at=ends, evaluated_at=ends, resolve_reason="recovered")
    second = replace(first, id="a3", starts_at=NOON - 9 * LEASE, fired_at=NOON - 9 * LEASE, evaluated_at=NOON)
    better = replace(second, state="recovering")
    silent = {"service": "shop", "scorer": "faithfulness"}
    maybe = Alert(
        id="a4", key=key_of("no_data", silent), rule="no_data", kind="no_data", labels=silent, state="pending",
        starts_at=NOON, evaluated_at=NOON,
    )  # fmt: skip
    assert store.advance(Advance(holder=OFFICE, changes=[_begun(first), _begun(maybe)]))
    assert store.advance(Advance(holder=OFFICE, changes=[_moved(first, "resolved", over, ends)]))
    assert store.advance(Advance(holder=OFFICE, changes=[_begun(second)]))
    assert store.advance(Advance(holder=OFFICE, changes=[_moved(second, "recovering", better, NOON)]))


def _begun(alert: Alert) -> Change:
    what: What = "fired" if alert.state == "firing" else "pending"
    happened = Event(id=f"{alert.id} {what}", alert_id=alert.id, at=alert.starts_at, what=what, after=alert.state)
    return Change(alert=alert, event=happened, notify=alert.state == "firing")


def _moved(before: Alert, what: What, alert: Alert, at: datetime | None) -> Change:
    assert at is not None
    states: dict[str, Any] = {"before": before.state, "after": alert.state}
    event = Event(id=f"{alert.id} {what}", alert_id=alert.id, at=at, what=what, detail={"by": ODD}, **states)
    return Change(alert=alert, before=before, event=event, notify=True)


def _tell(store: Store, drop: Alert) -> None:
    """Have one notification sent, one dead, one tried in vain with another behind it, one being sent, one new."""
    busy = Outcome(http_status=503, error="status 503", again=timedelta(seconds=5))
    outcomes = {"hook": Outcome(http_status=200), "pager": Outcome(http_status=400, error=ODD), "oncall": busy}
    channels = {"n1": "oncall", "n2": "oncall", "n3": "slack", "n4": "hook", "n5": "pager", "n6": "mail"}
    told = [_notification(id_, channel, drop) for id_, channel in channels.items()]
    assert store.advance(Advance(holder=OFFICE, notifications=told))
    for channel in ("oncall", "slack", "hook", "pager"):
        taken = store.take_notification(channel, "away", lease=LEASE)
        assert taken is not None
        if channel in outcomes:
            store.settle_notification(taken.id, "away", outcomes[channel])


def _notification(id_: str, channel: str, *alerts: Alert) -> Notification:
    return Notification(
        id=id_, channel=channel, idempotency_key=f"key of {id_}", what="escalated" if id_ == "n2" else "firing",
        alerts=alerts, event_ids=tuple(f"{alert.id} fired" for alert in alerts), created_at=NOON,
    )  # fmt: skip


def _silence(store: Store) -> None:
    """Have one that lasts, and one to come."""
    matchers = {"route": "ask*", "rule": "floor"}
    told = {"created_by": "ann", "comment": ODD}
    store.add_silence(Silence(id="s1", matchers=matchers, starts_at=NOON - LEASE, ends_at=NOON + LEASE, **told))
    store.add_silence(Silence(id="s2", matchers={}, starts_at=NOON + LEASE, ends_at=NOON + 9 * LEASE))


def read(store: Store) -> dict[str, Any]:
    """Return what the Store reads back of it."""
    return {
        "due": store.due(),
        "trend": [{name: getattr(one, name) for name in BUCKET} for by in (None, *BY) for one in _trend(store, by)],
        "coverage_trend": [asdict(one) for one in store.coverage_trend(**_WINDOW, bucket=LEASE)],
        "marks": [asdict(one) for one in store.marks()],
        "arrivals": [asdict(one) for one in store.arrivals(99, attributes=True)],
        "baselines": [_version(one) for one in store.baselines(superseded=True)],
        "learning": [one.id for one in store.learning()],
        "detectors": [asdict(one) for one in store.detectors()],
        "open_alerts": [one.as_dict() for one in store.open_alerts()],
        "alerts": [one.as_dict() for one in store.alerts()],
        "alert_events": [asdict(event) for one in store.alerts() for event in store.alert_events(one.id)],
        "notifications": [asdict(one) for one in store.notifications()],
        "lanes": [asdict(one) for one in store.lanes()],
        "silences": [asdict(one) for one in store.silences()],
    }


BY = ("route", "model", "attributes.trial", "prompt_version")
"""The last one is not rolled up."""
_WINDOW: dict[str, Any] = {"scorer": "relevancy", "since": NOON - 48 * LEASE, "until": NOON + LEASE}


def _trend(store: Store, by: str | None) -> list[Any]:
    return [one for bucket in (LEASE, 24 * LEASE) for one in store.trend(**_WINDOW, bucket=bucket, by=by)]


def _version(one: Any) -> dict[str, Any]:
    """Return a baseline; a set has no order of its own."""
    found = asdict(one)
    return found if one.baseline is None else found | {"pooled": sorted(found["baseline"].pop("pooled"))}
