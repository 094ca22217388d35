"""Mean scores for answers with given attributes. They are read from rows, because rollups omit most attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime

from sqlalchemy import Connection, select

from germane.exchange import matches_attributes
from germane.statistics import Estimate, RunningSums, estimate_mean
from germane.storage.archive.reader import open_window
from germane.storage.db.tables import exchange, score
from germane.storage.trends.summaries import RouteMean, newest_fingerprints

Key = tuple[str, str, str, str]
"""Service, route, scorer and fingerprint."""
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
    groups: dict[Key, RunningSums] = {}
    latest: dict[Key, datetime] = {}
    with open_window(connection, since, until) as archive:
        sources = [connection] if archive is None else [connection, archive]
        rows = [
            row for source in sources for row in source.execute(query) if matches_attributes(row.attributes, patterns)
        ]
    for row in rows:
        key = (row.service, row.route, row.scorer, row.fingerprint)
        groups.setdefault(key, RunningSums()).add(row.value, row.label, row.sampling_probability)
        latest[key] = max(latest.get(key, row.started_at), row.started_at)
    newest = newest_fingerprints((key[:3], key[3], latest[key]) for key in groups)
    means = []
    for key, group in sorted(groups.items()):
        service, route, scorer, fingerprint = key
        estimate = estimate_mean(group.sums, scorer, fingerprint)
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
