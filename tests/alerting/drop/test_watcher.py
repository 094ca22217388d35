"""The drop rule with a database: learning, detection, judge changes and concurrency."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.alerting.drop.conftest import limited_batch, step_of

from germane.alert import AlertChange, AlertEvent
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.score_batch import is_sampled
from germane.alerting.drop.baselines import accept_baseline
from germane.alerting.drop.scope import load_sampled_scores, to_batch
from germane.settings.rules import Drop
from germane.storage import AlertTransaction, TrackingStore

DAY = timedelta(days=1)


def statuses(store: TrackingStore) -> list[tuple[str, int, str, str]]:
    """Return fingerprint, number, status and reason of all versions."""
    return [
        (one.key.fingerprint, one.number, one.status, one.reason)
        for one in store.baselines.list_versions(superseded=True)
    ]


def test_the_first_score_starts_14_days_of_learning(sqlite_simulation: Any) -> None:
    """With few scores, nothing fires during this period, whose end is known."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.add_scores([0.5])
    first = sqlite_simulation.now
    assert sqlite_simulation.evaluate(watcher) == []
    (learning,) = sqlite_simulation.store.baselines.list_learning()
    assert (learning.status, learning.since, learning.until) == ("learning", first, first + 14 * DAY)
    sqlite_simulation.pass_days(6, per_day=10)
    sqlite_simulation.pass_days(7, per_day=10, refused=0.2)

    assert sqlite_simulation.evaluate(watcher) == []
    assert sqlite_simulation.store.detectors.list_new_scores(1) == []
    assert statuses(sqlite_simulation.store) == [("f1", 1, "learning", "first")]


def test_a_baseline_becomes_active_after_14_days(simulation: Any) -> None:
    """The baseline contains the scores by route and the release of the application."""
    watcher = simulation.new_watcher()
    simulation.learn_baseline(watcher, routes=("ask", "buy"), model="m", prompt_version="7")

    (version,) = simulation.store.baselines.list_versions()
    assert (version.number, version.status, version.reason) == (1, "active", "first")
    assert (version.model, version.prompt_version) == ("m", "7")
    assert {name: route.n for name, route in version.baseline.routes.items()} == {"ask": 280, "buy": 261}
    assert version.baseline.n == 541
    assert version.baseline.scores_per_day == pytest.approx(541 / 14, abs=1e-9)
    assert simulation.store.baselines.list_learning() == []


def test_learning_a_baseline_is_extended_until_there_are_enough_scores(sqlite_simulation: Any) -> None:
    """Learning ends once there are 30 scores."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.learn_baseline(watcher, per_day=1)
    days = 14
    while sqlite_simulation.store.baselines.list_learning():
        assert timedelta() < sqlite_simulation.store.baselines.list_learning()[0].until - sqlite_simulation.now <= DAY
        sqlite_simulation.pass_days(1, per_day=1)
        sqlite_simulation.evaluate(watcher)
        days += 1

    (version,) = sqlite_simulation.store.baselines.list_versions()
    assert (days, version.status, version.baseline.n) == (30, "active", 30)


def test_learning_is_cancelled_if_its_scores_stop_arriving(sqlite_simulation: Any) -> None:
    """Learning restarts with the next score."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.add_scores([0.5])
    sqlite_simulation.evaluate(watcher)
    sqlite_simulation.now += 29 * DAY
    sqlite_simulation.evaluate(watcher)
    assert [one.status for one in sqlite_simulation.store.baselines.list_versions()] == ["learning"]
    sqlite_simulation.evaluate(watcher)
    assert sqlite_simulation.store.baselines.list_versions() == []

    sqlite_simulation.add_scores([0.5])
    sqlite_simulation.evaluate(watcher)
    assert statuses(sqlite_simulation.store) == [("f1", 1, "superseded", "first"), ("f1", 2, "learning", "first")]


def test_a_drop_alert_fires_once_and_resolves_once(simulation: Any) -> None:
    """The alert has the onset and the means."""
    watcher = simulation.new_watcher(Drop(critical_drop=None))
    simulation.learn_baseline(watcher)
    simulation.pass_days(2)
    onset = simulation.now
    happened = []
    for _ in range(4):
        simulation.pass_days(1, mean=0.6)
        happened += simulation.evaluate(watcher)
    assert happened == ["fired"]
    (alert,) = simulation.store.alerts.list_open()
    assert dict(alert.labels) == {"service": "shop", "scorer": "relevancy"}
    assert (alert.rule, alert.type, alert.fingerprint) == ("drop", "drop", "f1")
    assert abs(alert.onset - onset) < DAY
    assert alert.baseline.mean == pytest.approx(0.76, abs=0.03)
    assert alert.current.mean == pytest.approx(0.57, abs=0.05)
    assert alert.current.interval[0] < alert.current.mean < alert.current.interval[1] < alert.baseline.mean
    assert alert.details["tolerance"]["committed"] >= 0.02

    for _ in range(20):
        simulation.pass_days(1)
        happened += simulation.evaluate(watcher)
    assert [happened[0], happened[-1]] == ["fired", "resolved"]
    assert set(happened[1:-1]) <= {"recovering", "relapsed"}
    assert simulation.store.alerts.list_open() == []
    (over,) = simulation.store.alerts.search()
    assert (over.resolve_reason, over.current.mean > 0.7) == ("recovered", True)


def test_a_change_in_the_route_mix_is_not_a_drop(sqlite_simulation: Any) -> None:
    """Each route is compared with itself."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.add_scores(sqlite_simulation.values(1), hours=0.01)
    sqlite_simulation.evaluate(watcher)
    for _ in range(14):
        sqlite_simulation.add_scores(sqlite_simulation.values(16, mean=0.9, refused=0.02), hours=20, route="easy")
        sqlite_simulation.add_scores(sqlite_simulation.values(4, mean=0.6, refused=0.02), hours=4, route="hard")
    sqlite_simulation.evaluate(watcher)
    happened = []
    for _ in range(10):
        sqlite_simulation.add_scores(sqlite_simulation.values(4, mean=0.9, refused=0.02), hours=12, route="easy")
        sqlite_simulation.add_scores(sqlite_simulation.values(16, mean=0.6, refused=0.02), hours=12, route="hard")
        happened += sqlite_simulation.evaluate(watcher)

    assert happened == []


def test_missing_scores_do_not_change_the_watcher_state(learned: Any) -> None:
    """Without scores, a detector neither fires nor resolves."""
    watcher = learned.new_watcher()
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        learned.evaluate(watcher)
    before = learned.store.detectors.list_states()
    learned.now += 30 * DAY

    assert learned.evaluate(watcher) == []
    assert learned.store.detectors.list_states() == before
    assert len(learned.store.alerts.list_open()) == 1


def test_a_judge_change_resolves_the_alert_and_starts_learning_a_baseline(learned: Any) -> None:
    """A new judge never causes an alert."""
    watcher = learned.new_watcher()
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        learned.evaluate(watcher)
    assert len(learned.store.alerts.list_open()) == 1

    learned.add_scores(learned.values(19, mean=0.1), fingerprint="f2")
    assert learned.evaluate(watcher) == []
    learned.add_scores(learned.values(1, mean=0.1), fingerprint="f2")
    assert learned.evaluate(watcher) == ["resolved"]
    assert [alert.resolve_reason for alert in learned.store.alerts.search()] == ["judge_changed"]
    (learning,) = learned.store.baselines.list_learning()
    assert (learning.key.fingerprint, learning.reason) == ("f2", "judge_changed")
    happened = []
    for _ in range(20):
        learned.pass_days(1, mean=0.1, fingerprint="f2")
        happened += learned.evaluate(watcher)
    assert happened == []
    assert {one.key.fingerprint: one.status for one in learned.store.baselines.list_versions()} == {
        "f1": "active",
        "f2": "active",
    }


def test_scores_of_an_occasional_fallback_judge_are_ignored(learned: Any) -> None:
    """The baseline of the usual judge stays active."""
    watcher = learned.new_watcher()
    happened = []
    for number in range(12):
        learned.add_scores(learned.values(4, mean=0.2), hours=4, fingerprint="stand-in")
        learned.add_scores(learned.values(16, mean=0.8 if number < 8 else 0.55), hours=20)
        happened += learned.evaluate(watcher)

    assert happened.count("fired") == 1
    assert learned.store.alerts.list_open()[0].fingerprint == "f1"


def test_a_judge_that_is_used_again_gets_its_old_baseline(learned: Any) -> None:
    """After the change is reverted, nothing has to be learned again."""
    watcher = learned.new_watcher()
    learned.pass_days(2, fingerprint="f2")
    learned.evaluate(watcher)
    learned.pass_days(2)
    learned.evaluate(watcher)
    happened = []
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        happened += learned.evaluate(watcher)

    assert happened == ["fired"]


def test_a_baseline_is_relearned_after_two_weeks_of_higher_traffic(learned: Any) -> None:
    """Two weeks with three times the traffic at the same level become the baseline, at once. Nobody is notified."""
    watcher = learned.new_watcher()
    happened = []
    for _ in range(16):
        learned.pass_days(1, per_day=80)
        happened += learned.evaluate(watcher)
        (baseline,) = learned.store.baselines.list_versions()
        assert {state.baseline_id for state in learned.store.detectors.list_states()} == {baseline.id}

    assert (baseline.status, baseline.reason, happened) == ("active", "traffic_changed", [])
    assert baseline.baseline.scores_per_day == pytest.approx(80, rel=0.05)
    learned.pass_days(1, per_day=80, mean=0.4)
    assert learned.evaluate(watcher) == ["fired"]


@pytest.mark.parametrize(
    "days",
    [[(30, 0.8)] * 16, [(80, 0.74)] * 16, [(20, 0.8)] * 8 + [(120, 0.8)] * 7],
    ids=["a little growth", "growth with a small drop", "growth in one week"],
)
def test_a_baseline_is_kept_unless_traffic_grows_for_two_weeks_at_the_same_level(
    learned: Any, days: list[tuple[int, float]]
) -> None:
    """A drop that coincides with growing traffic does not become the baseline, and neither does a busy week."""
    watcher = learned.new_watcher()
    for per_day, mean in days:
        learned.pass_days(1, per_day=per_day, mean=mean)
        learned.evaluate(watcher)

    (baseline,) = learned.store.baselines.list_versions()
    assert baseline.reason != "traffic_changed"


@pytest.mark.parametrize(("mean", "reason"), [(0.8, "extended"), (0.77, "first")], ids=["same level", "lower level"])
def test_a_baseline_is_learned_again_from_all_scores_after_four_weeks(learned: Any, mean: float, reason: str) -> None:
    """Older scores keep their weight. A level that is lower by more than 0.02 does not become the baseline."""
    watcher, (first,) = learned.new_watcher(), learned.store.baselines.list_versions()
    for _ in range(15):
        learned.pass_days(1, mean=mean)
        happened = learned.evaluate(watcher)

    (version,) = learned.store.baselines.list_versions()
    assert (version.reason, version.baseline.since) == (reason, first.baseline.since)
    if reason == "extended":
        assert happened == []
        assert version.baseline.n == pytest.approx(2 * first.baseline.n, abs=30)
        assert version.baseline.scores_per_day == pytest.approx(20, abs=1)


def test_a_new_route_joins_the_baseline_after_14_days(learned: Any) -> None:
    """The baseline gets a new version. Other routes are not affected."""
    watcher = learned.new_watcher()
    (first,) = learned.store.baselines.list_versions()
    learned.pass_days(1, routes=("ask", "new"))
    learned.now = learned.now.replace(microsecond=0)
    learned.evaluate(watcher)
    learned.now += timedelta(seconds=1)
    logs = learned.store.detectors.list_states()[0].state["detector"]["streams"]
    assert [one.reason for one in learned.store.baselines.list_learning()] == ["route_joined"]
    for _ in range(13):
        learned.pass_days(1, routes=("new",))
    learned.evaluate(watcher)
    learned.pass_days(1, routes=("new",))
    learned.evaluate(watcher)

    assert statuses(learned.store) == [("f1", 1, "superseded", "first"), ("f1", 2, "active", "route_joined")]
    (second,) = learned.store.baselines.list_versions()
    assert second.baseline.routes["ask"] == first.baseline.routes["ask"]
    assert second.baseline.routes["new"].n >= 30
    now = {one["route"]: one for one in learned.store.detectors.list_states()[0].state["detector"]["streams"]}
    assert {one["route"] for one in logs} == {None, "ask"}
    assert [one for one in logs if one["route"] == "ask"] == [now["ask"]]
    happened = []
    for _ in range(4):
        learned.pass_days(1, routes=("new",), mean=0.6)
        happened += learned.evaluate(watcher)
    assert happened[0] == "fired"


def test_a_route_that_was_launched_later_joins_after_the_earlier_one(learned: Any) -> None:
    """When a new route joins, the scores of a newer one, which has had less time, still count for its own learning."""
    watcher = learned.new_watcher()
    learned.pass_days(1, routes=("ask", "new"))
    learned.evaluate(watcher)
    learned.pass_days(7, routes=("new",))
    launched = learned.now
    for _ in range(7):
        learned.pass_days(1, routes=("new", "later"))
        learned.evaluate(watcher)

    (active,) = [one for one in learned.store.baselines.list_versions() if one.status == "active"]
    (learning,) = learned.store.baselines.list_learning()
    assert set(active.baseline.routes) == {"ask", "new"}
    assert learning.reason == "route_joined"
    assert launched <= learning.since <= launched + DAY


def test_a_drop_rule_with_routes_ignores_other_routes(sqlite_simulation: Any) -> None:
    """A drop on another route does not fire the rule."""
    watcher = sqlite_simulation.new_watcher(Drop(name="only", routes=("a*",)))
    sqlite_simulation.learn_baseline(watcher, routes=("ask", "buy"))
    happened = []
    for _ in range(4):
        sqlite_simulation.pass_days(1, routes=("buy",), mean=0.4)
        happened += sqlite_simulation.evaluate(watcher)
    assert happened == []
    for _ in range(4):
        sqlite_simulation.pass_days(1, routes=("ask",), mean=0.4)
        happened += sqlite_simulation.evaluate(watcher)
    assert happened == ["fired"]
    assert [one.baseline.routes.keys() for one in sqlite_simulation.store.baselines.list_versions()] == [{"ask", "buy"}]


@pytest.mark.slow
def test_a_drop_rule_with_attributes_has_its_own_baseline(sqlite_simulation: Any) -> None:
    """One tenant's level differs from the overall level."""
    watcher = sqlite_simulation.new_watcher(Drop(name="all"), Drop(name="acme", attributes={"tenant": "ac*"}))
    for day in range(20):
        for _ in range(4):
            sqlite_simulation.add_scores(sqlite_simulation.values(3, mean=0.5), hours=3, attributes={"tenant": "acme"})
            sqlite_simulation.add_scores(
                sqlite_simulation.values(10, mean=0.85 if day < 16 else 0.5), hours=3, attributes={"tenant": "other"}
            )
        sqlite_simulation.evaluate(watcher)

    assert [alert.rule for alert in sqlite_simulation.store.alerts.list_open()] == ["all"]
    scopes = {one.key.scope: one.baseline.n for one in sqlite_simulation.store.baselines.list_versions()}
    assert scopes.keys() == {"", '{"tenant": "ac*"}'}
    assert scopes[""] > 3 * scopes['{"tenant": "ac*"}']


def test_resolving_an_alert_manually_restarts_the_detector(learned: Any) -> None:
    """The alert fires again once there is enough evidence."""
    watcher = learned.new_watcher()
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        learned.evaluate(watcher)
    (alert,) = learned.store.alerts.list_open()
    over = replace(alert, state="resolved", resolved_at=learned.now, resolve_reason="by_hand")
    event = AlertEvent(
        id="e",
        alert_id=alert.id,
        at=learned.now,
        type="resolved",
        before="firing",
        after="resolved",
        detail={},
    )
    assert learned.store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=over, before=alert, event=event)]))

    assert learned.evaluate(watcher) == []
    happened = []
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        happened += learned.evaluate(watcher)
    assert happened[0] == "fired"


def test_changing_the_rule_settings_restarts_the_detector(learned: Any) -> None:
    """The alert raised with the old settings resolves."""
    watcher = learned.new_watcher()
    for _ in range(4):
        learned.pass_days(1, mean=0.5)
        learned.evaluate(watcher)

    assert learned.evaluate(learned.new_watcher(Drop(min_drop=0.1))) == ["resolved"]
    assert [alert.resolve_reason for alert in learned.store.alerts.search()] == ["rule_removed"]
    assert learned.evaluate(learned.new_watcher(Drop(min_drop=0.1))) == []


def test_scores_of_a_busy_service_are_sampled(sqlite_simulation: Any) -> None:
    """Above a thousand scores per day, exchanges are sampled by their hash."""
    watcher = sqlite_simulation.new_watcher(learning_period=DAY)
    sqlite_simulation.add_scores(sqlite_simulation.values(1600), hours=24)
    sqlite_simulation.evaluate(watcher)
    sqlite_simulation.now += timedelta(minutes=1)
    sqlite_simulation.evaluate(watcher)
    (version,) = sqlite_simulation.store.baselines.list_versions()
    keep = version.baseline.sampling_rate
    assert keep == pytest.approx(1000 / 1600, abs=0.01)
    assert version.baseline.scores_per_day == pytest.approx(1000, rel=0.1)
    sqlite_simulation.add_scores(sqlite_simulation.values(200), hours=3)
    arrivals = sqlite_simulation.store.detectors.list_new_scores(500)
    sqlite_simulation.evaluate(watcher)

    alone = Detector(version.baseline)
    alone.process(to_batch([one for one in arrivals if is_sampled(one.exchange_id, keep)]))
    assert sqlite_simulation.store.detectors.list_states()[0].state["detector"] == alone.state()


def test_evaluating_in_many_steps_has_the_same_result_as_a_single_pass(learned: Any) -> None:
    """The result does not depend on the batches or on the processes that evaluate them."""
    (version,) = learned.store.baselines.list_versions()
    for number in range(24):
        learned.add_scores(
            learned.values(learned.random.randrange(1, 30), mean=0.8 if number < 12 else 0.68),
            hours=8,
        )
        for _ in range(learned.random.randrange(3)):
            learned.evaluate(learned.new_watcher(batch=learned.random.choice((1, 7, 2000))))
    while learned.store.detectors.list_new_scores(1):
        learned.evaluate(learned.new_watcher(batch=7))

    baseline = version.baseline
    past = load_sampled_scores(learned.store, version.key, baseline.until, learned.now + DAY, baseline.sampling_rate)
    replayed = Detector(baseline)
    transitions = replayed.process(limited_batch(baseline, past))
    (live,) = learned.store.detectors.list_states()
    assert [transition.state for transition in transitions] == ["firing"]
    expected, found = replayed.state(), live.state["detector"]
    assert [one["route"] for one in found["streams"]] == [one["route"] for one in expected["streams"]]
    assert found["firing"]["onset"] == expected["firing"]["onset"]
    assert found["firing"]["recovery"][0] == pytest.approx(expected["firing"]["recovery"][0], rel=1e-9)
    assert live.seen_at == past[-1].arrived_at


def test_only_one_of_two_concurrent_evaluations_is_committed(simulation: Any) -> None:
    """The other process continues from the written state."""

    first, second = simulation.new_watcher(), simulation.new_watcher()
    simulation.learn_baseline(first)
    simulation.pass_days(1)
    one, other = first.evaluate(), second.evaluate()

    assert simulation.store.alerts.commit(step_of(one))
    assert not simulation.store.alerts.commit(step_of(other))
    assert (second.evaluate().detector_states, second.evaluate().processed_score_ids) == ([], [])


def test_only_the_first_of_two_processes_that_replace_a_baseline_succeeds(simulation: Any) -> None:
    """The second process finds that another version is active, and writes nothing."""
    simulation.learn_baseline(simulation.new_watcher())
    (version,) = simulation.store.baselines.list_versions()
    simulation.pass_days(4)

    accepted = [accept_baseline(simulation.store, version, version.until, simulation.now) for _ in range(2)]

    assert [one.number if one else None for one in accepted] == [version.number + 1, None]
    assert [one.number for one in simulation.store.baselines.list_versions()] == [version.number + 1]
