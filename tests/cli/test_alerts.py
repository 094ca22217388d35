"""Tests of `germane alerts`: listing and acting on alerts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Protocol

from tests.cases import each

from germane.alert import Alert, AlertChange, AlertEvent, Notification, ScoreLevel, ScoreShift, alert_key
from germane.baseline import Baseline, RouteBaseline
from germane.storage import AlertTransaction, BaselineKey, DetectorState, TrackingStore

HOSTILE = "docs\x1b[31m\n<b>"


class Call(Protocol):
    def __call__(self, *arguments: str) -> Any: ...


def an_alert(store: TrackingStore, name: str = "a" * 32, **given: Any) -> Alert:
    """Write a firing alert with its notification in the log."""
    now = store.now()
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": name[:4]}
    fields = {
        "rule": "mean_threshold", "type": "mean_threshold", "labels": labels, "state": "firing", "value": 0.5,
        "threshold": 0.6,
        "current": ScoreLevel(mean=0.5, n=40, interval=(0.45, 0.55)), "baseline": ScoreLevel(mean=0.8, n=400),
        "shifts": (
            ScoreShift(
                dimension="scorer",
                name="faithfulness",
                before=ScoreLevel(mean=0.9, n=90),
                since=ScoreLevel(mean=0.6, n=20),
            ),
            ScoreShift(
                dimension="attribute",
                name="tenant=acme",
                before=ScoreLevel(mean=0.9, n=90),
                since=ScoreLevel(mean=0.1, n=19),
            ),
        ),
        "exchange_ids": ("x1",), "message": f"answer_relevancy for route {HOSTILE} is low.", "starts_at": now,
        "fired_at": now, "evaluated_at": now, "notified_at": now, "cause": "answers_drifting", **given,
    }  # fmt: skip
    alert = Alert(id=name, key=alert_key(fields["rule"], fields["labels"]), **fields)
    event = AlertEvent(id=f"e{name}", alert_id=name, at=now, type="fired", after=alert.state)
    notification = Notification(
        id=f"n{name}", channel="log", idempotency_key="k", type="firing", alerts=(alert,), event_ids=(event.id,),
        created_at=now,
    )  # fmt: skip
    assert store.alerts.commit(
        AlertTransaction(changes=[AlertChange(alert=alert, event=event)], notifications=[notification])
    )
    return alert


def test_open_alerts_are_listed_with_their_messages(call: Call, store: TrackingStore) -> None:
    """Messages are sanitized for terminals. Without open alerts, the output is a message."""
    assert call("alerts").out == "No open alerts.\n"
    an_alert(store)
    ended = call("alerts")
    assert ended.code == 0
    assert ended.out.startswith("aaaaaaaa  mean_threshold  warning  firing  since ")
    assert "answer_relevancy for route docs\ufffd[31m <b> is low." in ended.out
    (alert,) = call("alerts", "--json").content["alerts"]
    assert (alert["id"], alert["state"], alert["current"]["n"]) == ("a" * 32, "firing", 40)


def test_alerts_check_exits_with_3_while_an_alert_is_firing(call: Call, store: TrackingStore) -> None:
    """CI pipelines can rely on the exit code."""
    assert call("alerts", "--check").code == 0
    an_alert(store)
    assert call("alerts", "--check").code == 3


def test_an_alert_is_found_by_a_prefix_of_its_id(call: Call, store: TrackingStore) -> None:
    """The output shows levels, shifts, exchanges and history. Unknown and ambiguous ids are errors. An alert with
    exactly this id is found first.
    """
    an_alert(store)
    ended = call("alerts", "show", "aaaa")
    assert ended.code == 0
    for expected in (
        "faithfulness 0.900 -> 0.600",
        "tenant=acme not enough data (n=19, need 20)",
        "exchange     x1",
        "UTC  fired",
    ):
        assert expected in ended.out
    content = call("alerts", "show", "aaaa", "--json").content
    assert [event["type"] for event in content["events"]] == ["fired"]
    an_alert(store, "ab" * 16)
    assert (
        call("alerts", "show", "a").err
        == "germane: more than one alert has an id that starts with 'a'; list all alerts with germane alerts --all\n"
    )
    assert call("alerts", "show", "zz").code == 1
    an_alert(store, "ab")
    assert call("alerts", "show", "ab").code == 0


def test_acknowledging_an_alert_records_the_name(call: Call, store: TrackingStore) -> None:
    """The alert stays open, and reminders stop."""
    an_alert(store)
    assert "firing, acknowledged by ann" in call("alerts", "respond", "ack", "aaaa", "--by", "ann").out
    (alert,) = store.alerts.list_open()
    assert (alert.acknowledged_by, alert.state) == ("ann", "firing")
    assert "firing, acknowledged by ann" in call("alerts", "respond", "ack", "aaaa").out
    assert len(store.notifications.search()) == 1


def test_a_manual_resolution_is_sent_to_the_notified_channels(call: Call, store: TrackingStore) -> None:
    """The alert's incident is resolved too. A resolved alert cannot be resolved again."""
    an_alert(store)
    assert "resolved" in call("alerts", "respond", "resolve", "aaaa", "--by", "ann").out
    assert store.alerts.list_open() == []
    posted = [one.notification for one in store.notifications.search()]
    assert sorted((one.channel, one.type) for one in posted) == [("log", "firing"), ("log", "resolved")]
    assert call("alerts", "respond", "resolve", "aaaa").err == f"germane: alert {'a' * 32} is already resolved\n"
    assert re.search(r"resolved  from \S+ \S+ to \S+ \S+ UTC", call("alerts", "--all").out)


def test_a_silence_is_listed_until_it_ends(call: Call, store: TrackingStore) -> None:
    """A silence has a duration, and patterns that select alerts."""
    arguments = ("--route", "docs-*", "--for", "2h", "--comment", HOSTILE, "--by", "ann")
    ended = call("alerts", "respond", "silence", *arguments, "--json")
    (silence,) = store.alerts.list_silences()
    assert ended.content["silence"]["matchers"] == dict(silence.matchers) == {"route": "docs-*"}
    assert silence.ends_at - silence.starts_at == timedelta(hours=2)
    assert f"silence {silence.id[:8]} for route docs-* until" in call("alerts").out
    assert call("alerts", "respond", "unsilence", silence.id[:8], "--json").content["ended"] == silence.id
    assert store.alerts.list_silences() == []
    assert call("alerts", "respond", "unsilence", silence.id[:8]).code == 1


@each("span", ["0h", "2", "x", "-1h"])
def test_a_silence_requires_a_duration(call: Call, store: TrackingStore, span: str) -> None:
    """This prevents silences that never end by mistake."""
    assert call("alerts", "respond", "silence", "--for", span).code == 2
    assert store.alerts.list_silences() == []


def test_accepting_a_drop_keeps_the_baselines_of_other_rules(call: Call, store: TrackingStore) -> None:
    """A rule with attributes has its own baseline, to which the alert does not apply."""
    route = RouteBaseline(
        n=100, mean=0.8, deviation=0.1, committed=100, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.005,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=10.0, committed_per_day=10.0,
    )  # fmt: skip
    until = store.now() - timedelta(days=1)
    found = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f", since=until - timedelta(days=14), until=until,
        n=100, mean=0.8, deviation=0.1, scores_per_day=10.0, committed_per_day=10.0, routes={"docs": route},
    )  # fmt: skip
    keys = [BaselineKey("shop", "answer_relevancy", "f", scope) for scope in ("", '{"tenant": "acme"}')]
    mine, other = (store.baselines.replace_baseline(key, "imported", found, (None, None)) for key in keys)
    assert mine is not None
    assert other is not None
    progress = DetectorState(
        rule="drop", service="shop", scorer="answer_relevancy", parameters="p", baseline_id=mine.id,
        state={"lead": None, "detector": None},
    )  # fmt: skip
    assert store.alerts.commit(AlertTransaction(detector_states=[progress]))
    labels = {"service": "shop", "scorer": "answer_relevancy"}
    an_alert(store, "d" * 32, rule="drop", type="drop", labels=labels, fingerprint="f")

    assert call("baseline", "accept", "dddd").code == 0
    status = {one.key.scope: one.status for one in store.baselines.list_versions()}
    assert status == {"": "learning", '{"tenant": "acme"}': "active"}


def test_only_drop_alerts_can_be_accepted(call: Call, store: TrackingStore) -> None:
    """Other rules have thresholds in the settings instead of baselines."""
    an_alert(store)
    assert "rule mean_threshold has no baseline" in call("baseline", "accept", "aaaa").err
    an_alert(store, "b" * 32, rule="drop", type="drop")
    assert "its baseline is no longer active" in call("baseline", "accept", "bbbb").err


@each(
    ("arguments", "message"),
    [
        (("ack",), "ack takes one id"),
        (("unsilence", "a", "b"), "unsilence takes one id"),
        (("ack", "a", "--for", "2h"), "--for applies to silence, not to ack"),
        (("silence", "--for", "2h", "--channel", "x"), "--channel applies to resend, not to silence"),
        (("silence", "a", "--for", "2h"), "silence takes patterns instead of ids"),
        (("silence", "--route", "docs"), "pass the duration of the silence"),
        (("resend", "--by", "ann", "a"), "--by applies to ack and resolve and silence, not to resend"),
    ],
)
def test_options_of_another_response_are_rejected(call: Call, arguments: tuple[str, ...], message: str) -> None:
    """The message names the option and where it belongs. No database is opened."""
    ended = call("alerts", "respond", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert message in " ".join(ended.err.split())
