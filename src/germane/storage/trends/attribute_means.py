"""Mean scores for answers with given attributes. They are read from rows, because rollups omit most attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, select

from germane.score import GRADES, LOW_SCORE, LOWEST_BAND
from germane.storage.db.tables import exchange, score
from germane.storage.stats.estimate import Estimate, WeightedSums, estimate_mean
from germane.storage.trends.summaries import RouteMean, newest_fingerprints

Key = tuple[str, str, str, str]
"""Service, route, scorer and fingerprint."""
_FIELDS = (
    "n",
    "n_zero",
    "sum_w",
    "sum_w_zero",
    "sum_w2",
    "sum_w2_zero",
    "sum_wy",
    "sum_wy2",
    "sum_w2y",
    "sum_w2y2",
    "sum_w_low",
    "sum_w_noncommittal",
)
_OF_ESTIMATE = tuple(field.name for field in fields(Estimate))


def means_with(
    connection: Connection,
    patterns: Mapping[str, str],
    since: datetime | None,
    until: datetime | None,
    **equal: str | None,
) -> list[RouteMean]:
    """Return one mean per service, route, scorer and fingerprint, over answers whose attributes match all patterns.

    Args:
        connection: A transaction.
        patterns: Shell-style patterns by attribute name.
        since: Start of the window.
        until: End of the window.
        equal: Required values of score columns; None matches all.
    """
    names = ("service", "route", "scorer", "fingerprint", "started_at", "value", "label")
    query = select(*(score.c[name] for name in names), score.c.sampling_probability, exchange.c.attributes)
    query = query.join(exchange, exchange.c.id == score.c.exchange_id)
    query = query.where(*(score.c[name] == value for name, value in equal.items() if value is not None))
    if since is not None:
        query = query.where(score.c.started_at >= since)
    if until is not None:
        query = query.where(score.c.started_at < until)
    groups: dict[Key, dict[str, float]] = {}
    latest: dict[Key, datetime] = {}
    for row in connection.execute(query):
        if not matches_attributes(row.attributes, patterns):
            continue
        key = (row.service, row.route, row.scorer, row.fingerprint)
        w, y = 1.0 / row.sampling_probability if row.sampling_probability else 1.0, row.value
        low = row.label == LOWEST_BAND or (row.label not in GRADES and y < LOW_SCORE)
        zero = float(y == 0)
        added = (
            1, zero, w, zero * w, w * w, zero * w * w, w * y, w * y * y, w * w * y, w * w * y * y, low * w,
            (row.label == "noncommittal") * w,
        )  # fmt: skip
        sums = groups.setdefault(key, dict.fromkeys(_FIELDS, 0.0))
        for name, value in zip(_FIELDS, added, strict=True):
            sums[name] += value
        latest[key] = max(latest.get(key, row.started_at), row.started_at)
    newest = newest_fingerprints((key[:3], key[3], latest[key]) for key in groups)
    means = []
    for key, sums in sorted(groups.items()):
        counts = {name: int(sums[name]) for name in ("n", "n_zero")}
        service, route, scorer, fingerprint = key
        weighted = WeightedSums(**{**sums, **counts})  # type: ignore[arg-type]  # counts are integers
        estimate = estimate_mean(weighted, scorer, fingerprint)
        mean = RouteMean(
            service=service,
            route=route,
            scorer=scorer,
            fingerprint=fingerprint,
            newest=newest[key[:3]] == fingerprint,
            latest=latest[key],
            **{name: getattr(estimate, name) for name in _OF_ESTIMATE},
        )
        means.append(mean)
    return means


def matches_attributes(attributes: Mapping[str, Any], patterns: Mapping[str, str]) -> bool:
    """Return whether attributes match all shell-style patterns. Booleans are written as in JSON."""
    for name, pattern in patterns.items():
        value = attributes.get(name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if name not in attributes or not fnmatchcase(text, pattern):
            return False
    return True
