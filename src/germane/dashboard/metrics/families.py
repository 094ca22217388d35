"""The gauges of a database in the terms of Prometheus: names, help and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily

from germane.baseline import OTHER
from germane.dashboard.metrics.bounds import ALERTS, Bounds, bounds_of
from germane.dashboard.metrics.readings import Readings, Window

if TYPE_CHECKING:
    from germane.storage import RouteMean

BY_ANSWER: Final = "by the time of the answer, weighted by how answers were sampled"
AT_SCORING: Final = "the histogram rag_evaluation_score counts at scoring time, unweighted"
ENOUGH: Final = "absent under 20 scores"
OF_MEANS: Final = ("service", "route", "scorer", "fingerprint", "newest", "window")
OF_COUNTS: Final = ("service", "route", "scorer", "window")
OF_ALERTS: Final = ("service", "route", "scorer", "rule", "severity", "state")
MEANS: Final = {
    "germane_score_mean": f"Mean score, in [-1, 1], {BY_ANSWER}; {AT_SCORING}; {ENOUGH}",
    "germane_score_mean_lower": f"Lower end of the 95 % interval of germane_score_mean; {ENOUGH}",
    "germane_score_mean_upper": f"Upper end of the 95 % interval of germane_score_mean; {ENOUGH}",
    "germane_low_ratio": f"Share of answers in the lowest band, in [0, 1], {BY_ANSWER}; {ENOUGH}",
    "germane_noncommittal_ratio": f"Share of answers that did not answer, in [0, 1], {BY_ANSWER}; {ENOUGH}",
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
        "Routes and scorers without series, for there are too many: the least busy ones of the longest window",
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
    said = f"Scores that a mean is made from, {BY_ANSWER.partition(',')[0]}"
    numbers = _family("germane_scores", said, OF_MEANS, ())
    shown = {name: _family(name, said, OF_MEANS, ()) for name, said in MEANS.items()}
    for name, window in readings.windows.items():
        for mean in bounds.means(window.means):
            labels = (*_names(mean), mean.fingerprint, str(mean.newest).lower(), name)
            numbers.add_metric(labels, mean.n)
            for family, value in _values(mean).items():
                shown[family].add_metric(labels, value)
    yield numbers
    yield from shown.values()


def _names(mean: RouteMean) -> tuple[str, str, str]:
    return mean.service, mean.route, mean.scorer


def _values(mean: RouteMean) -> Mapping[str, float]:
    if not mean.enough:
        return {}
    low, high = mean.interval or (None, None)
    values = (mean.mean, low, high, mean.low_share, mean.noncommittal_share)
    return {name: value for name, value in zip(MEANS, values, strict=True) if value is not None}


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
            for one in filter(bounds.hold, window.coverage)
        ),
    )


def _ended(name: str, window: Window, bounds: Bounds) -> Iterator[Row]:
    for one in filter(bounds.hold, window.coverage):
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
        if one.baseline is not None and one.key.scorer in bounds.scorers
        for route, known in one.baseline.routes.items()
        if route != OTHER and (one.key.service, route) in bounds.places
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
