"""The way of notifications from the database to their channels, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from germane.alert import Alert
from germane.errors import StorageError
from germane.monitor.channels import Channel, Forgetful
from germane.monitor.job import Job
from germane.monitor.lane import Desk, Lane
from germane.monitor.office import Office

logger = logging.getLogger("germane.monitor")

OVER_FOR: Final = timedelta(minutes=5)
"""How long a channel that forgets is told that an alert is over."""
TERM: Final = timedelta(seconds=2)
"""Per second between reminders: who takes over from one that is gone reminds before its alerts end by themselves."""
LAST_WORD: Final = 1.0
"""Seconds that handing back may take at the end."""

MakeJob = Callable[[str, Callable[[], Awaitable[None]]], Job]
MakeOffice = Callable[[str, timedelta], Office]


@dataclass(frozen=True, slots=True, kw_only=True)
class Makers:
    """What makes jobs, and offices by name and term."""

    job: MakeJob
    office: MakeOffice


class Delivery:
    """A lane per channel of this process: one that is slow holds up no other.

    Args:
        desk: The database's side of it.
        channels: By name.
        takes: By name, whether a channel is told of an alert.
        makers: Of jobs and offices.
    """

    def __init__(
        self,
        desk: Desk,
        channels: Mapping[str, Channel],
        takes: Mapping[str, Callable[[Alert], bool]],
        makers: Makers,
    ) -> None:
        self._desk = desk
        self._lanes = {name: Lane(name, channel, desk) for name, channel in channels.items()}
        self._jobs = {name: makers.job(f"deliver to {name}", lane.empty) for name, lane in self._lanes.items()}
        self._reminders = [
            Reminder(lane, channel, takes[name], makers.office(f"reminder {name}", TERM * channel.every))
            for name, lane in self._lanes.items()
            if isinstance(channel := lane.channel, Forgetful)
        ]
        self._tasks = [asyncio.create_task(self._work(name)) for name in self._lanes]

    @property
    def problems(self) -> dict[str, str]:
        """Per channel why it did not take its last notification, or can take none."""
        return {name: problem for name, lane in self._lanes.items() if (problem := lane.problem) is not None}

    @property
    def offices(self) -> list[Office]:
        """What this process may hold for reminders."""
        return [reminder.office for reminder in self._reminders]

    async def look(self) -> None:
        """Set about what is due, and return at once: lanes work for themselves."""
        for name in await self._desk.call(self._desk.store.due_channels, list(self._lanes)):
            self._lanes[name].wake()
        for reminder in self._reminders:
            await reminder.look()

    async def drain(self) -> None:
        """Send what is due, and wait until that is done."""
        due = await self._desk.call(self._desk.store.due_channels, list(self._lanes))
        await asyncio.gather(
            *(job.run() if name in due or self._lanes[name].at_work else job.rest() for name, job in self._jobs.items())
        )

    async def close(self) -> None:
        """Stop sending. What has not gone out by now stays in the database, for whoever comes next."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        cut_short = [lane for lane in self._lanes.values() if lane.at_work]
        for lane in self._lanes.values():
            lane.close()
        if cut_short:
            logger.warning("not sent before the end, and left for later: %s", ", ".join(one.name for one in cut_short))
            with suppress(StorageError, TimeoutError):
                async with asyncio.timeout(LAST_WORD):
                    await self._desk.call(self._desk.store.release_notifications, self._desk.owner)

    async def _work(self, name: str) -> None:
        while True:
            await self._lanes[name].woken()
            await self._jobs[name].run()


class Reminder:
    """Tells a channel that forgets, once in a while and from one process, of what fires and what is just over."""

    def __init__(self, lane: Lane, channel: Forgetful, takes: Callable[[Alert], bool], office: Office) -> None:
        self._lane = lane
        self._channel = channel
        self._takes = takes
        self.office = office
        self._next = 0.0
        """By the loop's time."""

    async def look(self) -> None:
        """Have the lane remind its channel, if it is time."""
        now = asyncio.get_running_loop().time()
        if now < self._next:
            return
        self._next = now + self._channel.every
        if await self._lane.desk.call(self.office.held):
            self._lane.remind(self._remind)

    async def _remind(self) -> None:
        desk = self._lane.desk
        alerts = await desk.call(self._alerts)
        if alerts:
            await self._channel.remind(alerts, link=desk.link)

    def _alerts(self) -> list[Alert]:
        """Return what it was told of and what lasts, and what it was told is over."""
        desk = self._lane.desk
        lasting = [one for one in desk.store.open_alerts() if one.notified_at is not None and self._takes(one)]
        posted = desk.store.notifications(channel=self._lane.name, since=desk.clock() - OVER_FOR)
        told = [alert for one in posted for alert in one.notification.alerts if not alert.is_open]
        keys = {alert.key for alert in lasting}
        return lasting + [alert for alert in told if alert.key not in keys]
