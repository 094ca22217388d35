"""Tests of the planned traffic."""

from __future__ import annotations

from collections import Counter

from germane.demo import BROKEN_ROUTE, DURATION, FAULT_TIME
from germane.demo.corpus import ROUTES, DemoCorpus
from germane.demo.traffic import plan_visits


def test_the_plan_of_demo_traffic_is_deterministic(corpus: DemoCorpus) -> None:
    """Every run has the same visits."""
    assert plan_visits(corpus) == plan_visits(corpus)


def test_simulated_visits_are_ordered_and_within_the_run(corpus: DemoCorpus) -> None:
    """Visits occur from the first seconds of the run to the last."""
    times = [visit.at for visit in plan_visits(corpus)]

    assert times == sorted(times)
    assert 0 <= times[0] < 2
    assert DURATION - 3 < times[-1] < DURATION + 1


def test_every_route_is_visited_before_and_after_the_fault(corpus: DemoCorpus) -> None:
    """There are enough visits to compare, and the broken route has the most."""
    visits = plan_visits(corpus)
    before = Counter(visit.question.route for visit in visits if visit.at < FAULT_TIME)
    after = Counter(visit.question.route for visit in visits if visit.at >= FAULT_TIME)

    assert before.keys() == after.keys() == set(ROUTES)
    assert min(before.values()) >= 12
    assert min(after.values()) >= 18
    assert after[BROKEN_ROUTE] >= 28


def test_visits_to_different_routes_are_interleaved(corpus: DemoCorpus) -> None:
    """Any twelve consecutive visits include every route."""
    routes = [visit.question.route for visit in plan_visits(corpus)]

    assert all(set(routes[first : first + 12]) == set(ROUTES) for first in range(len(routes) - 11))


def test_questions_repeat_only_after_all_have_been_asked(corpus: DemoCorpus) -> None:
    """Each question of a route is asked once before any is repeated."""
    asked = Counter(visit.question for visit in plan_visits(corpus, duration=240, rate=1))

    for route in ROUTES:
        times = [asked[question] for question in corpus.questions_for(route)]
        assert max(times) - min(times) <= 1
