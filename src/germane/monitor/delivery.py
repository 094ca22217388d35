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
        self._lanes = [Lane(channel) for channel in channels]
        self._tasks = [asyncio.create_task(lane.work()) for lane in self._lanes]

    @property
    def problems(self) -> dict[str, str]:
        """Per channel why it did not take its last alert."""
        return {repr(lane.channel): lane.problem for lane in self._lanes if lane.problem is not None}

    def send(self, alert: Alert) -> None:
        """Queue an alert for every channel; returns at once."""
        for lane in self._lanes:
            lane.put(alert)

    async def drain(self) -> None:
        """Wait until every channel has taken, or finally refused, what was queued."""
        await asyncio.gather(*(lane.queue.join() for lane in self._lanes))

    async def close(self) -> None:
        """Stop sending; what has not gone out by now does not."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self._lanes:
            lane.tell_unsent()


class Lane:
    """The alerts on their way to one channel."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.queue = asyncio.Queue[Alert](CAPACITY)
        self.problem: str | None = None
        self._unsent = self._failures = 0

    def put(self, alert: Alert) -> None:
        """Queue an alert, unless too many wait."""
        if self.queue.full():
            self._failed(f"{CAPACITY} alerts wait for it")
            return
        self.queue.put_nowait(alert)
        self._unsent += 1

    async def work(self) -> None:
        """Deliver one alert after another, for ever."""
        while True:
            await self._deliver(await self.queue.get())
            self._unsent -= 1
            self.queue.task_done()

    def tell_unsent(self) -> None:
        """Say in the log how many alerts nobody will hear of."""
        if self._unsent:
            logger.warning("%d alert(s) did not go out by %r before the end", self._unsent, self.channel)

    async def _deliver(self, alert: Alert) -> None:
        try:
            await self.channel.send(alert)
        except Exception as error:  # noqa: BLE001 - a channel may be the user's own code: nothing of it spreads
            self._failed(describe(error))
        else:
            self._went_well()

    def _went_well(self) -> None:
        if self.problem is not None:
            logger.warning("alerts go out by %r again; %d did not", self.channel, self._failures)
        self.problem, self._failures = None, 0

    def _failed(self, problem: str) -> None:
        if self.problem is None:
            logger.warning("an alert did not go out by %r, and others may not: %s", self.channel, problem)
        self.problem = problem
        self._failures += 1
