"""The background thread keeps its poll interval when the clock is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from germane.monitor.loop.scheduler import ClockStepDetector, PeriodicJob, Scheduler

Until = Callable[..., None]
HOUR = 3600.0


class Times:
    """A wall clock that can be set, and a monotonic clock."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_772_366_400.0, 100.0

    def clock(self) -> ClockStepDetector:
        return ClockStepDetector(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


class Counting:
    """A service that counts the runs of its job."""

    def __init__(self) -> None:
        self.count = 0

    def periodic_jobs(self) -> Mapping[str, PeriodicJob]:
        return {"count": self._tick}

    async def _tick(self) -> None:
        self.count += 1

    async def stop(self, deadline: float) -> bool:
        return True


def test_jobs_continue_on_schedule_when_the_clock_is_set_back(until: Until) -> None:
    """The next run starts immediately, although it is an hour ahead on the clock."""
    times, work = Times(), Counting()
    scheduler = Scheduler(
        lambda: work, poll_interval=HOUR, wall_clock=lambda: times.wall, monotonic_clock=lambda: times.steady
    )
    scheduler.start()
    until(lambda: work.count == 1)

    times.wall -= HOUR

    until(lambda: work.count == 2)
    assert scheduler.stop(60)


@pytest.mark.parametrize("step", [0.0, 0.25, HOUR, -0.25])
def test_the_scheduler_detects_only_backward_clock_steps(step: float) -> None:
    """Passing time, small corrections and forward steps are ignored."""
    times = Times()
    clock = times.clock()
    times.pass_(10.0)
    times.wall += step

    assert not clock.was_set_back()


def test_each_backward_clock_step_is_detected_once() -> None:
    """A second backward step is also detected."""
    times = Times()
    clock = times.clock()
    noticed = []
    for step in (-HOUR, 0.0, -60.0, 0.0):
        times.pass_(1.0)
        times.wall += step
        noticed.append(clock.was_set_back())

    assert noticed == [True, False, True, False]
