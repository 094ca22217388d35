"""The thread in the background keeps its ticks, whatever becomes of the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from germane.monitor.loop.scheduler import Scheduler, SteppingClock, Tick

Until = Callable[..., None]
HOUR = 3600.0


class Times:
    """A time of day that can be set, beside one that cannot."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_772_366_400.0, 100.0

    def clock(self) -> SteppingClock:
        return SteppingClock(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


class Counting:
    """Work that counts its ticks."""

    def __init__(self) -> None:
        self.count = 0

    def ticks(self) -> Mapping[str, Tick]:
        return {"count": self._tick}

    async def _tick(self) -> None:
        self.count += 1

    async def stop(self, deadline: float) -> bool:
        return True


def test_ticks_go_on_when_the_clock_is_set_back(until: Until) -> None:
    """The next tick, due in an hour by the clock, comes at once when the clock loses one."""
    times, work = Times(), Counting()
    scheduler = Scheduler(lambda: work, tick=HOUR, wall=lambda: times.wall, steady=lambda: times.steady)
    scheduler.start()
    until(lambda: work.count == 1)

    times.wall -= HOUR

    until(lambda: work.count == 2)
    assert scheduler.stop(60)


@pytest.mark.parametrize("step", [0.0, 0.25, HOUR, -0.25])
def test_a_clock_that_is_slowed_or_set_ahead_is_not_set_back(step: float) -> None:
    """Only what makes a tick late counts: passing time, small corrections and summer are none of that."""
    times = Times()
    clock = times.clock()
    times.pass_(10.0)
    times.wall += step

    assert not clock.was_set_back()


def test_a_clock_that_is_set_back_is_noticed_once() -> None:
    """And again when it happens again."""
    times = Times()
    clock = times.clock()
    noticed = []
    for step in (-HOUR, 0.0, -60.0, 0.0):
        times.pass_(1.0)
        times.wall += step
        noticed.append(clock.was_set_back())

    assert noticed == [True, False, True, False]
