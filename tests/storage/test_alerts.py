"""Alerts in the database: all of a step or nothing, one open alert per key, and what persons said stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.storage.conftest import NOON, Clock

from germane.alert import Alert, Change, Event, Level, Notification, Shift, Silence, What, key_of
from germane.storage import Advance, Store

HOSTILE = "docs\0<b>\ud800 'quoted'; DROP TABLE alert"
LABELS = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
OFFICE = ("watcher", "me")


def an_alert(id: str = "a1", **given: Any) -> Alert:
    """Return an alert that fires since noon."""
    labels = given.pop("labels", LABELS)
    told = {"rule": "floor", "kind": "floor", "state": "firing", "starts_at": NOON, "fired_at": NOON, **given}
    return Alert(id=id, key=key_of(told["rule"], labels), labels=labels, **{"evaluated_at": NOON, **told})


def begins(alert: Alert, **given: Any) -> Change:
    """Return the beginning of an alert."""
    what: What = "fired" if alert.state == "firing" else "pending"
    event = Event(id=f"e-{alert.id}", alert_id=alert.id, at=alert.starts_at, what=what, after=alert.state, detail={})
    return Change(alert=alert, event=event, notify=True, **given)


def goes_on(before: Alert, what: What, alert: Alert) -> Change:
    """Return what happened to an alert next."""
    happened = Event(
        id=f"e-{alert.id}-{what}",
        alert_id=alert.id,
        at=alert.evaluated_at,
        what=what,
        before=before.state,
        after=alert.state,
    )
    return Change(alert=alert, before=before, event=happened, notify=True)


@pytest.fixture
def watching(store: Store) -> Store:
    """A store whose watcher is me."""
    assert store.elect(*OFFICE, ttl=timedelta(minutes=1))
    return store


def test_an_alert_comes_back_as_it_was_written(watching: Store) -> None:
    """Every field of an alert survives the database."""
    level = Level(mean=0.71, n=212, interval=(0.68, 0.74))
    shift = Shift(kind="route", name="support", before=Level(mean=0.74, n=500), since=level)
    alert = an_alert(
        severity="critical", cause="refusals_rising", message="worse", fingerprint="f", value=0.71, threshold=0.75,
        current=level, baseline=Level(mean=0.82, n=1400), window=86400.0, evidence=0.02, onset=NOON, shifts=(shift,),
        exchange_ids=("x1", "x2"), notified_at=NOON, details={"share": 0.15},
    )  # fmt: skip
    assert watching.advance(Advance(holder=OFFICE, changes=[begins(alert)]))
    assert watching.open_alerts() == [alert]
    assert watching.alert("a1") == alert
    assert watching.alert("a2") is None
    assert [event.what for event in watching.alert_events("a1")] == ["fired"]


def test_hostile_text_is_kept_as_far_as_a_database_takes_it(watching: Store) -> None:
    """A route's name with NUL, half surrogates and SQL in it makes no step fail, and harms nothing."""
    alert = an_alert(labels={**LABELS, "route": HOSTILE}, message=HOSTILE, details={HOSTILE: HOSTILE})
    assert watching.advance(Advance(holder=OFFICE, changes=[begins(alert)], notifications=[a_notification(alert)]))
    (found,) = watching.open_alerts()
    assert found.key == alert.key
    assert found.message.startswith("docs\ufffd<b>\ufffd 'quoted'")


def test_open_alerts_are_read_by_the_index_of_those(watching: Store) -> None:
    """A look does not go through a year of alerts that are over."""
    asked: list[str] = []
    engine = watching._database.engine
    event.listen(engine, "before_cursor_execute", lambda *called: asked.append(called[2]))
    watching.open_alerts()
    (query,) = (one for one in asked if "FROM alert" in one)
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET enable_seqscan = off")  # a table this small is read as a whole
        plan = connection.exec_driver_sql(f"{explain(connection)} {query}").all()
    assert "uq_alert_open" in str(plan)


def explain(connection: Connection) -> str:
    return "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"


def test_two_alerts_of_one_key_are_never_open_at_once(watching: Store) -> None:
    """The second is refused with all that comes with it; once the first is over, there may be another."""
    first = an_alert()
    assert watching.advance(Advance(holder=OFFICE, changes=[begins(first)]))
    other = an_alert("a0", labels={**LABELS, "route": "faq"})
    assert not watching.advance(Advance(holder=OFFICE, changes=[begins(other), begins(an_alert("a2"))]))
    assert watching.open_alerts() == [first]
    over = replace(first, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    assert watching.advance(Advance(holder=OFFICE, changes=[goes_on(first, "resolved", over)]))
    assert watching.open_alerts() == []
    assert watching.advance(Advance(holder=OFFICE, changes=[begins(an_alert("a2"))]))
    assert {alert.id for alert in watching.alerts()} == {"a1", "a2"}
    assert watching.alerts(state="resolved") == [over]


def test_who_lost_the_office_writes_nothing(watching: Store) -> None:
    """A step of a process that another one has taken over from leaves no trace."""
    assert not watching.advance(Advance(holder=("watcher", "other"), changes=[begins(an_alert())]))
    assert watching.alerts() == []
    assert watching.alert_events("a1") == []


def test_an_alert_that_a_person_resolved_is_not_moved_on(watching: Store) -> None:
    """What was read before a person's word does not undo it."""
    alert = an_alert()
    watching.advance(Advance(holder=OFFICE, changes=[begins(alert)]))
    over = replace(alert, state="resolved", resolved_at=NOON, resolve_reason="by_hand")
    assert watching.advance(Advance(changes=[goes_on(alert, "resolved", over)]))
    assert not watching.advance(Advance(holder=OFFICE, changes=[goes_on(alert, "escalated", alert)]))
    assert watching.alert("a1") == over


def test_a_step_that_did_not_see_what_a_person_said_is_not_written(watching: Store) -> None:
    """It goes by what it read a moment ago: whoever acknowledged meanwhile stays named, and nothing is repeated."""
    alert = an_alert()
    watching.advance(Advance(holder=OFFICE, changes=[begins(alert)]))
    known = replace(alert, acknowledged_at=NOON, acknowledged_by="ann")
    assert watching.advance(Advance(changes=[goes_on(alert, "acknowledged", known)]))
    newer = replace(alert, value=0.5)
    assert not watching.advance(Advance(holder=OFFICE, changes=[Change(alert=newer, before=alert)]))
    assert watching.alert("a1") == known
    newer = replace(known, value=0.5)
    assert watching.advance(Advance(holder=OFFICE, changes=[Change(alert=newer, before=known)]))
    assert watching.alert("a1") == newer


def test_what_a_person_says_undoes_nothing_that_was_found_meanwhile(watching: Store) -> None:
    """An alert that fires, and was told, after a person has read it: their word is not written over that."""
    pending = an_alert(state="pending", fired_at=None)
    watching.advance(Advance(holder=OFFICE, changes=[begins(pending)]))
    later = NOON + timedelta(minutes=1)
    fires = replace(pending, state="firing", fired_at=later, notified_at=later, evaluated_at=later)
    assert watching.advance(Advance(holder=OFFICE, changes=[goes_on(pending, "fired", fires)]))
    for what, state in (("acknowledged", "pending"), ("resolved", "resolved")):
        said = replace(pending, state=state, acknowledged_at=later)  # type: ignore[arg-type]  # one of the states
        assert not watching.advance(Advance(changes=[goes_on(pending, what, said)]))  # type: ignore[arg-type]
    assert watching.alert("a1") == fires


class Slower:
    """Progress that somebody else has made already."""

    def write(self, connection: Connection, now: object) -> bool:
        return False


def test_progress_that_was_overtaken_takes_the_whole_step_with_it(watching: Store) -> None:
    """No alert is written by a look whose detectors another process has moved on."""
    assert not watching.advance(Advance(holder=OFFICE, progress=[Slower()], changes=[begins(an_alert())]))
    assert watching.alerts() == []


def test_arrivals_that_are_gone_take_the_whole_step_with_them(watching: Store) -> None:
    """What another process has consumed is not consumed twice."""
    assert not watching.advance(Advance(holder=OFFICE, consumed=[7], changes=[begins(an_alert())]))
    assert watching.alerts() == []


def a_notification(alert: Alert) -> Notification:
    return Notification(
        id=f"n-{alert.id}", channel="log", idempotency_key="k", what="firing", alerts=(alert,),
        event_ids=(f"e-{alert.id}",), created_at=NOON,
    )  # fmt: skip


def test_what_is_over_goes_with_the_scores_of_its_time(watching: Store, clock: Clock) -> None:
    """Alerts that are over, their history, what was told, and silences; what is open stays, however old."""
    ended, lasting = an_alert(), an_alert("a2", labels={**LABELS, "route": "faq"})
    watching.advance(Advance(changes=[begins(ended), begins(lasting)], notifications=[a_notification(ended)]))
    over = replace(ended, state="resolved", resolved_at=NOON, resolve_reason="recovered")
    watching.advance(Advance(changes=[goes_on(ended, "resolved", over)]))
    watching.add_silence(a_silence())
    clock.advance(days=1)
    assert not watching.prune(before=NOON - timedelta(days=1)).alerts
    assert watching.prune(before=clock.now).alerts == 3
    assert watching.alerts() == [lasting]
    assert (watching.alert_events("a1"), watching.notifications()) == ([], [])
    assert [event.what for event in watching.alert_events("a2")] == ["fired"]


def test_a_silence_lasts_until_it_is_ended(store: Store) -> None:
    """It is listed while it lasts, whatever its comment holds, and ended once."""
    silence = a_silence(route="docs*")
    store.add_silence(silence)
    (found,) = store.silences()
    assert (found.id, found.matchers, found.ends_at) == ("s", silence.matchers, silence.ends_at)
    assert store.end_silence("s")
    assert not store.end_silence("s")
    assert store.silences() == []


def test_a_silence_covers_what_fits_all_of_its_patterns() -> None:
    """Patterns go by label and rule; a label that an alert does not have fits none; no pattern fits all."""
    alert = an_alert()
    assert a_silence().covers(alert, NOON)
    assert a_silence(route="do*", rule="floor").covers(alert, NOON)
    assert not a_silence(route="do*", rule="drop").covers(alert, NOON)
    assert not a_silence(tenant="*").covers(alert, NOON)
    assert not a_silence().covers(alert, NOON + timedelta(hours=2))


def a_silence(**matchers: str) -> Silence:
    return Silence(id="s", matchers=matchers, starts_at=NOON, ends_at=NOON + timedelta(hours=2), comment=HOSTILE)


def test_alerts_come_in_pages_and_are_chosen_by_what_they_are_of(watching: Store) -> None:
    """No page repeats or leaves out one, also of those that began at one moment; a filter takes no others."""
    names = [f"{number:02d}" for number in range(7)]
    for number, name in enumerate(names):
        labels = {"service": ("shop", "desk")[number % 2], "route": name}
        kind = {"rule": "floor"} if number < 5 else {"rule": "other", "severity": "critical"}
        begun = an_alert(name, labels=labels, starts_at=NOON - timedelta(hours=number // 3), **kind)
        assert watching.advance(Advance(changes=[Change(alert=begun)]))

    pages: list[list[str]] = []
    after: tuple[datetime, str] | None = None
    while found := watching.alerts(limit=3, after=after):
        pages.append([one.id for one in found])
        after = (found[-1].starts_at, found[-1].id)

    assert pages == [names[:3], names[3:6], names[6:]]
    assert [one.id for one in watching.alerts(service="desk")] == ["01", "03", "05"]
    assert [one.id for one in watching.alerts(rule="other", severity="critical", service="shop")] == ["06"]
    assert watching.alerts(service="x' OR 1=1") == []
