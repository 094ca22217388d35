"""Notification delivery.

One worker per channel claims notifications from the database, sends them and retries failures.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from germane.alert import Alert, Notification
from germane.alerting import (
    Channel,
    ChannelMessage,
    DeliveryError,
    ExchangeQuote,
    MessageFormat,
    ResendingChannel,
    was_notified,
)
from germane.daemon_pool import DaemonThreadPool
from germane.errors import SettingsError, StorageError, error_location
from germane.monitor.loop.backoff import Backoff
from germane.monitor.loop.job import Job
from germane.monitor.loop.leases import LeaderLease
from germane.storage import DeliveryOutcome, TrackingStore

MAX_EXCHANGES_QUOTED: Final = 5
"""The maximum number of exchanges that a message quotes per alert."""
RENEWALS_PER_LEASE: Final = 3
"""The number of renewals of a notification's lease per lease duration."""
DELIVERY_BACKOFF: Final = Backoff(initial=1.0, maximum=60.0, max_retry_after=3600.0)
RESOLVED_REMINDER_PERIOD: Final = timedelta(minutes=5)
"""The time for which reminders still include an alert after it has resolved."""
REMINDER_LEASE_FACTOR: Final = timedelta(seconds=2)
"""The TTL of the reminder lease, as a multiple of the reminder interval.

If the holder stops, another process takes over and sends the next reminder before the alerts expire at the receiver.
"""
RELEASE_TIMEOUT: Final = 1.0
"""Maximum time for releasing notifications during shutdown, in seconds."""

Result = TypeVar("Result")
NewJob = Callable[[str, Callable[[], Awaitable[None]]], Job]
NewLease = Callable[[str, timedelta], LeaderLease]

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext:
    """The store and the options that all channel workers share."""

    store: TrackingStore
    owner: str
    threads: DaemonThreadPool
    clock: Callable[[], datetime]
    lease: timedelta
    backoff: Backoff = DELIVERY_BACKOFF
    formats: Mapping[str, MessageFormat] = field(default_factory=dict)
    """Message formats by channel name."""

    def format_for(self, channel: str) -> MessageFormat:
        """Return the message format of a channel."""
        return self.formats.get(channel, MessageFormat())

    async def run_in_thread(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call a store method in a thread, and return its result."""
        return await self.threads.run(function, *arguments)

    async def claim_notification(self, channel: str) -> Notification | None:
        """Claim the next due notification for the duration of the lease, and return it, or None if none is due."""
        return await self.threads.run(lambda: self.store.notifications.claim(channel, self.owner, lease=self.lease))

    async def keep_lease(self, notification: Notification) -> None:
        """Renew a notification's lease until canceled."""
        while True:
            await asyncio.sleep(self.lease.total_seconds() / RENEWALS_PER_LEASE)
            with suppress(StorageError):  # the lease expires, and another process retries
                await self.threads.run(
                    lambda: self.store.notifications.renew_lease(notification.id, self.owner, lease=self.lease)
                )

    async def record_outcome(self, notification: Notification, outcome: DeliveryOutcome) -> str | None:
        """Record the outcome of a delivery attempt, and return the notification's new status."""
        return await self.run_in_thread(self.store.notifications.record_attempt, notification.id, self.owner, outcome)


class ChannelWorker:
    """Claims the due notifications for one channel, sends them, and records the outcomes."""

    def __init__(self, name: str, channel: Channel, context: DeliveryContext) -> None:
        self.name = name
        self.channel = channel
        self.context = context
        self.in_progress: Notification | None = None
        """The notification that is being sent, or whose outcome has not been recorded yet."""
        self._outcome: DeliveryOutcome | None = None
        """The outcome of ``in_progress``, once it is known."""
        self._error: str | None = None
        self._failed_attempts = 0
        self._reminder: Callable[[], Awaitable[None]] | None = None
        self._wake_up = asyncio.Event()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def problem(self) -> str | None:
        """The reason why this process cannot use the channel, or the error from its last attempt; None if the channel
        works.
        """
        return self.channel.config_error or self._error

    def wake(self) -> None:
        """Make :meth:`wait_for_work` return."""
        self._wake_up.set()

    def schedule_reminder(self, reminder: Callable[[], Awaitable[None]]) -> None:
        """Schedule a reminder to be sent before the next notification."""
        self._reminder = reminder
        self.wake()

    async def wait_for_work(self) -> None:
        """Wait until a notification or reminder may be due."""
        await self._wake_up.wait()
        self._wake_up.clear()

    def cancel_retries(self) -> None:
        """Cancel the retries that this process has scheduled."""
        for timer in self._timers:
            timer.cancel()

    async def deliver_due(self) -> None:
        """Send due notifications, one at a time, until there are none left.

        Raises:
            StorageError: The database is unreachable.
        """
        if self.channel.config_error is not None:  # other processes may be able to send
            self._log_failure(self.channel.config_error)
            return
        reminder, self._reminder = self._reminder, None
        if reminder is not None:
            try:
                await reminder()
            except (DeliveryError, SettingsError) as error:
                self._log_failure(str(error))
        await self._record_outcome()
        while (notification := await self.context.claim_notification(self.name)) is not None:
            self.in_progress = notification
            renewal = asyncio.create_task(self.context.keep_lease(notification))
            try:
                self._outcome = await self._send(notification)
            finally:
                renewal.cancel()
                await asyncio.gather(renewal, return_exceptions=True)
            await self._record_outcome()

    async def _send(self, notification: Notification) -> DeliveryOutcome:
        retry_delay = self.context.backoff.delay
        try:
            quotes = {}
            if self.channel.include_text:
                ids = sorted(
                    {id_ for alert in notification.alerts for id_ in alert.exchange_ids[:MAX_EXCHANGES_QUOTED]}
                )
                exchanges = await self.context.run_in_thread(self.context.store.answers.get_exchanges, ids)
                quotes = {
                    id_: ExchangeQuote(exchange_id=id_, question=exchange.question, answer=exchange.answer)
                    for id_, exchange in exchanges.items()
                }
            message = ChannelMessage(
                notification=notification, quotes=quotes, format=self.context.format_for(self.name)
            )
            return DeliveryOutcome(http_status=await self.channel.send(message))
        except DeliveryError as error:
            delay = retry_delay(notification.attempt, retry_after=error.retry_after) if error.retryable else None
            return DeliveryOutcome(http_status=error.status, error=error.problem, retry_after=delay)
        except SettingsError as error:  # a secret has been removed since the check
            return DeliveryOutcome(error=str(error), retry_after=retry_delay(notification.attempt))
        except StorageError as error:
            return DeliveryOutcome(error=type(error).__name__, retry_after=retry_delay(notification.attempt))
        except Exception as error:  # noqa: BLE001 - a channel may be user code, so any exception is possible
            return DeliveryOutcome(error=error_location(error))

    async def _record_outcome(self) -> None:
        """Record the outcome of the last attempt.

        If recording fails, it is repeated later, so the message is not sent twice.
        """
        notification, outcome = self.in_progress, self._outcome
        if notification is None or outcome is None:
            return
        try:
            status = await self.context.record_outcome(notification, outcome)
        except StorageError:
            self._wake_after(self.context.lease / RENEWALS_PER_LEASE)
            raise
        self.in_progress = self._outcome = None
        if outcome.error is None:
            if self._error is not None:
                failed = f" after {self._failed_attempts} failed attempts" if self._failed_attempts else ""
                logger.warning("channel %s has recovered%s", self.name, failed)
            self._error, self._failed_attempts = None, 0
            return
        self._log_failure(outcome.error)
        self._failed_attempts += 1
        if status == "undelivered":
            logger.warning("channel %s gave up on a notification: %s", self.name, outcome.error)
        elif outcome.retry_after is not None:
            self._wake_after(outcome.retry_after)

    def _log_failure(self, error: str) -> None:
        """Log the first failure after a success. Further failures are only counted."""
        if self._error is None:
            logger.warning(
                "channel %s failed to deliver an alert: %s; further failures are not logged until a delivery succeeds",
                self.name,
                error,
            )
        self._error = error

    def _wake_after(self, delay: timedelta) -> None:
        def wake() -> None:
            self._timers.discard(timer)
            self.wake()

        timer = asyncio.get_running_loop().call_later(delay.total_seconds(), wake)
        self._timers.add(timer)


class NotificationDispatcher:
    """Runs one worker for each of this process's channels, so that a slow channel does not delay the others.

    Args:
        context: The store and options that all workers share.
        channels: The channels, by name.
        accepts: Filters by channel name. Each selects the alerts that its channel is notified of.
        new_job: Creates a worker's job from a name and a function to run.
        new_lease: Creates a lease for reminders from a name and a TTL.
    """

    def __init__(
        self,
        context: DeliveryContext,
        channels: Mapping[str, Channel],
        accepts: Mapping[str, Callable[[Alert], bool]],
        *,
        new_job: NewJob,
        new_lease: NewLease,
    ) -> None:
        self._context = context
        self._workers = {name: ChannelWorker(name, channel, context) for name, channel in channels.items()}
        self._jobs = {name: new_job(f"deliver to {name}", worker.deliver_due) for name, worker in self._workers.items()}
        self._reminders = [
            AlertReminder(
                worker,
                channel,
                accepts[name],
                new_lease(f"reminder {name}", REMINDER_LEASE_FACTOR * channel.resend_interval),
            )
            for name, worker in self._workers.items()
            if isinstance(channel := worker.channel, ResendingChannel)
        ]
        self._tasks = [
            asyncio.create_task(job.run_whenever(self._workers[name].wait_for_work)) for name, job in self._jobs.items()
        ]

    @property
    def problems(self) -> dict[str, str]:
        """Problems by channel name, for the channels that do not work."""
        return {name: problem for name, worker in self._workers.items() if (problem := worker.problem) is not None}

    @property
    def leases(self) -> list[LeaderLease]:
        """The reminder leases that this process may hold."""
        return [reminder.lease for reminder in self._reminders]

    async def wake_due_channels(self) -> None:
        """Wake the workers of channels that have due notifications or reminders. Does not wait for the workers."""
        for name in await self._due_channels():
            self._workers[name].wake()
        for reminder in self._reminders:
            await reminder.schedule_if_due()

    async def drain(self) -> None:
        """Send due notifications, and wait until they have been sent."""
        due = await self._due_channels()
        await asyncio.gather(
            *(
                job.run() if name in due or self._workers[name].in_progress else job.wait_until_idle()
                for name, job in self._jobs.items()
            )
        )

    async def close(self) -> None:
        """Stop sending. Unsent notifications stay in the database, where another process can claim them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            worker.cancel_retries()
        interrupted = [worker.name for worker in self._workers.values() if worker.in_progress]
        if interrupted:
            logger.warning("stopped before these channels had sent all notifications: %s", ", ".join(interrupted))
            with suppress(StorageError, TimeoutError):
                async with asyncio.timeout(RELEASE_TIMEOUT):
                    await self._context.run_in_thread(self._context.store.notifications.release, self._context.owner)

    async def _due_channels(self) -> set[str]:
        return await self._context.run_in_thread(self._context.store.notifications.due_channels, list(self._workers))


class AlertReminder:
    """Resends open and recently resolved alerts to a channel that requires reminders, from one process at a time."""

    def __init__(
        self, worker: ChannelWorker, channel: ResendingChannel, accepts: Callable[[Alert], bool], lease: LeaderLease
    ) -> None:
        self.lease = lease
        self._worker = worker
        self._context = worker.context
        self._channel = channel
        self._accepts = accepts
        self._next_reminder = 0.0
        """The time of the next reminder, on the event loop's clock."""

    async def schedule_if_due(self) -> None:
        """Schedule a reminder with the worker if one is due and this process holds the lease."""
        now = asyncio.get_running_loop().time()
        if now < self._next_reminder:
            return
        self._next_reminder = now + self._channel.resend_interval
        if await self._context.run_in_thread(self.lease.acquire):
            self._worker.schedule_reminder(self._send_reminder)

    async def _send_reminder(self) -> None:
        def load_alerts() -> list[Alert]:
            """Return the alerts that the channel was notified of and that are open or were resolved recently."""
            store = self._context.store
            open_alerts = [
                alert
                for alert in store.alerts.list_open()
                if alert.notified_at is not None and self._accepts(alert) and was_notified(alert, self._worker.name)
            ]
            since = self._context.clock() - RESOLVED_REMINDER_PERIOD
            deliveries = store.notifications.search(channel=self._worker.name, since=since)
            open_keys = {alert.key for alert in open_alerts}
            resolved = [
                alert
                for delivery in deliveries
                for alert in delivery.notification.alerts
                if not alert.is_open and alert.key not in open_keys
            ]
            return open_alerts + resolved

        alerts = await self._context.run_in_thread(load_alerts)
        if alerts:
            await self._channel.resend(alerts, format=self._context.format_for(self._worker.name))
