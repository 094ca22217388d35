"""Rules, alerts and notifications with a real database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from germane.alert import Alert, Notification, Silence
from germane.alerting.evaluator import AlertEvaluator
from germane.alerting.state_machine import AlertStateMachine
from germane.alerting.wording import alert_message
from germane.annotation import Marker
from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.settings import (
    AnyRule,
    Budget,
    BudgetExhausted,
    Drop,
    JudgeDrift,
    LowScoreRate,
    MeanThreshold,
    NoData,
    NoncommittalRate,
    ScorerError,
    Settings,
)
from germane.storage import AlertTransaction, RequestUsage, SamplingDecision, TrackingStore
from germane.storage.alerting.alerts import AlertStore
from germane.testing import Clock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OFF: tuple[AnyRule, ...] = (
    Drop(enabled=False), NoData(enabled=False), ScorerError(enabled=False), BudgetExhausted(enabled=False),
    JudgeDrift(enabled=False),
)  # fmt: skip
THRESHOLD_RULE = MeanThreshold(threshold=0.6, window=3600, min_samples=3, recovery_margin=0.05, keep_firing_for=0)
both = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
SCORER = "answer_relevancy"
Give = Callable[..., list[str]]


class Person:
    """Evaluates rules and collects the notifications for the log channel."""

    def __init__(
        self, store: TrackingStore, clock: Clock, settings: Callable[..., Settings], owner: str = "me"
    ) -> None:
        self.store = store
        self.clock = clock
        self.owner = owner
        self._settings = settings
        self._heard: set[str] = set()
        self.rules()

    def rules(self, *rules: AnyRule, **changes: Any) -> Person:
        """Create a new evaluator with only these rules."""
        kinds = {rule.type for rule in rules}
        active = (*rules, *(rule for rule in OFF if rule.type not in kinds))
        self.evaluator = AlertEvaluator(
            self.store, self._settings(rules=active, **changes), holder=("watcher", self.owner), scorers=[SCORER],
            channels={"log": lambda _: True}, clock=self.clock,
        )  # fmt: skip
        return self

    def look(self) -> list[Notification]:
        """Evaluate once as the leader; return new notifications, oldest first."""
        assert self.store.workers.acquire_lease("watcher", self.owner, ttl=timedelta())
        self.evaluator.evaluate()
        posted = [one.notification for one in self.store.notifications.search(limit=1000)][::-1]
        news = [one for one in posted if one.id not in self._heard]
        self._heard |= {one.id for one in news}
        return news

    def alert(self) -> Alert:
        """Evaluate; return the alert of the only notification."""
        (notification,) = self.look()
        (alert,) = notification.alerts
        return alert


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


@pytest.fixture
def store(url: str, clock: Clock) -> Any:
    opened = TrackingStore(url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def person(store: TrackingStore, clock: Clock, settings: Callable[..., Settings]) -> Person:
    return Person(store, clock, settings).rules(THRESHOLD_RULE)


@pytest.fixture
def give(store: TrackingStore, clock: Clock, new_exchange: Callable[..., Exchange]) -> Give:
    """Store exchanges at the current time with scores, as the monitor does; None is a failed score."""

    def give(
        *values: float | None, fingerprint: str = "f1", scorer: str = SCORER, label: str | None = None, **changes: Any
    ) -> list[str]:
        exchanges = [new_exchange(**{"started_at": clock.now} | changes) for _ in values]
        store.exchanges.add(exchanges)
        scorers = {scorer: fingerprint}
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], scorers)
        claims = store.queue.claim_tasks("me", scorers, limit=1000, lease=timedelta(60))
        tasks = {task.exchange_id: task for claim in claims for task in claim.tasks}
        scores = [a_score(scorer, fingerprint, value, label) for value in values]
        store.queue.complete_tasks("me", [(tasks[one.id], score) for one, score in zip(exchanges, scores, strict=True)])
        return [one.id for one in exchanges]

    return give


def a_score(scorer: str, fingerprint: str, value: float | None, label: str | None) -> Score:
    if value is None:
        return Score(scorer=scorer, fingerprint=fingerprint, reason=UnscoredReason.JUDGE_UNREACHABLE)
    return Score(scorer=scorer, fingerprint=fingerprint, value=value, label=label)


def routes_and_types(notifications: Sequence[Notification]) -> list[tuple[str | None, str]]:
    return [(alert.route, one.type) for one in notifications for alert in one.alerts]


@both
def test_external_scores_do_not_hide_a_low_mean(person: Person, give: Give, clock: Clock) -> None:
    """External scores are newer than the judge's, but do not replace them."""
    give(0.2, 0.3, 0.2, 0.3)
    clock.advance(seconds=60)
    give(0.95, 0.95, 0.95, 0.95, fingerprint="external")

    assert person.alert().current.mean == pytest.approx(0.25)  # type: ignore[union-attr]
    means = person.store.trends.summary()
    assert [(mean.fingerprint, mean.newest) for mean in means] == [("f1", True), ("external", False)]
    minute = timedelta(minutes=1)
    buckets = person.store.trends.over_time(scorer=SCORER, bucket=minute, since=NOON, until=NOON + 2 * minute)
    assert not any(bucket.judge_changed for bucket in buckets)


@both
def test_a_low_mean_sends_one_notification_when_firing_and_one_when_resolved(
    person: Person, give: Give, clock: Clock
) -> None:
    """There are no notifications in between."""
    low = give(0.3, 0.1, 0.5, 0.2)
    fired = person.alert()
    assert (fired.state, fired.threshold) == ("firing", 0.6)
    assert fired.value == pytest.approx(0.275)
    assert fired.current is not None
    assert fired.current.n == 4
    assert fired.exchange_ids == (low[1], low[3], low[0], low[2])
    assert (fired.route, fired.window) == ("ask", 3600)

    clock.advance(minutes=5)
    assert person.look() == []
    assert [alert.id for alert in person.store.alerts.list_open()] == [fired.id]

    clock.advance(hours=1)
    give(0.9, 0.8, 0.9)
    resolved = person.alert()
    assert (resolved.id, resolved.state, resolved.fired_at) == (fired.id, "resolved", NOON)
    assert (resolved.resolve_reason, resolved.message) == ("recovered", alert_message(resolved))
    assert person.look() == []
    assert person.store.alerts.list_open() == []
    assert [event.type for event in person.store.alerts.list_events(fired.id)] == ["fired", "resolved"]


def test_a_window_without_scores_fires_no_alert(person: Person) -> None:
    """The mean of an empty window is undefined."""
    assert person.look() == []


def test_a_period_without_traffic_neither_fires_nor_resolves_an_alert(person: Person, give: Give, clock: Clock) -> None:
    """Too few scores change nothing, even if they are good."""
    give(0.1, 0.1, 0.1)
    assert routes_and_types(person.look()) == [("ask", "firing")]

    clock.advance(hours=2)
    assert person.look() == []
    give(0.9)
    assert person.look() == []
    assert len(person.store.alerts.list_open()) == 1


@pytest.mark.parametrize("again", [False, True])
def test_scores_that_leave_the_window_fire_no_alert(person: Person, give: Give, clock: Clock, again: bool) -> None:
    """Good scores that age out of the window during a quiet period raise no alert."""
    give(*[0.9] * 40)
    clock.advance(minutes=30)
    give(*[0.1] * 5)
    for _ in range(100):
        assert person.look() == []
        clock.advance(minutes=1)
        if again:  # a restarted process evaluates the same window
            person.evaluator.reset()


def test_a_low_mean_of_too_few_scores_fires_no_alert(person: Person, give: Give) -> None:
    """There are fewer scores than min_samples."""
    give(0.0, 0.0)
    assert person.look() == []


def test_a_mean_that_is_low_by_chance_fires_no_alert(person: Person, give: Give) -> None:
    """The confidence limit must be below the threshold too."""
    give(0.2, 0.9, 0.6)
    assert person.look() == []


def test_the_window_of_a_rule_is_extended_for_rare_routes(person: Person, give: Give, clock: Clock) -> None:
    """The window grows until it contains min_samples scores."""
    for _ in range(4):
        give(0.1, route="rare")
        news = person.look()
        clock.advance(minutes=59)
    assert routes_and_types(news) == []
    (alert,) = person.store.alerts.list_open()
    assert (alert.route, alert.window) == ("rare", 2 * 3600)
    assert len(alert.exchange_ids) == 3


def test_an_alert_does_not_flap_within_the_recovery_margin(person: Person, give: Give, clock: Clock) -> None:
    """No notifications are sent while the mean hovers around the threshold."""
    give(*[0.5] * 20)
    assert routes_and_types(person.look()) == [("ask", "firing")]

    for value in (0.62, 0.58, 0.64):
        clock.advance(hours=2)
        give(*[value] * 20)
        assert person.look() == []


def test_an_alert_resolves_once_the_recovery_lasts_for_keep_firing_for(
    person: Person, give: Give, clock: Clock
) -> None:
    """Only the time with good scores counts."""
    person.rules(THRESHOLD_RULE.model_copy(update={"keep_firing_for": 6 * 3600}))
    give(0.1, 0.1, 0.1)
    assert routes_and_types(person.look()) == [("ask", "firing")]
    for _ in range(6):
        clock.advance(hours=1, minutes=1)
        give(0.9, 0.9, 0.9)
        assert person.look() == []
    assert person.store.alerts.list_open()[0].state == "recovering"
    clock.advance(hours=1, minutes=1)
    assert person.look() == []
    clock.advance(minutes=1)
    give(0.9, 0.9, 0.9)
    assert routes_and_types(person.look()) == [("ask", "resolved")]


@both
def test_services_and_routes_are_evaluated_separately(person: Person, give: Give) -> None:
    """A good route does not hide a bad one."""
    give(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, route="good")
    give(0.9, 0.9, 0.9, 0.9, route="bad", service="other")
    low = give(0.2, 0.2, 0.2, route="bad")

    alert = person.alert()

    assert (alert.service, alert.route, set(alert.exchange_ids)) == ("shop", "bad", set(low))


def test_alerts_from_one_evaluation_share_one_notification(person: Person, give: Give) -> None:
    """The alerts are for two routes of one service."""
    give(0.2, 0.2, 0.2, route="a")
    give(0.2, 0.2, 0.2, route="b")
    (notification,) = person.look()
    assert {alert.route for alert in notification.alerts} == {"a", "b"}


def test_a_rule_with_routes_ignores_other_routes(person: Person, give: Give, clock: Clock) -> None:
    """Other routes do not fire it."""
    person.rules(THRESHOLD_RULE.model_copy(update={"routes": ("as*",)}))
    give(0.1, 0.1, 0.1, route="search")
    assert person.look() == []
    clock.advance(minutes=1)
    give(0.1, 0.1, 0.1, route="ask")
    assert routes_and_types(person.look()) == [("ask", "firing")]


@both
def test_a_rule_with_attributes_ignores_other_answers(person: Person, give: Give, clock: Clock) -> None:
    """One tenant's bad answers fire only the rule for that tenant."""
    person.rules(THRESHOLD_RULE.model_copy(update={"attributes": {"tenant": "ac*"}}))
    give(0.1, 0.1, 0.1, attributes={"tenant": "other"})
    give(0.1, 0.1, 0.1)
    assert person.look() == []
    clock.advance(minutes=1)
    give(0.9, 0.9, 0.9, 0.9, 0.9, attributes={"tenant": "other"})
    give(0.1, 0.1, 0.1, 0.2, attributes={"tenant": "acme"})
    assert person.alert().value == pytest.approx(0.125)


def test_a_rule_never_mixes_scores_of_different_fingerprints(person: Person, give: Give, clock: Clock) -> None:
    """A new judge is evaluated by its own scores once there are enough of them."""
    give(0.9, 0.9, 0.9, 0.9, fingerprint="old")
    clock.advance(minutes=1)
    give(0.1, 0.1, fingerprint="new")
    assert person.look() == []

    give(0.1, fingerprint="new")
    clock.advance(minutes=1)
    give(0.1, fingerprint="new")
    alert = person.alert()
    assert alert.current is not None
    assert (alert.fingerprint, alert.current.n) == ("new", 4)


def test_scores_of_a_replaced_fingerprint_fire_no_alert(person: Person, give: Give, clock: Clock) -> None:
    """Scores with an earlier fingerprint no longer count."""
    give(0.1, 0.1, 0.1, fingerprint="old")
    clock.advance(minutes=1)
    give(0.9, fingerprint="new")
    assert person.look() == []


@both
def test_a_restart_does_not_repeat_notifications(
    person: Person, other_store: TrackingStore, give: Give, clock: Clock, settings: Callable[..., Settings]
) -> None:
    """Open alerts are stored in the database."""
    give(0.1, 0.1, 0.1)
    fired = person.alert()
    after = Person(other_store, clock, settings, owner="another process").rules(THRESHOLD_RULE)
    after.look()
    assert len(person.store.notifications.search()) == 1
    clock.advance(hours=2)
    give(0.9, 0.9, 0.9)
    resolved = after.alert()
    assert (resolved.key, resolved.state, resolved.fired_at) == (fired.key, "resolved", NOON)


def test_an_evaluation_after_losing_the_lease_writes_nothing(person: Person, give: Give, clock: Clock) -> None:
    """A later evaluation has the same results."""
    give(0.1, 0.1, 0.1)
    assert person.store.workers.acquire_lease("watcher", "another", ttl=timedelta(minutes=1))
    assert person.evaluator.evaluate() is False
    assert person.store.alerts.search() == []
    clock.advance(minutes=2)
    assert routes_and_types(person.look()) == [("ask", "firing")]


class UnreachableAlerts(AlertStore):
    """Alerts in a database that cannot be reached when an evaluation is committed."""

    away = True

    def commit(self, step: AlertTransaction) -> bool:
        if self.away:
            raise DatabaseUnreachable("gone")
        return super().commit(step)


def test_an_evaluation_is_repeated_after_a_failed_commit(
    url: str, give: Give, clock: Clock, settings: Callable[..., Settings]
) -> None:
    """The next evaluation has the same result, even without new scores."""
    broken = TrackingStore(url, clock=clock)
    broken.alerts = alerts = UnreachableAlerts(broken.context)
    person = Person(broken, clock, settings).rules(THRESHOLD_RULE)
    give(0.1, 0.1, 0.1)
    with pytest.raises(DatabaseUnreachable):
        person.look()
    alerts.away = False
    assert routes_and_types(person.look()) == [("ask", "firing")]
    broken.close()


def test_the_evidence_of_an_alert_does_not_change_after_it_fires(person: Person, give: Give, clock: Clock) -> None:
    """The worst answers, earlier mean and cause are kept. Current values are updated."""
    clock.advance(hours=-3)
    give(*[0.9] * 30)
    clock.advance(hours=3)
    give(*[0.1] * 30)
    before = person.alert()
    assert before.baseline is not None
    assert (before.cause, before.baseline.n) == ("answers_drifting", 30)
    clock.advance(minutes=5)
    give(*[0.0] * 30)
    assert person.look() == []
    (after,) = person.store.alerts.list_open()
    assert after.value == pytest.approx(0.05)
    assert (after.cause, after.baseline, after.exchange_ids) == (before.cause, before.baseline, before.exchange_ids)


def test_an_alert_can_fire_again_after_it_resolves(person: Person, give: Give, clock: Clock) -> None:
    """Each firing is a new notification."""
    for _ in range(2):
        give(0.1, 0.1, 0.1)
        assert routes_and_types(person.look()) == [("ask", "firing")]
        clock.advance(hours=2)
        give(0.9, 0.9, 0.9)
        assert routes_and_types(person.look()) == [("ask", "resolved")]
        clock.advance(hours=2)


def test_removing_a_rule_resolves_its_alerts(person: Person, give: Give) -> None:
    """The channels are notified of the resolution."""
    give(0.1, 0.1, 0.1)
    person.look()
    person.rules()
    assert person.alert().resolve_reason == "rule_removed"


def test_a_firing_alert_is_repeated_daily_until_it_is_acknowledged(person: Person, give: Give, clock: Clock) -> None:
    """The acknowledgement is recorded as an event."""
    give(0.1, 0.1, 0.1)
    alert = person.alert()
    clock.advance(hours=23)
    assert person.look() == []
    clock.advance(hours=1)
    assert routes_and_types(person.look()) == [("ask", "repeated")]
    assert person.look() == []
    after_all = "z"  # events of one moment are ordered by id
    known = AlertStateMachine(clock.now, lambda: after_all).acknowledge(person.store.alerts.list_open()[0], "ann")
    assert person.store.alerts.commit(AlertTransaction(changes=[known]))
    clock.advance(hours=25)
    assert person.look() == []
    assert [event.type for event in person.store.alerts.list_events(alert.id)] == ["fired", "repeated", "acknowledged"]


def test_a_repeated_notification_has_current_values(person: Person, give: Give, clock: Clock) -> None:
    """The current values replace the earlier ones."""
    give(0.1, 0.1, 0.1)
    person.look()
    clock.advance(hours=25)
    give(*[0.3] * 20)
    again = person.alert()
    assert again.value == pytest.approx(0.3)
    assert again.notified_at == clock.now
    assert person.look() == []


def test_a_repeated_notification_states_what_is_known_now(person: Person, give: Give, clock: Clock) -> None:
    """Groups reach the minimum number of answers, and deploys are recorded, after an alert fired."""
    person.rules(THRESHOLD_RULE.model_copy(update={"window": 3600.0 * 8}), breakdowns=("model",))
    clock.advance(hours=-30)
    for model in ("orca-1", "orca-2"):
        for minute in range(100):
            give(0.9, model=model, started_at=clock.now + timedelta(minutes=minute))
    clock.advance(hours=30)
    give(*[0.9] * 6, model="orca-1")
    give(*[0.1] * 18, model="orca-2")
    clock.advance(minutes=1)
    first = person.alert()
    assert "orca-2" not in first.message
    assert first.onset is not None
    person.store.trends.add_markers(
        [Marker(id="1" * 32, name="v42", service="shop", at=first.onset - timedelta(days=1))]
    )
    clock.advance(hours=24)
    give(*[0.9] * 30, model="orca-1")
    give(*[0.1] * 30, model="orca-2")

    (again,) = [alert for one in person.look() for alert in one.alerts if one.type == "repeated"]

    assert "the drop is largest where model=orca-2" in again.message
    assert 'after the deploy "v42"' in again.message
    (stored,) = person.store.alerts.list_open()
    assert (stored.message, stored.exchange_ids) == (again.message, first.exchange_ids)


def test_rules_that_notice_the_same_drop_state_the_same_onset(person: Person, give: Give, clock: Clock) -> None:
    """The second one fires hours later, when there are more answers. A drop on another route has its own."""
    first_rule = THRESHOLD_RULE.model_copy(update={"window": 3600.0 * 4})
    person.rules(first_rule, first_rule.model_copy(update={"name": "later", "pending": 3600.0 * 6}))
    made = Random(5)
    clock.advance(hours=-30)
    for minute in range(0, 1800, 20):
        for route in ("ask", "docs"):
            give(made.gauss(0.7, 0.25), route=route, started_at=clock.now + timedelta(minutes=minute))
    clock.advance(hours=30)
    for minute in range(0, 240, 20):
        give(made.gauss(0.45, 0.2), started_at=clock.now + timedelta(minutes=minute))
    clock.advance(hours=4)
    first = person.alert()
    for minute in range(0, 480, 20):
        for route in ("ask", "docs"):
            give(made.gauss(0.45, 0.2), route=route, started_at=clock.now + timedelta(minutes=minute))
    clock.advance(hours=8)

    found = {(alert.rule, alert.route): alert for one in person.look() for alert in one.alerts}

    assert first.onset_interval is not None
    second, other = found["later", "ask"], found["mean_threshold", "docs"]
    assert (second.onset, second.onset_interval) == (first.onset, first.onset_interval)
    assert other.onset != first.onset


@both
def test_a_silenced_alert_sends_its_notification_when_the_silence_ends(
    person: Person, give: Give, clock: Clock
) -> None:
    """During the silence, the alert is listed as firing."""
    until = NOON + timedelta(hours=1)
    person.store.alerts.add_silence(Silence(id="s", matchers={"route": "a*"}, starts_at=NOON, ends_at=until))
    give(0.1, 0.1, 0.1)
    assert person.look() == []
    assert [alert.state for alert in person.store.alerts.list_open()] == ["firing"]
    clock.advance(hours=1)
    assert routes_and_types(person.look()) == [("ask", "firing")]


def test_an_alert_about_the_low_score_rate_fires_and_resolves(person: Person, give: Give, clock: Clock) -> None:
    """It fires if the rate is significantly too high, and resolves once the rate is well below the threshold."""
    person.rules(LowScoreRate(threshold=0.3, window=3600, min_samples=10, keep_firing_for=0))
    give(*[0.9] * 8, *[0.2] * 4)
    assert person.look() == []
    clock.advance(minutes=1)
    give(*[0.2] * 20)
    alert = person.alert()
    assert alert.type == "low_score_rate"
    assert alert.value == pytest.approx(0.75)
    assert (alert.threshold, alert.message) == (0.3, alert_message(alert))
    clock.advance(hours=2)
    give(*[0.9] * 20)
    assert routes_and_types(person.look()) == [("ask", "resolved")]


def test_a_high_rate_of_noncommittal_answers_fires_an_alert(person: Person, give: Give) -> None:
    """The rule watches the share of noncommittal answers."""
    person.rules(NoncommittalRate(threshold=0.3, window=3600, min_samples=10))
    give(*[0.0] * 20, label="noncommittal")
    give(*[0.9] * 10)
    alert = person.alert()
    assert (alert.type, alert.cause) == ("noncommittal_rate", None)  # the typical gap is not known yet
    assert alert.value == pytest.approx(2 / 3)


class TestNoData:
    """Answers arrive but are not scored."""

    @pytest.fixture(autouse=True)
    def _rule(self, person: Person) -> None:
        person.rules(NoData())

    @both
    def test_missing_scores_despite_traffic_fire_an_alert(
        self, person: Person, store: TrackingStore, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """The alert fires after twice the typical gap, and the next score resolves it."""
        for _ in range(30):
            give(0.9)
            clock.advance(minutes=10)
        assert person.look() == []
        exchanges = []
        for _ in range(5):
            exchanges.append(new_exchange(started_at=clock.now))
            store.exchanges.add(exchanges[-1:])
            store.sampling.assign_tasks([SamplingDecision(exchanges[-1].id, 1.0, "sampled")], {SCORER: "f1"})
            clock.advance(minutes=6)
        assert person.look() == []
        clock.advance(minutes=1)
        alert = person.alert()
        assert (alert.type, alert.cause, alert.details["waiting"], alert.scorer) == ("no_data", "no_data", 5, SCORER)
        assert alert.onset == datetime(2026, 1, 1, 17, tzinfo=UTC)
        assert 540 < alert.details["usual"] <= 600
        clock.advance(minutes=2)
        give(0.9)
        assert routes_and_types(person.look()) == [(None, "resolved")]

    def test_an_unknown_typical_gap_between_answers_is_not_mentioned(
        self, person: Person, store: TrackingStore, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """The gap is unknown after the first answers."""
        store.exchanges.add([new_exchange(started_at=clock.now)])
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in store.answers.list_exchanges()], {SCORER: "f1"}
        )
        clock.advance(hours=2, minutes=1)
        assert person.look() == []
        clock.advance(minutes=1)
        details = person.alert().details
        assert (details["waiting"], details.get("usual")) == (1, None)

    def test_a_backlog_after_a_database_outage_fires_no_alert(
        self, person: Person, store: TrackingStore, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """All answers from one hour arrive at the same time."""
        for _ in range(30):
            give(0.9)
            clock.advance(minutes=10)
        clock.advance(hours=1)
        came = [new_exchange(started_at=clock.now - timedelta(minutes=minutes)) for minutes in range(60)]
        store.exchanges.add(came)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in came], {SCORER: "f1"})
        assert person.look() == []
        clock.advance(seconds=30)
        give(0.9)
        assert person.look() == []
        assert [alert.resolve_reason for alert in store.alerts.search()] == ["passed"]

    def test_a_night_without_traffic_fires_no_alert(self, person: Person, give: Give, clock: Clock) -> None:
        """The first question of the morning does not fire an alert either."""
        for _ in range(30):
            give(0.9)
            clock.advance(minutes=10)
        for _ in range(10):
            clock.advance(hours=1)
            assert person.look() == []
        give(0.9)
        assert person.look() == []

    def test_unsampled_answers_do_not_count_as_missing(
        self, person: Person, store: TrackingStore, give: Give, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """The answers were not selected for scoring."""
        give(0.9)
        for _ in range(10):
            clock.advance(minutes=30)
            exchange = new_exchange(started_at=clock.now)
            store.exchanges.add([exchange])
            store.sampling.assign_tasks(
                [SamplingDecision(exchange.id, 0.1, "sampled", {SCORER: UnscoredReason.NOT_SAMPLED})], {SCORER: "f1"}
            )
            assert person.look() == []


class TestScorerError:
    """The judge fails."""

    @pytest.fixture(autouse=True)
    def _rule(self, person: Person) -> None:
        person.rules(ScorerError(pending=60))

    @both
    def test_a_failing_judge_fires_a_scorer_error_alert(self, person: Person, give: Give, clock: Clock) -> None:
        """The alert is not a drop alert. Its message names the most common reason."""
        give(*[0.9] * 20)
        give(*[None] * 10)
        assert person.look() == []
        clock.advance(minutes=2)
        alert = person.alert()
        assert (alert.type, alert.cause) == ("scorer_error", "judge_broken")
        assert alert.value == pytest.approx(1 / 3)
        assert alert.details["reason"] == "judge_unreachable"
        clock.advance(hours=2)
        give(*[0.9] * 30)
        over = person.alert()
        assert over.state == "resolved"
        assert (over.details["tried"], over.details["failed"], over.starts_at) == (30, 0, NOON)

    def test_pending_retries_count_as_scoring_failures(
        self, person: Person, store: TrackingStore, clock: Clock, new_exchange: Callable[..., Exchange]
    ) -> None:
        """An alert about an outage fires before the retries end."""
        exchanges = [new_exchange(started_at=clock.now) for _ in range(25)]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {SCORER: "f1"})
        claims = store.queue.claim_tasks("me", {SCORER: "f1"}, limit=100, lease=timedelta(60))
        tasks = [task for claim in claims for task in claim.tasks]
        until = clock.now + timedelta(hours=1)
        store.queue.postpone_tasks("me", tasks, until=until, reason=UnscoredReason.JUDGE_REJECTED, error="HTTP 401")
        person.look()
        clock.advance(minutes=2)
        assert person.alert().details["reason"] == "judge_rejected"

    def test_a_few_failures_fire_no_scorer_error_alert(self, person: Person, give: Give, clock: Clock) -> None:
        """The share of failures is below the threshold, or there are too few attempts."""
        give(*[None] * 10)
        person.look()
        clock.advance(minutes=2)
        assert person.look() == []
        give(*[0.9] * 90)
        clock.advance(minutes=2)
        assert person.look() == []


def test_a_budget_that_is_exhausted_early_in_the_day_fires_an_alert(person: Person, clock: Clock) -> None:
    """The alert fires with half the day left, until midnight. An exhausted hourly share does not fire an alert."""
    budget = Budget(requests_per_day=10, requests_per_hour=5)
    person.rules(BudgetExhausted(), budget=budget)
    hourly = Budget(requests_per_hour=1)
    person.store.quota.reserve_budget(budget, [RequestUsage(requests=10)])
    other = Person(person.store, clock, person._settings, owner="me").rules(BudgetExhausted(), budget=hourly)
    assert other.look() == person.look() == []
    clock.advance(minutes=16)
    alert = person.alert()
    assert (alert.cause, dict(alert.labels)) == ("budget", {})
    assert alert.details["until"] == datetime(2026, 1, 2, tzinfo=UTC).isoformat()
    assert alert.details["spent"][0].startswith("10 of 10 ")
    clock.advance(hours=12)
    assert routes_and_types(person.look()) == [(None, "resolved")]
