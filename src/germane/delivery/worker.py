"""The worker that delivers the items of one target."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.delivery.backoff import Backoff
from germane.delivery.target import DeliveryError, Target
from germane.errors import SettingsError, StorageError, error_location
from germane.storage import Delivery, DeliveryOutcome, LeaseRenewal, TrackingStore

RECORD_RETRY: Final = 3
"""The number of times per lease that a failed recording of an outcome is repeated."""
FAILURE: Final = "%s failed to deliver %s: %s; further failures are not logged until a delivery succeeds"

logger = logging.getLogger("germane.delivery")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext:
    """The store and the options that the workers of a process share."""

    store: TrackingStore
    owner: str
    threads: DaemonThreadPool
    lease: timedelta
    backoff: Backoff
    stopping: Callable[[], bool] = lambda: False
    """Whether to send no more items."""


class DeliveryWorker:
    """Claims the due items of a target, sends them in order, and records the outcomes.

    Any number of processes can work for the same target. A worker that waits for its target delays no other worker.
    """

    def __init__(self, target: Target, context: DeliveryContext) -> None:
        self.target = target
        self.in_progress: list[Delivery] = []
        """The claimed items whose outcomes are not recorded yet."""
        self._context = context
        self._outbox = context.store.outbox
        self._attempt: tuple[Sequence[Delivery], DeliveryOutcome] | None = None
        """The last attempt, until its outcome is recorded."""
        self._error: str | None = None
        self._failed_attempts = 0
        self._wake_up = asyncio.Event()
        self._wake_times: list[float] = []
        """On the event loop's clock."""

    @property
    def problem(self) -> str | None:
        """The reason why this process cannot use the target, or the error from its last attempt; None if the target
        works.
        """
        return self.target.config_error or self._error

    def wake(self) -> None:
        """Make :meth:`wait_for_work` return."""
        self._wake_up.set()

    def wake_after(self, delay: timedelta) -> None:
        """Make :meth:`wait_for_work` return after a delay."""
        self._wake_times.append(asyncio.get_running_loop().time() + delay.total_seconds())

    async def wait_for_work(self) -> None:
        """Wait until an item may be due."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(self._wake_times, default=None)):
                await self._wake_up.wait()
        self._wake_up.clear()
        now = asyncio.get_running_loop().time()
        self._wake_times = [time for time in self._wake_times if time > now]

    async def deliver_due(self) -> None:
        """Send due items until there are none left.

        Raises:
            StorageError: The database is unreachable.
        """
        if self.target.config_error is not None:  # other processes may be able to send
            self.record_failure(self.target.config_error)
            return
        await self._record()
        await self.release()
        run, owner, lease = self._context.threads.run, self._context.owner, self._context.lease
        claim = partial(self._outbox.claim, self.target.queue, owner, lease=lease)
        while not self._context.stopping() and (claimed := await run(claim)):
            self.in_progress = claimed
            renew = partial(self._outbox.renew, owner, [item.id for item in claimed], lease=lease)
            renewal = LeaseRenewal(renew, lease=lease, name="germane-delivery-lease")
            renewal.start()
            try:
                for items in self.target.group(claimed):
                    self._attempt = items, await self._send(items)
                    is_retried = await self._record()
                    if is_retried or renewal.is_lost or self._context.stopping():
                        break
            finally:
                renewal.stop(0)
            await self.release()

    async def release(self) -> None:
        """Let any process claim the items that this one has claimed but not sent.

        Raises:
            StorageError: The database is unreachable. The leases of the items expire.
        """
        if self.in_progress:
            ids = [item.id for item in self.in_progress]
            await self._context.threads.run(self._outbox.release, self._context.owner, ids)
            self.in_progress = []

    async def _send(self, items: Sequence[Delivery]) -> DeliveryOutcome:
        delay = partial(self._context.backoff.delay, max(item.attempt for item in items))
        try:
            return DeliveryOutcome(http_status=await self.target.send(items))
        except DeliveryError as error:
            retry_after = delay(retry_after=error.retry_after) if error.retryable else None
            return DeliveryOutcome(http_status=error.status, error=error.problem, retry_after=retry_after)
        except (SettingsError, StorageError) as error:  # a secret may have been removed since the check
            return DeliveryOutcome(error=str(error), retry_after=delay())
        except Exception as error:  # noqa: BLE001 - a target may be user code, so any exception is possible
            retry_after = None if self.target.queue.is_kept else delay()  # items that are kept can be resent
            return DeliveryOutcome(error=error_location(error), retry_after=retry_after)

    async def _record(self) -> bool:
        """Record the outcome of the last attempt, if it is not recorded yet. Return whether its items are retried."""
        if self._attempt is None:
            return False
        (items, outcome), target, context = self._attempt, self.target, self._context
        ids = [item.id for item in items]
        try:
            status = await context.threads.run(self._outbox.record_attempt, target.queue, context.owner, ids, outcome)
        except StorageError:
            self.wake_after(context.lease / RECORD_RETRY)
            raise
        self._attempt = None
        self.in_progress = [item for item in self.in_progress if item.id not in ids]
        if outcome.error is None:
            if self._error is not None:
                failed = f" after {self._failed_attempts} failed attempts" if self._failed_attempts else ""
                logger.warning("%s has recovered%s", target.label, failed)
            self._error, self._failed_attempts = None, 0
            return False
        self.record_failure(outcome.error)
        self._failed_attempts += 1
        if status == "undelivered" and target.queue.is_kept:
            logger.warning("%s gave up on %s: %s", target.label, target.noun, outcome.error)
        elif outcome.retry_after is not None:
            self.wake_after(outcome.retry_after)
        return status == "waiting"

    def record_failure(self, error: str) -> None:
        """Log the first failure after a success. Further failures are only counted."""
        if self._error is None:
            logger.warning(FAILURE, self.target.label, self.target.noun, error)
        self._error = error
