"""What a person sees of alerts, and does with them, from the command line."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Protocol

import pytest

from germane.alert import Alert, Change, Event, Level, Notification, Shift, key_of
from germane.baseline import Baseline, RouteBaseline
from germane.storage import Advance, Key, Progress, Store

HOSTILE = "docs\x1b[31m\n<b>"


class Call(Protocol):
    def __call__(self, *arguments: str) -> Any: ...


def an_alert(store: Store, name: str = "a" * 32, **given: Any) -> Alert:
    """Write an alert that fires, and of which the log was told."""
    now = store.now()
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": name[:4]}
    told = {
        "rule": "floor", "kind": "floor", "labels": labels, "state": "firing", "value": 0.5, "threshold": 0.6,
        "current": Level(mean=0.5, n=40, interval=(0.45, 0.55)), "baseline": Level(mean=0.8, n=400),
        "shifts": (Shift(kind="scorer", name="faithfulness", before=Level(mean=0.9, n=9), since=Level(mean=0.6, n=8)),),
        "exchange_ids": ("x1",), "message": f"answer_relevancy of route {HOSTILE} is low.", "starts_at": now,
        "fired_at": now, "evaluated_at": now, "notified_at": now, "cause": "answers_drifting", **given,
    }  # fmt: skip
    alert = Alert(id=name, key=key_of(told["rule"], told["labels"]), **told)
    event = Event(id=f"e{name}", alert_id=name, at=now, what="fired", after=alert.state)
    notification = Notification(
        id=f"n{name}", channel="log", idempotency_key="k", what="firing", alerts=(alert,), event_ids=(event.id,),
        created_at=now,
    )  # fmt: skip
    assert store.advance(Advance(changes=[Change(alert=alert, event=event)], notifications=[notification]))
    return alert


def test_open_alerts_are_listed_with_their_sentences(call: Call, store: Store) -> None:
    """What is wrong now, in words that no terminal can be tricked with; and that nothing is."""
    assert call("alerts").out == "No alert is open.\n"
    an_alert(store)
    ended = call("alerts")
    assert ended.code == 0
    assert ended.out.startswith("aaaaaaaa  floor  warning  firing  since ")
    assert "answer_relevancy of route docs\ufffd[31m <b> is low." in ended.out
    (told,) = call("alerts", "--json").content["alerts"]
    assert (told["id"], told["state"], told["current"]["n"]) == ("a" * 32, "firing", 40)


def test_whether_anything_fires_is_an_exit_code(call: Call, store: Store) -> None:
    """A pipeline may ask."""
    assert call("alerts", "--check").code == 0
    an_alert(store)
    assert call("alerts", "--check").code == 3


def test_one_alert_is_shown_by_the_beginning_of_its_id(call: Call, store: Store) -> None:
    """With levels, shifts, exchanges and history; what is unknown or ambiguous is said."""
    an_alert(store)
    ended = call("alerts", "show", "aaaa")
    assert ended.code == 0
    for said in ("likely       answers drifting", "faithfulness 0.900 -> 0.600", "exchange     x1", "UTC  fired"):
        assert said in ended.out
    content = call("alerts", "show", "aaaa", "--json").content
    assert [event["what"] for event in content["events"]] == ["fired"]
    an_alert(store, "ab" * 16)
    assert (
        call("alerts", "show", "a").err
        == "germane: there is more than one alert whose id begins with 'a': see germane alerts --all\n"
    )
    assert call("alerts", "show", "zz").code == 1


def test_an_acknowledgement_names_who_knows(call: Call, store: Store) -> None:
    """It stays open, and is told no more."""
    an_alert(store)
    assert "firing acknowledged by ann" in call("alerts", "ack", "aaaa", "--by", "ann").out
    (alert,) = store.open_alerts()
    assert (alert.acknowledged_by, alert.state) == ("ann", "firing")
    assert "firing acknowledged by ann" in call("alerts", "ack", "aaaa").out
    assert len(store.notifications()) == 1


def test_an_alert_that_is_resolved_by_hand_is_told_to_whoever_heard_of_it(call: Call, store: Store) -> None:
    """The log heard of it; so a pager's incident would end. Once over it cannot be closed again."""
    an_alert(store)
    assert "resolved" in call("alerts", "resolve", "aaaa", "--by", "ann").out
    assert store.open_alerts() == []
    posted = [one.notification for one in store.notifications()]
    assert sorted((one.channel, one.what) for one in posted) == [("log", "firing"), ("log", "resolved")]
    assert call("alerts", "resolve", "aaaa").err == f"germane: alert {'a' * 32} is over\n"
    assert re.search(r"resolved  from \S+ \S+ to \S+ \S+ UTC", call("alerts", "--all").out)


def test_a_silence_is_listed_until_it_is_ended(call: Call, store: Store) -> None:
    """For a span, for what matches."""
    arguments = ("--route", "docs-*", "--for", "2h", "--comment", HOSTILE, "--by", "ann")
    ended = call("alerts", "silence", *arguments, "--json")
    (silence,) = store.silences()
    assert ended.content["silence"]["matchers"] == dict(silence.matchers) == {"route": "docs-*"}
    assert silence.ends_at - silence.starts_at == timedelta(hours=2)
    assert f"silence {silence.id[:8]} of route docs-* until" in call("alerts").out
    assert call("alerts", "unsilence", silence.id[:8], "--json").content["ended"] == silence.id
    assert store.silences() == []
    assert call("alerts", "unsilence", silence.id[:8]).code == 1


@pytest.mark.parametrize("span", ["0h", "2", "x", "-1h"])
def test_a_silence_has_a_length(call: Call, store: Store, span: str) -> None:
    """None lasts for ever by mistake."""
    assert call("alerts", "silence", "--for", span).code == 2
    assert store.silences() == []


def test_accepting_a_drop_leaves_the_baselines_of_other_rules(call: Call, store: Store) -> None:
    """A rule about attributes goes by one of its own, which that alert says nothing of."""
    route = RouteBaseline(
        n=100, mean=0.8, deviation=0.1, committed=100, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.005,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=10.0, committed_per_day=10.0,
    )  # fmt: skip
    until = store.now() - timedelta(days=1)
    found = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f", since=until - timedelta(days=14), until=until,
        n=100, mean=0.8, deviation=0.1, scores_per_day=10.0, committed_per_day=10.0, routes={"docs": route},
    )  # fmt: skip
    keys = [Key("shop", "answer_relevancy", "f", scope) for scope in ("", '{"tenant": "acme"}')]
    mine, other = (store.supersede(key, "imported", found, (None, None)) for key in keys)
    assert mine is not None
    assert other is not None
    progress = Progress(
        rule="drop", service="shop", scorer="answer_relevancy", parameters="p", baseline_id=mine.id,
        state={"lead": None, "detector": None},
    )  # fmt: skip
    assert store.advance(Advance(progress=[progress]))
    labels = {"service": "shop", "scorer": "answer_relevancy"}
    an_alert(store, "d" * 32, rule="drop", kind="drop", labels=labels, fingerprint="f")

    assert call("alerts", "accept", "dddd").code == 0
    status = {one.key.scope: one.status for one in store.baselines()}
    assert status == {"": "learning", '{"tenant": "acme"}': "active"}


def test_only_a_drop_can_be_accepted(call: Call, store: Store) -> None:
    """Others go by thresholds, which stand in the settings."""
    an_alert(store)
    assert "floor goes by no baseline" in call("alerts", "accept", "aaaa").err
    an_alert(store, "b" * 32, rule="drop", kind="drop")
    assert "its baseline is no longer in force" in call("alerts", "accept", "bbbb").err
