"""The limits on the cost of the tests themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import COMPAT
from tests.costs import COST, MAX_PROCESSES, MAX_SHARE, CostGuard


def guard_after(*costs: tuple[str, float, int], is_limited: bool = True) -> CostGuard:
    """Return a guard that has seen tests with these costs."""
    guard = CostGuard(is_limited=is_limited)
    for file, cpu_seconds, processes in costs:
        guard.pytest_runtest_logreport(
            pytest.TestReport(
                nodeid=f"{file}::test_it",
                location=(file, 1, "test_it"),
                keywords={},
                outcome="passed",
                longrepr=None,
                when="teardown",
                user_properties=[(COST, (cpu_seconds, processes))],
            )
        )
    return guard


@pytest.mark.parametrize("speed", [1, 3])
def test_a_file_over_its_share_of_the_cpu_time_is_a_problem(speed: float) -> None:
    """The tests of a file add up, the limit is per file, and it is the same on a machine of any speed."""
    rest = [(f"{number}.py", speed, 0) for number in range(100)]
    most = 100 * speed * MAX_SHARE / (1 - MAX_SHARE)
    assert not guard_after(*rest, ("one.py", 0.5 * most, 0), ("one.py", 0.49 * most, 0)).problems()

    (problem,) = guard_after(*rest, ("one.py", 0.5 * most, 0), ("one.py", 0.51 * most, 0)).problems()

    assert re.match(r"one.py costs \d+.\d of \d+.\d s of CPU time \(limit 4%\)", problem)


def test_too_many_processes_are_a_problem() -> None:
    """The limit is on the whole suite."""
    assert not guard_after(("one.py", 0, MAX_PROCESSES - 1), ("two.py", 0, 1)).problems()

    (problem,) = guard_after(("one.py", 0, MAX_PROCESSES), ("two.py", 0, 1)).problems()

    assert problem == "the tests started 61 processes; the limit is 60"


def test_the_slow_tests_have_no_limit() -> None:
    """Browsers and killed fleets cost what they cost."""
    assert not guard_after(("one.py", 100, 100), is_limited=False).problems()


def test_the_cost_of_each_test_is_measured(request: pytest.FixtureRequest) -> None:
    """This very run is measured: every test so far is in the guard, or was reported to the controller."""
    guard = request.config.pluginmanager.get_plugin("costs")

    assert isinstance(guard, CostGuard)
    assert guard._before[0] > 0


def test_the_compat_tests_are_files_that_exist() -> None:
    """A renamed file must not leave the run on the oldest dependencies unnoticed."""
    tests = Path(__file__).parents[1]
    listed = [(folder, name) for folder, names in COMPAT.items() for name in names.replace("*", "test_*").split()]

    assert [path for path in listed if not list((tests / path[0]).glob(f"{path[1]}.py"))] == []
