"""Alerts in the database: all of a step or nothing, one open alert per key, and what persons said stays."""

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
from germane.testing import Clock

HOSTILE = "docs\0<b>\ud800 'quoted'; DROP TABLE alert"
LABELS = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
OFFICE = ("watcher", "me")


def an_alert(id: str = "a1", **given: Any) -> Alert:
    """Return an alert that fires since noon."""
    labels = given.pop("labels", LABELS)
    told = {
        "rule": "mean_threshold",
        "type": "mean_threshold",
        "state": "firing",
        "starts_at": NOON,
        "fired_at": NOON,
        **given,
    }
    return Alert(id=id, key=alert_key(told["rule"], labels), labels=labels, **{"evaluated_at": NOON, **told})


def begins(alert: Alert, **given: Any) -> AlertChange:
    """Return the beginning of an alert."""
    what: AlertEventType = "fired" if alert.state == "firing" else "pending"
    event = AlertEvent(
        id=f"e-{alert.id}", alert_id=alert.id, at=alert.starts_at, type=what, after=alert.state, detail={}
    )
    return AlertChange(alert=alert, event=event, notify=True, **given)


def goes_on(before: Alert, what: AlertEventType, alert: Alert) -> AlertChange:
    """Return what happened to an alert next."""
    happened = AlertEvent(
        id=f"e-{alert.id}-{what}",
        alert_id=alert.id,
        at=alert.evaluated_at,
        type=what,
        before=before.state,
        after=alert.state,
    )
    return AlertChange(alert=alert, before=before, event=happened, notify=True)


@pytest.fixture
def watching(store: TrackingStore) -> TrackingStore:
    """A store whose watcher is me."""
    assert store.workers.acquire_lease(*OFFICE, ttl=timedelta(minutes=1))
    return store


def test_an_alert_comes_back_as_it_was_written(watching: TrackingStore) -> None:
    """Every field of an alert survives the database."""
    level = ScoreLevel(mean=0.71, n=212, interval=(0.68, 0.74))
    shift = ScoreShift(dimension="route", name="support", before=ScoreLevel(mean=0.74, n=500), since=level)
    alert = an_alert(
        severity="critical", cause="refusals_rising", message="worse", fingerprint="f", value=0.71, threshold=0.75,
        current=level, baseline=ScoreLevel(mean=0.82, n=1400), window=86400.0, evidence=0.02, onset=NOON, shifts=(shift,),
        exchange_ids=("x1", "x2"), notified_at=NOON, details={"share": 0.15},
    )  # fmt: skip
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(alert)]))
    assert watching.alerts.list_open() == [alert]
    assert watching.alerts.get("a1") == alert
    assert watching.alerts.get("a2") is None
    assert [event.type for event in watching.alerts.list_events("a1")] == ["fired"]


def test_hostile_text_is_kept_as_far_as_a_database_takes_it(watching: TrackingStore) -> None:
    """A route's name with NUL, half surrogates and SQL in it makes no step fail, and harms nothing."""
    alert = an_alert(labels={**LABELS, "route": HOSTILE}, message=HOSTILE, details={HOSTILE: HOSTILE})
    assert watching.alerts.commit(
        AlertTransaction(holder=OFFICE, changes=[begins(alert)], notifications=[a_notification(alert)])
    )
    (found,) = watching.alerts.list_open()
    assert found.key == alert.key
    assert found.message.startswith("docs\ufffd<b>\ufffd 'quoted'")


def test_open_alerts_are_read_by_the_index_of_those(watching: TrackingStore) -> None:
    """A look does not go through a year of alerts that are over."""
    asked: list[str] = []
    engine = watching._database.engine
    event.listen(engine, "before_cursor_execute", lambda *called: asked.append(called[2]))
    watching.alerts.list_open()
    (query,) = (one for one in asked if "FROM alert" in one)
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET enable_seqscan = off")  # a table this small is read as a whole
        plan = connection.exec_driver_sql(f"{explain(connection)} {query}").all()
    assert "uq_alert_open" in str(plan)


def explain(connection: Connection) -> str:
    return "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"


def test_two_alerts_of_one_key_are_never_open_at_once(watching: TrackingStore) -> None:
    """The second is refused with all that comes with it; once the first is over, there may be another."""
    first = an_alert()
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(first)]))
    other = an_alert("a0", labels={**LABELS, "route": "faq"})
    assert not watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(other), begins(an_alert("a2"))]))
    assert watching.alerts.list_open() == [first]
    over = replace(first, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[goes_on(first, "resolved", over)]))
    assert watching.alerts.list_open() == []
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(an_alert("a2"))]))
    assert {alert.id for alert in watching.alerts.search()} == {"a1", "a2"}
    assert watching.alerts.search(state="resolved") == [over]


def test_who_lost_the_office_writes_nothing(watching: TrackingStore) -> None:
    """A step of a process that another one has taken over from leaves no trace."""
    assert not watching.alerts.commit(AlertTransaction(holder=("watcher", "other"), changes=[begins(an_alert())]))
    assert watching.alerts.search() == []
    assert watching.alerts.list_events("a1") == []


def test_an_alert_that_a_person_resolved_is_not_moved_on(watching: TrackingStore) -> None:
    """What was read before a person's word does not undo it."""
    alert = an_alert()
    watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(alert)]))
    over = replace(alert, state="resolved", resolved_at=NOON, resolve_reason="by_hand")
    assert watching.alerts.commit(AlertTransaction(changes=[goes_on(alert, "resolved", over)]))
    assert not watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[goes_on(alert, "escalated", alert)]))
    assert watching.alerts.get("a1") == over


def test_a_step_that_did_not_see_what_a_person_said_is_not_written(watching: TrackingStore) -> None:
    """It goes by what it read a moment ago: whoever acknowledged meanwhile stays named, and nothing is repeated."""
    alert = an_alert()
    watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(alert)]))
    known = replace(alert, acknowledged_at=NOON, acknowledged_by="ann")
    assert watching.alerts.commit(AlertTransaction(changes=[goes_on(alert, "acknowledged", known)]))
    newer = replace(alert, value=0.5)
    assert not watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[AlertChange(alert=newer, before=alert)]))
    assert watching.alerts.get("a1") == known
    newer = replace(known, value=0.5)
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[AlertChange(alert=newer, before=known)]))
    assert watching.alerts.get("a1") == newer


def test_what_a_person_says_undoes_nothing_that_was_found_meanwhile(watching: TrackingStore) -> None:
    """An alert that fires, and was told, after a person has read it: their word is not written over that."""
    pending = an_alert(state="pending", fired_at=None)
    watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[begins(pending)]))
    later = NOON + timedelta(minutes=1)
    fires = replace(pending, state="firing", fired_at=later, notified_at=later, evaluated_at=later)
    assert watching.alerts.commit(AlertTransaction(holder=OFFICE, changes=[goes_on(pending, "fired", fires)]))
    for what, state in (("acknowledged", "pending"), ("resolved", "resolved")):
        said = replace(pending, state=state, acknowledged_at=later)  # type: ignore[arg-type]  # one of the states
        assert not watching.alerts.commit(AlertTransaction(changes=[goes_on(pending, what, said)]))  # type: ignore[arg-type]
    assert watching.alerts.get("a1") == fires


class Slower:
    """Progress that somebody else has made already."""

    def write(self, connection: Connection, now: object) -> bool:
        return False


def test_progress_that_was_overtaken_takes_the_whole_step_with_it(watching: TrackingStore) -> None:
    """No alert is written by a look whose detectors another process has moved on."""
    assert not watching.alerts.commit(
        AlertTransaction(holder=OFFICE, detector_states=[Slower()], changes=[begins(an_alert())])
    )
    assert watching.alerts.search() == []


def test_arrivals_that_are_gone_take_the_whole_step_with_them(watching: TrackingStore) -> None:
    """What another process has consumed is not consumed twice."""
    assert not watching.alerts.commit(
        AlertTransaction(holder=OFFICE, processed_score_ids=[7], changes=[begins(an_alert())])
    )
    assert watching.alerts.search() == []


def a_notification(alert: Alert) -> Notification:
    return Notification(
        id=f"n-{alert.id}", channel="log", idempotency_key="k", type="firing", alerts=(alert,),
        event_ids=(f"e-{alert.id}",), created_at=NOON,
    )  # fmt: skip


def test_what_is_over_goes_with_the_scores_of_its_time(watching: TrackingStore, clock: Clock) -> None:
    """Alerts that are over, their history, what was told, and silences; what is open stays, however old."""
    ended, lasting = an_alert(), an_alert("a2", labels={**LABELS, "route": "faq"})
    watching.alerts.commit(
        AlertTransaction(changes=[begins(ended), begins(lasting)], notifications=[a_notification(ended)])
    )
    over = replace(ended, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    watching.alerts.commit(AlertTransaction(changes=[goes_on(ended, "resolved", over)]))
    watching.alerts.add_silence(a_silence())
    clock.advance(days=1)
    assert not watching.retention.prune(before=NOON - timedelta(days=1)).alerts
    assert watching.retention.prune(before=clock.now).alerts == 3
    assert watching.alerts.search() == [lasting]
    assert (watching.alerts.list_events("a1"), watching.notifications.search()) == ([], [])
    assert [event.type for event in watching.alerts.list_events("a2")] == ["fired"]


def test_a_silence_lasts_until_it_is_ended(store: TrackingStore) -> None:
    """It is listed while it lasts, whatever its comment holds, and ended once."""
    silence = a_silence(route="docs*")
    store.alerts.add_silence(silence)
    (found,) = store.alerts.list_silences()
    assert (found.id, found.matchers, found.ends_at) == ("s", silence.matchers, silence.ends_at)
    assert store.alerts.end_silence("s")
    assert not store.alerts.end_silence("s")
    assert store.alerts.list_silences() == []


def test_a_silence_covers_what_fits_all_of_its_patterns() -> None:
    """Patterns go by label and rule; a label that an alert does not have fits none; no pattern fits all."""
    alert = an_alert()
    assert a_silence().covers(alert, NOON)
    assert a_silence(route="do*", rule="mean_threshold").covers(alert, NOON)
    assert not a_silence(route="do*", rule="drop").covers(alert, NOON)
    assert not a_silence(tenant="*").covers(alert, NOON)
    assert not a_silence().covers(alert, NOON + timedelta(hours=2))


def a_silence(**matchers: str) -> Silence:
    return Silence(id="s", matchers=matchers, starts_at=NOON, ends_at=NOON + timedelta(hours=2), comment=HOSTILE)


def test_alerts_come_in_pages_and_are_chosen_by_what_they_are_of(watching: TrackingStore) -> None:
    """No page repeats or leaves out one, also of those that began at one moment; a filter takes no others."""
    names = [f"{number:02d}" for number in range(7)]
    for number, name in enumerate(names):
        labels = {"service": ("shop", "desk")[number % 2], "route": name}
        kind = {"rule": "mean_threshold"} if number < 5 else {"rule": "other", "severity": "critical"}
        begun = an_alert(name, labels=labels, starts_at=NOON - timedelta(hours=number // 3), **kind)
        assert watching.alerts.commit(AlertTransaction(changes=[AlertChange(alert=begun)]))

    pages: list[list[str]] = []
    after: tuple[datetime, str] | None = None
    while found := watching.alerts.search(limit=3, after=after):
        pages.append([one.id for one in found])
        after = (found[-1].starts_at, found[-1].id)

    assert pages == [names[:3], names[3:6], names[6:]]
    assert [one.id for one in watching.alerts.search(service="desk")] == ["01", "03", "05"]
    assert [one.id for one in watching.alerts.search(rule="other", severity="critical", service="shop")] == ["06"]
    assert watching.alerts.search(service="x' OR 1=1") == []
