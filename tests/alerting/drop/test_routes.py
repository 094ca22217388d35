"""Drops on single routes, routes that are bad from the start, and lasting improvements."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.alerting.drop.conftest import ROUTES

from germane.alert import IMPROVEMENT, Silence
from germane.alerting import accept_alert_baseline, resolve_alert
from germane.settings import Drop, Settings

DAY = timedelta(days=1)


def pass_days(simulation: Any, count: int, watcher: Any, **means: float) -> list[str]:
    """Advance the clock, with a given mean per route. Return the types of the events."""
    happened = []
    for _ in range(count):
        simulation.add_routes(dict.fromkeys(ROUTES, 0.8) | means, count=40)
        happened += simulation.evaluate(watcher)
    return happened


def test_an_alert_about_a_drop_on_one_route_has_the_route_label(three_routes: Any) -> None:
    """The alert shows the route's means, and a silence for the route covers it."""
    assert pass_days(three_routes, 3, three_routes.new_watcher(), support=0.3)[0] == "fired"

    (alert,) = three_routes.store.alerts.list_open()
    assert dict(alert.labels) == {"service": "shop", "scorer": "relevancy", "route": "support"}
    assert alert.baseline.mean == pytest.approx(0.76, abs=0.05)
    assert alert.current.mean == pytest.approx(0.285, abs=0.08)
    assert alert.severity == "critical"
    silence = Silence(id="s", matchers={"route": "supp*"}, starts_at=three_routes.now, ends_at=three_routes.now + DAY)
    assert silence.covers(alert, three_routes.now)


def test_a_drop_on_two_of_three_routes_fires_an_alert_for_each(three_routes: Any) -> None:
    """No alert fires for the third route."""
    happened = pass_days(three_routes, 3, three_routes.new_watcher(), support=0.5, docs=0.5)

    assert happened.count("fired") == 2
    assert {alert.route for alert in three_routes.store.alerts.list_open()} == {"docs", "support"}


def test_an_alert_about_a_drop_on_all_routes_has_no_route_label(three_routes: Any) -> None:
    """There is one alert, which is about the service."""
    happened = pass_days(three_routes, 3, three_routes.new_watcher(), docs=0.6, faq=0.6, support=0.6)

    assert happened.count("fired") == 1
    assert [alert.route for alert in three_routes.store.alerts.list_open()] == [None]


def test_the_drop_message_is_correct_if_the_route_mix_changes_too(three_routes: Any) -> None:
    """All scores fall by 0.15 while most traffic moves to a better route. The new level is below the old one."""
    watcher = three_routes.new_watcher()
    for _ in range(4):
        for route, count in (("docs", 4), ("faq", 110), ("support", 6)):
            mean = 0.65 if route != "faq" else 0.7
            three_routes.add_scores(three_routes.values(count, mean=mean), hours=8, route=route)
        three_routes.evaluate(watcher)

    (alert,) = three_routes.store.alerts.list_open()
    assert alert.current.mean < alert.baseline.mean


def test_a_route_that_recovers_is_not_reported_again(three_routes: Any) -> None:
    """The alert recovers after a good day, and resolves once there is enough evidence."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 3, watcher, support=0.3)
    happened = pass_days(three_routes, 3, watcher)
    assert "recovering" in happened
    (alert,) = three_routes.store.alerts.list_open() or [None]
    assert alert is None or alert.current.mean > 0.6
    for _ in range(20):
        if three_routes.store.alerts.list_open():
            pass_days(three_routes, 1, watcher)

    assert three_routes.store.alerts.list_open() == []


def test_a_notification_is_sent_for_each_route_that_a_drop_spreads_to(three_routes: Any) -> None:
    """A route that falls later is not hidden by the route that fell first."""
    watcher = three_routes.new_watcher()
    pass_days(three_routes, 3, watcher, support=0.3)
    pass_days(three_routes, 4, watcher, support=0.3, docs=0.4, faq=0.4)

    assert {alert.route for alert in three_routes.store.alerts.list_open()} == {"support", "docs", "faq"}


def test_a_new_route_with_low_scores_fires_an_alert_and_does_not_join_the_baseline(three_routes: Any) -> None:
    """The alert fires within days, although the route is still being learned. It is critical if the route is worse than
    the others by ``critical_drop``.
    """
    watcher = three_routes.new_watcher()
    assert pass_days(three_routes, 3, watcher, beta=0.15)[0] == "fired"
    (alert,) = three_routes.store.alerts.list_open()
    assert (alert.route, alert.details["new_route"], alert.severity) == ("beta", True, "critical")
    assert alert.current.mean == pytest.approx(0.14, abs=0.06)

    pass_days(three_routes, 16, watcher, beta=0.15)
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert "beta" not in active.baseline.routes
    accept_alert_baseline(three_routes.store, alert.id)
    pass_days(three_routes, 1, watcher, beta=0.15)
    assert three_routes.store.alerts.list_open() == []
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert "beta" in active.baseline.routes


def test_a_new_route_with_high_scores_fires_no_alert(three_routes: Any) -> None:
    """The route joins the baseline after its learning period."""
    assert pass_days(three_routes, 16, three_routes.new_watcher(), beta=0.7) == []
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert "beta" in active.baseline.routes


def test_an_improvement_is_proposed_once_and_a_person_can_accept_it(three_routes: Any) -> None:
    """After that, a fall that is smaller than the improvement is a drop."""
    watcher = three_routes.new_watcher()
    better = dict.fromkeys(ROUTES, 0.9)
    assert pass_days(three_routes, 8, watcher, **better) == ["fired"]
    (alert,) = three_routes.store.alerts.list_open()
    assert (alert.type, alert.severity, alert.labels["change"]) == (IMPROVEMENT, "info", IMPROVEMENT)
    assert alert.current.mean > alert.baseline.mean

    accept_alert_baseline(three_routes.store, alert.id)
    assert pass_days(three_routes, 1, watcher, **better) == ["resolved"]
    assert three_routes.store.alerts.get(alert.id).resolve_reason == "new_baseline"
    assert "fired" in pass_days(three_routes, 6, watcher, **dict.fromkeys(ROUTES, 0.8))


def test_an_improvement_is_accepted_automatically_if_configured(three_routes: Any) -> None:
    """People are notified before the alert resolves."""
    watcher = three_routes.new_watcher(Drop(accept_improvements=True))
    happened = pass_days(three_routes, 9, watcher, **dict.fromkeys(ROUTES, 0.9))

    assert happened == ["fired", "resolved"]
    active = next(one for one in three_routes.store.baselines.list_versions() if one.status == "active")
    assert (active.reason, active.baseline.mean > 0.82) == ("accepted", True)


def test_an_improvement_that_does_not_last_is_not_proposed(three_routes: Any) -> None:
    """Two good days are not enough evidence."""
    watcher = three_routes.new_watcher()
    happened = pass_days(three_routes, 2, watcher, **dict.fromkeys(ROUTES, 0.9))

    assert happened + pass_days(three_routes, 10, watcher) == []


def test_a_declined_improvement_is_not_proposed_again(three_routes: Any) -> None:
    """If a person resolves the proposal, the baseline is kept, even after a restart."""
    better = dict.fromkeys(ROUTES, 0.9)
    assert pass_days(three_routes, 8, three_routes.new_watcher(), **better) == ["fired"]
    (alert,) = three_routes.store.alerts.list_open()
    resolve_alert(three_routes.store, Settings(), alert.id, "ann")

    assert pass_days(three_routes, 5, three_routes.new_watcher(), **better) == []
    assert three_routes.store.alerts.list_open() == []


@pytest.mark.slow
def test_a_new_improvement_is_proposed_after_an_earlier_one_was_declined(three_routes: Any) -> None:
    """A declined improvement is ignored only until it ends."""
    watcher = three_routes.new_watcher()
    better = dict.fromkeys(ROUTES, 0.95)
    pass_days(three_routes, 8, watcher, **better)
    resolve_alert(three_routes.store, Settings(), three_routes.store.alerts.list_open()[0].id, "ann")
    pass_days(three_routes, 25, watcher)

    assert "fired" in pass_days(three_routes, 8, watcher, **better)


def test_the_detector_restarts_after_an_alert_about_a_new_route_is_resolved(three_routes: Any) -> None:
    """The alert does not fire again with the next score, but fires again if the answers stay bad. It is not critical if
    the route is not worse than the others by ``critical_drop``.
    """
    watcher = three_routes.new_watcher(Drop(critical_drop=0.7))
    pass_days(three_routes, 3, watcher, beta=0.15)
    (alert,) = three_routes.store.alerts.list_open()
    assert alert.severity == "warning"
    resolve_alert(three_routes.store, Settings(), alert.id, "ann")

    three_routes.add_scores([0.15], hours=0.01, route="beta")
    assert three_routes.evaluate(watcher) == []
    assert "fired" in pass_days(three_routes, 3, watcher, beta=0.15)
