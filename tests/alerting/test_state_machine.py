"""How alerts begin, go on and end: by law, whatever the rules say in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, Change
from germane.alerting.rule_result import Verdict
from germane.alerting.state_machine import Lifecycle

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
Watched = Callable[[Alert], bool]
Looks = list[tuple[list[Verdict], bool]]
LABELS: Final = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
PATHS: Final = {
    None: {"pending", "firing"},
    "pending": {"firing", "resolved"},
    "firing": {"firing", "recovering", "resolved"},
    "recovering": {"firing", "recovering", "resolved"},
}
"""States that may follow each."""


def a_verdict(state: str, **given_: Any) -> Verdict:
    told = {"rule": "floor", "kind": "floor", "labels": LABELS, **given_}
    return Verdict(state=state, **told)  # type: ignore[arg-type]  # one of the three, made up by the test


class Watch:
    """Looks every so often, and keeps what is open as a database does."""

    def __init__(self) -> None:
        self.now = NOON
        self.alerts: dict[str, Alert] = {}
        self.changes: list[Change] = []
        self._numbers = count()

    def look(
        self, *verdicts: Verdict, minutes: float = 1, watched: Callable[[Alert], bool] = lambda _: True
    ) -> list[Change]:
        self.now += timedelta(minutes=minutes)
        lifecycle = Lifecycle(self.now, lambda: str(next(self._numbers)))
        changes = lifecycle.step(self.open, verdicts, watched=watched)
        for change in changes:
            self.alerts[change.alert.id] = told(change.alert) if change.notify else change.alert
        self.changes += changes
        return changes

    @property
    def open(self) -> list[Alert]:
        return [alert for alert in self.alerts.values() if alert.is_open]

    @property
    def only(self) -> Alert:
        (alert,) = self.open
        return alert


def told(alert: Alert) -> Alert:
    """Return the alert as it is once people were told of it."""
    return replace(alert, details={**alert.details, "peak": alert.severity})


def whats(changes: Sequence[Change]) -> list[str]:
    return [change.event.what for change in changes if change.event is not None]


def test_what_is_bad_fires_at_once_and_is_told_once() -> None:
    """Without a pending time the first bad look fires; the next ones say nothing anew."""
    watch = Watch()
    (change,) = watch.look(a_verdict("bad", value=0.5))
    assert (whats([change]), change.notify, watch.only.state) == (["fired"], True, "firing")
    assert (watch.only.starts_at, watch.only.fired_at, watch.only.value) == (watch.now, watch.now, 0.5)
    assert whats(watch.look(a_verdict("bad", value=0.4))) == []
    assert watch.only.value == 0.4


def test_what_has_to_hold_for_a_while_is_pending_first() -> None:
    """People are told when it has held for that long, and never of what passed before."""
    watch = Watch()
    assert whats(watch.look(a_verdict("bad", pending=120))) == ["pending"]
    assert whats(watch.look(a_verdict("bad", pending=120))) == []
    (change,) = watch.look(a_verdict("bad", pending=120))
    assert (whats([change]), change.notify) == (["fired"], True)

    other = Watch()
    other.look(a_verdict("bad", pending=120))
    (change,) = other.look(a_verdict("good", pending=120))
    assert (change.alert.state, change.alert.resolve_reason, change.notify) == ("resolved", "passed", False)


def test_what_is_unclear_changes_nothing() -> None:
    """Silence neither fires nor resolves, in no state; nor does a look without any verdict."""
    watch = Watch()
    assert watch.look(a_verdict("unclear")) == []
    watch.look(a_verdict("bad", keep_firing=60))
    assert watch.look(a_verdict("unclear"), minutes=9999) == []
    assert watch.look(minutes=9999) == []
    watch.look(a_verdict("good", keep_firing=60))
    assert watch.look(a_verdict("unclear"), minutes=9999) == []
    assert watch.only.state == "recovering"


def test_it_is_over_once_it_has_been_good_for_long_enough() -> None:
    """Good looks that a bad one interrupts begin anew, and nobody is told in between."""
    watch = Watch()
    watch.look(a_verdict("bad"))
    assert whats(watch.look(a_verdict("good", keep_firing=120))) == ["recovering"]
    assert whats(watch.look(a_verdict("bad"))) == ["relapsed"]
    assert whats(watch.look(a_verdict("good", keep_firing=120))) == ["recovering"]
    assert whats(watch.look(a_verdict("good", keep_firing=120))) == []
    (change,) = watch.look(a_verdict("good", keep_firing=120))
    assert (change.alert.resolve_reason, change.notify, change.alert.resolved_at) == ("recovered", True, watch.now)
    assert [one.notify for one in watch.changes if one.event] == [True, False, False, False, True]


def test_evidence_that_it_is_over_ends_it_at_once() -> None:
    """A rule that keeps nothing firing, and whatever is no recovery, such as another judge, wait for nothing."""
    watch = Watch()
    watch.look(a_verdict("bad"))
    (change,) = watch.look(a_verdict("good"))
    assert change.alert.resolve_reason == "recovered"
    watch.look(a_verdict("bad"))
    (change,) = watch.look(a_verdict("good", keep_firing=3600, reason="judge_changed"))
    assert change.alert.resolve_reason == "judge_changed"


def test_a_rise_of_severity_is_told_once() -> None:
    """It may fall and rise again as the numbers waver: that is no news."""
    watch = Watch()
    watch.look(a_verdict("bad"))
    rise, fall = a_verdict("bad", severity="critical"), a_verdict("bad")
    changes = [watch.look(verdict)[0] for verdict in (rise, fall, rise)]
    assert [(change.event.what, change.notify) for change in changes if change.event] == [
        ("escalated", True), ("eased", False), ("escalated", False),
    ]  # fmt: skip
    assert watch.only.severity == "critical"


def test_an_alert_without_a_rule_is_over() -> None:
    """Whoever takes a rule away does not keep its alerts."""
    watch = Watch()
    watch.look(a_verdict("bad"))
    (change,) = watch.look(watched=lambda _: False)
    assert (change.alert.resolve_reason, change.notify) == ("rule_removed", True)


def test_the_likely_beginning_stays_as_it_was_found() -> None:
    """A later look does not move what people were told."""
    watch = Watch()
    watch.look(a_verdict("bad", onset=NOON))
    watch.look(a_verdict("bad", onset=NOON + timedelta(days=1), value=0.1))
    assert watch.only.onset == NOON


def test_persons_acknowledge_and_resolve() -> None:
    """Who did it stands in the event; an acknowledgement is no end."""
    watch = Watch()
    watch.look(a_verdict("bad"))
    lifecycle = Lifecycle(watch.now, lambda: "x")
    known = lifecycle.acknowledge(watch.only, "ann")
    assert (known.alert.state, known.alert.acknowledged_by, known.notify) == ("firing", "ann", False)
    over = lifecycle.resolve(watch.only, "by_hand", "ann")
    assert over.event is not None
    assert (over.alert.resolve_reason, over.event.detail["by"], over.notify) == ("by_hand", "ann", True)


verdicts = st.builds(
    a_verdict,
    st.sampled_from(["bad", "good", "unclear"]),
    labels=st.sampled_from([{"route": "a"}, {"route": "b"}]),
    severity=st.sampled_from(["warning", "critical"]),
    pending=st.sampled_from([0, 90]),
    keep_firing=st.sampled_from([0, 90]),
)
looks = st.lists(st.tuples(st.lists(verdicts, max_size=3), st.booleans()), max_size=20)


@given(looks)
def test_the_laws_of_an_alert(given_looks: Looks) -> None:
    """At most one alert of a key is open; states follow one another as drawn; people hear of each firing once, of its
    end once and after it, and of nothing that never fired; what is unclear changes nothing."""
    watch = Watch()
    for some, is_removed in given_looks:
        watch.look(*some, watched=lambda _, gone=is_removed: not gone)  # type: ignore[misc]  # gone is bound for the call
        keys = [alert.key for alert in watch.open]
        assert len(keys) == len(set(keys))
    for alert in watch.alerts.values():
        events = [change for change in watch.changes if change.alert.id == alert.id and change.event is not None]
        _follows(events)
        told = [change.event.what for change in events if change.notify and change.event]
        assert told.count("fired") == (alert.fired_at is not None)
        assert told.count("escalated") <= 1
        assert told.count("resolved") == (alert.fired_at is not None and not alert.is_open)
        assert told[:1] in ([], ["fired"])
        assert set(told) <= {"fired", "escalated", "resolved"}


def _follows(changes: Sequence[Change]) -> None:
    state = None
    for change in changes:
        assert change.event is not None
        assert change.event.before == state
        assert change.event.after == change.alert.state
        assert change.alert.state in PATHS[state]
        state = change.event.after


@given(looks, st.floats(min_value=0, max_value=1e6))
def test_a_look_that_knows_nothing_changes_nothing(given_looks: Looks, minutes: float) -> None:
    """However long the silence, whatever was before."""
    watch = Watch()
    for some, _ in given_looks:
        watch.look(*some)
    assert watch.look(*(a_verdict("unclear", labels=alert.labels) for alert in watch.open), minutes=minutes) == []


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_the_worst_verdict_of_a_key_counts(order: tuple[str, str]) -> None:
    """Two verdicts of one key in one look make one alert."""
    watch = Watch()
    assert whats(watch.look(*map(a_verdict, order))) == ["fired"]
