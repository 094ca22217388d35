"""The routes that an alert is about."""

from __future__ import annotations

from typing import Any, Literal

from tests.cases import each
from tests.insights.situations import drop_alert

from germane.alert import ScoreLevel, ScoreShift
from germane.insights.situation import affected_routes, alert_concerns_route

LABELS = {"service": "shop", "scorer": "answer_relevancy"}


def shift(name: str, dimension: Literal["route", "attribute"] = "route", *, supported: bool = True) -> ScoreShift:
    """Return a fall from a mean of 0.8."""
    levels = {"before": ScoreLevel(mean=0.8, n=300), "since": ScoreLevel(mean=0.4, n=30)}
    return ScoreShift(dimension=dimension, name=name, supported=supported, **levels)


@each(
    ("alert", "routes"),
    [
        ({"shifts": (shift("carrier"), shift("shared", supported=False))}, ["carrier"]),
        ({"shifts": (shift("shared", supported=False),)}, []),
        ({"shifts": (shift("v7", "attribute"),)}, []),
        ({"shifts": ()}, []),
        ({"shifts": (shift("carrier"),), "labels": {**LABELS, "route": "ask"}}, ["ask"]),
    ],
)
def test_an_alert_is_about_its_own_route_or_the_one_that_carries_the_drop(
    alert: dict[str, Any], routes: list[str]
) -> None:
    """A route that fell with all others, or of whose fall there is no evidence, does not carry it."""
    assert affected_routes(drop_alert(**alert)) == routes


@each(
    ("service", "route", "shifts", "is_concerned"),
    [
        ("shop", "fell", (shift("fell"),), True),
        ("shop", "other", (shift("fell"),), False),
        ("shop", "other", (), True),
        (None, "fell", (shift("fell"),), True),
        ("another", "fell", (shift("fell"),), False),
        ("another", "other", (), False),
    ],
)
def test_an_alert_without_routes_concerns_its_whole_service(
    service: str | None, route: str, shifts: tuple[ScoreShift, ...], is_concerned: bool
) -> None:
    """Each route of the service shows it, and no route of another one."""
    assert alert_concerns_route(drop_alert(shifts=shifts), service, route) is is_concerned
