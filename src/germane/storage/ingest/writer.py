"""The thread that carries exchanges, and what is said of them, from a queue in memory to the database."""

from __future__ import annotations

import atexit
import logging
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

from germane.annotation import Feedback, Mark, Recorded
from germane.errors import StorageError
from germane.exchange import Exchange
from germane.sanitize import counted
from germane.score import Reason
from germane.storage.db.errors import ContentRefused
from germane.storage.ingest import drop_counts
from germane.storage.ingest.drop_counts import Dropped, Item, Scorers
from germane.storage.ingest.rate_limit import Admission
from germane.storage.store import Store


@dataclass(frozen=True, slots=True)
class _Entry:
    recorded: Recorded
    deadline: float
    pause: float
    next_try: float


class Waiting:
    """What waits, in memory. Times are seconds on a clock that only goes forward.

    Args:
        patience: seconds for which one waits.
        pauses: seconds between its tries: the first, and the longest.
        capacity: how many wait at most.
    """

    def __init__(self, *, patience: float, pauses: tuple[float, float], capacity: int) -> None:
        self._patience = patience
        self._pauses = pauses
        self._capacity = capacity
        self._entries: list[_Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, recorded: Sequence[Recorded], now: float) -> list[Recorded]:
        """Let these wait; return those for which there is no room."""
        room = max(0, self._capacity - len(self._entries))
        pause = self._pauses[0]
        self._entries += [_Entry(one, now + self._patience, pause, now + pause) for one in recorded[:room]]
        return list(recorded[room:])

    def left(self, now: float) -> float | None:
        """Return the seconds until one is to be tried again; None where none waits."""
        return max(0.0, min(entry.next_try for entry in self._entries) - now) if self._entries else None

    def due(self, now: float) -> list[Recorded]:
        """Return those that are to be tried again now."""
        return [entry.recorded for entry in self._entries if entry.next_try <= now]

    def everything(self) -> list[Recorded]:
        """Return all that wait."""
        return [entry.recorded for entry in self._entries]

    def settle(self, tried: Sequence[Recorded], missing: Sequence[Recorded], now: float) -> list[Recorded]:
        """Forget those tried that found their exchange; return those that have waited for too long, and forget them."""
        found = {id(one) for one in tried} - {id(one) for one in missing}
        again = {id(one) for one in missing}
        kept = [self._later(entry, now) if id(entry.recorded) in again else entry for entry in self._entries]
        kept = [entry for entry in kept if id(entry.recorded) not in found]
        self._entries = [entry for entry in kept if entry.deadline > now]
        return [entry.recorded for entry in kept if entry.deadline <= now]

    def _later(self, entry: _Entry, now: float) -> _Entry:
        pause = min(self._pauses[1], 2 * entry.pause)
        return replace(entry, pause=pause, next_try=min(now + pause, entry.deadline))


AT_EXIT = 5.0
"""Seconds that the end of the process waits for the queue to be written."""
PATIENCE = 600.0
"""Seconds for which a score made elsewhere waits for its exchange."""
_NEVER = sys.maxsize
_NAMED = 20

logger = logging.getLogger("germane.storage")


class Writer:
    """A bounded queue before the database. :meth:`put` is for any thread; a thread of its own does the writing.

    Beside exchanges it takes people's labels, marks, and scores made elsewhere. These need their exchange's row; until
    that is there, they are tried again.

    While the database is away the queue is held; once it is full, the newest exchanges are dropped, and counted in the
    tally when the database is back. A forked child starts with an empty queue: what was in it is the parent's to write.

    Before an exchange is even made, :meth:`admit` says whether the capture limit keeps it.

    Args:
        store: where exchanges go.
        capacity: how many exchanges wait at most, besides one batch being written.
        limit: exchanges a minute beyond which they are thinned; None thins none.
        batch: how many are written at once.
        interval: seconds that a first exchange waits for others to be written with it.
        scorers: the names under which dropped exchanges are counted, or what returns them.
        backoff: seconds between attempts while the database is away: the first, and the longest.
        patience: seconds for which a score made elsewhere waits for its exchange.
        pauses: seconds between its tries: the first, and the longest.
        clock: seconds by which the limit goes.
    """

    def __init__(
        self,
        store: Store,
        *,
        capacity: int = 10_000,
        limit: int | None = None,
        batch: int = 500,
        interval: float = 0.1,
        scorers: Scorers = (),
        backoff: tuple[float, float] = (0.1, 5.0),
        patience: float = PATIENCE,
        pauses: tuple[float, float] = (0.5, 30.0),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._capacity = capacity
        self._admits = partial(Admission, limit, clock=clock)
        self._batch = batch
        self._interval = interval
        self._scorers = scorers
        self._backoff = backoff
        self._waits = partial(Waiting, patience=patience, pauses=pauses, capacity=capacity)
        self._begin()
        _writers.add(self)

    def _begin(self) -> None:
        self._queue: deque[Item] = deque()
        self._in_flight: list[Item] = []
        self._waiting = self._waits()
        self._full, self._beyond = Dropped(Reason.QUEUE_FULL), Dropped(Reason.CAPTURE_LIMIT)
        self._admission = self._admits(self._beyond)
        self._room = self._capacity
        self._alarm = 1  # length of the queue at which put() wakes the thread
        self._wake = threading.Event()
        # Reentrant: the collector may end a forgotten stream, and put its exchange, on a thread that is in here.
        self._changed = threading.Condition()
        self._settled = 0
        self._failures = 0
        self._hurry = self._overflowing = False
        self._deadline: float | None = None
        self._thread: threading.Thread | None = None
        self._last_words: Callable[[], None] | None = None
        self.dropped = 0
        """Exchanges that were put and never became rows."""
        self.lost = 0
        """Labels, marks, and scores made elsewhere, that were put and never became rows."""
        self.problem: str | None = None
        """What keeps the database from taking exchanges; None when it does."""

    def after_fork_in_child(self) -> None:
        """Begin anew, with an empty queue: neither the thread nor what it was to write is here."""
        self._begin()

    @property
    def depth(self) -> int:
        """What waits to be written, but for scores whose exchange is not there yet."""
        return len(self._queue) + len(self._in_flight)

    @property
    def _uncounted(self) -> bool:
        """Whether something was dropped that the tally does not have yet."""
        return bool(self._full or self._beyond)

    @property
    def thinned(self) -> int:
        """Exchanges that the capture limit did not keep."""
        return self._beyond.total

    def admit(self, service: str, route: str, started: int, draw: float) -> float | None:
        """Say how probable it was that the capture limit keeps an exchange, in (0, 1]; None when it does not.

        ``started`` is in nanoseconds since 1970, ``draw`` its lottery ticket. What is not kept is counted as skipped
        for ``capture_limit`` in the tally, and nothing else is done for it. Never waits and never raises.
        """
        probability = self._admission.admit(service, route, started, draw)
        if probability is None and self._alarm == 1:  # the thread sleeps, and may do so for long
            self._ring()
        return probability

    def put(self, item: Item) -> bool:
        """Queue an exchange, or what is said of one; False when it was dropped. Never waits and never raises."""
        length = len(self._queue)
        if length >= self._room:
            return self._drop(item)
        self._queue.append(item)
        if length + 1 >= self._alarm:
            self._ring()
        return True

    def flush(self, timeout: float) -> bool:
        """Wait until what was put before is written; False when that took longer than ``timeout`` seconds."""
        with self._changed:
            last = self._settled + self.depth
            if not (self.depth or self._uncounted):
                return True
        self._hurry = True
        self._ring()
        with self._changed:
            return self._changed.wait_for(
                lambda: self._settled >= last and not (self._uncounted or self.problem), timeout
            )

    def stop(self, timeout: float) -> bool:
        """Write what is queued and end the thread; False when something was left, or it still ran, after ``timeout``
        seconds.

        Afterwards whatever is put is dropped.
        """
        self._room = 0
        self._deadline = time.monotonic() + timeout
        self._wake.set()
        if self._last_words is not None:
            atexit.unregister(self._last_words)
        if self._thread is None:  # never started, or the interpreter was too far gone to start it
            self._run()
        else:
            self._thread.join(timeout)
        with self._changed:
            left = [*self._in_flight, *self._queue.copy(), *self._waiting.everything()]
        if left:
            logger.warning("%s not written to %s before the end: lost", drop_counts.told(left), self._store.name)
        if uncounted := len(self._full) + len(self._beyond):
            logger.warning("%d exchanges that were dropped are missing in the tally of %s", uncounted, self._store.name)
        return not (left or uncounted or (self._thread is not None and self._thread.is_alive()))

    def _ring(self) -> None:
        self._alarm = _NEVER
        if self._thread is None:
            self._start()
        self._wake.set()

    def _start(self) -> None:
        with self._changed:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="germane-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # at the interpreter's end, or without a thread left: the next put tries again
                self._alarm = 1
                return
            self._thread = thread
            self._last_words = partial(_stop, weakref.ref(self))
            atexit.register(self._last_words)

    def _drop(self, item: Item) -> bool:
        with self._changed:
            if isinstance(item, Exchange):
                self.dropped += 1
                started = int(item.started_at.timestamp()) * 1_000_000_000
                self._full.count(item.service, item.route, started)
            else:
                self.lost += 1
            first, self._overflowing = not self._overflowing, True
        if first:
            told = "the queue of %d is full: further exchanges, labels and scores are dropped, and counted"
            logger.warning(told, self._capacity)
        return False

    def _run(self) -> None:
        while self._deadline is None or (self._has_work() and time.monotonic() < self._deadline):
            if self._deadline is None:
                self._gather()
            if self._has_work() and not self._attempt():
                self._pause()
        self._give_up()

    def _has_work(self) -> bool:
        due = self._deadline is None and self._waiting.left(time.monotonic()) == 0
        return bool(self._queue or self._in_flight or self._uncounted or due)

    def _gather(self) -> None:
        """Wait for a first exchange, then a little for others to go with it."""
        if not self._has_work():
            self._hurry = False
            self._sleep(1, self._waiting.left(time.monotonic()))
        self._sleep(self._batch, self._interval)

    def _sleep(self, alarm: int, timeout: float | None) -> None:
        self._wake.clear()
        self._alarm = alarm
        # Looked at after the alarm is set: an exchange put in between is either seen here, or rings.
        idle = len(self._queue) < alarm and not (alarm == 1 and self._uncounted)
        if idle and not self._hurry and self._deadline is None:
            self._wake.wait(timeout)
        self._alarm = _NEVER

    def _pause(self) -> None:
        """Wait before the next attempt; a flush or the stop cuts it short."""
        first, longest = self._backoff
        delay = min(longest, first * 2 ** min(self._failures, 30)) * random.uniform(0.5, 1)
        self._failures += 1
        left = delay if self._deadline is None else self._deadline - time.monotonic()
        self._wake.wait(max(0.0, min(delay, left)))

    def _attempt(self) -> bool:
        """Write one batch and what was dropped; False when the database did not take it."""
        self._wake.clear()
        try:
            self._write(self._taken())
            self._settle(len(self._in_flight))  # at once: what fails behind it must not have it written again
            for dropped in (self._full, self._beyond):
                dropped.report(self._store, self._scorers)
            self._try_again()
        except StorageError as error:
            return self._went(str(error))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: without it one surprise ends all capture
            return self._went(f"{type(error).__name__} in {self._store.name}")
        self._well()
        self._settle(0)
        return True

    def _taken(self) -> list[Item]:
        with self._changed:
            for _ in range(min(self._batch - len(self._in_flight), len(self._queue))):
                self._in_flight.append(self._queue.popleft())
        return list(self._in_flight)

    def _write(self, batch: list[Item]) -> None:
        try:
            self._save(batch)
        except ContentRefused:
            self._write_one_by_one(batch)

    def _save(self, batch: list[Item]) -> None:
        """Write exchanges first: what is said of them may be in the same batch."""
        self._store.add([item for item in batch if isinstance(item, Exchange)])
        if labels := [item for item in batch if isinstance(item, Feedback)]:
            self._store.add_feedback(labels)
        if marks := [item for item in batch if isinstance(item, Mark)]:
            self._store.add_marks(marks)
        if scores := [item for item in batch if isinstance(item, Recorded)]:
            missing = self._store.record(scores)
            self._lose(self._waiting.add(missing, time.monotonic()), "too many wait for their exchange")

    def _try_again(self) -> None:
        """Write the scores whose exchange has come meanwhile, and give up those that have waited for too long."""
        now = time.monotonic()
        due = self._waiting.due(now)
        if not due:
            return
        try:
            missing = self._store.record(due)
        except ContentRefused:
            self._waiting.settle(due, [], now)
            self._lose(due, f"{self._store.name} refuses them")
        else:
            self._lose(self._waiting.settle(due, missing, now), "their exchange never came")

    def _give_up(self) -> None:
        """Try once more, at the end, what still waits for its exchange."""
        rest = self._waiting.everything()
        if not rest:
            return
        try:
            missing = self._store.record(rest)
        except StorageError:
            missing = rest
        self._waiting = self._waits()
        self._lose(missing, "the end came before their exchange")

    def _lose(self, scores: list[Recorded], why: str) -> None:
        if scores:
            named = ", ".join(map(drop_counts.named, scores[:_NAMED]))
            logger.warning("lost: %s, %s: %s", counted(len(scores), "recorded score"), why, named)
            with self._changed:  # last: whoever sees the count finds the line
                self.lost += len(scores)

    def _write_one_by_one(self, batch: list[Item]) -> None:
        """Write what can be written: one row that the database will never take must not hold up the others."""
        refused = [item for item in batch if not self._is_taken(item)]
        named = ", ".join(map(drop_counts.named, refused[:_NAMED]))
        told = "%s refuses %s for what is in them; lost: %s"
        logger.warning(told, self._store.name, drop_counts.told(refused), named)
        exchanges = sum(isinstance(item, Exchange) for item in refused)
        with self._changed:
            self.dropped += exchanges
            self.lost += len(refused) - exchanges
        self._settle(len(batch))  # last, and at once: whoever waits finds them counted, and nobody counts them again

    def _is_taken(self, item: Item) -> bool:
        try:
            self._save([item])
        except ContentRefused:
            return False
        return True

    def _settle(self, count: int) -> None:
        with self._changed:
            del self._in_flight[:count]
            self._settled += count
            self._changed.notify_all()

    def _went(self, problem: str) -> bool:
        if self.problem is None:
            told = "%s; up to %d exchanges, labels and scores wait in memory, and it is tried again"
            logger.warning(told, problem, self._capacity)
        self.problem = problem
        return False

    def _well(self) -> None:
        self._failures = 0
        if self.problem is not None:
            logger.info("%s takes exchanges again", self._store.name)
            self.problem = None
        if self._overflowing and len(self._queue) <= self._room // 2:
            self._overflowing = False
            told = "the queue has room again; %d exchanges, and %d labels and scores, were dropped so far"
            logger.info(told, self.dropped, self.lost)


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for writer in list(_writers):
        writer.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _stop(writer: weakref.ref[Writer]) -> None:
    """Write at the end of the process what nobody stopped the writer for."""
    if (alive := writer()) is not None:
        alive.stop(AT_EXIT)
        alive._store.close()  # noqa: SLF001 - a part of the class that must not keep it alive
