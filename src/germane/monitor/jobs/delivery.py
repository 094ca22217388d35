"""Delivery to channels and sinks, with one worker for each, and reminders for channels that require them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from germane.alert import Alert
from germane.alerting import Channel, ChannelMessage, ExchangeQuote, MessageFormat, ResendingChannel, was_notified
from germane.delivery import Backoff, DeliveryContext, DeliveryError, DeliveryWorker, Sent, Target
from germane.errors import SettingsError, StorageError
from germane.monitor.loop.job import Job
from germane.monitor.loop.leases import LeaderLease
from germane.storage import Delivery, channel_queue, parse_notification

MAX_EXCHANGES_QUOTED: Final = 5
"""The maximum number of exchanges that a message quotes per alert."""
DELIVERY_BACKOFF: Final = Backoff(initial=1.0, maximum=60.0, max_retry_after=3600.0)
RESOLVED_REMINDER_PERIOD: Final = timedelta(minutes=5)
"""The time for which reminders still include an alert after it has resolved."""
REMINDER_LEASE_FACTOR: Final = timedelta(seconds=2)
"""The TTL of the reminder lease, as a multiple of the reminder interval.

If the holder stops, another process takes over and sends the next reminder before the alerts expire at the receiver.
"""
RELEASE_TIMEOUT: Final = 1.0
"""Maximum time for releasing notifications during shutdown, in seconds."""

NewJob = Callable[[str, Callable[[], Awaitable[None]]], Job]
NewLease = Callable[[str, timedelta], LeaderLease]

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationContext(DeliveryContext):
    """The store and the options of notification delivery."""

    clock: Callable[[], datetime]
    backoff: Backoff = DELIVERY_BACKOFF
    formats: Mapping[str, MessageFormat] = field(default_factory=dict)
    """Message formats by channel name."""

    def format_for(self, channel: str) -> MessageFormat:
        """Return the message format of a channel."""
        return self.formats.get(channel, MessageFormat())


class ChannelTarget(Target):
    """A channel as a target of deliveries."""

    def __init__(self, name: str, channel: Channel, context: NotificationContext) -> None:
        super().__init__(channel_queue(name), label=f"channel {name}", noun="an alert")
        self._channel = channel
        self._context = context

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot send messages to the channel."""
        return self._channel.config_error

    async def send(self, items: Sequence[Delivery]) -> Sent:
        """Send a notification, with quotes if the channel includes text."""
        (item,) = items
        notification, context = parse_notification(self.queue.target, item), self._context
        quotes = {}
        if self._channel.include_text:
            ids = sorted({id_ for alert in notification.alerts for id_ in alert.exchange_ids[:MAX_EXCHANGES_QUOTED]})
            exchanges = await context.threads.run(context.store.answers.get_exchanges, ids)
            quotes = {
                id_: ExchangeQuote(exchange_id=id_, question=exchange.question, answer=exchange.answer)
                for id_, exchange in exchanges.items()
            }
        message_format = context.format_for(self.queue.target)
        message = ChannelMessage(notification=notification, quotes=quotes, format=message_format)
        return Sent(await self._channel.send(message))


class Dispatcher:
    """Runs one worker for each of this process's targets, so that a slow target does not delay the others.

    Args:
        context: The store and the options of the workers.
        targets: The targets by name.
        new_job: Creates a job.
        job_name: Prefix of the names of jobs.
    """

    def __init__(
        self, context: DeliveryContext, targets: Mapping[str, Target], *, new_job: NewJob, job_name: str
    ) -> None:
        self._context = context
        self._workers = {name: DeliveryWorker(target, context) for name, target in targets.items()}
        self._jobs = {name: new_job(f"{job_name} {name}", partial(self._deliver, name)) for name in targets}
        self._tasks = [
            asyncio.create_task(job.run_whenever(self._workers[name].wait_for_work)) for name, job in self._jobs.items()
        ]

    @property
    def problems(self) -> dict[str, str]:
        """Problems by target name, for the targets that do not work."""
        return {name: problem for name, worker in self._workers.items() if (problem := worker.problem) is not None}

    async def wake_due(self) -> None:
        """Wake the workers of targets that have due items. Does not wait for the workers."""
        for name in await self._due_targets():
            self._workers[name].wake()

    async def drain(self) -> None:
        """Send due items, and wait until they have been sent."""
        due = await self._due_targets()
        await asyncio.gather(
            *(
                job.run() if name in due or self._workers[name].in_progress else job.wait_until_idle()
                for name, job in self._jobs.items()
            )
        )

    async def close(self) -> None:
        """Stop sending. Unsent items stay in the database, where another process can claim them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        interrupted = [worker.target.label for worker in self._workers.values() if worker.in_progress]
        if interrupted:
            logger.warning("stopped before everything had been sent to %s", ", ".join(interrupted))
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                for worker in self._workers.values():
                    await worker.release()

    async def _due_targets(self) -> set[str]:
        if not self._workers:
            return set()
        queues = [worker.target.queue for worker in self._workers.values()]
        return await self._context.threads.run(self._context.store.outbox.list_due, queues)

    async def _deliver(self, name: str) -> None:
        await self._workers[name].deliver_due()


class NotificationDispatcher(Dispatcher):
    """Sends notifications and reminders to channels.

    ``accepts`` has a filter by channel name, which selects the alerts that the channel is notified of.
    """

    def __init__(
        self,
        context: NotificationContext,
        channels: Mapping[str, Channel],
        accepts: Mapping[str, Callable[[Alert], bool]],
        *,
        new_job: NewJob,
        new_lease: NewLease,
    ) -> None:
        targets = {name: ChannelTarget(name, channel, context) for name, channel in channels.items()}
        super().__init__(context, targets, new_job=new_job, job_name="deliver to")
        self._reminders = {
            name: AlertReminder(
                worker=self._workers[name],
                channel=channel,
                accepts=accepts[name],
                lease=new_lease(f"reminder {name}", REMINDER_LEASE_FACTOR * channel.resend_interval),
                context=context,
            )
            for name, channel in channels.items()
            if isinstance(channel, ResendingChannel)
        }

    @property
    def leases(self) -> list[LeaderLease]:
        """The reminder leases that this process may hold."""
        return [reminder.lease for reminder in self._reminders.values()]

    async def wake_due(self) -> None:
        """Wake the workers of channels that have due notifications or reminders. Does not wait for the workers."""
        await super().wake_due()
        for name, reminder in self._reminders.items():
            if reminder.is_due:
                self._workers[name].wake()

    async def _deliver(self, name: str) -> None:
        """Send a reminder to a channel, if one is due, and then its notifications."""
        if name in self._reminders:
            await self._reminders[name].send_if_due()
        await super()._deliver(name)


@dataclass(slots=True, kw_only=True)
class AlertReminder:
    """Resends open and recently resolved alerts to a channel that requires reminders, from one process at a time."""

    worker: DeliveryWorker
    channel: ResendingChannel
    accepts: Callable[[Alert], bool]
    lease: LeaderLease
    context: NotificationContext
    next_reminder: float = 0.0
    """The time of the next reminder, on the event loop's clock."""

    @property
    def is_due(self) -> bool:
        """Whether this process may send a reminder now."""
        return self.worker.target.config_error is None and asyncio.get_running_loop().time() >= self.next_reminder

    async def send_if_due(self) -> None:
        """Send a reminder if one is due and this process holds the lease. A failure is a problem of the channel."""
        if not self.is_due:
            return
        self.next_reminder = asyncio.get_running_loop().time() + self.channel.resend_interval
        if not await self.context.threads.run(self.lease.acquire):
            return
        name = self.worker.target.queue.target
        alerts = await self.context.threads.run(self._load_alerts, name)
        try:
            if alerts:
                await self.channel.resend(alerts, format=self.context.format_for(name))
        except (DeliveryError, SettingsError) as error:
            self.worker.record_failure(str(error))

    def _load_alerts(self, name: str) -> list[Alert]:
        """Return the alerts that the channel was notified of and that are open or were resolved recently."""
        store = self.context.store
        open_alerts = [
            alert
            for alert in store.alerts.list_open()
            if alert.notified_at is not None and self.accepts(alert) and was_notified(alert, name)
        ]
        since = self.context.clock() - RESOLVED_REMINDER_PERIOD
        deliveries = store.notifications.search(channel=name, since=since)
        open_keys = {alert.key for alert in open_alerts}
        resolved = [
            alert
            for delivery in deliveries
            for alert in delivery.notification.alerts
            if not alert.is_open and alert.key not in open_keys
        ]
        return open_alerts + resolved
