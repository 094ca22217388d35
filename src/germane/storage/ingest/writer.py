"""The thread that writes exchanges, labels, markers and recorded scores from an in-memory queue to the database."""

from __future__ import annotations

import atexit
import logging
import math
import os
import random
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from germane import sanitize
from germane.annotation import Feedback, Marker, RecordedScore
from germane.errors import ContentRefused, StorageError
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.counts.watched import WatchCounter
from germane.storage.ingest.drop_counts import (
    DropCounter,
    ExchangeLimiter,
    Scorers,
    WriterItem,
    WriterStore,
    describe_items,
    display_id,
)
from germane.storage.ingest.unreadable_traces import MAX_PER_MINUTE, SampleLimiter
from germane.trace_outline import UnreadableTrace

EXIT_TIMEOUT: Final = 5.0
"""Maximum time in seconds that process exit waits for the queue to be written."""
SCORE_RETRY_TIMEOUT: Final = 600.0
"""Maximum time in seconds that a recorded score waits for its exchange."""
_NEVER: Final = sys.maxsize
_MAX_IDS_LOGGED: Final = 20

logger = logging.getLogger("germane.storage")


@dataclass(frozen=True, slots=True)
class _BufferedScore:
    score: RecordedScore
    deadline: float
    delay: float
    retry_at: float


class ScoreRetryBuffer:
    """Recorded scores whose exchange is not in the database yet. Times are monotonic clock values in seconds.

    A score waits for at most ``timeout`` for its exchange. ``delays`` are the first and the longest between attempts.
    """

    def __init__(self, *, timeout: float, delays: tuple[float, float], capacity: int) -> None:
        self._timeout = timeout
        self._first_delay, self._max_delay = delays
        self._capacity = capacity
        self._entries: list[_BufferedScore] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, scores: Sequence[RecordedScore], now: float) -> list[RecordedScore]:
        """Add scores, and return those that exceed the capacity."""
        free = max(0, self._capacity - len(self._entries))
        delay = self._first_delay
        self._entries += [_BufferedScore(score, now + self._timeout, delay, now + delay) for score in scores[:free]]
        return list(scores[free:])

    def seconds_until_retry(self, now: float) -> float | None:
        """Return the time in seconds until the next attempt, or None if the buffer is empty."""
        return max(0.0, min(entry.retry_at for entry in self._entries) - now) if self._entries else None

    def due_scores(self, now: float) -> list[RecordedScore]:
        """Return the scores that are due for a retry."""
        return [entry.score for entry in self._entries if entry.retry_at <= now]

    def all_scores(self) -> list[RecordedScore]:
        """Return all buffered scores."""
        return [entry.score for entry in self._entries]

    def record_attempt(
        self, tried: Sequence[RecordedScore], missing: Sequence[RecordedScore], now: float
    ) -> list[RecordedScore]:
        """Remove written scores, and reschedule those whose exchange is missing. Return those that have timed out."""
        still_missing = {id(score) for score in missing}
        written = {id(score) for score in tried} - still_missing
        kept, expired = list[_BufferedScore](), list[RecordedScore]()
        for entry in self._entries:
            if id(entry.score) in written:
                continue
            if entry.deadline <= now:
                expired.append(entry.score)
                continue
            if id(entry.score) in still_missing:
                delay = min(self._max_delay, 2 * entry.delay)
                entry = replace(entry, delay=delay, retry_at=min(now + delay, entry.deadline))
            kept.append(entry)
        self._entries = kept
        return expired


class ExchangeWriter:
    """A bounded queue in front of the database. Any thread may call :meth:`put`; one background thread writes.

    The queue also accepts labels, markers and recorded scores. A recorded score is retried until its exchange has been
    written.

    While the database is unreachable, items stay in the queue. When the queue is full, new items are dropped; dropped
    exchanges are added to the tally when the database is reachable again. A forked child starts with an empty queue,
    because the parent writes the queued items. It writes the first item at once, because it may be killed at any time.

    Args:
        store: The tracking store.
        capacity: Maximum number of queued items, in addition to one batch that is being written.
        limit: Number of exchanges per minute above which :meth:`admit` keeps only a sample; None keeps all.
        batch: Maximum number of items per transaction.
        interval: Time in seconds that the first item of a batch waits for further items. In a forked child, the minimum
            time between two batches.
        scorers: Names of the scorers for which dropped exchanges are counted, or a function that returns them.
        backoff: Initial and maximum delay between attempts while the database is unreachable, in seconds.
        score_timeout: Maximum time in seconds that a recorded score waits for its exchange.
        score_delays: Initial and maximum delay between attempts to write a recorded score, in seconds.
        clock: Monotonic clock in seconds, which the limit uses.
        stops_at_exit: Whether to stop the writer and close the store when the interpreter exits.
    """

    def __init__(
        self,
        store: WriterStore,
        *,
        capacity: int = 10_000,
        limit: int | None = None,
        batch: int = 500,
        interval: float = 0.1,
        scorers: Scorers = (),
        backoff: tuple[float, float] = (0.1, 5.0),
        score_timeout: float = SCORE_RETRY_TIMEOUT,
        score_delays: tuple[float, float] = (0.5, 30.0),
        clock: Callable[[], float] = time.monotonic,
        stops_at_exit: bool = True,
    ) -> None:
        self._store = store
        self._stops_at_exit = stops_at_exit
        self._capacity = capacity
        self._new_limiter = partial(ExchangeLimiter, limit, clock=clock)
        self._batch = batch
        self._interval = interval
        self._scorers = scorers
        self._backoff = backoff
        self._new_buffer = partial(ScoreRetryBuffer, timeout=score_timeout, delays=score_delays, capacity=capacity)
        self._is_forked = False
        self._reset()
        _writers.add(self)

    def _reset(self) -> None:
        self._queue: deque[WriterItem] = deque()
        self._in_flight: list[WriterItem] = []
        self._score_buffer = self._new_buffer()
        self._queue_full = DropCounter(UnscoredReason.QUEUE_FULL)
        self._over_limit = DropCounter(UnscoredReason.EXCHANGE_LIMIT)
        self._unreadable = DropCounter(UnscoredReason.UNREADABLE)
        self._watched = WatchCounter()
        self._sample_limiter = SampleLimiter()
        self._samples: deque[UnreadableTrace] = deque(maxlen=MAX_PER_MINUTE)
        self._limiter = self._new_limiter(self._over_limit)
        self._max_length = self._capacity
        self._wake_length = 1  # length of the queue at which put() wakes the thread
        self._wake = threading.Event()
        # A Condition's lock is reentrant, which is necessary: on a thread that holds the lock, the garbage collector
        # may close an abandoned stream and put its exchange.
        self._changed = threading.Condition()
        self._settled = 0
        self._failures = 0
        self._last_write = -math.inf  # monotonic time in seconds
        self._is_flushing = self._is_overflowing = False
        self._deadline: float | None = None
        self._thread: threading.Thread | None = None
        self._exit_handler: Callable[[], None] | None = None
        self.dropped = 0
        """Number of exchanges that were passed to :meth:`put` but not stored."""
        self.lost = 0
        """Number of labels, markers and recorded scores that were passed to :meth:`put` but not stored."""
        self.problem: str | None = None
        """The reason that the database is not accepting exchanges; None if it is accepting them."""

    def after_fork_in_child(self) -> None:
        """Start with an empty queue. The child has no writer thread, and the parent writes the queued items."""
        self._is_forked = True
        self._reset()

    @property
    def depth(self) -> int:
        """The number of queued items, excluding recorded scores that are waiting for their exchange."""
        return len(self._queue) + len(self._in_flight)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waiting to be written or counted."""
        return not (self.depth or self._has_uncounted_drops)

    @property
    def not_admitted(self) -> int:
        """The number of exchanges that :meth:`admit` rejected."""
        return self._over_limit.total

    def admit(self, service: str, route: str, started: int, sampling_key: float) -> float | None:
        """Apply the limit on exchanges per minute. Never waits and never raises.

        ``started`` is in nanoseconds since 1970.

        Returns:
            The probability with which the exchange is kept, in (0, 1], or None if it is dropped. The tally counts
            dropped exchanges as skipped with the reason ``exchange_limit``.
        """
        probability = self._limiter.admit(service, route, started, sampling_key)
        if probability is None and self._wake_length == 1:  # the thread is sleeping until there is work
            self._wake_thread()
        return probability

    def count_unreadable(self, service: str, route: str, started: int) -> None:
        """Count an exchange that was seen but could not be read; ``started`` is in nanoseconds since 1970."""
        self._unreadable.count(service, route, started)
        if self._wake_length == 1:
            self._wake_thread()

    def count_watched(self, service: str, scope: str, outcome: str, started: int, number: int) -> None:
        """Count watched traces by instrumentation scope and outcome; ``started`` is in nanoseconds since 1970."""
        self._watched.count(service, scope, outcome, started, number)
        if self._wake_length == 1:
            self._wake_thread()

    def sample_unreadable(self, service: str, scope: str, reason: str, describe: Callable[[], UnreadableTrace]) -> None:
        """Add an unreadable trace to the stored sample, unless the sample is full. The trace is lost if a write fails.

        ``describe`` returns the trace without values, and is called only if the trace is added.
        """
        if self._sample_limiter.admit(service, scope, reason):
            self._samples.append(describe())
            if self._wake_length == 1:
                self._wake_thread()

    def put(self, item: WriterItem) -> bool:
        """Queue an item. Return False if it was dropped. Never waits and never raises."""
        length = len(self._queue)
        if length < self._max_length:
            self._queue.append(item)
            if length + 1 >= self._wake_length:
                self._wake_thread()
            return True
        with self._changed:
            if isinstance(item, Exchange):
                self.dropped += 1
                started = int(item.started_at.timestamp()) * 1_000_000_000
                self._queue_full.count(item.service, item.route, started)
            else:
                self.lost += 1
            is_first, self._is_overflowing = not self._is_overflowing, True
        if is_first:
            logger.warning(
                "the queue is full (%d items): new exchanges, labels and scores are being dropped", self._capacity
            )
        return False

    def flush(self, timeout: float) -> bool:
        """Wait until all queued items are written. Return False if that takes longer than ``timeout`` seconds."""
        with self._changed:
            last = self._settled + self.depth
            if self.is_idle:
                return True
        self._is_flushing = True
        self._wake_thread()
        with self._changed:
            return self._changed.wait_for(
                lambda: self._settled >= last and not (self._has_uncounted_drops or self.problem), timeout
            )

    def stop(self, timeout: float) -> bool:
        """Write the queued items and stop the thread. Items that are put later are dropped.

        Returns:
            False if items are left, or the thread is still running, after ``timeout`` seconds.
        """
        self._max_length = 0
        self._deadline = time.monotonic() + timeout
        self._wake.set()
        if self._exit_handler is not None:
            atexit.unregister(self._exit_handler)
        if self._thread is None:  # the thread was never started, or could not be started
            self._run()
        else:
            self._thread.join(timeout)
        with self._changed:
            left = [*self._in_flight, *self._queue.copy(), *self._score_buffer.all_scores()]
        if left:
            logger.warning(
                "lost %s that could not be written to %s before the writer stopped",
                describe_items(left),
                self._store.name,
            )
        if uncounted := len(self._queue_full) + len(self._over_limit) + len(self._unreadable):
            logger.warning("%d dropped exchanges are missing from the counts of %s", uncounted, self._store.name)
        return not (left or uncounted or (self._thread is not None and self._thread.is_alive()))

    @property
    def _has_uncounted_drops(self) -> bool:
        return bool(self._queue_full or self._over_limit or self._unreadable or self._watched or self._samples)

    def _wake_thread(self) -> None:
        self._wake_length = _NEVER
        if self._thread is None:
            with self._changed:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="germane-writer", daemon=True)
                    try:
                        thread.start()
                    except RuntimeError:  # at interpreter exit or at the thread limit; the next put() retries
                        self._wake_length = 1
                        return
                    self._thread = thread
                    if self._stops_at_exit:
                        self._exit_handler = partial(_stop_at_exit, weakref.ref(self))
                        atexit.register(self._exit_handler)
        self._wake.set()

    def _run(self) -> None:
        while self._deadline is None or (self._has_work() and time.monotonic() < self._deadline):
            if self._deadline is None:
                if not self._has_work():
                    self._is_flushing = False
                    self._sleep(1, self._score_buffer.seconds_until_retry(time.monotonic()))
                waited = time.monotonic() - self._last_write if self._is_forked else 0.0
                self._sleep(self._batch, max(0.0, self._interval - waited))  # collect a batch
            if self._has_work() and not self._write_next():
                # Wait before the next attempt. A flush or a stop ends the wait.
                first, longest = self._backoff
                delay = min(longest, first * 2 ** min(self._failures, 30)) * random.uniform(0.5, 1)
                self._failures += 1
                left = delay if self._deadline is None else self._deadline - time.monotonic()
                self._wake.wait(max(0.0, min(delay, left)))
        if scores := self._score_buffer.all_scores():
            try:
                missing = self._store.exchanges.record_scores(scores)
            except StorageError:
                missing = scores
            self._score_buffer = self._new_buffer()
            self._lose_scores(missing, "the process stopped before the exchange arrived")

    def _has_work(self) -> bool:
        is_retry_due = self._deadline is None and self._score_buffer.seconds_until_retry(time.monotonic()) == 0
        return bool(self._queue or self._in_flight or self._has_uncounted_drops or is_retry_due)

    def _sleep(self, wake_length: int, timeout: float | None) -> None:
        """Sleep until the queue has ``wake_length`` items, or for ``timeout`` seconds."""
        self._wake.clear()
        self._wake_length = wake_length
        # Check the length after setting wake_length: an item that is put in between is seen here or sets the event.
        is_idle = len(self._queue) < wake_length and not (wake_length == 1 and self._has_uncounted_drops)
        if is_idle and not self._is_flushing and self._deadline is None:
            self._wake.wait(timeout)
        self._wake_length = _NEVER

    def _write_next(self) -> bool:
        """Write one batch, the drop counts, and the scores due for a retry. Return False if the database failed."""
        self._wake.clear()
        self._last_write = time.monotonic()
        with self._changed:
            for _ in range(min(self._batch - len(self._in_flight), len(self._queue))):
                self._in_flight.append(self._queue.popleft())
            batch = list(self._in_flight)
        try:
            try:
                self._save(batch)
            except ContentRefused:
                self._store.exchanges.check_accepts_rows()  # otherwise, the batch waits
                self._save_one_by_one(batch)
            self._settle(len(self._in_flight))  # first, because a failure below must not repeat the batch
            for dropped in (self._queue_full, self._over_limit, self._unreadable):
                dropped.report(self._store, self._scorers)
            if counts := self._watched.take():
                self._store.exchanges.count_watched(counts)
                self._watched.subtract(counts)
            if samples := [self._samples.popleft() for _ in range(len(self._samples))]:
                self._store.unreadable.add(samples)
            self._retry_due_scores()
        except StorageError as error:
            return self._record_failure(str(error))
        except Exception as error:  # noqa: BLE001 - if the thread ended, capture would stop
            return self._record_failure(f"{type(error).__name__} in {self._store.name}")
        self._failures = 0
        if self.problem is not None:
            logger.info("%s is accepting exchanges again", self._store.name)
            self.problem = None
        if self._is_overflowing and len(self._queue) <= self._max_length // 2:
            self._is_overflowing = False
            message = "the queue has space again; %d exchanges, and %d labels and scores, have been dropped so far"
            logger.info(message, self.dropped, self.lost)
        self._settle(0)
        return True

    def _save(self, batch: list[WriterItem]) -> None:
        """Write a batch. Exchanges come first, because the other items may refer to them."""
        self._store.exchanges.add([item for item in batch if isinstance(item, Exchange)])
        if labels := [item for item in batch if isinstance(item, Feedback)]:
            self._store.labels.add_feedback(labels)
        if markers := [item for item in batch if isinstance(item, Marker)]:
            self._store.trends.add_markers(markers)
        if scores := [item for item in batch if isinstance(item, RecordedScore)]:
            missing = self._store.exchanges.record_scores(scores)
            overflow = self._score_buffer.add(missing, time.monotonic())
            self._lose_scores(overflow, "too many scores are waiting for their exchange to be written")

    def _save_one_by_one(self, batch: list[WriterItem]) -> None:
        """Write items one by one, so that a row that the database rejects does not block the others."""
        rejected = []
        for item in batch:
            try:
                self._save([item])
            except ContentRefused:
                rejected.append(item)
        ids = ", ".join(map(display_id, rejected[:_MAX_IDS_LOGGED]))
        logger.warning("%s rejected the content of %s; lost: %s", self._store.name, describe_items(rejected), ids)
        exchanges = sum(isinstance(item, Exchange) for item in rejected)
        with self._changed:
            self.dropped += exchanges
            self.lost += len(rejected) - exchanges
        self._settle(len(batch))  # last, so that the counts are up to date when flush() returns

    def _retry_due_scores(self) -> None:
        now = time.monotonic()
        due = self._score_buffer.due_scores(now)
        if not due:
            return
        try:
            missing = self._store.exchanges.record_scores(due)
        except ContentRefused:
            self._store.exchanges.check_accepts_rows()
            self._score_buffer.record_attempt(due, [], now)
            self._lose_scores(due, f"{self._store.name} rejected the content")
        else:
            self._lose_scores(self._score_buffer.record_attempt(due, missing, now), "the exchange never arrived")

    def _lose_scores(self, scores: list[RecordedScore], reason: str) -> None:
        if scores:
            ids = ", ".join(map(display_id, scores[:_MAX_IDS_LOGGED]))
            logger.warning("lost %s because %s: %s", sanitize.count_noun(len(scores), "recorded score"), reason, ids)
            with self._changed:  # last, so that the log line precedes the count
                self.lost += len(scores)

    def _settle(self, count: int) -> None:
        with self._changed:
            del self._in_flight[:count]
            self._settled += count
            self._changed.notify_all()

    def _record_failure(self, problem: str) -> bool:
        if self.problem is None:
            message = "%s; up to %d exchanges, labels and scores will be queued and retried"
            logger.warning(message, problem, self._capacity)
        self.problem = problem
        return False


_writers: weakref.WeakSet[ExchangeWriter] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for writer in list(_writers):
        writer.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _stop_at_exit(writer: weakref.ref[ExchangeWriter]) -> None:
    """Write the queued items at interpreter exit unless the writer has been stopped."""
    if (alive := writer()) is not None:
        alive.stop(EXIT_TIMEOUT)
        alive._store.close()  # noqa: SLF001 - a bound method would keep the writer alive
