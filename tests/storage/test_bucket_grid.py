"""Bucket starts in different timezones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.storage.trends.bucket_grid import BucketGrid

DAY = 86_400
TIMEZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Kolkata", "Australia/Lord_Howe"]
moments = st.integers(631_152_000, 2_208_988_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
"""From 1990 to 2040."""
grids = st.builds(
    BucketGrid, st.sampled_from([DAY, 2 * DAY, 7 * DAY, 14 * DAY]), st.sampled_from(TIMEZONES).map(ZoneInfo)
)


@given(grid=grids, moment=moments)
def test_each_point_in_time_is_in_exactly_one_bucket(grid: BucketGrid, moment: datetime) -> None:
    """The bucket starts at or before the moment, and the next bucket starts after it."""
    number = grid.number(moment)

    assert grid.start(number) <= moment < grid.start(number + grid.length)


@given(grid=grids, moment=moments, days=st.lists(st.floats(0, 400), min_size=1))
def test_fast_bucket_numbers_equal_the_others(grid: BucketGrid, moment: datetime, days: list[float]) -> None:
    """Thousands of times of a window get the same numbers as each time on its own, across clock changes."""
    times = [int((moment + timedelta(days=day)).timestamp()) for day in [*days, 0, *range(0, 400, 29)]]
    fast = grid.numbering(moment, datetime.fromtimestamp(max(times) + 1, UTC))

    assert [fast(seconds) for seconds in times] == [grid.number(datetime.fromtimestamp(at, UTC)) for at in times]


@given(grid=grids, moment=moments)
def test_days_start_at_midnight_and_weeks_on_monday(grid: BucketGrid, moment: datetime) -> None:
    """Midnight is local. If the clock skips midnight, the day starts at the first moment after it."""
    start = grid.start(grid.number(moment)).astimezone(grid.timezone)

    assert (start - timedelta(minutes=1)).astimezone(UTC).astimezone(grid.timezone).date() < start.date()
    assert grid.length % (7 * DAY) or start.weekday() == 0


@given(grid=grids, moment=moments, days=st.integers(0, 400))
def test_windows_are_split_at_daylight_saving_changes(grid: BucketGrid, moment: datetime, days: int) -> None:
    """The parts cover the window, and bucket numbers in each part are computed from UTC with a constant offset."""
    until = moment + timedelta(days=days, minutes=7)
    parts = list(grid.split(moment, until))

    assert (parts[0][0][0], parts[-1][0][1]) == (moment, until)
    assert all(before[0][1] == after[0][0] for before, after in pairwise(parts))
    for (since, end), shift in parts:
        for at in (since, since + (end - since) / 2, end - timedelta(seconds=1)):
            assert (int(at.timestamp()) + shift) // grid.length * grid.length == grid.number(at)


@pytest.mark.parametrize(("timezone", "expected"), [("UTC", "2026-11-23T00:00"), ("Europe/Berlin", "2026-11-22T23:00")])
def test_a_week_starts_on_monday(timezone: str, expected: str) -> None:
    """The week of a Wednesday starts two days earlier."""
    grid = BucketGrid(7 * DAY, ZoneInfo(timezone))

    start = grid.start(grid.number(datetime(2026, 11, 25, 12, tzinfo=UTC)))
    assert f"{start:%Y-%m-%dT%H:%M}" == expected


def test_hourly_buckets_are_the_same_in_all_timezones() -> None:
    """An hour that is repeated when clocks are set back has two buckets."""
    grid = BucketGrid(3600, ZoneInfo("Europe/Berlin"))
    since = datetime(2026, 10, 25, tzinfo=UTC)

    assert list(grid.starts(since, since + timedelta(hours=3))) == [since + timedelta(hours=hour) for hour in range(3)]
