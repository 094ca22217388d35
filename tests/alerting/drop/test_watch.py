"""The rule drop over a database: learned, frozen, fed each score once, told once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.alerting.drop.conftest import step_of

from germane.alert import Change, Event
from germane.alerting.detector import Detector, kept
from germane.alerting.drop.history import heard, seen
from germane.settings.rules import Drop
from germane.storage import Advance, Store

DAY = timedelta(days=1)


def statuses(store: Store) -> list[tuple[str, int, str, str]]:
    """Return fingerprint, number, status and reason of all versions."""
    return [(one.key.fingerprint, one.number, one.status, one.reason) for one in store.baselines(superseded=True)]


def test_the_first_score_begins_a_fortnight_of_learning(small: Any) -> None:
    """Nothing fires meanwhile, however bad it is, and everybody can ask how long it lasts."""
    watch = small.watch()
    small.score([0.5])
    first = small.now
    assert small.look(watch) == []
    (learning,) = small.store.learning()
    assert (learning.status, learning.since, learning.until) == ("learning", first, first + 14 * DAY)
    small.days(6)
    small.days(7, refused=1.0)

    assert small.look(watch) == []
    assert small.store.arrivals(1) == []
    assert statuses(small.store) == [("f1", 1, "learning", "first")]


def test_after_a_fortnight_the_baseline_is_frozen(world: Any) -> None:
    """It holds what was scored in it, by route, with the release of the application; scores go by it from then on."""
    watch = world.watch()
    world.learned(watch, routes=("ask", "buy"), model="m", prompt_version="7")

    (version,) = world.store.baselines()
    assert (version.number, version.status, version.reason) == (1, "active", "first")
    assert (version.model, version.prompt_version) == ("m", "7")
    assert {name: route.n for name, route in version.baseline.routes.items()} == {"ask": 280, "buy": 261}
    assert version.baseline.n == 541
    assert version.baseline.scores_per_day == pytest.approx(541 / 14, abs=1e-9)
    assert world.store.learning() == []


def test_with_too_few_scores_learning_goes_on_day_by_day(small: Any) -> None:
    """With under 30 nothing is known; it ends on the day on which there are enough."""
    watch = small.watch()
    small.learned(watch, per_day=1)
    days = 14
    while small.store.learning():
        assert timedelta() < small.store.learning()[0].until - small.now <= DAY
        small.days(1, per_day=1)
        small.look(watch)
        days += 1

    (version,) = small.store.baselines()
    assert (days, version.status, version.baseline.n) == (30, "active", 30)


def test_learning_of_what_never_comes_again_ends(small: Any) -> None:
    """A judge that was tried once is forgotten; should it come back, it is learned from then on."""
    watch = small.watch()
    small.score([0.5])
    small.look(watch)
    small.now += 29 * DAY
    small.look(watch)
    assert [one.status for one in small.store.baselines()] == ["learning"]
    small.look(watch)
    assert small.store.baselines() == []

    small.score([0.5])
    small.look(watch)
    assert statuses(small.store) == [("f1", 1, "superseded", "first"), ("f1", 2, "learning", "first")]


def test_a_drop_fires_once_and_is_over_when_it_is_over(world: Any) -> None:
    """One alert from its beginning to its end, with the numbers that one can believe it by."""
    watch = world.watch(Drop(critical_drop=None))
    world.learned(watch)
    world.days(2)
    onset = world.now
    happened = []
    for _ in range(4):
        world.days(1, mean=0.6)
        happened += world.look(watch)
    assert happened == ["fired"]
    (alert,) = world.store.open_alerts()
    assert dict(alert.labels) == {"service": "shop", "scorer": "relevancy"}
    assert (alert.rule, alert.kind, alert.cause, alert.fingerprint) == ("drop", "drop", "answers_drifting", "f1")
    assert abs(alert.onset - onset) < DAY
    assert alert.evidence < 1
    assert alert.baseline.mean == pytest.approx(0.76, abs=0.03)
    assert alert.current.mean == pytest.approx(0.57, abs=0.05)
    assert alert.current.interval[0] < alert.current.mean < alert.current.interval[1] < alert.baseline.mean
    assert alert.details["carriers"][0]["half"] == "committed"
    assert alert.details["tolerance"]["committed"] >= 0.02

    for _ in range(20):
        world.days(1)
        happened += world.look(watch)
    assert happened == ["fired", "resolved"]
    assert world.store.open_alerts() == []
    (over,) = world.store.alerts()
    assert (over.resolve_reason, over.current.mean > 0.7) == ("recovered", True)


def test_other_questions_than_usual_are_no_drop(small: Any) -> None:
    """Each route is compared with itself: the mean of all falls by a tenth, and nobody is told."""
    watch = small.watch()
    small.score(small.values(1), hours=0.01)
    small.look(watch)
    for _ in range(14):
        small.score(small.values(16, mean=0.9, refused=0.02), hours=20, route="easy")
        small.score(small.values(4, mean=0.6, refused=0.02), hours=4, route="hard")
    small.look(watch)
    happened = []
    for _ in range(10):
        small.score(small.values(4, mean=0.9, refused=0.02), hours=12, route="easy")
        small.score(small.values(16, mean=0.6, refused=0.02), hours=12, route="hard")
        happened += small.look(watch)

    assert happened == []


def test_silence_changes_nothing(small: Any) -> None:
    """Without scores a detector neither fires nor resolves, for however long."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.5)
        small.look(watch)
    before = small.store.detectors()
    small.now += 30 * DAY

    assert small.look(watch) == []
    assert small.store.detectors() == before
    assert len(small.store.open_alerts()) == 1


def test_another_judge_is_learned_and_never_an_alert(small: Any) -> None:
    """What fired by the old one is over, for that reason; the new one is learned from its first score on."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.5)
        small.look(watch)
    assert len(small.store.open_alerts()) == 1

    small.score(small.values(19, mean=0.1), fingerprint="f2")
    assert small.look(watch) == []
    small.score(small.values(1, mean=0.1), fingerprint="f2")
    assert small.look(watch) == ["resolved"]
    assert [alert.resolve_reason for alert in small.store.alerts()] == ["judge_changed"]
    (learning,) = small.store.learning()
    assert (learning.key.fingerprint, learning.reason) == ("f2", "judge_changed")
    happened = []
    for _ in range(20):
        small.days(1, mean=0.1, fingerprint="f2")
        happened += small.look(watch)
    assert happened == []
    assert {one.key.fingerprint: one.status for one in small.store.baselines()} == {"f1": "active", "f2": "active"}


def test_a_judge_that_stands_in_now_and_then_takes_nothing_over(small: Any) -> None:
    """One in five scores by another one: the usual judge's baseline stays, and its drops are told."""
    watch = small.watch()
    small.learned(watch)
    happened = []
    for number in range(12):
        small.score(small.values(4, mean=0.2), hours=4, fingerprint="stand-in")
        small.score(small.values(16, mean=0.8 if number < 8 else 0.55), hours=20)
        happened += small.look(watch)

    assert happened == ["fired"]
    assert small.store.open_alerts()[0].fingerprint == "f1"


def test_the_old_judge_comes_back_to_its_own_baseline(small: Any) -> None:
    """A change that is taken back costs no fortnight."""
    watch = small.watch()
    small.learned(watch)
    small.days(2, fingerprint="f2")
    small.look(watch)
    small.days(2)
    small.look(watch)
    happened = []
    for _ in range(4):
        small.days(1, mean=0.5)
        happened += small.look(watch)

    assert happened == ["fired"]


def test_a_new_route_joins_by_a_new_version(small: Any) -> None:
    """After a fortnight of its own; until then it is not watched, and its neighbours go on as if nothing were."""
    watch = small.watch()
    small.learned(watch)
    (first,) = small.store.baselines()
    small.days(1, routes=("ask", "new"))
    small.now = small.now.replace(microsecond=0)
    small.look(watch)
    small.now += timedelta(seconds=1)
    logs = small.store.detectors()[0].state["detector"]["streams"]
    assert [one.reason for one in small.store.learning()] == ["route_joined"]
    for _ in range(13):
        small.days(1, routes=("new",))
    small.look(watch)
    small.days(1, routes=("new",))
    small.look(watch)

    assert statuses(small.store) == [("f1", 1, "superseded", "first"), ("f1", 2, "active", "route_joined")]
    (second,) = small.store.baselines()
    assert second.baseline.routes["ask"] == first.baseline.routes["ask"]
    assert second.baseline.routes["new"].n >= 30
    now = {one["route"]: one for one in small.store.detectors()[0].state["detector"]["streams"]}
    assert {one["route"] for one in logs} == {None, "ask"}
    assert [one for one in logs if one["route"] == "ask"] == [now["ask"]]
    happened = []
    for _ in range(4):
        small.days(1, routes=("new",), mean=0.6)
        happened += small.look(watch)
    assert happened[0] == "fired"


def test_a_rule_may_look_at_some_routes_alone(small: Any) -> None:
    """Another route's drop is none of its business."""
    watch = small.watch(Drop(name="only", routes=("a*",)))
    small.learned(watch, routes=("ask", "buy"))
    happened = []
    for _ in range(4):
        small.days(1, routes=("buy",), mean=0.4)
        happened += small.look(watch)
    assert happened == []
    for _ in range(4):
        small.days(1, routes=("ask",), mean=0.4)
        happened += small.look(watch)
    assert happened == ["fired"]
    assert [one.baseline.routes.keys() for one in small.store.baselines()] == [{"ask", "buy"}]


def test_a_rule_about_attributes_has_a_baseline_of_its_own(small: Any) -> None:
    """One tenant's usual level is not that of all."""
    watch = small.watch(Drop(name="all"), Drop(name="acme", attributes={"tenant": "ac*"}))
    for day in range(20):
        for _ in range(4):
            small.score(small.values(3, mean=0.5), hours=3, attributes={"tenant": "acme"})
            small.score(small.values(10, mean=0.85 if day < 16 else 0.5), hours=3, attributes={"tenant": "other"})
        small.look(watch)

    assert [alert.rule for alert in small.store.open_alerts()] == ["all"]
    scopes = {one.key.scope: one.baseline.n for one in small.store.baselines()}
    assert scopes.keys() == {"", '{"tenant": "ac*"}'}
    assert scopes[""] > 3 * scopes['{"tenant": "ac*"}']


def test_what_was_resolved_by_hand_begins_anew(small: Any) -> None:
    """It does not fire again in the same breath, and again once there is evidence enough."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.5)
        small.look(watch)
    (alert,) = small.store.open_alerts()
    over = replace(alert, state="resolved", resolved_at=small.now, resolve_reason="by_hand")
    event = Event(
        id="e", alert_id=alert.id, at=small.now, what="resolved", before="firing", after="resolved", detail={}
    )
    assert small.store.advance(Advance(changes=[Change(alert=over, before=alert, event=event)]))

    assert small.look(watch) == []
    happened = []
    for _ in range(4):
        small.days(1, mean=0.5)
        happened += small.look(watch)
    assert happened[0] == "fired"


def test_other_settings_of_a_rule_begin_anew(small: Any) -> None:
    """The old rule's alert is over with it."""
    watch = small.watch()
    small.learned(watch)
    for _ in range(4):
        small.days(1, mean=0.5)
        small.look(watch)

    assert small.look(small.watch(Drop(min_drop=0.1))) == ["resolved"]
    assert [alert.resolve_reason for alert in small.store.alerts()] == ["rule_removed"]
    assert small.look(small.watch(Drop(min_drop=0.1))) == []


def test_a_busy_service_is_thinned(small: Any) -> None:
    """Above a thousand a day as many reach the detector as its baseline says, by the hash of their exchange."""
    watch = small.watch(learn_for=DAY)
    small.score(small.values(1600), hours=24)
    small.look(watch)
    small.now += timedelta(minutes=1)
    small.look(watch)
    (version,) = small.store.baselines()
    keep = version.baseline.keep
    assert keep == pytest.approx(1000 / 1600, abs=0.01)
    assert version.baseline.scores_per_day == pytest.approx(1000, rel=0.1)
    small.score(small.values(200), hours=3)
    arrivals = small.store.arrivals(500)
    small.look(watch)

    alone = Detector(version.baseline)
    alone.feed(seen([one for one in arrivals if kept(one.exchange_id, keep)]))
    assert small.store.detectors()[0].state["detector"] == alone.state()


def test_live_and_replayed_are_one(small: Any) -> None:
    """However the scores were cut into looks, and whoever looked: the state is that of one pass over the history."""
    small.learned(small.watch())
    (version,) = small.store.baselines()
    for number in range(24):
        small.score(small.values(small.random.randrange(1, 30), mean=0.8 if number < 12 else 0.68), hours=8)
        for _ in range(small.random.randrange(3)):
            small.look(small.watch(batch=small.random.choice((1, 7, 2000))))
    while small.store.arrivals(1):
        small.look(small.watch(batch=7))

    baseline = version.baseline
    past = heard(small.store, version.key, baseline.until, small.now + DAY, baseline.keep)
    replayed = Detector(baseline)
    turns = replayed.feed(seen(past))
    (live,) = small.store.detectors()
    assert [turn.state for turn in turns] == ["firing"]
    expected, found = replayed.state(), live.state["detector"]
    assert [one["route"] for one in found["streams"]] == [one["route"] for one in expected["streams"]]
    assert found["firing"]["onset"] == expected["firing"]["onset"]
    assert found["firing"]["evidence"] == pytest.approx(expected["firing"]["evidence"], rel=1e-9)
    assert found["firing"]["recovery"][0] == pytest.approx(expected["firing"]["recovery"][0], rel=1e-9)
    assert live.seen_at == past[-1].arrived_at


def test_of_two_that_look_at_once_one_counts(world: Any) -> None:
    """The other one's step is not written, and its next look goes on from there."""

    first, second = world.watch(), world.watch()
    world.learned(first)
    world.days(1)
    one, other = first.look(), second.look()

    assert world.store.advance(step_of(one))
    assert not world.store.advance(step_of(other))
    assert (second.look().progress, second.look().consumed) == ([], [])
