"""The worker that delivers the items of one target."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.delivery.backoff import Backoff
from germane.delivery.target import DeliveryError, Target
from germane.errors import SettingsError, StorageError, error_location
from germane.storage import Delivery, DeliveryOutcome, DeliveryStatus, LeaseRenewal, TrackingStore

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
        self._attempt: Mapping[int, DeliveryOutcome] | None = None
        """The outcomes of the last attempt by item id, until they are recorded."""
        self._failure: DeliveryError | None = None
        """The error of the last attempt, if the target accepted none of its items, until it is recorded."""
        self._error: str | None = None
        self._failed_attempts = 0
        self._has_given_up = False
        """Whether an item without an order was given up. Further ones are not logged."""
        self._pause_until = 0.0
        """On the event loop's clock. Until then, no items without an order are sent, because the target is unavailable.
        """
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
        if asyncio.get_running_loop().time() < self._pause_until:
            return
        run, owner, lease = self._context.threads.run, self._context.owner, self._context.lease
        claim = partial(self._outbox.claim, self.target.queue, owner, lease=lease)
        while not self._context.stopping() and (claimed := await run(claim)):
            self.in_progress, is_blocked = claimed, False
            renew = partial(self._outbox.renew, owner, [item.id for item in claimed], lease=lease)
            renewal = LeaseRenewal(renew, lease=lease, name="germane-delivery-lease")
            renewal.start()
            try:
                for items in self.target.group(claimed):
                    self._attempt = await self._send(items)
                    is_blocked = await self._record()
                    if is_blocked or renewal.is_lost or self._context.stopping():
                        break
            finally:
                renewal.stop(0)
            await self.release()
            if is_blocked and not self.target.queue.is_ordered:  # the next claim would return other items
                return

    async def release(self) -> None:
        """Let any process claim the items that this one has claimed but not sent.

        Raises:
            StorageError: The database is unreachable. The leases of the items expire.
        """
        if self.in_progress:
            ids = [item.id for item in self.in_progress]
            await self._context.threads.run(self._outbox.release, self._context.owner, ids)
            self.in_progress = []

    async def _send(self, items: Sequence[Delivery]) -> Mapping[int, DeliveryOutcome]:
        """Send items together, and return their outcomes by id."""
        try:
            sent = await self.target.send(items)
        except DeliveryError as error:
            failure = error
        except (SettingsError, StorageError) as error:  # a secret may have been removed since the check
            failure = DeliveryError(str(error))
        except Exception as error:  # noqa: BLE001 - a target may be user code, so any exception is possible
            is_final = "sent" in self.target.queue.kept  # items that are kept can be resent
            failure = DeliveryError(error_location(error), retryable=not is_final)
        else:
            delays = {item.attempt: self._context.backoff.delay(item.attempt) for item in items}
            succeeded = DeliveryOutcome(http_status=sent.status)
            outcomes = dict.fromkeys([item.id for item in items], succeeded)
            failed = [item for item in items if item.id in sent.errors]
            return outcomes | {item.id: _outcome(sent.errors[item.id], delays[item.attempt]) for item in failed}
        self._failure = failure
        is_ordered = self.target.queue.is_ordered
        attempts = max(item.attempt for item in items) if is_ordered else self._failed_attempts + 1
        delay = self._context.backoff.delay(attempts, retry_after=failure.retry_after)
        if not is_ordered:
            self._pause_until = asyncio.get_running_loop().time() + delay.total_seconds()
        return dict.fromkeys([item.id for item in items], _outcome(failure, delay))

    async def _record(self) -> bool:
        """Record the outcomes of the last attempt, if they are not recorded yet. Return whether to send nothing more.

        Items that have an order wait for an earlier one that is retried.
        """
        if self._attempt is None:
            return False
        outcomes, target, context = self._attempt, self.target, self._context
        try:
            statuses = await context.threads.run(self._outbox.record_attempt, target.queue, context.owner, outcomes)
        except StorageError:
            self.wake_after(context.lease / RECORD_RETRY)
            raise
        self._attempt = None
        self.in_progress = [item for item in self.in_progress if item.id not in outcomes]
        failure, self._failure = self._failure, None
        if failure is None and self._error is not None:
            failed = f" after {self._failed_attempts} failed attempts" if self._failed_attempts else ""
            logger.warning("%s has recovered%s", target.label, failed)
            self._error, self._failed_attempts = None, 0
        if failure is not None:
            self.record_failure(failure.problem)
            self._failed_attempts += 1
        self._report(statuses, outcomes)
        return "waiting" in statuses.values() if target.queue.is_ordered else failure is not None

    def _report(self, statuses: Mapping[int, DeliveryStatus], outcomes: Mapping[int, DeliveryOutcome]) -> None:
        """Log the items that were given up, and make sure that the others are retried in time."""
        retries = [delay for outcome in outcomes.values() if (delay := outcome.retry_after) is not None]
        if retries:
            self.wake_after(min(retries))
        given_up = [id_ for id_, status in statuses.items() if status == "undelivered"]
        queue = self.target.queue
        if given_up and "undelivered" in queue.kept and (queue.is_ordered or not self._has_given_up):
            self._has_given_up = True
            logger.warning("%s gave up on %s: %s", self.target.label, self.target.noun, outcomes[given_up[0]].error)

    def record_failure(self, error: str) -> None:
        """Log the first failure after a success. Further failures are only counted."""
        if self._error is None:
            logger.warning(FAILURE, self.target.label, self.target.noun, error)
        self._error = error


def _outcome(error: DeliveryError, delay: timedelta) -> DeliveryOutcome:
    return DeliveryOutcome(
        http_status=error.status,
        error=error.problem,
        retry_after=delay if error.retryable else None,
        retry_timeout=error.retry_timeout,
    )
