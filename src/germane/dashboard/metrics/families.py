"""The gauges of a database in the terms of Prometheus: names, help and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client.core import GaugeMetricFamily

from germane.baseline import OTHER
from germane.dashboard.metrics.snapshot import Readings

if TYPE_CHECKING:
    from germane.storage import Coverage, Estimate, Overall, RouteSummary, ServiceSummary


ROUTES: Final = 200
"""Of all services together: those with most exchanges in the longest window."""
SCORERS: Final = 20
"""Those with most exchanges in the longest window."""
LINES: Final = 600
"""Routes of scorers, each with some fifty samples."""
FINGERPRINTS: Final = 2
"""Of one line in one window: the newest, and the one before."""
LONGEST: Final = 500
"""Characters of a name: a longer one is left out, for cut short it might be another's."""
ALERTS: Final = 200
"""Groups of open alerts: those that began first."""
Place = tuple[str, str]
"""Service and route."""
Line = tuple[str, str, str]
"""Service, route and scorer; an empty scorer where exchanges were dropped before one was known."""


Name = TypeVar("Name", bound=tuple[str, ...])
Summary = TypeVar("Summary", "RouteSummary", "ServiceSummary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is shown, and how much is not."""

    lines: frozenset[Line] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many, of routes, of scorers, and of routes of scorers."""

    def hold(self, found: Coverage | RouteSummary) -> bool:
        """Whether it is of a route and a scorer that are shown."""
        return (found.service, found.route, found.scorer) in self.lines

    def routes(self, found: Iterable[RouteSummary]) -> list[RouteSummary]:
        """Return of each service, route and scorer that is shown the newest fingerprints."""
        return _newest(filter(self.hold, found), lambda one: (one.service, one.route, one.scorer))

    def services(self, found: Iterable[ServiceSummary]) -> list[ServiceSummary]:
        """Return of each service and scorer that is shown the newest fingerprints."""
        known = {(service, scorer) for service, _, scorer in self.lines}
        shown = (one for one in found if (one.service, one.scorer) in known)
        return _newest(shown, lambda one: (one.service, one.scorer))


def _newest(found: Iterable[Summary], named: Callable[[Summary], tuple[str, ...]]) -> list[Summary]:
    groups: dict[tuple[str, ...], list[Summary]] = {}
    for one in found:
        groups.setdefault(named(one), []).append(one)
    ordered = (sorted(group, key=lambda one: (one.newest, one.latest), reverse=True) for group in groups.values())
    return [one for group in ordered for one in islice(group, FINGERPRINTS)]


def bounds_of(readings: Readings) -> Bounds:
    """Return what is shown of these readings; equally busy ones go by name, so that the next scrape shows the same."""
    longest = list(readings.windows.values())[-1]
    lines: Counter[Line] = Counter()
    for one in filter(is_told, longest.coverage):
        lines[one.service, one.route, one.scorer] += one.seen
    for mean in longest.routes:  # also where exchanges are not counted
        lines[mean.service, mean.route, mean.scorer] += 0
    places = _most(_sums(lines, lambda line: line[:2]), ROUTES)
    scorers = _most(_sums(lines, lambda line: line[2:]), SCORERS)
    both = Counter({line: lines[line] for line in lines if line[:2] in places[0] and line[2:] in scorers[0]})
    shown = _most(both, LINES)
    out = {"routes": places[1], "scorers": scorers[1], "routes_of_scorers": len(lines) - len(shown[0])}
    return Bounds(lines=shown[0], left_out=out)


def is_told(found: Coverage) -> bool:
    """Whether there is something to tell: a route that was only declared has seen nothing."""
    return bool(found.scorer or found.seen)


def _sums(lines: Mapping[Line, int], named: Callable[[Line], Name]) -> Counter[Name]:
    found: Counter[Name] = Counter()
    for line, seen in lines.items():
        found[named(line)] += seen
    return found


def _most(counts: Mapping[Name, int], limit: int) -> tuple[frozenset[Name], int]:
    """Return the busiest, and how many are left out."""
    short = [name for name in counts if len("".join(name)) <= LONGEST]
    shown = sorted(short, key=lambda name: (-counts[name], name))[:limit]
    return frozenset(shown), len(counts) - len(shown)


BY_ANSWER: Final = "by the time of the answer, weighted by how answers were sampled"
AT_SCORING: Final = "the histogram rag_evaluation_score counts at scoring time, unweighted"
ENOUGH: Final = "absent under 20 scores"
OF_ROUTES: Final = ("service", "route", "scorer", "fingerprint", "newest", "window")
OF_SERVICES: Final = ("service", "scorer", "fingerprint", "newest", "window")
OF_COUNTS: Final = ("service", "route", "scorer", "window")
OF_ALERTS: Final = ("service", "route", "scorer", "rule", "severity", "state")
MEANS: Final[Mapping[str, tuple[str, Callable[[Estimate], float | None]]]] = {
    "score_mean": (
        f"Mean score{{of}}, in [-1, 1], {BY_ANSWER}; {AT_SCORING}; {ENOUGH}",
        lambda one: one.mean,
    ),
    "score_mean_lower": (
        f"Lower end of the 95 % interval of the mean score{{of}}; {ENOUGH}",
        lambda one: one.interval and one.interval[0],
    ),
    "score_mean_upper": (
        f"Upper end of the 95 % interval of the mean score{{of}}; {ENOUGH}",
        lambda one: one.interval and one.interval[1],
    ),
    "score_correlation": (
        "Correlation of score and free local score{of}, by which the mean is corrected; absent where it is not",
        lambda one: one.correlation,
    ),
    "low_ratio": (
        f"Share of answers in the lowest band{{of}}, in [0, 1], {BY_ANSWER}; {ENOUGH}",
        lambda one: one.low_share,
    ),
    "noncommittal_ratio": (
        f"Share of answers that did not answer{{of}}, in [0, 1], {BY_ANSWER}; {ENOUGH}",
        lambda one: one.noncommittal_share,
    ),
}
Row = tuple[Sequence[str], float]


def families(readings: Readings) -> Iterator[GaugeMetricFamily]:
    """Return all gauges of a database that answered; what is not known has no sample, and is never 0."""
    bounds = bounds_of(readings)
    yield from _of_windows(readings)
    yield from _of_means(readings, bounds)
    yield from _of_counts(readings, bounds)
    yield _of_baselines(readings, bounds)
    yield _of_alerts(readings)
    yield from _of_the_queue(readings)
    yield from _of_spending(readings)
    yield _family(
        "germane_left_out",
        "What has no series, for there is too much: the least busy routes and scorers of the longest window",
        ("what",),
        (((what,), number) for what, number in bounds.left_out.items()),
    )


def _family(name: str, said: str, labels: Sequence[str], rows: Iterable[Row]) -> GaugeMetricFamily:
    made = GaugeMetricFamily(name, said, labels=labels)
    for values, number in rows:
        made.add_metric(values, number)
    return made


def _of_windows(readings: Readings) -> Iterator[GaugeMetricFamily]:
    for end, of in (("begin", "since"), ("end", "until")):
        rows = [((name,), getattr(window, of).timestamp()) for name, window in readings.windows.items()]
        said = f"Where a window {end}s, in seconds since 1970: begin <= time of the answer < end"
        yield _family(f"germane_window_{end}_timestamp_seconds", said, ("window",), rows)


def _of_means(readings: Readings, bounds: Bounds) -> Iterator[GaugeMetricFamily]:
    of_routes = [
        ((one.service, one.route, *_of_judge(one), name), one)
        for name, window in readings.windows.items()
        for one in bounds.routes(window.routes)
    ]
    of_services = [
        ((one.service, *_of_judge(one), name), one)
        for name, window in readings.windows.items()
        for one in bounds.services(window.services)
    ]
    yield from _judged("germane_", "", OF_ROUTES, of_routes)
    yield from _judged("germane_service_", " over all routes of a service", OF_SERVICES, of_services)


def _of_judge(found: RouteSummary | ServiceSummary) -> tuple[str, str, str]:
    return found.scorer, found.fingerprint, str(found.newest).lower()


def _judged(
    prefix: str, of: str, names: Sequence[str], found: Sequence[tuple[Sequence[str], Estimate]]
) -> Iterator[GaugeMetricFamily]:
    said = f"Scores that a mean is made from{of}, by the time of the answer"
    yield _family(f"{prefix}scores", said, names, ((labels, one.n) for labels, one in found))
    for name, (said, value) in MEANS.items():
        values = [(labels, value(one)) for labels, one in found if one.enough]
        rows = [(labels, number) for labels, number in values if number is not None]
        yield _family(prefix + name, said.format(of=of), names, rows)


def _of_counts(readings: Readings, bounds: Bounds) -> Iterator[GaugeMetricFamily]:
    said = "Exchanges of a scorer by what became of them: scored, skipped, failed or pending, with the reason"
    yield _family(
        "germane_exchanges",
        f"{said}; they sum up to germane_exchanges_seen",
        (*OF_COUNTS, "outcome", "reason"),
        (row for name, window in readings.windows.items() for row in _ended(name, window, bounds)),
    )
    yield _family(
        "germane_exchanges_seen",
        "Exchanges that a scorer was to score; without a scorer those that were dropped before one was known",
        OF_COUNTS,
        (
            ((one.service, one.route, one.scorer, name), one.seen)
            for name, window in readings.windows.items()
            for one in _held(window, bounds)
        ),
    )


def _held(window: Overall, bounds: Bounds) -> Iterator[Coverage]:
    return (one for one in window.coverage if is_told(one) and bounds.hold(one))


def _ended(name: str, window: Overall, bounds: Bounds) -> Iterator[Row]:
    for one in _held(window, bounds):
        labels = (one.service, one.route, one.scorer, name)
        yield (*labels, "scored", ""), one.scored
        yield (*labels, "pending", ""), one.pending
        for outcome, reasons in (("skipped", one.skipped), ("failed", one.failed)):
            for reason, number in reasons.items():
                yield (*labels, outcome, reason), number


def _of_baselines(readings: Readings, bounds: Bounds) -> GaugeMetricFamily:
    rows = [
        ((one.key.service, route, one.key.scorer, one.key.fingerprint), known.mean)
        for one in readings.baselines
        if one.baseline is not None
        for route, known in one.baseline.routes.items()
        if route != OTHER and (one.key.service, route, one.key.scorer) in bounds.lines
    ]
    said = "Mean of the baseline in force, of routes that it knows by themselves; in [0, 1]"
    return _family("germane_baseline_mean", said, ("service", "route", "scorer", "fingerprint"), rows)


def _of_alerts(readings: Readings) -> GaugeMetricFamily:
    counts = Counter(
        (one.service, one.route or "", one.scorer or "", one.rule, one.severity, one.state) for one in readings.alerts
    )
    said = "Alerts that are not over, by rule, severity and state; no sample without any"
    return _family("germane_alerts_open", said, OF_ALERTS, islice(counts.items(), ALERTS))


def _of_the_queue(readings: Readings) -> Iterator[GaugeMetricFamily]:
    left, backlog = readings.backlog.left, readings.backlog
    counts = Counter({("", "undecided"): left.undecided})
    for one in left.tasks:
        states = {"candidate": one.candidates, "ready": one.ready, "postponed": one.postponed, "running": one.running}
        counts.update({(one.scorer, state): number for state, number in states.items()})
    said = "Exchanges that wait: undecided, then for each scorer candidate, ready, postponed or running"
    yield _family("germane_queue_depth", said, ("scorer", "state"), counts.items())
    said = "How long the oldest exchange has waited for a score"
    yield _family("germane_queue_lag_seconds", said, (), [((), backlog.lag.total_seconds())])
    said = "Processes that score, and told of themselves within the setting lease"
    yield _family("germane_workers", said, (), [((), backlog.workers)])


def _of_spending(readings: Readings) -> Iterator[GaugeMetricFamily]:
    said = "Share of the day's budget that is spent, in [0, 1] or a little more; no sample without a budget"
    yield _family(
        "germane_budget_used_ratio", said, ("limit",), (((name,), one) for name, one in readings.shares.items())
    )
    spent = readings.spent
    rows: list[Row] = [((), 0.0)] if readings.shares or spent.calls else []
    for name, value in (("requests", spent.calls), ("tokens", spent.tokens), ("dollars", spent.usd)):
        said = f"What the judge took of the day (UTC) under a budget, in {name}: it falls to 0 at midnight"
        yield _family(f"germane_spent_today_{name}", said, (), [(labels, value) for labels, _ in rows])
