"""What a database says of itself at one moment, for gauges: the trends of three windows, the queue, the alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.settings import Settings
    from germane.storage import Backlog, BaselineVersion, Overall, Spent, Store

WINDOWS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
"""All end with the same whole minute: exchanges are counted by the minute, and counts and scores are of one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All that gauges show."""

    windows: Mapping[str, Overall]
    """By name, the shortest first."""
    backlog: Backlog
    spent: Spent
    """Of the day (UTC)."""
    shares: Mapping[str, float]
    """Of the day's budget, by limit; empty without one."""
    alerts: tuple[Alert, ...]
    """Open ones, the oldest first."""
    baselines: tuple[BaselineVersion, ...]
    """Those in force for whole services."""


def look(store: Store, settings: Settings, now: datetime) -> Readings:
    """Read everything once.

    Raises:
        StorageError: the database is away, or its tables are older or newer.
    """
    from germane.storage import shares

    spent, until = store.spent(), now.replace(second=0, microsecond=0)
    return Readings(
        windows={name: store.overall(since=until - span, until=until) for name, span in WINDOWS.items()},
        backlog=store.backlog(lately=timedelta(seconds=settings.lease)),
        spent=spent,
        shares={} if settings.budget is None else shares(spent.expense, settings.budget),
        alerts=tuple(store.open_alerts()),
        baselines=tuple(one for one in store.baselines() if one.status == "active" and not one.key.scope),
    )
