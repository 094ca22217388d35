"""Routes without a baseline are judged from their first answer on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from tests.alerting.drop.conftest import step_of

from germane.alerting.actions import accept_alert_baseline
from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.score_batch import ScoreBatch
from germane.alerting.drop.new_routes import MAX_ROUTES, BadLevel, Newcomers, excluded_until, was_better
from germane.alerting.drop.session import rule_parameters_hash
from germane.alerting.drop.watcher import DropEvaluation, fell_together
from germane.alerting.rule_result import RuleResult
from germane.baseline import Baseline
from germane.settings import Drop
from germane.storage import DetectorScore, DetectorState

START = datetime(2026, 1, 5, tzinfo=UTC)
MEANS = {"faq": 0.85, "docs": 0.8, "support": 0.7}
PER_DAY = {"faq": 50, "docs": 30, "support": 20}
DAY = 86_400


class Service:
    """Random scores of a service, day after day."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.day = 0

    def days(self, count: int, means: Mapping[str, float], names: str = "{}", lag: float = 0.0) -> list[DetectorScore]:
        """Return the scores of the next days. ``names`` is a template for the routes' names."""
        scores = []
        for _ in range(count):
            routes = [route for route in means for _ in range(PER_DAY.get(route.partition("-")[0], 30))]
            self.random.shuffle(routes)
            wander = 0.02 * self.random.normal()
            for number, route in enumerate(routes):
                mean = means[route] + wander
                at = START + timedelta(days=self.day + (number + 0.5) / len(routes))
                scores.append(
                    DetectorScore(
                        id=1, service="shop", route=names.format(route), scorer="direct_relevancy", fingerprint="f1",
                        exchange_id="e", value=float(self.random.beta(20 * mean, 20 * (1 - mean))), is_zero=False,
                        arrived_at=at + timedelta(days=lag), answered_at=at,
                    )
                )  # fmt: skip
            self.day += 1
        return scores

    def baseline(self, means: Mapping[str, float] = MEANS) -> Baseline:
        """Return a baseline learned from two weeks."""
        scores = self.days(14, means)
        batch = ScoreBatch(
            [score.route for score in scores],
            np.array([score.value for score in scores]),
            np.zeros(len(scores), dtype=bool),
            np.array([score.answered_at.timestamp() for score in scores]),
        )
        since = START.timestamp()
        return learn_baseline(
            batch, service="shop", scorer="direct_relevancy", fingerprint="f1", since=since, until=since + 14 * DAY
        )


def process(newcomers: Newcomers, scores: list[DetectorScore]) -> None:
    """Process scores in small batches, as evaluations do."""
    for start in range(0, len(scores), 25):
        newcomers.process(scores[start : start + 25])


def fallen(by: float) -> dict[str, float]:
    """Return the means after a fall."""
    return {route: mean - by for route, mean in MEANS.items()}


def restored(newcomers: Newcomers, baseline: Baseline | None) -> Newcomers:
    """Return newcomers as another process restores them."""
    return Newcomers(baseline, 0.05, json.loads(json.dumps(newcomers.state())))


def exclusions(newcomers: Newcomers) -> set[str]:
    """Return the routes that must not join a baseline."""
    state = {"newcomers": newcomers.state()}
    progress = DetectorState(rule="drop", service="s", scorer="c", parameters="", baseline_id=1, state=state)
    return set(excluded_until(progress))


@pytest.mark.parametrize("seed", range(6))
def test_renamed_routes_are_compared_with_the_routes_that_vanished(seed: int) -> None:
    """A fall of 0.20 is found within three days and compared with the old level. Without a fall, there is none."""
    service = Service(seed)
    baseline = service.baseline()
    same, worse = Newcomers(baseline, 0.05), Newcomers(baseline, 0.05)
    before = service.days(2, MEANS)
    process(same, [*before, *service.days(12, MEANS, "{}-v2")])
    service.day -= 12
    process(worse, [*before, *service.days(3, fallen(0.2), "{}-v2")])

    assert (same.bad, exclusions(same)) == ({}, set())
    assert worse.bad[""].vanished == sorted(MEANS)
    assert worse.bad[""].reference == pytest.approx(baseline.mean, abs=0.02)
    assert worse.bad[""].onset == pytest.approx(START.timestamp() + 16 * DAY, abs=DAY / 4)
    assert exclusions(worse) == {f"{route}-v2" for route in MEANS}


@pytest.mark.parametrize(
    "rollout",
    [
        [{**MEANS, **{f"{route}-v2": mean - 0.2 for route, mean in MEANS.items()}}],
        [MEANS | {"faq-v2": 0.65}] * 4 + [{"faq-v2": 0.65, "docs": 0.8, "support": 0.7}] * 4,
        [MEANS | {"other": 0.8}] * 5,
    ],
    ids=["both names for a day", "one route a week earlier", "another new route"],
)
def test_old_and_new_names_may_be_used_together(rollout: list[dict[str, float]]) -> None:
    """Routes that take over the traffic of others are compared with them, however long the deploy takes."""
    service = Service(9)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(1, MEANS))
    for means in rollout:
        process(newcomers, service.days(1, means))
    process(newcomers, service.days(4, fallen(0.2), "{}-v2"))

    assert exclusions(newcomers) >= {f"{route}-v2" for route in MEANS}
    assert newcomers.bad


def test_a_few_answers_on_old_names_do_not_hide_a_fall() -> None:
    """The routes stay replaced until half of their traffic is back."""
    service = Service(10)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(2, MEANS))
    for _ in range(3):
        process(newcomers, [*service.days(1, fallen(0.2), "{}-v2"), *service.days(1, MEANS)[:2]])
    assert newcomers.bad[""].vanished == sorted(MEANS)

    process(newcomers, service.days(9, MEANS))
    assert newcomers.state()["replaced"] == {}


def test_a_new_route_does_not_replace_a_route_that_is_removed_later() -> None:
    """Its traffic does not grow when the other route vanishes."""
    service = Service(11)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(6, MEANS | {"hard": 0.6}))
    process(newcomers, service.days(6, {"faq": 0.85, "support": 0.7, "hard": 0.6}))

    assert (newcomers.bad, newcomers.state()["replaced"]) == ({}, {})


@pytest.mark.parametrize(("after", "names"), [(MEANS, "{}"), (MEANS, "{}-v3"), (fallen(0.25), "{}-v3")])
def test_a_bad_level_ends_when_its_routes_vanish_unless_their_successors_are_bad(
    after: dict[str, float], names: str
) -> None:
    """After a rollback, nothing is bad any more. The bad answers never join a baseline."""
    service = Service(12)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, [*service.days(2, MEANS), *service.days(4, fallen(0.25), "{}-v2")])
    assert set(newcomers.bad) == {""}
    process(newcomers, service.days(9, after, names))

    assert set(newcomers.bad) == ({""} if after is not MEANS else set())
    assert exclusions(newcomers) >= {f"{route}-v2" for route in MEANS}


@pytest.mark.parametrize("seed", range(4))
def test_one_renamed_route_is_compared_with_the_one_that_vanished(seed: int) -> None:
    """It is found although its mean is not low, and its name is known."""
    service = Service(seed)
    newcomers = Newcomers(service.baseline(), 0.05)
    others = {"faq": 0.85, "support": 0.7}
    process(newcomers, [*service.days(2, MEANS), *service.days(4, others | {"docs-v2": 0.55})])

    assert {name: bad.vanished for name, bad in newcomers.bad.items()} == {"docs-v2": ["docs"]}


@pytest.mark.parametrize("seed", range(4))
def test_a_harder_route_that_replaces_no_other_is_not_bad(seed: int) -> None:
    """It is worse than all others, but not low. It may join the baseline."""
    service = Service(seed)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, [*service.days(2, MEANS), *service.days(10, MEANS | {"hard": 0.6})])

    assert (newcomers.bad, exclusions(newcomers)) == ({}, set())
    process(newcomers, service.days(3, MEANS | {"hard": 0.2}))
    assert (set(newcomers.bad), newcomers.bad["hard"].vanished) == ({"hard"}, [])


def test_a_route_that_is_often_silent_has_not_vanished() -> None:
    """A route with answers on Mondays only is silent for six days. Nothing is compared with it meanwhile."""
    service, weeks = Service(1), list[DetectorScore]()
    for day in range(14):
        weeks += service.days(1, {"faq": 0.85, "monday": 0.95} if day % 7 == 0 else {"faq": 0.85})
    batch = ScoreBatch(
        [score.route for score in weeks],
        np.array([score.value for score in weeks]),
        np.zeros(len(weeks), dtype=bool),
        np.array([score.answered_at.timestamp() for score in weeks]),
    )
    since = START.timestamp()
    baseline = learn_baseline(
        batch, service="shop", scorer="direct_relevancy", fingerprint="f1", since=since, until=since + 14 * DAY
    )
    assert baseline.routes["monday"].longest_gap >= 300
    newcomers = Newcomers(baseline, 0.05)
    process(newcomers, [*service.days(1, {"faq": 0.85, "monday": 0.95}), *service.days(6, {"faq": 0.85, "new": 0.7})])

    assert newcomers.bad == {}


def test_a_bad_level_ends_only_when_its_scores_rise() -> None:
    """It does not end when the baseline changes, even if the level would no longer be bad."""
    service = Service(3)
    baseline = service.baseline()
    newcomers = Newcomers(baseline, 0.05)
    process(newcomers, [*service.days(2, MEANS), *service.days(3, MEANS | {"hard": 0.3})])
    assert set(newcomers.bad) == {"hard"}

    newcomers = restored(newcomers, service.baseline({"faq": 0.3, "docs": 0.25}))
    process(newcomers, service.days(10, {"faq": 0.3, "docs": 0.25, "hard": 0.3}))
    assert set(newcomers.bad) == {"hard"}
    process(newcomers, service.days(4, {"faq": 0.3, "docs": 0.25, "hard": 0.6}))
    assert "hard" not in newcomers.bad


def test_a_level_that_is_slightly_worse_than_what_vanished_does_not_join_the_baseline() -> None:
    """It is not bad enough for an alert."""
    service = Service(4)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, [*service.days(2, MEANS), *service.days(12, fallen(0.035), "{}-v2")])

    assert newcomers.bad == {}
    assert exclusions(newcomers) == {f"{route}-v2" for route in MEANS}


def test_without_a_baseline_a_low_service_is_bad_from_its_first_answers() -> None:
    """It stays bad once the baseline has been learned. A service that is not low is not bad."""
    service = Service(5)
    low, good = Newcomers(None, 0.05), Newcomers(None, 0.05)
    process(low, service.days(2, fallen(0.45)))
    process(good, service.days(8, fallen(0.2)))

    assert (set(low.bad), low.bad[""].is_first, good.bad) == ({""}, True, {})
    low = restored(low, service.baseline(fallen(0.45)))
    process(low, service.days(3, fallen(0.45)))
    assert set(low.bad) == {""}
    process(low, service.days(4, MEANS))
    assert low.bad == {}


def test_a_bad_level_that_a_person_resolved_is_found_again_only_from_new_scores() -> None:
    """The scores that it was found in are forgotten."""
    service = Service(6)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(3, MEANS | {"hard": 0.2}))
    newcomers.forget(["hard"])
    process(newcomers, service.days(1, {"hard": 0.2})[:15])

    assert newcomers.bad == {}
    process(newcomers, service.days(2, {"hard": 0.2}))
    assert set(newcomers.bad) == {"hard"}


def test_routes_with_changing_names_are_judged_together() -> None:
    """The state stays small however many names there are."""
    service = Service(7)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(1, {f"id-{number}": 0.2 for number in range(2 * MAX_ROUTES)}))

    assert len(newcomers.state()["days"]) == MAX_ROUTES + 1
    assert "" in newcomers.bad


def test_a_fall_on_ever_new_names_is_found() -> None:
    """Names that no longer fit into the state are judged together, even if all listed ones were good."""
    service = Service(13)
    newcomers = Newcomers(service.baseline(), 0.05)
    process(newcomers, service.days(1, {f"good-{number}": 0.8 for number in range(MAX_ROUTES)}))
    newcomers = restored(newcomers, service.baseline())
    process(newcomers, service.days(2, {f"bad-{number}": 0.2 for number in range(40)}))

    assert "" in newcomers.bad


def pass_days(simulation: Any, count: int, watcher: Any, **means: float) -> list[str]:
    """Advance the clock, and return the types of the events."""
    happened = []
    for _ in range(count):
        simulation.add_routes(means, count=40)
        happened += simulation.evaluate(watcher)
    return happened


def test_a_deploy_that_renames_all_routes_does_not_hide_a_fall(three_routes: Any) -> None:
    """The alert names both levels. The bad level does not become the baseline."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 1, watcher, docs=0.8, faq=0.8, support=0.8)
    happened = pass_days(three_routes, 17, watcher, docs2=0.6, faq2=0.6, support2=0.6)

    assert [event for event in happened if event in ("fired", "resolved")] == ["fired"]
    (alert,) = three_routes.store.alerts.list_open()
    assert dict(alert.labels) == {"service": "shop", "scorer": "relevancy"}
    assert (alert.baseline.mean, alert.current.mean) == (pytest.approx(0.76, abs=0.03), pytest.approx(0.57, abs=0.05))
    assert alert.details["replaces"] == ["docs", "faq", "support"]
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert set(active.baseline.routes) == {"docs", "faq", "support"}


def test_a_drop_that_is_fixed_under_new_names_is_resolved_once(three_routes: Any) -> None:
    """The old routes have no scores that could show the recovery. No alert fires when the new ones join."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 1, watcher, docs=0.8, faq=0.8, support=0.8)
    happened = pass_days(three_routes, 2, watcher, docs=0.5, faq=0.5, support=0.5)
    happened += pass_days(three_routes, 4, three_routes.new_watcher(), docs2=0.8, faq2=0.8, support2=0.8)
    assert [event for event in happened if event in ("fired", "resolved")] == ["fired", "resolved"]

    happened = pass_days(three_routes, 14, watcher, docs2=0.8, faq2=0.8, support2=0.8)
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert (happened, "docs2" in active.baseline.routes) == ([], True)


def test_accepting_one_bad_route_leaves_the_others_bad(three_routes: Any) -> None:
    """Only its own alert ends, because its level is in the baseline. No other route joins with it."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 4, watcher, faq=0.8, support=0.8, docs2=0.5)
    pass_days(three_routes, 4, watcher, faq=0.8, docs2=0.5, support2=0.4)
    alerts = {alert.route: alert for alert in three_routes.store.alerts.list_open()}
    assert set(alerts) == {"docs2", "support2"}
    accept_alert_baseline(three_routes.store, alerts["docs2"].id)
    pass_days(three_routes, 1, three_routes.new_watcher(), faq=0.8, docs2=0.5, support2=0.4)

    assert [alert.route for alert in three_routes.store.alerts.list_open()] == ["support2"]
    assert three_routes.store.alerts.get(alerts["docs2"].id).resolve_reason == "new_baseline"
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert set(active.baseline.routes) == {"docs", "docs2", "faq", "support"}


def test_a_service_that_is_bad_from_its_first_answer_is_told(sqlite_simulation: Any) -> None:
    """The alert stays open when its level has become the baseline."""
    watcher = sqlite_simulation.new_watcher()
    happened = []
    for _ in range(18):
        sqlite_simulation.pass_days(1, per_day=40, mean=0.3)
        happened += sqlite_simulation.evaluate(watcher)

    assert [event for event in happened if event in ("fired", "resolved")] == ["fired"]
    assert "first" in {version.reason for version in sqlite_simulation.store.baselines.list_versions()}


def test_an_improvement_that_nobody_accepts_is_watched_for_drops(three_routes: Any) -> None:
    """A return to the old level is a drop from the improved one. The baseline is not replaced."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 9, watcher, docs=0.9, faq=0.9, support=0.9)
    happened = pass_days(three_routes, 5, watcher, docs=0.8, faq=0.8, support=0.8)

    assert "fired" in happened
    (alert,) = [alert for alert in three_routes.store.alerts.list_open() if alert.type == "drop"]
    assert alert.baseline.mean == pytest.approx(0.855, abs=0.02)
    assert alert.details["baseline"]["reason"] == "improvement"
    (active,) = three_routes.store.baselines.list_versions()
    assert active.reason == "first"


def test_a_bad_day_that_is_scored_late_is_dated_by_its_answers(learned: Any) -> None:
    """The alert says that the answers were scored late, and that newer answers are good."""
    watcher = learned.new_watcher()
    began = learned.now
    learned.now = began + timedelta(days=1)
    learned.add_scores(learned.values(60), hours=30)
    assert learned.evaluate(watcher) == []
    learned.now = began
    learned.add_scores(learned.values(60, mean=0.4), late=timedelta(days=2))
    learned.now = began + timedelta(days=3)

    assert learned.evaluate(watcher) == ["fired"]
    (alert,) = learned.store.alerts.list_open()
    assert alert.onset == pytest.approx(began, abs=timedelta(hours=6))
    assert began < datetime.fromisoformat(alert.details["late"]["until"]) <= began + timedelta(days=1)
    assert alert.details["late"]["newer"] == pytest.approx(0.76, abs=0.06)
    assert alert.current.mean < 0.5


@pytest.mark.parametrize(("before", "expected"), [(0.85, []), (0.3, ["fired"])])
def test_only_answers_that_were_always_low_are_low_from_the_first(
    sqlite_simulation: Any, before: float, expected: list[str]
) -> None:
    """Stored answers count even if no detector has processed them, because its state was lost, and whatever their
    age."""
    simulation = sqlite_simulation
    simulation.pass_days(20, per_day=5, mean=before)
    old = simulation.store.detectors.list_new_scores(10_000)
    simulation.store.alerts.commit(step_of(DropEvaluation(processed_score_ids=[score.id for score in old])))
    watcher, happened = simulation.new_watcher(), list[str]()
    for _ in range(4):
        simulation.pass_days(1, per_day=40, mean=0.3)
        happened += simulation.evaluate(watcher)

    assert happened == expected
    (state,) = simulation.store.detectors.list_states()
    assert state.state["newcomers"]["bad"][""]["fell"] is (before > 0.5)


def test_a_few_better_answers_do_not_hide_a_low_service() -> None:
    """Chance alone does not make the first answers better than the later ones, nor do first answers that were low."""
    low = BadLevel(onset=0, routes=["faq"], reference=0.5, n=None, level=0.3, vanished=[], is_first=True)

    assert not was_better(low, [])
    assert not was_better(low, [0.9, 0.1, 0.9])
    assert not was_better(low, [0.45] * 100)
    assert not was_better(replace(low, level=0.45), [0.5] * 100)
    assert was_better(low, [0.8] * 10)


def test_a_route_that_fell_is_judged_by_its_baseline_once_there_is_one() -> None:
    """It does not hide another route that was low from its first answer, and is forgotten with the first baseline."""
    service = Service(8)
    newcomers = Newcomers(None, 0.05)
    process(newcomers, service.days(2, fallen(0.45)))
    newcomers.bad[""].fell = True
    process(newcomers, service.days(2, fallen(0.45)))

    assert set(newcomers.bad) == {"", *MEANS}
    assert set(restored(newcomers, None).bad) == {"", *MEANS}
    assert set(restored(newcomers, service.baseline()).bad) == set(MEANS)


@pytest.mark.parametrize(
    ("other", "days", "together"),
    [
        ({"scorer": "b"}, 1, True),
        ({"scorer": "b"}, 3, False),
        ({"scorer": "a"}, 1, False),
        ({"scorer": "b", "route": "faq"}, 1, False),
        ({"scorer": "b", "service": "mobile"}, 1, False),
    ],
)
def test_scorers_that_fell_together_on_a_route_belong_to_one_alert(
    other: dict[str, str], days: int, *, together: bool
) -> None:
    """Other routes, services, and falls at other times have their own alerts. So does the same scorer."""
    labels = {"service": "shop", "scorer": "a", "route": "docs"}
    drop = RuleResult(rule="drop", type="drop", labels=labels | other, state="bad", onset=START)
    level = START - timedelta(days=days)

    assert fell_together("drop", labels, level, [drop]) is together
    assert not fell_together("drop", labels, level, [replace(drop, details={"new_route": True})])
    assert not fell_together("other", labels, level, [drop])


def test_a_scorer_that_belongs_to_an_open_alert_is_not_taken_for_resolved(three_routes: Any) -> None:
    """Its bad level stays known, so it cannot join a baseline, but it has no alert of its own."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 3, watcher, docs=0.4, faq=0.8, support=0.8)
    (alert,) = three_routes.store.alerts.list_open()
    assert alert.route == "docs"
    low = {"reference": 0.5, "n": None, "level": 0.2, "vanished": [], "is_first": True, "fell": False}
    bad = {name: {**low, "onset": alert.onset.timestamp(), "routes": [name]} for name in ("docs", "faq")}
    state = {"active_fingerprint": {"fingerprint": "f2", "votes": 20}, "newcomers": {"bad": bad}}
    parameters = rule_parameters_hash(Drop())
    other = DetectorState(
        rule="drop", service="shop", scorer="other", parameters=parameters, baseline_id=0, state=state
    )  # fmt: skip
    assert three_routes.store.alerts.commit(step_of(DropEvaluation(detector_states=[other])))
    happened = pass_days(three_routes, 1, watcher, docs=0.4, faq=0.8, support=0.8)

    assert "fired" not in happened
    assert three_routes.store.alerts.list_open()[0].id == alert.id
    states = {one.scorer: one for one in three_routes.store.detectors.list_states()}
    assert set(states["other"].state["newcomers"]["bad"]) == {"docs"}
