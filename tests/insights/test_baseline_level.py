"""The means in a stored baseline, which current scores are compared with."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.cases import each

from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline
from germane.insights.last_day import at_baseline_levels, baseline_level
from germane.storage import Coverage, RouteSummary, WindowSummary

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def route_estimate(mean: float, n: int = 100) -> RouteBaseline:
    """Return the estimate for one route, with 5% of its scores at zero."""
    committed = n - n // 20
    return RouteBaseline(
        n=n, mean=mean, deviation=0.2, committed=committed, committed_mean=mean, committed_deviation=0.1,
        zero_rate=0.05, committed_wander=0.0, zero_wander=0.0, scores_per_day=20.0, committed_per_day=19.0,
    )  # fmt: skip


KEPT = Baseline(
    service="shop", scorer="s", fingerprint="f", since=NOW, until=NOW, n=200, mean=0.75, deviation=0.2,
    scores_per_day=40.0, committed_per_day=38.0, routes={"ask": route_estimate(0.8), POOLED_ROUTE: route_estimate(0.7)},
    pooled=frozenset({"rare"}),
)  # fmt: skip


def load_before(name: str, mean: float, fingerprint: str = "f") -> RouteSummary:
    """Return the estimates of the reference period from stored scores."""
    return RouteSummary(
        service="shop", route=name, scorer="s", fingerprint=fingerprint, newest=True, latest=NOW, n=50, mean=mean,
        deviation=0.2, low_share=0.1, noncommittal_share=0.05, interval=(mean - 0.05, mean + 0.05),
        coverage=Coverage(service="shop", route=name, scorer="s", seen=60, scored=50),
    )  # fmt: skip


def baseline_levels(*given: RouteSummary) -> list[tuple[float, int]]:
    """Return mean and n of these estimates after baseline levels replace them."""
    found = at_baseline_levels(WindowSummary(since=NOW, until=NOW, routes=given, services=(), coverage=()), KEPT)
    return [(one.mean, one.n) for one in found.routes]


def test_the_reference_of_a_route_is_its_stored_baseline_mean() -> None:
    """The interval and the weight within the service also come from the stored mean."""
    (found,) = at_baseline_levels(
        WindowSummary(since=NOW, until=NOW, routes=[load_before("ask", 0.78)], services=(), coverage=()), KEPT
    ).routes
    assert (found.mean, found.n, found.coverage.seen) == (0.8, 100, 100)
    assert found.interval is not None
    assert 0.7 < found.interval[0] < 0.8 < found.interval[1] < 0.9


@each(
    ("given", "why"),
    [
        (load_before("rare", 0.6), "the route was pooled, and the pool's level is not its own"),
        (load_before("new", 0.6), "the baseline does not contain the route"),
        (load_before("ask", 0.78, "other"), "another judge"),
        (load_before("ask", -0.3), "a baseline counts negative values as 0"),
    ],
)
def test_references_of_routes_outside_the_baseline_are_unchanged(given: RouteSummary, why: str) -> None:
    """A different level would turn an unchanged score into a drop."""
    assert baseline_levels(given) == [(given.mean, 50)], why


def test_a_pooled_route_has_no_baseline_level_of_its_own() -> None:
    """A route that was added later has none either. The service's level is the mean of all scores."""
    assert [baseline_level(KEPT, name) for name in ("ask", "rare", "new", None)] == [
        (0.8, 100),
        None,
        None,
        (0.75, 200),
    ]
