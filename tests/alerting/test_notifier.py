"""Whom to tell what: grouping, silences, acknowledgement, a drop of the whole service, and channels that want less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, Change, Event, Notification, Silence, What, key_of
from germane.alerting.notifier import Takes, Teller
from germane.alerting.state_machine import Lifecycle

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY: Final = 86_400.0


def everybody(_: Alert) -> bool:
    return True


def an_alert(name: str = "a", **told: Any) -> Alert:
    labels = told.pop("labels", {"service": "shop", "scorer": "answer_relevancy", "route": name})
    rule = told.setdefault("rule", "floor")
    told.setdefault("kind", rule)
    given_ = {"state": "firing", "starts_at": NOON, "fired_at": NOON, "evaluated_at": NOON, **told}
    return Alert(id=name, key=key_of(rule, labels), labels=labels, **given_)


def changed(alert: Alert, what: What = "fired", *, notify: bool = True) -> Change:
    event = Event(id=f"{alert.id}-{what}", alert_id=alert.id, at=NOON, what=what, after=alert.state)
    return Change(alert=alert, event=event, notify=notify)


def teller(*silences: Silence, now: datetime = NOON, channels: Mapping[str, Takes] | None = None) -> Teller:
    numbers = count()
    return Teller(channels or {"log": everybody}, silences, now, lambda: f"n{next(numbers)}")


def told_by(notifications: list[Notification]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.channel, one.what, tuple(alert.id for alert in one.alerts)) for one in notifications]


def a_silence(**matchers: str) -> Silence:
    return Silence(id="s", matchers=matchers, starts_at=NOON, ends_at=NOON + timedelta(hours=1))


def test_what_changes_in_one_service_at_once_is_one_message_per_channel() -> None:
    """Three routes that fall together wake nobody three times; another service is another message."""
    alerts = [an_alert("a"), an_alert("b"), an_alert("c", labels={"service": "other", "route": "c"})]
    over = replace(an_alert("d"), state="resolved", notified_at=NOON)
    changes = [changed(over, "resolved"), *map(changed, alerts)]
    written, notifications = teller(channels={"log": everybody, "slack": everybody}).tell(changes, alerts)
    assert told_by(notifications) == [
        ("log", "firing", ("a", "b", "d")),
        ("slack", "firing", ("a", "b", "d")),
        ("log", "firing", ("c",)),
        ("slack", "firing", ("c",)),
    ]
    assert all(change.alert.notified_at == NOON for change in written)
    assert len({one.id for one in notifications}) == len({one.idempotency_key for one in notifications}) == 4
    assert notifications[0].event_ids == ("a-fired", "b-fired", "d-resolved")


def test_what_nobody_is_to_hear_of_makes_no_message() -> None:
    """Newer numbers, and changes that are no news."""
    changes = [Change(alert=an_alert()), changed(an_alert("b"), "relapsed", notify=False)]
    assert teller().tell(changes, [])[1] == []


def test_a_silenced_alert_is_told_when_the_silence_is_over() -> None:
    """It fires all the same; if it still does afterwards, it is told then, as what it is: a beginning."""
    alert = an_alert()
    written, notifications = teller(a_silence(route="a")).tell([changed(alert)], [alert])
    assert (notifications, written[0].alert.notified_at, written[0].alert.state) == ([], None, "firing")
    assert teller(a_silence(route="a")).due([alert], lambda _: DAY) == []
    later = NOON + timedelta(hours=1)
    after = teller(a_silence(route="a"), now=later)
    assert after.due([alert], lambda _: DAY) == [alert]
    again = Lifecycle(later, lambda: "e").repeat(alert)
    assert told_by(after.tell([again], [alert])[1]) == [("log", "firing", ("a",))]


def test_the_end_of_what_was_never_told_is_not_told() -> None:
    """And the end of what was told is, whatever silence has come since: somebody waits for it."""
    over = replace(an_alert(), state="resolved")
    assert teller().tell([changed(over, "resolved")], [])[1] == []
    known = replace(over, notified_at=NOON)
    assert told_by(teller(a_silence()).tell([changed(known, "resolved")], [])[1]) == [("log", "resolved", ("a",))]


def test_what_lasts_is_told_again_until_somebody_acknowledges_it() -> None:
    """Every repeat interval, while it fires."""
    alert = an_alert(notified_at=NOON)
    assert teller(now=NOON + timedelta(hours=23)).due([alert], lambda _: DAY) == []
    tomorrow = teller(now=NOON + timedelta(hours=24))
    assert tomorrow.due([alert], lambda _: DAY) == [alert]
    assert tomorrow.due([replace(alert, acknowledged_at=NOON)], lambda _: DAY) == []
    assert tomorrow.due([replace(alert, state="recovering")], lambda _: DAY) == []
    assert tomorrow.due([replace(alert, state="pending", notified_at=None)], lambda _: DAY) == []
    again = Lifecycle(NOON, lambda: "e").repeat(alert)
    assert told_by(tomorrow.tell([again], [alert])[1]) == [("log", "repeated", ("a",))]


def test_a_drop_of_the_service_tells_of_its_routes() -> None:
    """While it fires, alerts of its routes keep quiet; those of another scorer or service do not."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    route = an_alert("a")
    other = an_alert("b", labels={"service": "shop", "scorer": "faithfulness", "route": "b"})
    changes = [changed(drop), changed(route), changed(other)]
    _, notifications = teller().tell(changes, [drop, route, other])
    assert told_by(notifications) == [("log", "firing", ("drop", "b"))]
    assert teller().due([replace(drop, notified_at=NOON), route], lambda _: DAY) == []
    assert teller().due([route], lambda _: DAY) == [route]


def test_a_drop_that_is_silenced_keeps_nothing_else_quiet() -> None:
    """Nobody would hear of the trouble at all: what is told instead is the route."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    changes = [changed(drop), changed(an_alert())]
    _, notifications = teller(a_silence(rule="drop")).tell(changes, [drop, an_alert()])
    assert told_by(notifications) == [("log", "firing", ("a",))]


def test_a_rise_that_was_kept_quiet_is_told_when_nothing_speaks_against_it_any_more() -> None:
    """Once, and to the pager that waits for it: though what was told before is acknowledged, and not yet to repeat."""
    _, (first,) = teller().tell([changed(an_alert())], [])
    worse = replace(first.alerts[0], severity="critical", acknowledged_at=NOON)
    assert teller(a_silence()).due([worse], lambda _: DAY) == []
    later = NOON + timedelta(hours=1)
    after = teller(a_silence(), now=later, channels={"pager": lambda alert: alert.severity == "critical"})
    assert after.due([worse], lambda _: DAY) == [worse]
    _, (again,) = after.tell([Lifecycle(later, lambda: "e").repeat(worse)], [worse])
    assert (again.channel, again.what) == ("pager", "escalated")
    assert after.due(again.alerts, lambda _: DAY) == []


def test_a_pager_hears_of_no_end_of_what_it_never_heard_of() -> None:
    """What became critical under a silence, and was over in it, was a warning to everybody."""
    critical = {"pager": lambda alert: alert.severity == "critical"}
    _, (first,) = teller().tell([changed(an_alert())], [])
    over = replace(first.alerts[0], severity="critical", state="resolved")
    assert teller(channels=critical).tell([changed(over, "resolved")], [])[1] == []


def test_a_judge_that_broke_tells_of_the_scores_that_do_not_come() -> None:
    """Two rules see the same trouble: one message names what is behind it."""
    labels = {"service": "shop", "scorer": "answer_relevancy"}
    broken = an_alert("e", rule="scorer_error", labels=labels)
    missing = an_alert("n", rule="no_data", labels=labels)
    assert told_by(teller().tell([changed(missing)], [broken, missing])[1]) == []
    assert told_by(teller().tell([changed(missing)], [missing])[1]) == [("log", "firing", ("n",))]


def test_a_channel_hears_of_what_it_asks_for() -> None:
    """A pager that wants critical ones gets the end of one that was critical, though it is no more."""

    def critical(alert: Alert) -> bool:
        return alert.severity == "critical"

    calm = an_alert(severity="warning")
    both = {"log": everybody, "pager": critical}
    assert told_by(teller(channels=both).tell([changed(calm)], [calm])[1]) == [("log", "firing", ("a",))]
    over = replace(calm, state="resolved", notified_at=NOON, details={"peak": "critical"})
    _, notifications = teller(channels=both).tell([changed(over, "resolved")], [])
    assert [one.channel for one in notifications] == ["log", "pager"]
    assert notifications[1].alerts[0].severity == "warning"


whats = st.sampled_from(["fired", "escalated", "resolved", "relapsed"])
names = st.lists(st.tuples(st.sampled_from("abcde"), whats), unique_by=lambda one: one[0])


@given(names, st.booleans(), st.booleans())
def test_silence_keeps_quiet_and_changes_nothing(some: list[tuple[str, What]], silent: bool, known: bool) -> None:
    """Whatever speaks against telling: states, events and their number stay as the rules found them."""
    alerts = [an_alert(name, notified_at=NOON if known else None) for name, _ in some]
    changes = [changed(alert, what, notify=what != "relapsed") for alert, (_, what) in zip(alerts, some, strict=True)]
    written, notifications = teller(*([a_silence()] if silent else [])).tell(changes, alerts)
    assert [change.event for change in written] == [change.event for change in changes]
    assert [replace(change.alert, notified_at=None, details={}) for change in written] == [
        replace(change.alert, notified_at=None) for change in changes
    ]
    told = [event_id for one in notifications for event_id in one.event_ids]
    assert len(told) == len(set(told))
    if silent:
        assert all(event_id.endswith("resolved") for event_id in told)
