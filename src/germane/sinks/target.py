"""A sink as a target of deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryError, Sent, Target
from germane.sinks.sink import MissingSpanError, Sink
from germane.storage import Delivery, SinkItem, TrackingStore, sink_queue

SINK_BACKOFF: Final = Backoff(initial=1.0, maximum=300.0, max_retry_after=3600.0)


class SinkTarget(Target):
    """Writes the scores and labels that exchanges have at the time of sending."""

    def __init__(self, sink: Sink, store: TrackingStore, threads: DaemonThreadPool) -> None:
        super().__init__(
            sink_queue(sink.name, batch_size=sink.batch_size), label=f"sink {sink.name}", noun="scores of an exchange"
        )
        self._sink, self._store, self._threads = sink, store, threads
        self._limits: dict[int, int] = {}
        """How many items are sent together, by the id of an item with which a larger request failed."""
        self._works = False
        """Whether the last request succeeded, apart from those with a single item that had failed before."""

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot write to the sink."""
        return self._sink.config_error

    def group(self, items: Sequence[Delivery]) -> Sequence[Sequence[Delivery]]:
        """Send items together, but fewer of those with which a request failed, because one of them may be at fault."""
        limits = [self._limits.get(item.id, len(items)) for item in items]
        groups: list[Sequence[Delivery]] = []
        for limit in sorted({*limits}, reverse=True):
            equal = [item for item, own in zip(items, limits, strict=True) if own == limit]
            groups += (equal[start : start + limit] for start in range(0, len(equal), limit))
        return groups

    async def send(self, items: Sequence[Delivery]) -> Sent:
        """Write exchanges, and return an error for each that was not written."""
        ids = {item.id: item.exchange_id or "" for item in items}
        exchanges = await self._threads.run(self._store.sinks.load, list(ids.values()))
        errors: dict[str, DeliveryError] = {
            id_: MissingSpanError("the exchange is not in the database") for id_ in ids.values() if id_ not in exchanges
        }
        if written := [item for item in exchanges.values() if item is not None]:
            errors |= await self._write_together(list(ids), written)
        return Sent(errors={item_id: errors[id_] for item_id, id_ in ids.items() if id_ in errors})

    async def _write_together(self, ids: Sequence[int], items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write items. If the backend fails, fewer of them are sent together from then on."""
        limits = [self._limits.pop(id_, 0) for id_ in ids]
        try:
            errors = await self._write(items)
        except DeliveryError as error:
            if error.status not in range(300, 500):  # not a rejected key, for example
                self._limits |= dict.fromkeys(ids, max(1, len(ids) // 2))
            if limits == [1] and self._works:
                return {items[0].exchange_id: error}
            self._works = False
            raise
        self._works = True
        return errors

    async def _write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write items. Halve them if they are refused together, until the one at fault is alone."""
        try:
            return await self._sink.write(items)
        except DeliveryError as error:
            if error.retryable:
                raise
            if len(items) == 1:
                return {items[0].exchange_id: error}
        half = len(items) // 2
        return {**await self._write(items[:half]), **await self._write(items[half:])}
