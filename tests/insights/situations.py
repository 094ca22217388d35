"""Situations of a service with given means and alerts, for tests of verdicts and their sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from germane.alert import Alert, ScoreLevel, ScoreShift
from germane.alerting import onset_of
from germane.insights.situation import ComparisonPeriod, Situation
from germane.insights.wording.pieces import Piece
from germane.statistics import Comparisons, Estimate
from germane.storage import Coverage, RouteSummary, ServiceSummary, compare_summaries

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
DAY = timedelta(days=1)
BEFORE = ComparisonPeriod(since=NOW - 5 * DAY, until=NOW - 2 * DAY)
BASELINE = replace(BEFORE, baseline=2)
Side = tuple[float, int]
"""A mean and its n."""
Routes = dict[str, tuple[Side | None, Side | None]]
"""The means before and now, by route."""


def estimate(mean: float, n: int, half: float = 0.06) -> dict[str, Any]:
    """Return an estimate."""
    ends = None if n < 2 else (mean - half, mean + half)
    shares: dict[str, Any] = {"low_share": 0.1, "noncommittal_share": 0.0, "deviation": 0.2}
    return {"n": n, "mean": mean, "interval": ends, **shares}


def route_scores(name: str, side: Side, fingerprint: str = "f1") -> RouteSummary:
    """Return one route's scores in a window."""
    coverage = Coverage(service="shop", route=name, scorer="answer_relevancy", seen=side[1], scored=side[1])
    who: dict[str, Any] = {"service": "shop", "route": name, "scorer": "answer_relevancy", "fingerprint": fingerprint}
    return RouteSummary(**who, **estimate(*side), newest=True, latest=NOW, coverage=coverage)


def service_scores(side: Side, fingerprint: str = "f1") -> ServiceSummary:
    """Return a service's scores."""
    coverage = Coverage(service="shop", route="", scorer="answer_relevancy", seen=side[1], scored=side[1])
    who: dict[str, Any] = {"service": "shop", "scorer": "answer_relevancy", "fingerprint": fingerprint}
    return ServiceSummary(**who, **estimate(*side), newest=True, latest=NOW, coverage=coverage)


def comparisons(routes: Routes, new: str = "f1") -> Comparisons:
    """Compare routes before and now; ``new`` is the current fingerprint."""
    old = [route_scores(name, before) for name, (before, _) in routes.items() if before]
    now = [route_scores(name, after, new) for name, (_, after) in routes.items() if after]
    return compare_summaries(old, now, ((BEFORE.since, BEFORE.until), (NOW - DAY, NOW)))


def make_situation(routes: Routes, now: Side | None = (0.8, 186), **more: Any) -> Situation:
    """Return the situation of a service with these routes."""
    usual = Estimate(**estimate(0.8, 900, 0.02))
    given: dict[str, Any] = {
        "scorer": "answer_relevancy",
        "now": NOW,
        "zone": ZoneInfo("UTC"),
        "current": None if now is None else service_scores(now),
        "reference": usual,
        "reference_period": BEFORE,
        "comparisons": comparisons(routes),
        "answered_at": NOW - timedelta(minutes=1),
    }
    if more.get("alerts"):
        given["onset"] = onset_of(more["alerts"][0])
    return Situation(**given | more)


def drop_alert(**more: Any) -> Alert:
    """Return an open relevancy alert that is caused mainly by ``docs-search``."""
    shift = ScoreShift(
        dimension="route", name="docs-search", before=ScoreLevel(mean=0.8, n=300), since=ScoreLevel(mean=0.42, n=27),
        supported=True,
    )  # fmt: skip
    defaults: dict[str, Any] = {
        "id": "a1",
        "key": "k",
        "rule": "drop",
        "type": "drop",
        "labels": {"service": "shop", "scorer": "answer_relevancy"},
        "state": "firing",
        "message": "relevancy dropped.",
        "onset": NOW - timedelta(hours=29),
        "shifts": (shift,),
        "starts_at": NOW - timedelta(hours=25),
        "evaluated_at": NOW,
    }
    return Alert(**defaults | more)


FELL: Routes = {
    "ask": ((0.8, 400), (0.81, 80)),
    "docs-search": ((0.78, 803), (0.48, 57)),
}
STEADY: Routes = {
    "ask": ((0.8, 400), (0.81, 80)),
    "docs-search": ((0.78, 803), (0.77, 57)),
}


def unscored_coverage(seen: int, **more: Any) -> list[Coverage]:
    """Return the coverage of answers without scores."""
    return [Coverage(service="shop", route="ask", scorer="answer_relevancy", seen=seen, **more)]


def plain_text(sentence: Iterable[Piece]) -> str:
    """Return a sentence as text, with the text of links."""
    return "".join(piece.text for piece in sentence)
