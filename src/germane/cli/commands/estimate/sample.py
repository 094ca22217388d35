"""Traffic and sample exchanges on which a cost estimate is based."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from germane.cli.commands.estimate.forecast import TYPICAL_EXCHANGE
from germane.errors import DatabaseNotMigrated, StorageError
from germane.exchange import Exchange
from germane.settings import Settings

if TYPE_CHECKING:
    from germane.storage import ScorerUsage, TrackingStore

SAMPLE_SIZE: Final = 50
SAMPLED_FROM: Final = 10_000
"""The sample is drawn from about this many of the newest exchanges. Sampling millions would take too long."""
USAGE_WINDOW: Final = timedelta(days=7)
MIN_WINDOW: Final = timedelta(hours=1)
"""Shorter histories count as an hour."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateBasis:
    """What an estimate is based on."""

    exchanges_per_day: float
    traffic_source: str
    """Where that number comes from, as text."""
    sample: Sequence[Exchange]
    sample_source: Literal["store", "file", "typical"]
    usages: Mapping[str, ScorerUsage] = field(default_factory=dict)
    """Judge usage of earlier scores, by scorer."""

    @property
    def sample_description(self) -> str:
        """The sample, as text."""
        if self.sample_source == "typical":
            return "one built-in typical exchange, which may be shorter or longer than yours"
        source = "stored exchanges" if self.sample_source == "store" else "exchanges from the file"
        return f"a sample of {len(self.sample)} {source}"


def load_basis(
    settings: Settings, *, per_day: float | None, file: Path | None, columns: Mapping[str, str] | None
) -> EstimateBasis | None:
    """Load the basis from a file if given, otherwise from the database; None if there are no exchanges.

    Raises:
        UsageError: The file cannot be read.
        StorageError: The database cannot be read, and ``per_day`` is not given.
    """
    typical = None
    if per_day is not None:
        typical = EstimateBasis(
            exchanges_per_day=per_day, traffic_source="as given", sample=[TYPICAL_EXCHANGE], sample_source="typical"
        )
    if file is not None:
        from germane.evaluation import read_rows

        exchanges = [row.exchange for row in read_rows(file, columns)]
        if not exchanges:
            return typical
        return EstimateBasis(
            exchanges_per_day=len(exchanges) if per_day is None else per_day,
            traffic_source="the file once per day" if per_day is None else "as given",
            sample=exchanges[:: -(-len(exchanges) // SAMPLE_SIZE)],
            sample_source="file",
        )
    from germane.storage import TrackingStore

    store = TrackingStore(settings.database)
    try:
        store.check()
        return _load_from_store(store, per_day) or typical
    except StorageError as error:
        if per_day is None and not isinstance(error, DatabaseNotMigrated):
            raise
        return typical
    finally:
        store.close()


def _load_from_store(store: TrackingStore, per_day: float | None) -> EstimateBasis | None:
    from germane.scorers import BUILTIN_SCORER_NAMES

    now = datetime.now(UTC)
    traffic = store.quota.load_traffic(since=now - _DAY)
    if traffic.first is None:
        return None
    has_older = bool(store.answers.list_exchanges(until=now - _DAY, limit=1))
    window = _DAY if has_older else max(now - traffic.first, MIN_WINDOW)
    newest = window * min(1.0, SAMPLED_FROM / traffic.exchanges)
    sample = store.answers.sample_exchanges(since=now - newest, limit=SAMPLE_SIZE)
    sample = sample or store.answers.sample_exchanges(since=now - _DAY, limit=SAMPLE_SIZE)
    usages = store.quota.judge_usage(since=now - USAGE_WINDOW)
    source = "as in the last 24 hours"
    if window != _DAY:
        hours = round(window / timedelta(hours=1))
        span = "the last hour" if hours == 1 else f"the last {hours} hours, since the first exchange"
        source = f"at the rate of {span}"
    return EstimateBasis(
        exchanges_per_day=traffic.exchanges * (_DAY / window) if per_day is None else per_day,
        traffic_source=source if per_day is None else "as given",
        sample=sample or [TYPICAL_EXCHANGE],  # all texts may have been erased
        sample_source="store" if sample else "typical",
        usages={usage.scorer: usage for usage in usages if usage.scorer in BUILTIN_SCORER_NAMES},
    )
