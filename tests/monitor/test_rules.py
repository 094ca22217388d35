"""When somebody is told, and when not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.monitor import Alert, Callback, Monitor
from germane.monitor.rules import Rules
from germane.score import Score
from germane.settings import Floor, Settings
from germane.storage import Decision, Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FLOOR = Floor(threshold=0.6, window=3600, min_count=3, recovery=0.05)
Give = Callable[..., list[str]]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def give(store: Store, clock: Clock, new_exchange: Callable[..., Exchange]) -> Give:
    """Write scored exchanges of this moment, by the way that the monitor takes."""

    def give(*values: float, fingerprint: str = "f1", **changes: Any) -> list[str]:
        exchanges = [new_exchange(started_at=clock.now, **changes) for _ in values]
        store.add(exchanges)
        store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {"answer_relevancy": fingerprint})
        tasks = {
            task.exchange_id: task
            for claim in store.claim("me", {"answer_relevancy": fingerprint}, limit=1000, lease=timedelta(60))
            for task in claim.tasks
        }
        scores = [Score(scorer="answer_relevancy", fingerprint=fingerprint, value=value) for value in values]
        store.complete("me", [(tasks[one.id], score) for one, score in zip(exchanges, scores, strict=True)])
        return [one.id for one in exchanges]

    return give


@pytest.fixture
def rules(store: Store, clock: Clock) -> Rules:
    return Rules(store, [FLOOR], owner="me", clock=clock)


def look(rules: Rules) -> list[Alert]:
    rules.look()
    return rules.take()


def told(alerts: Sequence[Alert]) -> list[tuple[str, str]]:
    return [(alert.route, alert.state) for alert in alerts]


def test_a_low_mean_fires_once_and_its_recovery_is_told_once(rules: Rules, give: Give, clock: Clock) -> None:
    """One message when the mean falls under the threshold, one when it is well above again, none in between."""
    low = give(0.3, 0.1, 0.5, 0.2)
    (fired,) = look(rules)
    assert (fired.state, fired.value, fired.n, fired.threshold) == ("firing", pytest.approx(0.275), 4, 0.6)
    assert fired.exchange_ids == (low[1], low[3], low[0], low[2])
    assert fired.interval is not None
    assert fired.interval[0] < fired.value < fired.interval[1]

    clock.pass_(minutes=5)
    assert look(rules) == []
    assert rules.open == (fired,)

    clock.pass_(hours=1)
    give(0.9, 0.8, 0.9)
    (resolved,) = look(rules)
    assert (resolved.key, resolved.state, resolved.fired_at, resolved.at) == (fired.key, "resolved", NOON, clock.now)
    assert look(rules) == []
    assert rules.open == ()


def test_an_empty_window_is_no_value(rules: Rules) -> None:
    """No scores: nothing fires."""
    assert look(rules) == []


def test_silence_neither_fires_nor_resolves(rules: Rules, give: Give, clock: Clock) -> None:
    """While an alert is open, no scores or too few of them change nothing, however good they are."""
    give(0.1, 0.1, 0.1)
    assert told(look(rules)) == [("ask", "firing")]

    clock.pass_(hours=2)
    assert look(rules) == []
    give(0.9, 0.9)
    assert look(rules) == []
    assert len(rules.open) == 1


def test_one_low_score_alerts_nobody(rules: Rules, give: Give) -> None:
    """Fewer scores than the minimum decide nothing."""
    give(0.0, 0.0)

    assert look(rules) == []


def test_a_mean_between_threshold_and_recovery_keeps_the_alert(rules: Rules, give: Give, clock: Clock) -> None:
    """A mean that wavers around the threshold makes no messages."""
    give(0.5, 0.5, 0.5)
    assert told(look(rules)) == [("ask", "firing")]

    for value in (0.62, 0.58, 0.64):
        clock.pass_(hours=2)
        give(value, value, value)
        assert look(rules) == []


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_each_service_and_route_is_judged_by_itself(rules: Rules, give: Give) -> None:
    """A good route hides no bad one, nor does a service one of the same name in another; each is its own alert."""
    give(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, route="good")
    give(0.9, 0.9, 0.9, 0.9, route="bad", service="other")
    low = give(0.2, 0.2, 0.2, route="bad")

    (alert,) = look(rules)

    assert (alert.service, alert.route, set(alert.exchange_ids)) == ("shop", "bad", set(low))


def test_a_rule_may_watch_one_route(store: Store, give: Give, clock: Clock) -> None:
    """A floor that names a route leaves the others alone."""
    rules = Rules(store, [FLOOR.model_copy(update={"routes": ("ask",)})], owner="me", clock=clock)
    give(0.1, 0.1, 0.1, route="search")

    assert look(rules) == []


def test_fingerprints_are_never_mixed(rules: Rules, give: Give, clock: Clock) -> None:
    """A new judge is judged by its own scores alone, and only once there are enough of them."""
    give(0.9, 0.9, 0.9, 0.9, fingerprint="old")
    clock.pass_(minutes=1)
    give(0.1, 0.1, fingerprint="new")
    assert look(rules) == []

    give(0.1, fingerprint="new")
    (alert,) = look(rules)
    assert (alert.fingerprint, alert.n) == ("new", 3)


def test_an_old_fingerprint_fires_no_more(rules: Rules, give: Give, clock: Clock) -> None:
    """Low scores of a judge that was replaced since are history."""
    give(0.1, 0.1, 0.1, fingerprint="old")
    clock.pass_(minutes=1)
    give(0.9, fingerprint="new")

    assert look(rules) == []


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_restart_does_not_repeat_an_open_alert(store: Store, rules: Rules, give: Give, clock: Clock) -> None:
    """Which alerts are open stands in the database: the next process says nothing anew, and tells when it is over."""
    give(0.1, 0.1, 0.1)
    (fired,) = look(rules)
    after = Rules(store, [FLOOR], owner="another process", clock=clock)

    assert look(after) == []
    clock.pass_(hours=2)
    give(0.9, 0.9, 0.9)
    (resolved,) = look(after)
    assert (resolved.key, resolved.state, resolved.fired_at) == (fired.key, "resolved", None)
    rules.forget()
    assert look(rules) == []


def test_an_alert_may_fire_again_after_it_was_over(rules: Rules, give: Give, clock: Clock) -> None:
    """Each drop has its own message."""
    for _ in range(2):
        give(0.1, 0.1, 0.1)
        assert told(look(rules)) == [("ask", "firing")]
        clock.pass_(hours=2)
        give(0.9, 0.9, 0.9)
        assert told(look(rules)) == [("ask", "resolved")]
        clock.pass_(hours=2)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_monitors_send_one_message(
    store: Store,
    other_store: Store,
    give: Give,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    until: Any,
) -> None:
    """However many processes watch one database, each transition is told once."""
    alerts: list[Alert] = []
    parts = {"settings": settings(rules=[FLOOR]), "channels": [Callback(alerts.append)], "clock": lambda: NOON}
    give(0.1, 0.1, 0.1)
    monitors = [start(place, **parts) for place in (store, other_store)]

    until(lambda: all(monitor.status().jobs["watch"].last_run for monitor in monitors))
    assert all(monitor.stop(60) for monitor in monitors)

    assert told(alerts) == [("ask", "firing")]


def test_a_transition_is_one_line_in_the_log(
    store: Store, give: Give, start: Callable[..., Monitor], settings: Callable[..., Settings], until: Any, caplog: Any
) -> None:
    """Without any channel the log tells: one warning with mean, interval and n, on one line, without text of users."""
    caplog.set_level(logging.INFO, "germane.monitor")
    give(0.1, 0.1, 0.1, route="a\nb", question="What is my secret?")
    start(store, settings=settings(rules=[FLOOR]), clock=lambda: NOON)

    until(lambda: caplog.records)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(
        "alert firing: answer_relevancy of route a b in shop is below 0.6: mean 0.100 ("
    )
    assert "n = 3) over the last hour." in record.getMessage()
    assert "secret" not in record.getMessage()


def test_a_transition_that_was_found_is_not_lost_to_a_later_error(store: Store, give: Give, clock: Clock) -> None:
    """When the database goes away in the middle of a look, what was found before still goes out."""
    times = iter([clock.now])

    def once() -> datetime:
        try:
            return next(times)
        except StopIteration:
            raise DatabaseUnreachable("gone") from None

    rules = Rules(store, [FLOOR, FLOOR.model_copy(update={"name": "another"})], owner="me", clock=once)
    give(0.1, 0.1, 0.1)
    with pytest.raises(DatabaseUnreachable):
        rules.look()

    assert told(rules.take()) == [("ask", "firing")]


class Similarity:
    """A scorer that no default rule watches."""

    name, fingerprint, requires, range = "question_answer_similarity", "f1", frozenset({"answer"}), (-1.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        return 0.5


def test_a_rule_whose_scorer_does_not_run_here_is_told(
    store: Store, settings: Callable[..., Settings], attached: Any, caplog: Any
) -> None:
    """A rule that will see nothing is said at the start, with the scorer that it might watch instead."""
    floors = [Floor(threshold=0.5), Floor(threshold=0.5, scorer="question_answer_similarity")]

    Monitor(store, [Similarity()], settings(rules=floors), attach=attached)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'floor' watches answer_relevancy, which does not score here (question_answer_similarity" in caplog.text
