"""Simulation of many services in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streams.bands import Figure
from streams.cases import TWICE_UP_TO, Case, Cell, cases
from streams.figures import HOURLY_RULE_CASES, ONE_ROUTE, figures_of, hourly_rule_figures
from streams.recipe import Floats
from streams.watched import Outcome, hourly_falls, watched

Mapped = Callable[..., Iterable[Any]]
TASK = 300_000
"""Approximate number of scores per task."""


@dataclass(frozen=True, slots=True)
class Task:
    """A range of one case's services."""

    seed: int
    cell: Cell
    case: Case
    numbers: range


def tasks(seed: int, cell: Cell, some: Sequence[Case]) -> list[Task]:
    """Split the cases into tasks, longest services first."""
    found = []
    for case in sorted(some, key=lambda case: -case.days):
        step = max(1, TASK // (case.days * cell.per_day))
        starts = range(0, case.services, step)
        found += [Task(seed, cell, case, range(at, min(at + step, case.services))) for at in starts]
    return found


def outcomes(task: Task) -> list[Outcome]:
    """Simulate the services of a task with the detector."""
    return [watched(task.seed, task.cell, task.case, number) for number in task.numbers]


def falls(task: Task) -> list[tuple[Floats, float, float]]:
    """Return the hourly falls of a task's services, each with the onset and the end of its change."""
    found = []
    for number in task.numbers:
        each, made = hourly_falls(task.seed, task.cell, task.case, number, one_route=task.case.name in ONE_ROUTE)
        found.append((each, made.onset, made.end))
    return found


def chosen(cell: Cell, *, times: float = 1.0, only: Sequence[str] = ()) -> list[Case]:
    """Return the cases of one kind of service, with ``times`` as many services. ``only`` restricts them by name."""
    times = 2 * times if cell.per_day <= TWICE_UP_TO else times
    some = [case for case in cases() if cell.per_day in case.only and (not only or case.name in only)]
    return [replace(case, services=max(2, round(times * case.services))) for case in some]


def simulated(seed: int, cell: Cell, some: Sequence[Case], mapped: Mapped = map) -> list[Figure]:
    """Return the detector's figures for one kind of service; ``mapped`` is :func:`map` or a parallel equivalent."""
    return figures_of(cell, _by_case(outcomes, seed, cell, some, mapped))


def simulated_hourly_rule(seed: int, cell: Cell, some: Sequence[Case], mapped: Mapped = map) -> list[Figure]:
    """Return the figures of the hourly rule; empty unless all cases that it needs are selected."""
    needed = [case for case in some if case.name in HOURLY_RULE_CASES]
    if len(needed) < len(HOURLY_RULE_CASES):
        return []
    return hourly_rule_figures(cell, _by_case(falls, seed, cell, needed, mapped))


def _by_case(
    does: Callable[[Task], list[Any]], seed: int, cell: Cell, some: Sequence[Case], mapped: Mapped
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {case.name: [] for case in some}
    given = tasks(seed, cell, some)
    for task, results in zip(given, mapped(does, given), strict=True):
        found[task.case.name] += results
    return found
