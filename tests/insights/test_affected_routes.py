"""The routes that an alert is about."""

from __future__ import annotations

from typing import Any, Literal

from tests.cases import each
from tests.insights.situations import drop_alert

from germane.alert import ScoreLevel, ScoreShift
from germane.insights.situation import affected_routes, alert_concerns_route

LABELS = {"service": "shop", "scorer": "answer_relevancy"}


def shift(name: str, since: float, dimension: Literal["route", "attribute"] = "route") -> ScoreShift:
    """Return a change from a mean of 0.8."""
    return ScoreShift(
        dimension=dimension, name=name, before=ScoreLevel(mean=0.8, n=300), since=ScoreLevel(mean=since, n=30)
    )


@each(
    ("alert", "routes"),
    [
        ({"shifts": (shift("fell", 0.79), shift("same", 0.8), shift("rose", 0.81))}, ["fell"]),
        ({"shifts": (shift("v7", 0.4, "attribute"),)}, []),
        ({"shifts": ()}, []),
        ({"shifts": (shift("fell", 0.4),), "labels": {**LABELS, "route": "ask"}}, ["ask"]),
    ],
)
def test_an_alert_is_about_its_own_route_or_those_that_fell(alert: dict[str, Any], routes: list[str]) -> None:
    """Routes with the same mean, and other dimensions, do not contribute to a drop of a service."""
    assert affected_routes(drop_alert(**alert)) == routes


@each(
    ("service", "route", "shifts", "is_concerned"),
    [
        ("shop", "fell", (shift("fell", 0.4),), True),
        ("shop", "other", (shift("fell", 0.4),), False),
        ("shop", "other", (), True),
        (None, "fell", (shift("fell", 0.4),), True),
        ("another", "fell", (shift("fell", 0.4),), False),
        ("another", "other", (), False),
    ],
)
def test_an_alert_without_routes_concerns_its_whole_service(
    service: str | None, route: str, shifts: tuple[ScoreShift, ...], is_concerned: bool
) -> None:
    """Each route of the service shows it, and no route of another one."""
    assert alert_concerns_route(drop_alert(shifts=shifts), service, route) is is_concerned
