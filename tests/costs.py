"""The CPU time and the started processes of each test file, printed after the tests and limited in the fast suite.

The limit is a share of the run, because the same test costs twice as many seconds on a slow or busy machine.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

MAX_SHARE = 0.04
"""Limit of a file's share of the CPU time of the whole fast suite."""
MAX_PROCESSES = 60
"""Limit of the whole fast suite."""
SHOWN_FILES = 12
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
COST = "cost"


@dataclass
class Cost:
    """What a test or a file used: seconds of CPU time, including finished child processes, and processes started."""

    cpu_seconds: float = 0.0
    processes: int = 0

    def add(self, cpu_seconds: float, processes: int) -> None:
        """Add the cost of a test."""
        self.cpu_seconds += cpu_seconds
        self.processes += processes


class CostGuard:
    """Measures each test where it runs, and adds the costs up in the process that prints the summary."""

    def __init__(self, *, is_limited: bool) -> None:
        self._is_limited = is_limited
        self._started = 0
        self._before = (0.0, 0)
        self.files: defaultdict[str, Cost] = defaultdict(Cost)
        sys.addaudithook(self._count_process)

    def _count_process(self, event: str, _arguments: object) -> None:
        self._started += event in STARTS

    def _now(self) -> tuple[float, int]:
        return sum(os.times()[:4]), self._started

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Note what was used before the test."""
        self._before = self._now()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Attach the cost to the report of the teardown, which a worker sends to the controller."""
        result = yield
        item.user_properties.append(
            (COST, tuple(now - then for now, then in zip(self._now(), self._before, strict=True)))
        )
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the cost of a finished test to its file."""
        if report.when == "teardown":
            for cost in (value for name, value in report.user_properties if name == COST):
                self.files[report.nodeid.partition("::")[0]].add(*cost)

    def problems(self) -> list[str]:
        """Return the limits that the fast suite exceeds."""
        if not self._is_limited:
            return []
        total = sum(cost.cpu_seconds for cost in self.files.values())
        processes = sum(cost.processes for cost in self.files.values())
        found = [
            f"{file} costs {cost.cpu_seconds:.1f} of {total:.1f} s of CPU time (limit {MAX_SHARE:.0%}): "
            "make it cheaper, or mark its expensive tests as slow"
            for file, cost in self.files.items()
            if cost.cpu_seconds > MAX_SHARE * total
        ]
        if processes > MAX_PROCESSES:
            found.append(f"the tests started {processes} processes; the limit is {MAX_PROCESSES}")
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail if a limit is exceeded."""
        if not hasattr(session.config, "workerinput") and self.problems():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the most expensive files, and each exceeded limit."""
        total = Cost()
        for cost in self.files.values():
            total.add(cost.cpu_seconds, cost.processes)
        if len(self.files) > 1:
            terminalreporter.section("costs")
            terminalreporter.line(f"{'CPU s':>7} {'processes':>9}")
            highest = sorted(self.files.items(), key=lambda item: -item[1].cpu_seconds)[:SHOWN_FILES]
            for name, cost in [*highest, (f"all {len(self.files)} files", total)]:
                terminalreporter.line(f"{cost.cpu_seconds:7.1f} {cost.processes:9}  {name}")
        for problem in self.problems():
            terminalreporter.line(problem, red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Measure every run; limit the fast suite when all of it runs."""
    is_whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
    is_fast = config.option.markexpr.startswith("not slow")
    config.pluginmanager.register(CostGuard(is_limited=is_whole and is_fast), "costs")
