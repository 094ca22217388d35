"""The scores that a rule watches, and the part of a baseline that describes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline


def attribute_scope(attributes: Mapping[str, str]) -> str:
    """Return attribute patterns in the form that baseline keys use: JSON with sorted names, or empty."""
    return json.dumps(dict(sorted(attributes.items()))) if attributes else ""


def matches_scope(scope: str, attributes: Mapping[str, Any]) -> bool:
    """Return whether an exchange's attributes match all patterns. Booleans are written as in TOML and JSON."""
    patterns: dict[str, str] = json.loads(scope) if scope else {}
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in attributes.items()
        if name in patterns
    }
    return all(name in texts and fnmatchcase(texts[name], pattern) for name, pattern in patterns.items())


def restrict_to_routes(baseline: Baseline, matches_route: Callable[[str], bool]) -> Baseline:
    """Return the part of a baseline for some routes. The pool is kept if one of its routes matches."""
    pooled = frozenset(filter(matches_route, baseline.pooled))
    routes = {
        name: route
        for name, route in baseline.routes.items()
        if (bool(pooled) if name == POOLED_ROUTE else matches_route(name))
    }
    if routes.keys() == baseline.routes.keys() and pooled == baseline.pooled:
        return baseline
    return _with_routes(replace(baseline, pooled=pooled), routes)


def add_routes(baseline: Baseline, newcomers: Baseline) -> Baseline:
    """Return a baseline extended by the routes of another one. The numbers of its own routes do not change."""
    new = {
        name: route for name, route in newcomers.routes.items() if name != POOLED_ROUTE and name not in baseline.routes
    }
    return _with_routes(baseline, {**baseline.routes, **new})


def _with_routes(baseline: Baseline, routes: Mapping[str, RouteBaseline]) -> Baseline:
    """Return a baseline with these routes and totals that match them."""
    parts = list(routes.values())
    n = sum(route.n for route in parts)
    mean = sum(route.n * route.mean for route in parts) / n if n else 0.0
    squares = sum((route.n - 1) * route.deviation**2 + route.n * (route.mean - mean) ** 2 for route in parts)
    return replace(
        baseline,
        n=n,
        mean=mean,
        deviation=math.sqrt(squares / (n - 1)) if n > 1 else 0.0,
        scores_per_day=sum(route.scores_per_day for route in parts),
        committed_per_day=sum(route.committed_per_day for route in parts),
        routes=routes,
    )
