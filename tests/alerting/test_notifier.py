"""Notifications: grouping, silences, acknowledgement, inhibition and channel filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, AlertChange, AlertEvent, AlertEventType, Notification, Silence, alert_key
from germane.alerting.notifier import ChannelFilter, Notifier
from germane.alerting.state_machine import AlertStateMachine

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY: Final = 86_400.0


def everybody(_: Alert) -> bool:
    return True


def an_alert(name: str = "a", **fields: Any) -> Alert:
    labels = fields.pop("labels", {"service": "shop", "scorer": "answer_relevancy", "route": name})
    rule = fields.setdefault("rule", "mean_threshold")
    fields.setdefault("type", rule)
    given_ = {"state": "firing", "starts_at": NOON, "fired_at": NOON, "evaluated_at": NOON, **fields}
    return Alert(id=name, key=alert_key(rule, labels), labels=labels, **given_)


def changed(alert: Alert, what: AlertEventType = "fired", *, notify: bool = True) -> AlertChange:
    event = AlertEvent(id=f"{alert.id}-{what}", alert_id=alert.id, at=NOON, type=what, after=alert.state)
    return AlertChange(alert=alert, event=event, notify=notify)


def notifier(*silences: Silence, now: datetime = NOON, channels: Mapping[str, ChannelFilter] | None = None) -> Notifier:
    numbers = count()
    return Notifier(channels or {"log": everybody}, silences, now, lambda: f"n{next(numbers)}")


def contents_of(notifications: list[Notification]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.channel, one.type, tuple(alert.id for alert in one.alerts)) for one in notifications]


def a_silence(**matchers: str) -> Silence:
    return Silence(id="s", matchers=matchers, starts_at=NOON, ends_at=NOON + timedelta(hours=1))


def test_changes_of_several_alerts_in_a_service_share_one_notification_per_channel() -> None:
    """Another service gets its own notification."""
    alerts = [an_alert("a"), an_alert("b"), an_alert("c", labels={"service": "other", "route": "c"})]
    over = replace(an_alert("d"), state="resolved", notified_at=NOON)
    changes = [changed(over, "resolved"), *map(changed, alerts)]
    written, notifications = notifier(channels={"log": everybody, "slack": everybody}).notify(changes, alerts)
    assert contents_of(notifications) == [
        ("log", "firing", ("a", "b", "d")),
        ("slack", "firing", ("a", "b", "d")),
        ("log", "firing", ("c",)),
        ("slack", "firing", ("c",)),
    ]
    assert all(change.alert.notified_at == NOON for change in written)
    assert len({one.id for one in notifications}) == len({one.idempotency_key for one in notifications}) == 4
    assert notifications[0].event_ids == ("a-fired", "b-fired", "d-resolved")


def test_alert_updates_without_a_state_change_send_no_notification() -> None:
    """Updated values, and events that need no notification, send none."""
    changes = [AlertChange(alert=an_alert()), changed(an_alert("b"), "relapsed", notify=False)]
    assert notifier().notify(changes, [])[1] == []


def test_a_silenced_alert_fires_and_sends_its_notification_later() -> None:
    """The notification is sent when the silence ends, if the alert is still firing."""
    alert = an_alert()
    written, notifications = notifier(a_silence(route="a")).notify([changed(alert)], [alert])
    assert (notifications, written[0].alert.notified_at, written[0].alert.state) == ([], None, "firing")
    assert notifier(a_silence(route="a")).due_for_repeat([alert], lambda _: DAY) == []
    later = NOON + timedelta(hours=1)
    after = notifier(a_silence(route="a"), now=later)
    assert after.due_for_repeat([alert], lambda _: DAY) == [alert]
    again = AlertStateMachine(later, lambda: "e").repeat(alert)
    assert contents_of(after.notify([again], [alert])[1]) == [("log", "firing", ("a",))]


def test_a_resolution_is_notified_only_if_the_firing_was_notified() -> None:
    """This holds even if the alert has been silenced since then."""
    over = replace(an_alert(), state="resolved")
    assert notifier().notify([changed(over, "resolved")], [])[1] == []
    known = replace(over, notified_at=NOON)
    assert contents_of(notifier(a_silence()).notify([changed(known, "resolved")], [])[1]) == [
        ("log", "resolved", ("a",))
    ]


def test_a_firing_alert_is_repeated_until_it_is_acknowledged() -> None:
    """The notification is repeated at every repeat interval."""
    alert = an_alert(notified_at=NOON)
    assert notifier(now=NOON + timedelta(hours=23)).due_for_repeat([alert], lambda _: DAY) == []
    tomorrow = notifier(now=NOON + timedelta(hours=24))
    assert tomorrow.due_for_repeat([alert], lambda _: DAY) == [alert]
    assert tomorrow.due_for_repeat([replace(alert, acknowledged_at=NOON)], lambda _: DAY) == []
    assert tomorrow.due_for_repeat([replace(alert, state="recovering")], lambda _: DAY) == []
    assert tomorrow.due_for_repeat([replace(alert, state="pending", notified_at=None)], lambda _: DAY) == []
    again = AlertStateMachine(NOON, lambda: "e").repeat(alert)
    assert contents_of(tomorrow.notify([again], [alert])[1]) == [("log", "repeated", ("a",))]


def test_a_drop_of_the_service_inhibits_alerts_about_routes() -> None:
    """Alerts for another scorer or service are not inhibited."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    route = an_alert("a")
    other = an_alert("b", labels={"service": "shop", "scorer": "faithfulness", "route": "b"})
    changes = [changed(drop), changed(route), changed(other)]
    _, notifications = notifier().notify(changes, [drop, route, other])
    assert contents_of(notifications) == [("log", "firing", ("drop", "b"))]
    assert notifier().due_for_repeat([replace(drop, notified_at=NOON), route], lambda _: DAY) == []
    assert notifier().due_for_repeat([route], lambda _: DAY) == [route]


def test_a_drop_of_the_service_does_not_inhibit_more_severe_or_new_route_alerts() -> None:
    """More severe route alerts and alerts about new routes are not inhibited."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    worse, new = an_alert("a", severity="critical"), an_alert("b", details={"new_route": True})
    _, notifications = notifier().notify([changed(worse), changed(new)], [drop, worse, new])
    assert contents_of(notifications) == [("log", "firing", ("a", "b"))]


@pytest.mark.parametrize(
    "fields",
    [{"state": "recovering"}, {"details": {"selected": True}}],
    ids=["recovering", "a rule for some routes or attributes"],
)
def test_only_a_firing_drop_in_all_answers_of_a_service_inhibits_other_alerts(fields: dict[str, Any]) -> None:
    """Nobody is notified of a recovering drop, and a drop in one tenant's answers says nothing about the others."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"}, **fields)

    assert contents_of(notifier().notify([changed(an_alert())], [drop, an_alert()])[1]) == [("log", "firing", ("a",))]


def test_a_channel_that_excludes_service_alerts_is_notified_of_route_alerts() -> None:
    """The channel also gets the resolutions of these route alerts, and nothing else."""

    def routes_only(alert: Alert) -> bool:
        return alert.route is not None

    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    both = {"log": everybody, "docs": routes_only}
    _, notifications = notifier(channels=both).notify([changed(drop), changed(an_alert())], [drop, an_alert()])
    assert contents_of(notifications) == [("log", "firing", ("drop",)), ("docs", "firing", ("a",))]

    over = [replace(each.alerts[0], state="resolved") for each in notifications]
    _, resolutions = notifier(channels=both).notify([changed(each, "resolved") for each in over], [])
    assert contents_of(resolutions) == [("log", "resolved", ("drop",)), ("docs", "resolved", ("a",))]


def test_a_channel_is_notified_of_a_route_when_the_service_drop_resolves_first() -> None:
    """Only this channel is notified, because the other was notified when the alert fired."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    both = {"log": everybody, "docs": lambda alert: alert.route is not None}
    _, notifications = notifier(channels=both).notify([changed(drop), changed(an_alert())], [drop, an_alert()])
    drop, route = (each.alerts[0] for each in notifications)
    later = notifier(channels=both, now=NOON + timedelta(minutes=10))
    assert later.due_for_repeat([drop, route], lambda _: DAY) == []

    assert later.due_for_repeat([route], lambda _: DAY) == [route]
    again = AlertStateMachine(NOON, lambda: "e").repeat(route)
    _, late = later.notify([again], [route])
    assert contents_of(late) == [("log", "firing", ("a",))]
    assert later.due_for_repeat(late[0].alerts, lambda _: DAY) == []


def test_a_silenced_service_drop_does_not_inhibit_other_alerts() -> None:
    """Otherwise, there would be no notification at all."""
    drop = an_alert("drop", rule="drop", labels={"service": "shop", "scorer": "answer_relevancy"})
    changes = [changed(drop), changed(an_alert())]
    _, notifications = notifier(a_silence(rule="drop")).notify(changes, [drop, an_alert()])
    assert contents_of(notifications) == [("log", "firing", ("a",))]


def test_an_escalation_during_a_silence_sends_its_notification_later() -> None:
    """This holds even if the earlier severity was acknowledged."""
    _, (first,) = notifier().notify([changed(an_alert())], [])
    worse = replace(first.alerts[0], severity="critical", acknowledged_at=NOON)
    assert notifier(a_silence()).due_for_repeat([worse], lambda _: DAY) == []
    later = NOON + timedelta(hours=1)
    after = notifier(a_silence(), now=later, channels={"pager": lambda alert: alert.severity == "critical"})
    assert after.due_for_repeat([worse], lambda _: DAY) == [worse]
    _, (again,) = after.notify([AlertStateMachine(later, lambda: "e").repeat(worse)], [worse])
    assert (again.channel, again.type) == ("pager", "escalated")
    assert after.due_for_repeat(again.alerts, lambda _: DAY) == []


def test_a_resolution_goes_to_the_channels_that_were_notified_of_the_alert() -> None:
    """A severity that was reached during a silence does not count."""
    critical = {"pager": lambda alert: alert.severity == "critical"}
    _, (first,) = notifier().notify([changed(an_alert())], [])
    over = replace(first.alerts[0], severity="critical", state="resolved")
    assert notifier(channels=critical).notify([changed(over, "resolved")], [])[1] == []


def test_a_scorer_error_alert_inhibits_no_data_alerts() -> None:
    """The only notification names the cause."""
    labels = {"service": "shop", "scorer": "answer_relevancy"}
    broken = an_alert("e", rule="scorer_error", labels=labels)
    missing = an_alert("n", rule="no_data", labels=labels)
    assert contents_of(notifier().notify([changed(missing)], [broken, missing])[1]) == []
    assert contents_of(notifier().notify([changed(missing)], [missing])[1]) == [("log", "firing", ("n",))]


def test_channel_filters_select_the_alerts_of_a_channel() -> None:
    """A critical-only channel gets the resolution of an alert that was critical."""

    def critical(alert: Alert) -> bool:
        return alert.severity == "critical"

    calm = an_alert(severity="warning")
    both = {"log": everybody, "pager": critical}
    assert contents_of(notifier(channels=both).notify([changed(calm)], [calm])[1]) == [("log", "firing", ("a",))]
    over = replace(calm, state="resolved", notified_at=NOON, details={"peak": "critical"})
    _, notifications = notifier(channels=both).notify([changed(over, "resolved")], [])
    assert [one.channel for one in notifications] == ["log", "pager"]
    assert notifications[1].alerts[0].severity == "warning"


whats = st.sampled_from(["fired", "escalated", "resolved", "relapsed"])
names = st.lists(st.tuples(st.sampled_from("abcde"), whats), unique_by=lambda one: one[0])


@given(names, st.booleans(), st.booleans())
def test_suppressing_notifications_does_not_change_alert_states(
    some: list[tuple[str, AlertEventType]], silent: bool, known: bool
) -> None:
    """States and events are the same with and without silences."""
    alerts = [an_alert(name, notified_at=NOON if known else None) for name, _ in some]
    changes = [changed(alert, what, notify=what != "relapsed") for alert, (_, what) in zip(alerts, some, strict=True)]
    written, notifications = notifier(*([a_silence()] if silent else [])).notify(changes, alerts)
    assert [change.event for change in written] == [change.event for change in changes]
    assert [replace(change.alert, notified_at=None, details={}) for change in written] == [
        replace(change.alert, notified_at=None) for change in changes
    ]
    notified = [event_id for one in notifications for event_id in one.event_ids]
    assert len(notified) == len(set(notified))
    if silent:
        assert all(event_id.endswith("resolved") for event_id in notified)
