"""Scores made elsewhere whose exchange is not in the database yet: tried again, less and less often, until too old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from germane.annotation import Recorded


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
