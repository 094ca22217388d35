"""When somebody is told, and when not: rules, alerts and notifications over a real database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.alert import Alert, Notification, Silence
from germane.alerting.evaluator import Lookout
from germane.alerting.state_machine import Lifecycle
from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.settings import (
    AnyRule,
    Budget,
    BudgetExhausted,
    Drop,
    Floor,
    LowRate,
    NoData,
    NoncommittalRate,
    ScorerError,
    Settings,
)
from germane.storage import Advance, Decision, Expense, Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OFF: tuple[AnyRule, ...] = (
    Drop(enabled=False), NoData(enabled=False), ScorerError(enabled=False), BudgetExhausted(enabled=False)
)  # fmt: skip
FLOOR = Floor(threshold=0.6, window=3600, min_count=3, recovery=0.05, keep_firing=0)
both = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
SCORER = "answer_relevancy"
Give = Callable[..., list[str]]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


class Person:
    """Looks with some rules, and hears what the log is told."""

    def __init__(self, store: Store, clock: Clock, settings: Callable[..., Settings], owner: str = "me") -> None:
        self.store = store
        self.clock = clock
        self.owner = owner
        self._settings = settings
        self._heard: set[str] = set()
        self.rules()

    def rules(self, *rules: AnyRule, **changes: Any) -> Person:
        """Begin anew with these rules and no others."""
        kinds = {rule.kind for rule in rules}
        told = (*rules, *(rule for rule in OFF if rule.kind not in kinds))
        self.lookout = Lookout(
            self.store, self._settings(rules=told, **changes), holder=("watcher", self.owner), scorers=[SCORER],
            channels={"log": lambda _: True}, clock=self.clock,
        )  # fmt: skip
        return self

    def look(self) -> list[Notification]:
        """Look once as the holder of the office; return what the log is told anew, the oldest first."""
        assert self.store.elect("watcher", self.owner, ttl=timedelta())
        self.lookout.look()
        posted = [one.notification for one in self.store.notifications(limit=1000)][::-1]
        news = [one for one in posted if one.id not in self._heard]
        self._heard |= {one.id for one in news}
        return news

    def alert(self) -> Alert:
        """Look, and return the only alert that is told of."""
        (notification,) = self.look()
        (alert,) = notification.alerts
        return alert


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Any:
    opened = Store(url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def person(store: Store, clock: Clock, settings: Callable[..., Settings]) -> Person:
    return Person(store, clock, settings).rules(FLOOR)


@pytest.fixture
def give(store: Store, clock: Clock, new_exchange: Callable[..., Exchange]) -> Give:
    """Write scored exchanges of this moment, by the way that the monitor takes; None is a score that failed."""

    def give(
        *values: float | None, fingerprint: str = "f1", scorer: str = SCORER, label: str | None = None, **changes: Any
    ) -> list[str]:
        exchanges = [new_exchange(**{"started_at": clock.now} | changes) for _ in values]
        store.add(exchanges)
        scorers = {scorer: fingerprint}
        store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], scorers)
        claims = store.claim("me", scorers, limit=1000, lease=timedelta(60))
        tasks = {task.exchange_id: task for claim in claims for task in claim.tasks}
        scores = [a_score(scorer, fingerprint, value, label) for value in values]
        store.complete("me", [(tasks[one.id], score) for one, score in zip(exchanges, scores, strict=True)])
        return [one.id for one in exchanges]

    return give


def a_score(scorer: str, fingerprint: str, value: float | None, label: str | None) -> Score:
    if value is None:
        return Score(scorer=scorer, fingerprint=fingerprint, reason=Reason.JUDGE_UNREACHABLE)
    return Score(scorer=scorer, fingerprint=fingerprint, value=value, label=label)


def told(notifications: Sequence[Notification]) -> list[tuple[str | None, str]]:
    return [(alert.route, one.what) for one in notifications for alert in one.alerts]


@both
def test_a_low_mean_fires_once_and_its_recovery_is_told_once(person: Person, give: Give, clock: Clock) -> None:
    """One message when the mean falls under the threshold, one when it is well above again, none in between."""
    low = give(0.3, 0.1, 0.5, 0.2)
    fired = person.alert()
    assert (fired.state, fired.threshold) == ("firing", 0.6)
    assert fired.value == pytest.approx(0.275)
    assert fired.current is not None
    assert fired.current.n == 4
    assert fired.exchange_ids == (low[1], low[3], low[0], low[2])
    assert fired.message.startswith("answer_relevancy of route ask in shop is below 0.6: mean 0.275 (95 % interval ")
    assert fired.message.endswith(", n = 4) over the last hour.")

    clock.pass_(minutes=5)
    assert person.look() == []
    assert [alert.id for alert in person.store.open_alerts()] == [fired.id]

    clock.pass_(hours=1)
    give(0.9, 0.8, 0.9)
    resolved = person.alert()
    assert (resolved.id, resolved.state, resolved.fired_at) == (fired.id, "resolved", NOON)
    assert resolved.message.startswith("Over, it has recovered: answer_relevancy of route ask in shop is no longer")
    assert person.look() == []
    assert person.store.open_alerts() == []
    assert [event.what for event in person.store.alert_events(fired.id)] == ["fired", "resolved"]


def test_an_empty_window_is_no_value(person: Person) -> None:
    """No scores: nothing fires."""
    assert person.look() == []


def test_silence_neither_fires_nor_resolves(person: Person, give: Give, clock: Clock) -> None:
    """While an alert is open, no scores or too few of them change nothing, however good they are."""
    give(0.1, 0.1, 0.1)
    assert told(person.look()) == [("ask", "firing")]

    clock.pass_(hours=2)
    assert person.look() == []
    give(0.9)
    assert person.look() == []
    assert len(person.store.open_alerts()) == 1


@pytest.mark.parametrize("again", [False, True])
def test_good_scores_that_leave_the_window_fire_nothing(person: Person, give: Give, clock: Clock, again: bool) -> None:
    """Enough good ones, then a few bad ones, then silence: the good ones grow old first, which is no news."""
    give(*[0.9] * 40)
    clock.pass_(minutes=30)
    give(*[0.1] * 5)
    for _ in range(100):
        assert person.look() == []
        clock.pass_(minutes=1)
        if again:  # a process that begins anew judges by the same window
            person.lookout.forget()


def test_one_low_score_alerts_nobody(person: Person, give: Give) -> None:
    """Fewer scores than the minimum decide nothing."""
    give(0.0, 0.0)
    assert person.look() == []


def test_a_low_mean_by_chance_alerts_nobody(person: Person, give: Give) -> None:
    """Three scores that may as well have been others are no reason, though their mean is low."""
    give(0.2, 0.9, 0.6)
    assert person.look() == []


def test_a_window_is_longer_where_scores_are_few(person: Person, give: Give, clock: Clock) -> None:
    """A route with a score an hour is judged too: by as many hours as hold the minimum."""
    for _ in range(4):
        give(0.1, route="rare")
        news = person.look()
        clock.pass_(minutes=59)
    assert told(news) == []
    (alert,) = person.store.open_alerts()
    assert (alert.route, alert.window) == ("rare", 2 * 3600)
    assert alert.message.endswith("over the last 2 hours.")
    assert len(alert.exchange_ids) == 3


def test_a_mean_between_threshold_and_recovery_keeps_the_alert(person: Person, give: Give, clock: Clock) -> None:
    """A mean that wavers around the threshold makes no messages."""
    give(*[0.5] * 20)
    assert told(person.look()) == [("ask", "firing")]

    for value in (0.62, 0.58, 0.64):
        clock.pass_(hours=2)
        give(*[value] * 20)
        assert person.look() == []


def test_recovery_has_to_last_where_the_rule_says_so(person: Person, give: Give, clock: Clock) -> None:
    """Six hours by default, and only with scores that say so."""
    person.rules(FLOOR.model_copy(update={"keep_firing": 6 * 3600}))
    give(0.1, 0.1, 0.1)
    assert told(person.look()) == [("ask", "firing")]
    for _ in range(6):
        clock.pass_(hours=1, minutes=1)
        give(0.9, 0.9, 0.9)
        assert person.look() == []
    assert person.store.open_alerts()[0].state == "recovering"
    clock.pass_(hours=1, minutes=1)
    assert person.look() == []
    clock.pass_(minutes=1)
    give(0.9, 0.9, 0.9)
    assert told(person.look()) == [("ask", "resolved")]


@both
def test_each_service_and_route_is_judged_by_itself(person: Person, give: Give) -> None:
    """A good route hides no bad one, nor does a service one of the same name in another; each is its own alert."""
    give(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, route="good")
    give(0.9, 0.9, 0.9, 0.9, route="bad", service="other")
    low = give(0.2, 0.2, 0.2, route="bad")

    alert = person.alert()

    assert (alert.service, alert.route, set(alert.exchange_ids)) == ("shop", "bad", set(low))


def test_what_falls_together_is_one_message(person: Person, give: Give) -> None:
    """Two routes of one service, found in one look."""
    give(0.2, 0.2, 0.2, route="a")
    give(0.2, 0.2, 0.2, route="b")
    (notification,) = person.look()
    assert {alert.route for alert in notification.alerts} == {"a", "b"}


def test_a_rule_may_watch_some_routes(person: Person, give: Give, clock: Clock) -> None:
    """A floor that names routes leaves the others alone."""
    person.rules(FLOOR.model_copy(update={"routes": ("as*",)}))
    give(0.1, 0.1, 0.1, route="search")
    assert person.look() == []
    clock.pass_(minutes=1)
    give(0.1, 0.1, 0.1, route="ask")
    assert told(person.look()) == [("ask", "firing")]


@both
def test_a_rule_may_watch_answers_with_certain_attributes(person: Person, give: Give, clock: Clock) -> None:
    """One tenant's bad answers fire its rule, however good the others are; and nobody else's do."""
    person.rules(FLOOR.model_copy(update={"attributes": {"tenant": "ac*"}}))
    give(0.1, 0.1, 0.1, attributes={"tenant": "other"})
    give(0.1, 0.1, 0.1)
    assert person.look() == []
    clock.pass_(minutes=1)
    give(0.9, 0.9, 0.9, 0.9, 0.9, attributes={"tenant": "other"})
    give(0.1, 0.1, 0.1, 0.2, attributes={"tenant": "acme"})
    assert person.alert().value == pytest.approx(0.125)


def test_fingerprints_are_never_mixed(person: Person, give: Give, clock: Clock) -> None:
    """A new judge is judged by its own scores alone, and only once there are enough of them."""
    give(0.9, 0.9, 0.9, 0.9, fingerprint="old")
    clock.pass_(minutes=1)
    give(0.1, 0.1, fingerprint="new")
    assert person.look() == []

    give(0.1, fingerprint="new")
    clock.pass_(minutes=1)
    give(0.1, fingerprint="new")
    alert = person.alert()
    assert alert.current is not None
    assert (alert.fingerprint, alert.current.n) == ("new", 4)


def test_an_old_fingerprint_fires_no_more(person: Person, give: Give, clock: Clock) -> None:
    """Low scores of a judge that was replaced since are history."""
    give(0.1, 0.1, 0.1, fingerprint="old")
    clock.pass_(minutes=1)
    give(0.9, fingerprint="new")
    assert person.look() == []


@both
def test_a_restart_does_not_repeat_an_open_alert(
    person: Person, other_store: Store, give: Give, clock: Clock, settings: Callable[..., Settings]
) -> None:
    """Which alerts are open stands in the database: the next process says nothing anew, and tells when it is over."""
    give(0.1, 0.1, 0.1)
    fired = person.alert()
    after = Person(other_store, clock, settings, owner="another process").rules(FLOOR)
    after.look()
    assert len(person.store.notifications()) == 1
    clock.pass_(hours=2)
    give(0.9, 0.9, 0.9)
    resolved = after.alert()
    assert (resolved.key, resolved.state, resolved.fired_at) == (fired.key, "resolved", NOON)


def test_who_is_not_in_office_writes_nothing_and_finds_it_later(person: Person, give: Give, clock: Clock) -> None:
    """What was found while another process took over is found again."""
    give(0.1, 0.1, 0.1)
    assert person.store.elect("watcher", "another", ttl=timedelta(minutes=1))
    assert person.lookout.look() is False
    assert person.store.alerts() == []
    clock.pass_(minutes=2)
    assert told(person.look()) == [("ask", "firing")]


class Breaks(Store):
    """A database that goes away in the middle of a step."""

    def __init__(self, url: str, *, clock: Clock) -> None:
        super().__init__(url, clock=clock)
        self.away = True

    def advance(self, step: Advance) -> bool:
        if self.away:
            raise DatabaseUnreachable("gone")
        return super().advance(step)


def test_what_was_found_before_an_error_is_found_again(
    url: str, give: Give, clock: Clock, settings: Callable[..., Settings]
) -> None:
    """When the database goes away while a step is written, the next look finds the same, without any new score."""
    broken = Breaks(url, clock=clock)
    person = Person(broken, clock, settings).rules(FLOOR)
    give(0.1, 0.1, 0.1)
    with pytest.raises(DatabaseUnreachable):
        person.look()
    broken.away = False
    assert told(person.look()) == [("ask", "firing")]
    broken.close()


def test_what_was_found_at_the_beginning_stays_with_the_alert(person: Person, give: Give, clock: Clock) -> None:
    """Newer numbers take the place of older ones; worst answers, the mean before and the cause stay."""
    clock.pass_(hours=-3)
    give(*[0.9] * 30)
    clock.pass_(hours=3)
    give(*[0.1] * 30)
    before = person.alert()
    assert before.baseline is not None
    assert (before.cause, before.baseline.n) == ("answers_drifting", 30)
    clock.pass_(minutes=5)
    give(*[0.0] * 30)
    assert person.look() == []
    (after,) = person.store.open_alerts()
    assert after.value == pytest.approx(0.05)
    assert (after.cause, after.baseline, after.exchange_ids) == (before.cause, before.baseline, before.exchange_ids)


def test_an_alert_may_fire_again_after_it_was_over(person: Person, give: Give, clock: Clock) -> None:
    """Each drop has its own message."""
    for _ in range(2):
        give(0.1, 0.1, 0.1)
        assert told(person.look()) == [("ask", "firing")]
        clock.pass_(hours=2)
        give(0.9, 0.9, 0.9)
        assert told(person.look()) == [("ask", "resolved")]
        clock.pass_(hours=2)


def test_an_alert_of_a_rule_that_is_gone_is_over(person: Person, give: Give) -> None:
    """Whoever takes a rule away hears once that its alert is over."""
    give(0.1, 0.1, 0.1)
    person.look()
    person.rules()
    assert person.alert().resolve_reason == "rule_removed"


def test_what_lasts_is_told_every_day_until_it_is_acknowledged(person: Person, give: Give, clock: Clock) -> None:
    """Once a day; then somebody says that they know."""
    give(0.1, 0.1, 0.1)
    alert = person.alert()
    clock.pass_(hours=23)
    assert person.look() == []
    clock.pass_(hours=1)
    assert told(person.look()) == [("ask", "repeated")]
    assert person.look() == []
    after_all = "z"  # of events of one moment the ids say the order
    known = Lifecycle(clock.now, lambda: after_all).acknowledge(person.store.open_alerts()[0], "ann")
    assert person.store.advance(Advance(changes=[known]))
    clock.pass_(hours=25)
    assert person.look() == []
    assert [event.what for event in person.store.alert_events(alert.id)] == ["fired", "repeated", "acknowledged"]


def test_what_is_told_again_has_the_numbers_of_now(person: Person, give: Give, clock: Clock) -> None:
    """Newer scores and the time to tell again come together: one message, with what is known by then."""
    give(0.1, 0.1, 0.1)
    person.look()
    clock.pass_(hours=25)
    give(*[0.3] * 20)
    again = person.alert()
    assert again.value == pytest.approx(0.3)
    assert again.notified_at == clock.now
    assert person.look() == []


@both
def test_a_silence_keeps_quiet_and_is_told_after_it(person: Person, give: Give, clock: Clock) -> None:
    """The alert stands in the list all the while; people hear of it once the silence has ended."""
    until = NOON + timedelta(hours=1)
    person.store.add_silence(Silence(id="s", matchers={"route": "a*"}, starts_at=NOON, ends_at=until))
    give(0.1, 0.1, 0.1)
    assert person.look() == []
    assert [alert.state for alert in person.store.open_alerts()] == ["firing"]
    clock.pass_(hours=1)
    assert told(person.look()) == [("ask", "firing")]


def test_too_many_low_scores_fire(person: Person, give: Give, clock: Clock) -> None:
    """The share of low scores, beyond chance; over once it is well below."""
    person.rules(LowRate(threshold=0.3, window=3600, min_count=10, keep_firing=0))
    give(*[0.9] * 8, *[0.2] * 4)
    assert person.look() == []
    clock.pass_(minutes=1)
    give(*[0.2] * 20)
    alert = person.alert()
    assert alert.kind == "low_rate"
    assert alert.value == pytest.approx(0.75)
    assert "the share of low scores of answer_relevancy of route ask in shop is above 30 %: 75 % (" in alert.message
    clock.pass_(hours=2)
    give(*[0.9] * 20)
    assert told(person.look()) == [("ask", "resolved")]


def test_too_many_refusals_fire(person: Person, give: Give) -> None:
    """The share of noncommittal answers."""
    person.rules(NoncommittalRate(threshold=0.3, window=3600, min_count=10))
    give(*[0.0] * 20, label="noncommittal")
    give(*[0.9] * 10)
    alert = person.alert()
    assert (alert.kind, alert.cause) == ("noncommittal_rate", None)  # nothing is known of before
    assert alert.value == pytest.approx(2 / 3)


class TestNoData:
    """Answers come in and none is scored."""

    @pytest.fixture(autouse=True)
    def _rule(self, person: Person) -> None:
        person.rules(NoData())

    @both
    def test_scores_that_stop_while_people_ask_are_told(
        self, person: Person, store: Store, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """Twice the usual gap without a score, since the first answer that waits; over with the next score."""
        for _ in range(30):
            give(0.9)
            clock.pass_(minutes=10)
        assert person.look() == []
        exchanges = []
        for _ in range(5):
            exchanges.append(new_exchange(started_at=clock.now))
            store.add(exchanges[-1:])
            store.assign([Decision(exchanges[-1].id, 1.0, "drawn")], {SCORER: "f1"})
            clock.pass_(minutes=6)
        assert person.look() == []
        clock.pass_(minutes=1)
        alert = person.alert()
        assert (alert.kind, alert.cause, alert.details["waiting"], alert.scorer) == ("no_data", "no_data", 5, SCORER)
        assert (
            "no answer of service shop was scored by answer_relevancy since Thu 2026-01-01 17:00 UTC" in alert.message
        )
        assert alert.message.endswith("and 5 answers came in; the next one is usually scored within 10 minutes.")
        clock.pass_(minutes=2)
        give(0.9)
        assert told(person.look()) == [(None, "resolved")]

    def test_nothing_is_said_of_what_is_usual_where_that_is_not_known(
        self, person: Person, store: Store, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """After the first answers nobody can say how long a score takes."""
        store.add([new_exchange(started_at=clock.now)])
        store.assign([Decision(one.id, 1.0, "drawn") for one in store.exchanges()], {SCORER: "f1"})
        clock.pass_(hours=2, minutes=1)
        assert person.look() == []
        clock.pass_(minutes=1)
        assert person.alert().message.endswith("and 1 answer came in.")

    def test_what_waited_for_the_database_is_scored_first(
        self, person: Person, store: Store, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """After an hour in which it was away all answers of that hour come at once: nobody is woken for it."""
        for _ in range(30):
            give(0.9)
            clock.pass_(minutes=10)
        clock.pass_(hours=1)
        came = [new_exchange(started_at=clock.now - timedelta(minutes=minutes)) for minutes in range(60)]
        store.add(came)
        store.assign([Decision(one.id, 1.0, "drawn") for one in came], {SCORER: "f1"})
        assert person.look() == []
        clock.pass_(seconds=30)
        give(0.9)
        assert person.look() == []
        assert [alert.resolve_reason for alert in store.alerts()] == ["passed"]

    def test_a_quiet_night_is_no_news(self, person: Person, give: Give, clock: Clock) -> None:
        """Nobody asks, nothing is scored: nothing is told, then or with the first question of the morning."""
        for _ in range(30):
            give(0.9)
            clock.pass_(minutes=10)
        for _ in range(10):
            clock.pass_(hours=1)
            assert person.look() == []
        give(0.9)
        assert person.look() == []

    def test_answers_that_were_not_to_be_scored_are_not_missed(
        self, person: Person, store: Store, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """What the draw left out is no missing score."""
        give(0.9)
        for _ in range(10):
            clock.pass_(minutes=30)
            exchange = new_exchange(started_at=clock.now)
            store.add([exchange])
            store.assign([Decision(exchange.id, 0.1, "drawn", {SCORER: Reason.NOT_DRAWN})], {SCORER: "f1"})
            assert person.look() == []


class TestScorerError:
    """The judge broke."""

    @pytest.fixture(autouse=True)
    def _rule(self, person: Person) -> None:
        person.rules(ScorerError(pending=60))

    @both
    def test_a_judge_that_breaks_is_told_as_that(self, person: Person, give: Give, clock: Clock) -> None:
        """Not as a drop: the mean of what was scored is what it was. It names the commonest reason."""
        give(*[0.9] * 20)
        give(*[None] * 10)
        assert person.look() == []
        clock.pass_(minutes=2)
        alert = person.alert()
        assert (alert.kind, alert.cause) == ("scorer_error", "judge_broken")
        assert alert.value == pytest.approx(1 / 3)
        assert "the judge cannot be reached (judge_unreachable)" in alert.message
        assert "the judge broke, which says nothing of the answers" in alert.message
        clock.pass_(hours=2)
        give(*[0.9] * 30)
        over = person.alert()
        assert over.state == "resolved"
        assert over.message == (
            "Over, it has recovered: answer_relevancy failed for 0 of 30 answers of service shop over the last hour."
        )

    def test_what_is_to_be_tried_again_counts(
        self, person: Person, store: Store, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """A judge that is away is told before the tries end."""
        exchanges = [new_exchange(started_at=clock.now) for _ in range(25)]
        store.add(exchanges)
        store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {SCORER: "f1"})
        claims = store.claim("me", {SCORER: "f1"}, limit=100, lease=timedelta(60))
        tasks = [task for claim in claims for task in claim.tasks]
        until = clock.now + timedelta(hours=1)
        store.postpone("me", tasks, until=until, reason=Reason.JUDGE_REJECTED, error="HTTP 401")
        person.look()
        clock.pass_(minutes=2)
        assert person.alert().details["reason"] == "judge_rejected"

    def test_a_few_failures_are_no_news(self, person: Person, give: Give, clock: Clock) -> None:
        """Under the share, or among too few."""
        give(*[None] * 10)
        person.look()
        clock.pass_(minutes=2)
        assert person.look() == []
        give(*[0.9] * 90)
        clock.pass_(minutes=2)
        assert person.look() == []


def test_a_budget_that_is_spent_early_is_told(person: Person, clock: Clock) -> None:
    """With half the day to go; over at midnight. An hour's share that is spent is how a budget works."""
    budget = Budget(calls_per_day=10, calls_per_hour=5)
    person.rules(BudgetExhausted(), budget=budget)
    hourly = Budget(calls_per_hour=1)
    person.store.reserve_budget(budget, [Expense(calls=10)])
    other = Person(person.store, clock, person._settings, owner="me").rules(BudgetExhausted(), budget=hourly)
    assert other.look() == person.look() == []
    clock.pass_(minutes=16)
    alert = person.alert()
    assert (alert.cause, dict(alert.labels)) == ("budget", {})
    assert "the budget is spent until Fri 2026-01-02 00:00 UTC (10 of 10 calls are spent" in alert.message
    clock.pass_(hours=12)
    assert told(person.look()) == [(None, "resolved")]
