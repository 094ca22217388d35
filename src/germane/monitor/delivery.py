"""The way of alerts to their channels, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from germane.monitor.alerts import Alert
from germane.monitor.channels import Channel
from germane.monitor.job import describe

logger = logging.getLogger("germane.monitor")

CAPACITY: Final = 1_000
"""Alerts that wait for one channel."""


class Delivery:
    """A queue and a task per channel: alerts keep their order there, and a slow channel holds up no other."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.problems: dict[str, str] = {}
        """Per channel why it did not take its last alert."""
        self._queues = [(channel, asyncio.Queue[Alert](CAPACITY)) for channel in channels]
        self._tasks = [asyncio.create_task(self._work(channel, queue)) for channel, queue in self._queues]

    def send(self, alert: Alert) -> None:
        """Queue an alert for every channel; returns at once."""
        for channel, queue in self._queues:
            if queue.full():
                self._note(channel, f"{CAPACITY} alerts wait for it")
            else:
                queue.put_nowait(alert)

    async def drain(self) -> None:
        """Wait until every channel has taken, or finally refused, what was queued."""
        await asyncio.gather(*(queue.join() for _, queue in self._queues))

    async def close(self) -> None:
        """Stop sending; what is still queued is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, channel: Channel, queue: asyncio.Queue[Alert]) -> None:
        while True:
            alert = await queue.get()
            await self._deliver(channel, alert)
            queue.task_done()

    async def _deliver(self, channel: Channel, alert: Alert) -> None:
        try:
            await channel.send(alert)
        except Exception as error:  # noqa: BLE001 - a channel may be the user's own code: nothing of it spreads
            self._note(channel, describe(error))
        else:
            self.problems.pop(repr(channel), None)

    def _note(self, channel: Channel, problem: str) -> None:
        self.problems[repr(channel)] = problem
        logger.warning("an alert did not go out by %r: %s", channel, problem)
