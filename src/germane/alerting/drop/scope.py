"""Which scores a rule is about, and what of a baseline is about them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from germane.baseline import OTHER, Baseline, RouteBaseline

Takes = Callable[[str], bool]
"""Says of a route whether a rule looks at it."""


def scope_of(attributes: Mapping[str, str]) -> str:
    """Return patterns of attributes as a baseline's key has them; empty without any."""
    return json.dumps(dict(sorted(attributes.items()))) if attributes else ""


def in_scope(scope: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an exchange with these attributes fits all patterns."""
    patterns: dict[str, str] = json.loads(scope) if scope else {}
    return all(name in attributes and fnmatchcase(_text(attributes[name]), one) for name, one in patterns.items())


def _text(value: Any) -> str:
    """Return an attribute's value as text, as TOML and JSON write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def narrowed(baseline: Baseline, takes: Takes) -> Baseline:
    """Return what a baseline says of some of its routes; the pool is among them where one of its routes is."""
    pooled = frozenset(filter(takes, baseline.pooled))
    routes = {name: one for name, one in baseline.routes.items() if (bool(pooled) if name == OTHER else takes(name))}
    whole = routes.keys() == baseline.routes.keys() and pooled == baseline.pooled
    return baseline if whole else _of(replace(baseline, pooled=pooled), routes)


def joined(baseline: Baseline, newcomer: Baseline) -> Baseline:
    """Return a baseline with the routes of another one beside its own, whose numbers stay as they are."""
    new = {name: one for name, one in newcomer.routes.items() if name != OTHER and name not in baseline.routes}
    return _of(baseline, {**baseline.routes, **new})


def _of(baseline: Baseline, routes: Mapping[str, RouteBaseline]) -> Baseline:
    """Return a baseline of these routes."""
    found = list(routes.values())
    n = sum(one.n for one in found)
    mean = sum(one.n * one.mean for one in found) / n if n else 0.0
    squares = sum((one.n - 1) * one.deviation**2 + one.n * (one.mean - mean) ** 2 for one in found)
    return replace(
        baseline,
        n=n,
        mean=mean,
        deviation=math.sqrt(squares / (n - 1)) if n > 1 else 0.0,
        scores_per_day=sum(one.scores_per_day for one in found),
        committed_per_day=sum(one.committed_per_day for one in found),
        routes=routes,
    )
