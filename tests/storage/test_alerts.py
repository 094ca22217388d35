"""Alerts in the database: atomic transactions, one open alert per key, and no lost updates."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.storage.conftest import NOON

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
from germane.storage import AlertTransaction, TrackingStore
from germane.testing import Clock, engine_of

HOSTILE = "docs\0<b>\ud800 'quoted'; DROP TABLE alert"
LABELS = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
WATCHER_LEASE = ("watcher", "me")


def make_alert(id: str = "a1", **overrides: Any) -> Alert:
    """Return an alert that has been firing since noon."""
    labels = overrides.pop("labels", LABELS)
    fields = {
        "rule": "mean_threshold",
        "type": "mean_threshold",
        "state": "firing",
        "starts_at": NOON,
        "fired_at": NOON,
        **overrides,
    }
    return Alert(id=id, key=alert_key(fields["rule"], labels), labels=labels, **{"evaluated_at": NOON, **fields})


def opening_change(alert: Alert, **overrides: Any) -> AlertChange:
    """Return the change that opens an alert, with its first event."""
    event_type: AlertEventType = "fired" if alert.state == "firing" else "pending"
    event = AlertEvent(
        id=f"e-{alert.id}", alert_id=alert.id, at=alert.starts_at, type=event_type, after=alert.state, detail={}
    )
    return AlertChange(alert=alert, event=event, notify=True, **overrides)


def next_change(before: Alert, event_type: AlertEventType, alert: Alert) -> AlertChange:
    """Return a later change to an alert, with its event."""
    happened = AlertEvent(
        id=f"e-{alert.id}-{event_type}",
        alert_id=alert.id,
        at=alert.evaluated_at,
        type=event_type,
        before=before.state,
        after=alert.state,
    )
    return AlertChange(alert=alert, before=before, event=happened, notify=True)


@pytest.fixture
def leader_store(store: TrackingStore) -> TrackingStore:
    """A store on which this process holds the watcher's lease."""
    assert store.workers.acquire_lease(*WATCHER_LEASE, ttl=timedelta(minutes=1))
    return store


def test_alert_round_trips_through_the_database(leader_store: TrackingStore) -> None:
    """Every field of an alert is stored and loaded unchanged."""
    level = ScoreLevel(mean=0.71, n=212, interval=(0.68, 0.74))
    shift = ScoreShift(dimension="route", name="support", before=ScoreLevel(mean=0.74, n=500), since=level)
    alert = make_alert(
        severity="critical", cause="refusals_rising", message="worse", fingerprint="f", value=0.71, threshold=0.75,
        current=level, baseline=ScoreLevel(mean=0.82, n=1400), window=86400.0, onset=NOON,
        shifts=(shift,), exchange_ids=("x1", "x2"), notified_at=NOON, details={"share": 0.15},
    )  # fmt: skip
    assert leader_store.alerts.commit(AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(alert)]))
    assert leader_store.alerts.list_open() == [alert]
    assert leader_store.alerts.get("a1") == alert
    assert leader_store.alerts.get("a2") is None
    assert [event.type for event in leader_store.alerts.list_events("a1")] == ["fired"]


def test_characters_that_cannot_be_stored_are_replaced_in_alerts(leader_store: TrackingStore) -> None:
    """NUL and lone surrogates become U+FFFD; quotes and SQL in a route name are stored as plain text."""
    alert = make_alert(labels={**LABELS, "route": HOSTILE}, message=HOSTILE, details={HOSTILE: HOSTILE})
    assert leader_store.alerts.commit(
        AlertTransaction(
            holder=WATCHER_LEASE, changes=[opening_change(alert)], notifications=[make_notification(alert)]
        )
    )
    (listed,) = leader_store.alerts.list_open()
    assert listed.key == alert.key
    assert listed.message.startswith("docs\ufffd<b>\ufffd 'quoted'")


def test_open_alerts_are_listed_through_a_partial_index(leader_store: TrackingStore) -> None:
    """Listing open alerts does not scan resolved ones."""
    statements: list[str] = []
    engine = engine_of(leader_store)
    event.listen(engine, "before_cursor_execute", lambda *called: statements.append(called[2]))
    leader_store.alerts.list_open()
    (query,) = (statement for statement in statements if "FROM alert" in statement)
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET enable_seqscan = off")  # PostgreSQL scans small tables by default
        plan = connection.exec_driver_sql(f"{explain_prefix(connection)} {query}").all()
    assert "uq_alert_open" in str(plan)


def explain_prefix(connection: Connection) -> str:
    return "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"


def test_only_one_alert_per_key_is_open(leader_store: TrackingStore) -> None:
    """A second open alert with the same key rolls back its transaction; once the first resolves, a new one can open."""
    first = make_alert()
    assert leader_store.alerts.commit(AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(first)]))
    other = make_alert("a0", labels={**LABELS, "route": "faq"})
    assert not leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(other), opening_change(make_alert("a2"))])
    )
    assert leader_store.alerts.list_open() == [first]
    over = replace(first, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    assert leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[next_change(first, "resolved", over)])
    )
    assert leader_store.alerts.list_open() == []
    assert leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(make_alert("a2"))])
    )
    assert {alert.id for alert in leader_store.alerts.search()} == {"a1", "a2"}
    assert leader_store.alerts.search(state="resolved") == [over]


def test_commit_without_the_lease_writes_nothing(leader_store: TrackingStore) -> None:
    """A process that does not hold the watcher's lease cannot commit an alert or an event."""
    assert not leader_store.alerts.commit(
        AlertTransaction(holder=("watcher", "other"), changes=[opening_change(make_alert())])
    )
    assert leader_store.alerts.search() == []
    assert leader_store.alerts.list_events("a1") == []


def test_manually_resolved_alert_is_not_changed_by_the_evaluator(leader_store: TrackingStore) -> None:
    """A change based on the state from before the resolution is rejected."""
    alert = make_alert()
    leader_store.alerts.commit(AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(alert)]))
    over = replace(alert, state="resolved", resolved_at=NOON, resolve_reason="by_hand")
    assert leader_store.alerts.commit(AlertTransaction(changes=[next_change(alert, "resolved", over)]))
    assert not leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[next_change(alert, "escalated", alert)])
    )
    assert leader_store.alerts.get("a1") == over


def test_change_based_on_a_stale_alert_is_rejected(leader_store: TrackingStore) -> None:
    """A watcher that has not seen an acknowledgement cannot overwrite it; after reloading, it can update the alert."""
    alert = make_alert()
    leader_store.alerts.commit(AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(alert)]))
    known = replace(alert, acknowledged_at=NOON, acknowledged_by="ann")
    assert leader_store.alerts.commit(AlertTransaction(changes=[next_change(alert, "acknowledged", known)]))
    newer = replace(alert, value=0.5)
    assert not leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[AlertChange(alert=newer, before=alert)])
    )
    assert leader_store.alerts.get("a1") == known
    newer = replace(known, value=0.5)
    assert leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[AlertChange(alert=newer, before=known)])
    )
    assert leader_store.alerts.get("a1") == newer


def test_manual_change_based_on_a_stale_alert_is_rejected(leader_store: TrackingStore) -> None:
    """An acknowledgement or resolution of a pending alert is rejected once the alert fires."""
    pending = make_alert(state="pending", fired_at=None)
    leader_store.alerts.commit(AlertTransaction(holder=WATCHER_LEASE, changes=[opening_change(pending)]))
    later = NOON + timedelta(minutes=1)
    fires = replace(pending, state="firing", fired_at=later, notified_at=later, evaluated_at=later)
    assert leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, changes=[next_change(pending, "fired", fires)])
    )
    for event_type, state in (("acknowledged", "pending"), ("resolved", "resolved")):
        said = replace(pending, state=state, acknowledged_at=later)  # type: ignore[arg-type]  # one of the states
        assert not leader_store.alerts.commit(AlertTransaction(changes=[next_change(pending, event_type, said)]))  # type: ignore[arg-type]
    assert leader_store.alerts.get("a1") == fires


class OvertakenProgress:
    """Detector progress that another process has already advanced."""

    def write(self, connection: Connection, now: object) -> bool:
        return False


def test_outdated_detector_state_rolls_back_the_transaction(leader_store: TrackingStore) -> None:
    """No alert is written when another process has already advanced the detector."""
    assert not leader_store.alerts.commit(
        AlertTransaction(
            holder=WATCHER_LEASE, detector_states=[OvertakenProgress()], changes=[opening_change(make_alert())]
        )
    )
    assert leader_store.alerts.search() == []


def test_already_processed_scores_roll_back_the_transaction(leader_store: TrackingStore) -> None:
    """Detector scores that another process has removed cannot be processed twice."""
    assert not leader_store.alerts.commit(
        AlertTransaction(holder=WATCHER_LEASE, processed_score_ids=[7], changes=[opening_change(make_alert())])
    )
    assert leader_store.alerts.search() == []


def make_notification(alert: Alert) -> Notification:
    return Notification(
        id=f"n-{alert.id}", channel="log", idempotency_key="k", type="firing", alerts=(alert,),
        event_ids=(f"e-{alert.id}",), created_at=NOON,
    )  # fmt: skip


def test_retention_deletes_resolved_alerts_and_keeps_open_ones(leader_store: TrackingStore, clock: Clock) -> None:
    """Pruning deletes old resolved alerts with their events, notifications and silences; open alerts are kept."""
    ended, lasting = make_alert(), make_alert("a2", labels={**LABELS, "route": "faq"})
    leader_store.alerts.commit(
        AlertTransaction(
            changes=[opening_change(ended), opening_change(lasting)], notifications=[make_notification(ended)]
        )
    )
    over = replace(ended, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    leader_store.alerts.commit(AlertTransaction(changes=[next_change(ended, "resolved", over)]))
    leader_store.alerts.add_silence(make_silence())
    clock.advance(days=1)
    assert not leader_store.retention.prune(before=NOON - timedelta(days=1)).alerts
    assert leader_store.retention.prune(before=clock.now).alerts == 3
    assert leader_store.alerts.search() == [lasting]
    assert (leader_store.alerts.list_events("a1"), leader_store.notifications.search()) == ([], [])
    assert [event.type for event in leader_store.alerts.list_events("a2")] == ["fired"]


def test_silence_is_listed_until_it_ends(store: TrackingStore) -> None:
    """A silence with any comment is listed while active and can be ended once."""
    silence = make_silence(route="docs*")
    store.alerts.add_silence(silence)
    (listed,) = store.alerts.list_silences()
    assert (listed.id, listed.matchers, listed.ends_at) == ("s", silence.matchers, silence.ends_at)
    assert store.alerts.end_silence("s")
    assert not store.alerts.end_silence("s")
    assert store.alerts.list_silences() == []


def test_silence_applies_when_all_matchers_match() -> None:
    """Matchers cover labels and the rule. A missing label never matches; without matchers, every alert matches."""
    alert = make_alert()
    assert make_silence().covers(alert, NOON)
    assert make_silence(route="do*", rule="mean_threshold").covers(alert, NOON)
    assert not make_silence(route="do*", rule="drop").covers(alert, NOON)
    assert not make_silence(tenant="*").covers(alert, NOON)
    assert not make_silence().covers(alert, NOON + timedelta(hours=2))


def make_silence(**matchers: str) -> Silence:
    return Silence(id="s", matchers=matchers, starts_at=NOON, ends_at=NOON + timedelta(hours=2), comment=HOSTILE)


def test_alert_search_filters_and_paginates(leader_store: TrackingStore) -> None:
    """Pages neither repeat nor skip alerts, even with equal start times; filters return only matching alerts."""
    names = [f"{number:02d}" for number in range(7)]
    for number, name in enumerate(names):
        labels = {"service": ("shop", "desk")[number % 2], "route": name}
        kind = {"rule": "mean_threshold"} if number < 5 else {"rule": "other", "severity": "critical"}
        begun = make_alert(name, labels=labels, starts_at=NOON - timedelta(hours=number // 3), **kind)
        assert leader_store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=begun)]))

    pages: list[list[str]] = []
    after: tuple[datetime, str] | None = None
    while found := leader_store.alerts.search(limit=3, after=after):
        pages.append([one.id for one in found])
        after = (found[-1].starts_at, found[-1].id)

    assert pages == [names[:3], names[3:6], names[6:]]
    assert [alert.id for alert in leader_store.alerts.search(service="desk")] == ["01", "03", "05"]
    assert [alert.id for alert in leader_store.alerts.search(rule="other", severity="critical", service="shop")] == [
        "06"
    ]
    assert leader_store.alerts.search(service="x' OR 1=1") == []
