"""Writing captured exchanges, scores from elsewhere, and counts of dropped exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from germane.annotation import RecordedScore
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.counts import tally
from germane.storage.db import mappers, tables
from germane.storage.db.commit_events import CommitEvent, record_events
from germane.storage.db.component import StoreComponent, StoreContext
from germane.storage.db.errors import ContentRefused
from germane.storage.queue import external_scores


class ExchangeStore(StoreComponent):
    """Writes what the tracer captures."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self._stamp = mappers.timestamp_encoder(context.database.dialect)

    def add(self, exchanges: Sequence[Exchange]) -> None:
        """Write exchanges. Exchanges whose id exists already are ignored, so a batch can be retried.

        Raises:
            ContentRefused: An exchange contains a value that no column accepts.
        """
        try:
            values = [mappers.exchange_values(exchange, self._stamp) for exchange in exchanges]
        except (AttributeError, TypeError, ValueError) as error:
            raise ContentRefused(
                f"an exchange contains a value of an unsupported type ({type(error).__name__})"
            ) from error
        if values:
            with self._database.write() as connection:
                mappers.bulk_insert(connection, tables.exchange, mappers.EXCHANGE_COLUMNS, values)
                record_events(connection, Counter((exchange.route, "", "stored", "") for exchange in exchanges))

    def record_scores(self, scores: Sequence[RecordedScore]) -> list[RecordedScore]:
        """Write scores from elsewhere, each replacing an earlier one of its name.

        Returns:
            The scores whose exchange is not in the database. These are not written.
        """
        with self._write_values() as connection:
            return external_scores.record_scores(connection, self._context.process, scores)

    def count_dropped(
        self,
        counts: Mapping[tuple[str, str], int],
        scorers: Iterable[str],
        reason: UnscoredReason = UnscoredReason.QUEUE_FULL,
        *,
        at: datetime | None = None,
    ) -> None:
        """Count exchanges that were captured but not stored.

        Args:
            counts: Number of exchanges by (service, route).
            scorers: Names of the scorers that count them as skipped.
            reason: Why they were dropped.
            at: The minute to count them in; by default now.
        """
        with self._database.write() as connection:
            at = at or self._context.local_time()
            tally.count_dropped(connection, self._context.process, counts, scorers, reason, at)
            dropped: Counter[CommitEvent] = Counter()
            for (_, route), count in counts.items():
                dropped[(route, "", "dropped", reason.value)] += count
            record_events(connection, dropped)

    def declare_routes(self, service: str, routes: Iterable[str]) -> None:
        """Register routes without exchanges. ``trends.coverage()`` without ``since`` lists them."""
        with self._database.write() as connection:
            tally.declare_routes(connection, service, routes)
