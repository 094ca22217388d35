"""Visitors come as planned."""

from __future__ import annotations

from collections import Counter

from germane.demo import BROKEN_ROUTE, FAULT_AT, LENGTH, ROUTES, Corpus, plan_visits


def test_plan_is_the_same_in_every_run(corpus: Corpus) -> None:
    """Who asks what, and when, is not left to chance."""
    assert plan_visits(corpus) == plan_visits(corpus)


def test_visits_come_in_order_and_within_the_run(corpus: Corpus) -> None:
    """Earliest first, from the first seconds to the last."""
    times = [visit.at for visit in plan_visits(corpus)]

    assert times == sorted(times)
    assert 0 <= times[0] < 2
    assert LENGTH - 3 < times[-1] < LENGTH + 1


def test_every_route_is_visited_before_and_after_the_fault(corpus: Corpus) -> None:
    """Each route gets visits enough to be judged on both sides, the broken one most of all."""
    visits = plan_visits(corpus)
    before = Counter(visit.question.route for visit in visits if visit.at < FAULT_AT)
    after = Counter(visit.question.route for visit in visits if visit.at >= FAULT_AT)

    assert before.keys() == after.keys() == set(ROUTES)
    assert min(before.values()) >= 12
    assert min(after.values()) >= 18
    assert after[BROKEN_ROUTE] >= 28


def test_routes_are_interleaved(corpus: Corpus) -> None:
    """Any dozen visits in a row touch every route."""
    routes = [visit.question.route for visit in plan_visits(corpus)]

    assert all(set(routes[first : first + 12]) == set(ROUTES) for first in range(len(routes) - 11))


def test_no_question_comes_again_before_the_others(corpus: Corpus) -> None:
    """Visitors ask all of a route's questions before one is repeated."""
    asked = Counter(visit.question for visit in plan_visits(corpus, length=240, pace=1))

    for route in ROUTES:
        times = [asked[question] for question in corpus.questions_of(route)]
        assert max(times) - min(times) <= 1
