"""Results of the families benchmark: goals, intervals, JSON and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from germane.alerting.intervals import TWO_SIDED_Z
from germane.statistics import wilson_interval
from streams.attribution import AttributionRow
from streams.database import DatabaseRow
from streams.rivals import RIVALS

MAX_FALSE_ALERTS, MAX_NOTIFICATIONS = 0.2, 2.2
LEAST_FOUND: Final = {"shift 0.05, 1000 a day": 0.85}
"""Minimum share of drops found within 7 days."""
MOST_HOURS: Final = {
    "shift 0.10, 100 a day": 28.0,
    "shift 0.10, 300 a day": 13.0,
    "shift 0.10, 1000 a day": 7.5,
    "shift 0.10, 5000 a day": 6.3,
}
"""Maximum median delay in hours."""
SUMMARY_SCORES, SUMMARY_SIZES = (10, 100, 300, 1000, 5000), ("0.05", "0.10", "0.20")
"""Scores per day and drops in the table for users."""
GERMANE = "germane"
RULES = (GERMANE, *RIVALS)
WEEK = 168


@dataclass(frozen=True, slots=True)
class QuietRow:
    """Alerts while nothing gets worse."""

    family: str
    years: int
    alerts: dict[str, int]
    """Number of alerts by rule."""
    is_counted: bool
    """Whether the goal applies, which it does not for a documented limitation."""
    weekly_deviation: float
    """Standard deviation of the weekly mean after the baseline, relative to the baseline's mean."""
    fall_at_alerts: float | None
    """Median amount by which the mean fell in the week before germane's alerts."""

    @property
    def misses(self) -> list[str]:
        """The missed goals."""
        rate = self.alerts[GERMANE] / self.years
        return ["alerts"] if self.is_counted and rate > MAX_FALSE_ALERTS else []


@dataclass(frozen=True, slots=True)
class DropRow:
    """Delays until drops are found, and notifications about them."""

    family: str
    services: int
    found: dict[str, int]
    """Number of services with an alert within 7 days, by rule."""
    hours: dict[str, list[float]]
    """Quartiles of the delay in hours, by rule; infinite if there is no alert."""
    notifications: float
    """germane's notifications per detected drop, including its recovery."""
    recovery: list[float]
    """Quartiles of the hours from the end of the drop until germane's alert resolves."""

    @property
    def misses(self) -> list[str]:
        """The missed goals."""
        least, most = LEAST_FOUND.get(self.family, 0.0), MOST_HOURS.get(self.family, math.inf)
        missed = {
            "found": self.found[GERMANE] / self.services < least,
            "hours": self.hours[GERMANE][1] > most,
            "notifications": self.notifications > MAX_NOTIFICATIONS,
        }
        return [name for name, is_missed in missed.items() if is_missed]


@dataclass(frozen=True, slots=True)
class ImprovementRow:
    """Proposed improvements, and later falls that are found within 7 days."""

    family: str
    services: int
    proposed: int
    found: dict[str, int]
    """Number of services by rule."""


@dataclass(frozen=True, slots=True)
class StoryRow:
    """Alerts about one story."""

    family: str
    is_quiet: bool
    services: int
    """For quiet stories, this is the number of years."""
    alerts: int
    """Number of false alerts, which includes those before the change."""
    rival: int
    """False alerts of the weekly z-test in quiet stories, or services in which it finds the change within 7 days."""
    in_3_days: int
    in_7_days: int
    """Number of services in which germane finds the change."""
    onset_error: float | None
    """Median of the hours from the change to the estimated onset."""
    recovered: int
    """Number of alerts that resolve as recovered while the change lasts."""
    is_counted: bool = True

    @property
    def misses(self) -> list[str]:
        """The missed goals."""
        if self.is_quiet:
            return ["alerts"] if self.is_counted and self.alerts / self.services > MAX_FALSE_ALERTS else []
        is_told = self.in_3_days >= 0.9 * self.services
        found = [] if is_told or "renamed, fall of 0.20" not in self.family else ["in 3 days"]
        return found + (["recovered"] if self.recovered and "renamed" in self.family else [])


@dataclass(frozen=True, slots=True)
class EqualRow:
    """Drops of 0.05 that a rule finds within 7 days at given false-alert rates."""

    rule: str
    services: int
    found: list[int]
    """Number of services at 0.2 and at 1 false alert a year."""


@dataclass(slots=True)
class Results:
    """All rows of the benchmark."""

    quiet: list[QuietRow] = field(default_factory=list)
    thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    """Thresholds of the rivals, by scores per day and rule."""
    drops: list[DropRow] = field(default_factory=list)
    improvements: list[ImprovementRow] = field(default_factory=list)
    stories: list[StoryRow] = field(default_factory=list)
    attribution: list[AttributionRow] = field(default_factory=list)
    equal: list[EqualRow] = field(default_factory=list)
    database: list[DatabaseRow] = field(default_factory=list)

    def misses(self) -> list[str]:
        """Return the missed goals, with their families."""
        rows: list[QuietRow | DropRow | StoryRow | DatabaseRow] = [
            *self.quiet, *self.drops, *self.stories, *self.database,
        ]  # fmt: skip
        return [f"{row.family}: {name}" for row in rows for name in row.misses]


SECTIONS: Final[dict[str, type[Any]]] = {
    "quiet": QuietRow,
    "drops": DropRow,
    "improvements": ImprovementRow,
    "stories": StoryRow,
    "attribution": AttributionRow,
    "equal": EqualRow,
    "database": DatabaseRow,
}


def written(results: Results) -> str:
    """Serialize results as JSON, one row per line. Infinity becomes a string."""
    parts = [f'"thresholds": {json.dumps(_plain(results.thresholds))}']
    for name in SECTIONS:
        lines = ",\n".join(json.dumps(_plain(asdict(row)), allow_nan=False) for row in getattr(results, name))
        parts.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read(text: str) -> Results:
    """Parse results written by :func:`written`."""
    found = _numbers(json.loads(text))
    rows = {name: [row(**each) for each in found.get(name, [])] for name, row in SECTIONS.items()}
    return Results(thresholds=found["thresholds"], **rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else str(value)
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return math.inf if value == "inf" else value


def quartiles(delays: Sequence[float]) -> list[float]:
    """Return the quartiles of delays, some of which may be infinite. Without delays, they are infinite."""
    return (
        [math.inf] * 3
        if not delays
        else [float(each) for each in np.quantile(delays, [0.25, 0.5, 0.75], method="inverted_cdf")]
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"|{'|'.join(row)}|" for row in (head, ["---"] * len(head), *rows))


def pages(results: Results) -> dict[str, str]:
    """Return the tables in docs/research/detector.md by section."""
    return {
        "quiet": quiet_table(results.quiet),
        "levels": _levels_table(results.quiet),
        "found": found_table(results.drops, results.improvements),
        "hours": hours_table(results.drops),
        **({"stories": stories_table(results.stories)} if results.stories else {}),
        "attribution": attribution_table(results.attribution),
        "equal": equal_table(results.equal),
        "database": database_table(results.database),
    }


def summary_table(results: Results) -> str:
    """Return the table in docs/drop-detector.md: drops and false alerts by scores per day, with a wander of 0.02."""
    drops = {row.family: row for row in results.drops}
    quiet = {row.family: row for row in results.quiet}
    rows = []
    for per_day in SUMMARY_SCORES:
        names = [f"shift {size}, {per_day} a day" for size in SUMMARY_SIZES]
        if not drops.keys() >= set(names):
            continue
        found = [drops[name] for name in names]
        years = quiet.get(f"quiet, wander 0.02, {per_day} a day")
        rate = f"{years.alerts[GERMANE] / years.years:.1f}" if years else "not measured"
        rows.append([str(per_day), *(_found_within(row) for row in found), rate])
    return table(("scores a day", *(f"drop of {size}" for size in SUMMARY_SIZES), "false alerts a year"), rows)


def _found_within(row: DropRow) -> str:
    share = f"{round(row.found[GERMANE] / row.services, 2):.0%}"
    median = row.hours[GERMANE][1]
    return f"{share}, median {_hours(median)} h" if math.isfinite(median) else share


def quiet_table(rows: Sequence[QuietRow]) -> str:
    """Return the false alerts per year."""
    return table(("family", *RULES), [_quiet_cells(row) for row in [*rows, *_together(rows)]])


def _quiet_cells(row: QuietRow) -> list[str]:
    ours, *rivals = (_rate(row.alerts[rule], row.years) for rule in RULES)
    return [row.family, _marked(ours, row.misses), *rivals]


def _together(rows: Sequence[QuietRow]) -> Iterable[QuietRow]:
    counted = [row for row in rows if row.is_counted]
    if counted:
        alerts = {rule: sum(row.alerts[rule] for row in counted) for rule in RULES}
        yield QuietRow(
            family="all families with a goal",
            years=sum(row.years for row in counted),
            alerts=alerts,
            is_counted=False,
            weekly_deviation=0.0,
            fall_at_alerts=None,
        )


def _levels_table(rows: Sequence[QuietRow]) -> str:
    head = ("family", "standard deviation of weekly means", "median fall in the week before an alert")
    some = [row for row in rows if row.fall_at_alerts is not None and row.alerts[GERMANE] >= 5 and row.is_counted]
    return table(head, [[row.family, f"{row.weekly_deviation:.3f}", f"{row.fall_at_alerts:.3f}"] for row in some])


def found_table(rows: Sequence[DropRow], improved: Sequence[ImprovementRow]) -> str:
    """Return the shares found within 7 days."""
    cells = []
    for row in rows:
        ours, *rivals = (_share(row.found[rule], row.services) for rule in RULES)
        cells.append([row.family, _marked(ours, "found" in row.misses), *rivals])
    cells += [[row.family, *(_share(row.found[rule], row.services) for rule in RULES)] for row in improved]
    return table(("drop", *RULES), cells)


def hours_table(rows: Sequence[DropRow]) -> str:
    """Return the median delays and recoveries with quartiles, and the notifications per drop."""
    cells = []
    for row in rows:
        ours, *rivals = (_delay(row.hours[rule]) for rule in RULES)
        sent = _marked(f"{row.notifications:.2f}", "notifications" in row.misses)
        cells.append([row.family, _marked(ours, "hours" in row.misses), sent, _delay(row.recovery), *rivals])
    return table(("drop", GERMANE, "notifications", "recovery", *RIVALS), cells)


def stories_table(rows: Sequence[StoryRow]) -> str:
    """Return the false alerts per year, or the shares found within 3 and 7 days."""
    head = ("story", "false alerts a year", "weekly z", "within 3 days", "within 7 days", "onset error")
    cells = []
    for row in rows:
        if row.is_quiet:
            ours, rival = (_rate(count, row.services) for count in (row.alerts, row.rival))
            cells.append([row.family, _marked(ours, row.misses), rival, "", "", ""])
        else:
            shares = [_share(count, row.services) for count in (row.rival, row.in_3_days, row.in_7_days)]
            error = "" if row.onset_error is None else f"{row.onset_error:+.0f} h"
            cells.append([row.family, "", shares[0], _marked(shares[1], row.misses), shares[2], error])
    return table(head, cells)


def attribution_table(rows: Sequence[AttributionRow]) -> str:
    """Return the numbers of services by the routes that alerts name."""
    head = ("drop", "exactly right", "whole service", "wrong routes", "no alert")
    return table(
        head,
        [
            [row.family, *(_share(count, row.services) for count in (row.exact, row.service, row.wrong, row.none))]
            for row in rows
        ],
    )


def equal_table(rows: Sequence[EqualRow]) -> str:
    """Return the shares at equal false-alert rates."""
    head = ("rule", "at 0.2 false alerts a year", "at 1")
    return table(head, [[row.rule, *(_share(count, row.services) for count in row.found)] for row in rows])


def database_table(rows: Sequence[DatabaseRow]) -> str:
    """Return the alerts for services that were replayed on a database."""
    head = (
        "service", "days", "scores", "fired and resolved on day", "difference",
        "notifications", "with reminders",
    )  # fmt: skip
    return table(
        head,
        [
            [
                row.family,
                str(row.days),
                str(row.scores),
                ", ".join(f"{at / 24:.1f}" for at in row.changes) or "never",
                "**yes**" if row.misses else "none",
                str(row.notifications),
                str(row.notifications + row.reminders),
            ]
            for row in rows
        ],
    )


def _rate(count: int, years: int) -> str:
    low, high = poisson_interval(count)
    digits = 2 if count / years < 10 else 0
    return f"{count / years:.{digits}f} ({low / years:.{digits}f} to {high / years:.{digits}f})"


def _share(count: int, n: int) -> str:
    low, high = wilson_interval(count / n, n)
    return f"{count / n:.2f} ({low:.2f} to {high:.2f})"


def _delay(hours: Sequence[float]) -> str:
    first, median, third = map(_hours, hours)
    return f"{median} h ({first} to {third})" if math.isfinite(hours[1]) else f"inf ({first} to {third})"


def _hours(hours: float) -> str:
    return "inf" if math.isinf(hours) else f"{hours:.1f}" if hours < 9.95 else f"{hours:.0f}"


def _marked(text: str, is_missed: object) -> str:
    return f"**{text}**" if is_missed else text


def poisson_interval(count: int) -> tuple[float, float]:
    """Return the exact 95% interval of the mean of a Poisson count.

    Source: F. Garwood, Fiducial limits for the Poisson distribution, Biometrika 28, 1936. Above 500, Byar's
    approximation is used, which is exact to four digits there (N. Breslow, N. Day, Statistical methods in cancer
    research 2, 1987).
    """
    if count > 500:
        low, high = (
            n * (1 - 1 / (9 * n) + sign * TWO_SIDED_Z / (3 * math.sqrt(n))) ** 3
            for n, sign in ((count, -1), (count + 1, 1))
        )
        return low, high

    def at_most(mean: float, most: int) -> float:
        return math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(most + 1))

    def solve(is_below: Callable[[float], bool]) -> float:
        low, high = 0.0, count + 10 * math.sqrt(count + 1)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if is_below(middle) else (low, middle)
        return low

    low = solve(lambda mean: 1 - at_most(mean, count - 1) < 0.025) if count else 0.0
    return low, solve(lambda mean: at_most(mean, count) > 0.025)
