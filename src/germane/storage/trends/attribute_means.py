"""Sums over the scores of answers with given attributes, from rows, because rollups omit most attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import Connection, select

from germane.exchange import matches_attributes
from germane.statistics import RunningSums
from germane.storage.archive.reader import open_window
from germane.storage.db.conditions import matching, within
from germane.storage.db.tables import exchange, score
from germane.storage.trends.query import Group

Key = tuple[str, str, str, str]
"""Service, route, scorer and fingerprint."""


def sum_scores(
    connection: Connection,
    patterns: Mapping[str, str],
    since: datetime | None,
    until: datetime | None,
    **equal: str | None,
) -> dict[Key, Group]:
    """Return sums over the scores of answers whose attributes match all patterns.

    The patterns are shell-style, by attribute name. ``equal`` has required values of score columns; None matches all.
    """
    names = ("service", "route", "scorer", "fingerprint", "started_at", "value", "label")
    query = select(*(score.c[name] for name in names), score.c.sampling_probability, exchange.c.attributes)
    query = query.join(exchange, exchange.c.id == score.c.exchange_id)
    query = query.where(*within(score.c.started_at, since, until), *matching(score, **equal))
    sums: dict[Key, RunningSums] = {}
    latest: dict[Key, datetime] = {}
    with open_window(connection, since, until) as archive:
        for source in (connection,) if archive is None else (connection, archive):
            for row in source.execute(query):
                if matches_attributes(row.attributes, patterns):
                    key = (row.service, row.route, row.scorer, row.fingerprint)
                    sums.setdefault(key, RunningSums()).add(row.value, row.label, row.sampling_probability)
                    latest[key] = max(latest.get(key, row.started_at), row.started_at)
    return {key: Group(asdict(group.sums), latest[key]) for key, group in sums.items()}
