"""Where buckets start: hours at multiples of their length since 1970, days at midnight, and weeks on Monday."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from germane.storage.trends.time_ranges import DAY, HOUR, WEEK, TimeRange, down

FIRST_MONDAY: Final = 4 * DAY
"""Seconds from 1970-01-01, a Thursday, to the first Monday."""
_ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BucketGrid:
    """Starts of buckets.

    Buckets of whole days start at midnight in the timezone, and those of whole weeks on Monday. Shorter buckets start
    at multiples of their length since 1970 in UTC, because an hour is repeated when clocks are set back.

    A bucket has a number: the seconds from 1970 to its start by the clock of the timezone, less the seconds to the
    first Monday if buckets are whole weeks.
    """

    length: int
    """Seconds."""
    timezone: tzinfo = UTC

    @property
    def is_local(self) -> bool:
        """Whether buckets follow the clock of the timezone."""
        return self.length % DAY == 0 and self.timezone is not UTC

    def start(self, number: int) -> datetime:
        """Return the start of a bucket; UTC."""
        at = datetime.fromtimestamp(number + self._origin, UTC)
        # If clocks skip midnight, the day starts with the first moment after it.
        return at.replace(tzinfo=self.timezone).astimezone(UTC) if self.is_local else at

    def starts(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the starts of all buckets that overlap a window, oldest first; UTC."""
        number = self.number(since)
        while (start := self.start(number)) < until:
            yield start
            number += self.length

    def number(self, moment: datetime) -> int:
        """Return the number of the bucket that contains a time."""
        seconds = int(moment.timestamp()) + self._offset(moment) - self._origin
        return seconds // self.length * self.length

    def split(self, since: datetime, until: datetime) -> Iterator[tuple[TimeRange, int]]:
        """Split a window where clocks change.

        Yields:
            A part, and the seconds to add to UTC in it before rounding down to a multiple of the length.
        """
        if not self.is_local:
            yield (since, until), -self._origin
            return
        start = since
        for changed in self._clock_changes(since, until):
            yield (start, changed), self._offset(start) - self._origin
            start = changed
        yield (start, until), self._offset(start) - self._origin

    def split_hours(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the hours of UTC in which a bucket starts after the hour has begun, oldest first.

        They occur in timezones whose offset is not a whole number of hours.
        """
        if self.is_local and any(shift % HOUR for _, shift in self.split(since, until)):
            for start in self.starts(since, until):
                if start >= since and (hour := down(start, HOUR)) != start:
                    yield hour

    @property
    def _origin(self) -> int:
        return FIRST_MONDAY if self.length % WEEK == 0 else 0

    def _offset(self, moment: datetime) -> int:
        """Return the seconds by which the timezone's clock is ahead of UTC."""
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
