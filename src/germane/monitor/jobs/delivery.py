"""The way of notifications from the database to their channels, beside everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from germane.alert import Alert, Notification
from germane.alerting.channels import Channel, Forgetful, Message, NotDelivered, Quote
from germane.daemon_pool import Threads
from germane.errors import SettingsError, StorageError, place_of
from germane.monitor.loop.backoff import Backoff
from germane.monitor.loop.job import Job
from germane.monitor.loop.leader import Office
from germane.storage import Outcome, Store

logger_channel_worker = logging.getLogger("germane.monitor")

QUOTED: Final = 5
"""Exchanges of an alert that are quoted."""
RENEWALS: Final = 3
"""How often a lease is renewed within its time."""
BACKOFF: Final = Backoff(first=1.0, limit=60.0, longest_asked=3600.0)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where lanes take notifications from, and say what became of them."""

    store: Store
    owner: str
    threads: Threads
    clock: Callable[[], datetime]
    lease: timedelta
    backoff: Backoff = BACKOFF
    link: str | None = None

    async def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call the database in a thread."""
        return await self.threads.run(function, *arguments)

    async def take(self, channel: str) -> Notification | None:
        """Take what is due next, for the lease's time."""
        return await self.threads.run(lambda: self.store.take_notification(channel, self.owner, lease=self.lease))

    async def keep(self, notification: Notification) -> None:
        """Renew the lease again and again."""
        while True:
            await asyncio.sleep(self.lease.total_seconds() / RENEWALS)
            with suppress(StorageError):  # it ends, and another process tries
                await self.threads.run(
                    lambda: self.store.keep_notification(notification.id, self.owner, lease=self.lease)
                )

    async def settle(self, notification: Notification, outcome: Outcome) -> str | None:
        """Note what became of a try."""
        return await self.call(self.store.settle_notification, notification.id, self.owner, outcome)


class Lane:
    """Takes what is due for a channel, sends it, and notes what became of it."""

    def __init__(self, name: str, channel: Channel, desk: Desk) -> None:
        self.name = name
        self.channel = channel
        self.desk = desk
        self.at_work: Notification | None = None
        """What is being sent, or was, as long as the database does not know what became of it."""
        self._outcome: Outcome | None = None
        """Of that, where it is known."""
        self._failed: str | None = None
        self._failures = 0
        self._reminder: Callable[[], Awaitable[None]] | None = None
        self._wanted = asyncio.Event()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def problem(self) -> str | None:
        """Why the channel did not take its last notification, or can take none."""
        return self.channel.problem or self._failed

    def wake(self) -> None:
        """Have it set about what is due."""
        self._wanted.set()

    def remind(self, reminder: Callable[[], Awaitable[None]]) -> None:
        """Have it remind its channel before anything else."""
        self._reminder = reminder
        self.wake()

    async def woken(self) -> None:
        """Wait until there may be something to do."""
        await self._wanted.wait()
        self._wanted.clear()

    def close(self) -> None:
        """Forget what was to be tried again from here."""
        for timer in self._timers:
            timer.cancel()

    async def empty(self) -> None:
        """Send one after another until nothing is due.

        Raises:
            StorageError: the database is away.
        """
        problem = self.channel.problem
        if problem is not None:  # what cannot be sent from here is left to processes that can
            self._note(problem)
            return
        await self._remind()
        await self._settle()
        while (taken := await self.desk.take(self.name)) is not None:
            self.at_work = taken
            self._outcome = await self._send(taken)
            await self._settle()

    async def _remind(self) -> None:
        reminder, self._reminder = self._reminder, None
        if reminder is None:
            return
        try:
            await reminder()
        except (NotDelivered, SettingsError) as error:
            self._note(str(error))

    async def _settle(self) -> None:
        """Note what became of the last try; later, where the database is away: else it would be sent once more."""
        taken, outcome = self.at_work, self._outcome
        if taken is None or outcome is None:
            return
        try:
            status = await self.desk.settle(taken, outcome)
        except StorageError:
            self._wake_in(self.desk.lease / RENEWALS)
            raise
        self.at_work = self._outcome = None
        self._tell(outcome, status)

    async def _send(self, taken: Notification) -> Outcome:
        wait = self.desk.backoff.wait
        try:
            async with self._kept(taken):
                return Outcome(http_status=await self.channel.send(await self._message(taken)))
        except NotDelivered as error:
            again = wait(taken.attempt, at_least=error.asked) if error.again else None
            return Outcome(http_status=error.status, error=error.problem, again=again)
        except SettingsError as error:  # a secret went a moment ago
            return Outcome(error=str(error), again=wait(taken.attempt))
        except StorageError as error:
            return Outcome(error=type(error).__name__, again=wait(taken.attempt))
        except Exception as error:  # noqa: BLE001 - a channel may be the user's own code: nothing of it spreads
            return Outcome(error=place_of(error))

    @asynccontextmanager
    async def _kept(self, taken: Notification) -> AsyncIterator[None]:
        keeping = asyncio.create_task(self.desk.keep(taken))
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _message(self, taken: Notification) -> Message:
        if not self.channel.answers:
            return Message(notification=taken, link=self.desk.link)
        ids = sorted({one for alert in taken.alerts for one in alert.exchange_ids[:QUOTED]})
        found = await self.desk.call(self.desk.store.exchanges_of, ids)
        quotes = {id_: Quote(exchange_id=id_, question=one.question, answer=one.answer) for id_, one in found.items()}
        return Message(notification=taken, quotes=quotes, link=self.desk.link)

    def _tell(self, outcome: Outcome, status: str | None) -> None:
        """Say in the log when it begins to fail, when it works again, and what is given up."""
        if outcome.error is None:
            self._went_well()
            return
        self._note(outcome.error)
        self._failures += 1
        if status == "dead":
            logger_channel_worker.warning("a notification by %s is given up: %s", self.name, outcome.error)
        elif outcome.again is not None:
            self._wake_in(outcome.again)

    def _wake_in(self, wait: timedelta) -> None:
        def awake() -> None:
            self._timers.discard(timer)
            self.wake()

        timer = asyncio.get_running_loop().call_later(wait.total_seconds(), awake)
        self._timers.add(timer)

    def _went_well(self) -> None:
        if self._failed is not None:
            failed = f"; {self._failures} tries failed" if self._failures else ""
            logger_channel_worker.warning("alerts go out by %s again%s", self.name, failed)
        self._failed, self._failures = None, 0

    def _note(self, problem: str) -> None:
        if self._failed is None:
            logger_channel_worker.warning("an alert did not go out by %s, and others may not: %s", self.name, problem)
        self._failed = problem


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
