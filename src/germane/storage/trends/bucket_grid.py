"""Bucket boundaries: days start at midnight, weeks on Monday, other buckets at multiples of their length since 1970."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from germane.storage.trends.time_ranges import DAY, HOUR, WEEK, TimeRange, down

FIRST_MONDAY: Final = 4 * DAY
"""Seconds from 1970-01-01, a Thursday, to the first Monday."""
_ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BucketGrid:
    """Divides time into buckets of equal length.

    Buckets of whole days start at midnight in the timezone, and buckets of whole weeks start on Monday. Other buckets
    start at multiples of their length since 1970 in UTC, because an hour is repeated when clocks are set back.

    Each bucket has a number: its start in local time, in seconds since 1970. For whole weeks, the seconds to the first
    Monday are subtracted.
    """

    length: int
    """Length of a bucket in seconds."""
    timezone: tzinfo = UTC

    @property
    def is_local(self) -> bool:
        """Whether buckets start at local times of the timezone instead of UTC."""
        return self.length % DAY == 0 and self.timezone is not UTC

    def start(self, number: int) -> datetime:
        """Return the start of the bucket with this number, in UTC."""
        at = datetime.fromtimestamp(number + self._origin, UTC)
        # If clocks skip midnight, the day starts at the first moment after it.
        return at.replace(tzinfo=self.timezone).astimezone(UTC) if self.is_local else at

    def starts(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the starts of all buckets that overlap a window, in UTC, oldest first."""
        number = self.number(since)
        while (start := self.start(number)) < until:
            yield start
            number += self.length

    def number(self, moment: datetime) -> int:
        """Return the number of the bucket that contains a time."""
        seconds = int(moment.timestamp()) + self._offset(moment) - self._origin
        return seconds // self.length * self.length

    def numbering(self, since: datetime, until: datetime) -> Callable[[int], int]:
        """Return a function that is faster than :meth:`number` for many times of a window, in seconds since 1970."""
        parts = list(self.split(since, until))
        if len(parts) == 1:
            shift = parts[0][1]
            return lambda seconds: (seconds + shift) // self.length * self.length
        changes = [int(start.timestamp()) for (start, _), _ in parts[1:]]
        return lambda seconds: (seconds + parts[bisect_right(changes, seconds)][1]) // self.length * self.length

    def split(self, since: datetime, until: datetime) -> Iterator[tuple[TimeRange, int]]:
        """Split a window at clock changes.

        Yields:
            A part of the window, and the seconds to add to UTC in that part before rounding down to a multiple of the
            bucket length.
        """
        start = since
        for changed in self._clock_changes(since, until) if self.is_local else ():
            yield (start, changed), self._offset(start) - self._origin
            start = changed
        yield (start, until), self._offset(start) - self._origin

    def split_hours(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the UTC hours in which a bucket starts later than on the hour, oldest first.

        Such hours exist in timezones whose offset is not a whole number of hours.
        """
        if self.is_local and any(shift % HOUR for _, shift in self.split(since, until)):
            for start in self.starts(since, until):
                if start >= since and (hour := down(start, HOUR)) != start:
                    yield hour

    @property
    def _origin(self) -> int:
        return FIRST_MONDAY if self.length % WEEK == 0 else 0

    def _offset(self, moment: datetime) -> int:
        """Return the timezone's offset from UTC in seconds; 0 if buckets are not local."""
        offset = moment.astimezone(self.timezone).utcoffset() if self.is_local else None
        return round(offset.total_seconds()) if offset else 0

    def _clock_changes(self, since: datetime, until: datetime) -> Iterator[datetime]:
        start = since
        while start < until:
            end = min(start + _ONE_DAY, until)
            if self._offset(start) != self._offset(end):
                early, late = start, end
                while late - early > timedelta(seconds=1):
                    middle = early + (late - early) / 2
                    early, late = (early, middle) if self._offset(middle) != self._offset(start) else (middle, late)
                # Clocks change at whole seconds.
                changed = late.replace(microsecond=0)
                if since < changed < until:
                    yield changed
            start = end
