"""The thread that commits received requests to the database, several at a time.

A request is acknowledged only after its commit. Memory is bounded: when the queue or the staging area is full,
requests are rejected, and clients retry them later.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from germane.errors import StorageError
from germane.receiver.requests import Overloaded
from germane.receiver.spans import Batch
from germane.storage import OutgoingRequest, StagingCounts, TrackingStore

MAX_ITEMS_PER_COMMIT: Final = 4_000
MAX_QUEUED_BYTES: Final = 64 * 2**20
"""Maximum size of the requests that are waiting for their commit. A single larger request is accepted if none waits."""
QUEUE_RETRY: Final = 1
"""Seconds after which clients retry a request that was rejected because the queue was full."""
STORAGE_RETRY: Final = 5
"""Seconds after which clients retry a request while the database is unreachable or the staging area is full."""
_logger = logging.getLogger("germane.receiver")


@dataclass(slots=True)
class _Submission:
    batch: Batch
    requests: Sequence[OutgoingRequest]
    size: int
    committed: Future[None]


class StagingWriter:
    """Commits batches of spans and log records in the order of their arrival. Thread-safe.

    Args:
        store: The tracking store.
        max_wait: Maximum time in seconds from the first span of a trace until it is finished.
        max_staged_size: Maximum size in bytes of everything that is staged or waiting to be forwarded to the target.
        options: The options that apply to the texts of the spans.
        target: Name of the target that requests are forwarded to.
    """

    def __init__(
        self, store: TrackingStore, *, max_wait: float, max_staged_size: int, options: str = "", target: str = ""
    ) -> None:
        self._store = store
        self._max_wait = max_wait
        self._max_staged_size = max_staged_size
        self._target = target
        self.options = options
        self._changed = threading.Condition()
        self._queue: deque[_Submission] = deque()
        self._queued_bytes = 0
        self._is_stopping = False
        self._has_failed = False
        self._staged_size = self._committed_size = 0
        self._thread = threading.Thread(target=self._run, name="germane-staging", daemon=True)
        self.counts = StagingCounts()
        """The spans and log records that have been committed so far, by outcome."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, batch: Batch, requests: Sequence[OutgoingRequest] = ()) -> Future[None]:
        """Queue a batch and the requests to be forwarded.

        Returns:
            The commit. Its exception is :class:`Overloaded` if the database is unavailable; retry later.

        Raises:
            Overloaded: The queue or the staging area is full.
        """
        size = sum(len(item.payload) for item in batch.items) + sum(len(request.body) for request in requests)
        with self._changed:
            if self._is_stopping:
                raise Overloaded("the receiver is stopping", QUEUE_RETRY, 503)
            if self._queue and self._queued_bytes + size > MAX_QUEUED_BYTES:
                raise Overloaded("too many requests are waiting for the database", QUEUE_RETRY)
            if self._staged_size + self._queued_bytes + size > self._max_staged_size:
                raise Overloaded("too many spans are waiting for the end of their trace", STORAGE_RETRY)
            submission = _Submission(batch, requests, size, Future())
            submission.committed.set_running_or_notify_cancel()  # a client that disconnects must not cancel it
            self._queue.append(submission)
            self._queued_bytes += size
            self._changed.notify_all()
        return submission.committed

    def measure(self) -> None:
        """Measure the size of the staged data in the database, which other processes also change."""
        with self._changed:
            before = self._committed_size
        size = self._store.received.measure(self.options).size + self._store.forwarding.measure(self._target)
        with self._changed:  # what was committed in the meantime may be missing from the measured size
            self._staged_size = size + self._committed_size - before

    def stop(self, timeout: float) -> bool:
        """Commit the queued batches, then stop. Return False if that takes longer than ``timeout`` seconds."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_stopping)
                submissions: list[_Submission] = []
                items = 0
                while self._queue and (
                    not submissions or items + len(self._queue[0].batch.items) <= MAX_ITEMS_PER_COMMIT
                ):
                    submissions.append(self._queue.popleft())
                    items += len(submissions[-1].batch.items)
            if not submissions:
                return  # the writer stops, and has committed everything
            try:
                self._commit(submissions)
            except Exception as error:  # noqa: BLE001 - if the thread ended, nothing would be received any more
                self._fail(submissions, f"{type(error).__name__} while staging spans")
            with self._changed:  # not earlier, so that each request counts as queued until it counts as staged
                self._queued_bytes -= sum(submission.size for submission in submissions)

    def _commit(self, submissions: list[_Submission]) -> None:
        from germane.tracer import count_received

        items = [item for submission in submissions for item in submission.batch.items]
        requests = [request for submission in submissions for request in submission.requests]
        try:
            counts = self._store.received.stage(
                items, max_wait=self._max_wait, options=self.options, requests=requests, target=self._target
            )
        except StorageError as error:
            self._fail(submissions, str(error))
            return
        if self._has_failed:
            self._has_failed = False
            _logger.info("%s accepts spans again", self._store.name)
        count_received({name: getattr(counts, name) for name in StagingCounts.__slots__})
        with self._changed:
            self.counts += counts
            size = sum(submission.size for submission in submissions)
            self._staged_size, self._committed_size = self._staged_size + size, self._committed_size + size
        for submission in submissions:
            submission.committed.set_result(None)

    def _fail(self, submissions: list[_Submission], problem: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            _logger.warning("%s; clients are asked to send their spans again", problem)
        for submission in submissions:
            submission.committed.set_exception(
                Overloaded("the database is unavailable; retry later", STORAGE_RETRY, 503)
            )
