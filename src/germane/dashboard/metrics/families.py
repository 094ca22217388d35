"""Prometheus metric families: names, help texts, labels, and limits on the number of series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client.core import GaugeMetricFamily

from germane.baseline import POOLED_ROUTE

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.insights import LabeledWindow, Verdict
    from germane.statistics import Estimate
    from germane.storage import (
        Backlog,
        BaselineVersion,
        BudgetDay,
        Coverage,
        RouteSummary,
        ServiceSummary,
        WaitingRequests,
        WindowSummary,
    )

MAX_ROUTES: Final = 200
"""Maximum number of routes across all services. The routes with the most exchanges in the longest window are kept."""
MAX_SCORERS: Final = 20
"""Maximum number of scorers. The scorers with the most exchanges in the longest window are kept."""
MAX_ROUTE_SCORERS: Final = 600
"""Maximum number of (route, scorer) pairs, each of which has about fifty series."""
MAX_FINGERPRINTS: Final = 2
"""Maximum number of fingerprints per route, scorer and window: the newest and the previous one."""
MAX_NAME_LENGTH: Final = 500
"""Maximum length of names in characters. Longer names are dropped, because truncated names might collide."""
MAX_ALERT_GROUPS: Final = 200
"""Maximum number of groups of open alerts. The oldest are kept."""
RouteScorer = tuple[str, str, str]
"""Service, route and scorer. The scorer is empty for exchanges dropped before a scorer was assigned."""
Sample = tuple[Sequence[str], float]
"""Label values and sample value."""
_Name = TypeVar("_Name", bound=tuple[str, ...])
_Summary = TypeVar("_Summary", "RouteSummary", "ServiceSummary")

_ROUTE_LABELS: Final = ("service", "route", "scorer", "fingerprint", "newest", "window")
_SERVICE_LABELS: Final = ("service", "scorer", "fingerprint", "newest", "window")
_COUNT_LABELS: Final = ("service", "route", "scorer", "window")
_ALERT_LABELS: Final = ("service", "route", "scorer", "rule", "severity", "state")
_BY_ANSWER_TIME: Final = "by answer time, weighted by inverse sampling probability"
_AT_SCORING_TIME: Final = (
    "The germane_evaluation_score histogram counts every score once, unweighted, when it is computed."
)
_MIN_SAMPLES: Final = "Not exported if there are fewer than 20 scores."
_ESTIMATES: Final[Mapping[str, tuple[str, Callable[[Estimate], float | None]]]] = {
    "score_mean": (
        f"Mean score{{scope}} in [-1, 1], {_BY_ANSWER_TIME}. {_AT_SCORING_TIME} {_MIN_SAMPLES}",
        lambda estimate: estimate.mean,
    ),
    "score_mean_ci_lower": (
        f"Lower bound of the 95% confidence interval of the mean score{{scope}}. {_MIN_SAMPLES}",
        lambda estimate: estimate.interval and estimate.interval[0],
    ),
    "score_mean_ci_upper": (
        f"Upper bound of the 95% confidence interval of the mean score{{scope}}. {_MIN_SAMPLES}",
        lambda estimate: estimate.interval and estimate.interval[1],
    ),
    "score_correlation": (
        "Correlation of scores and proxy scores{scope}, used to correct the mean. Not exported for uncorrected means.",
        lambda estimate: estimate.correlation,
    ),
    "low_ratio": (
        f"Share of answers in the lowest band{{scope}} in [0, 1], {_BY_ANSWER_TIME}. {_MIN_SAMPLES}",
        lambda estimate: estimate.low_share,
    ),
    "noncommittal_ratio": (
        f"Share of refusals{{scope}} in [0, 1], {_BY_ANSWER_TIME}. {_MIN_SAMPLES}",
        lambda estimate: estimate.noncommittal_share,
    ),
}

_LABEL_ESTIMATES: Final = {
    "mean": "Mean label of the answers in the labeled window, in [0, 1], on a route or, without a route, in a service. "
    "Not exported once a drop alert has fired or the judge has changed since the last label.",
    "mean_ci_lower": "Lower bound of the 95% confidence interval of the mean label.",
    "mean_ci_upper": "Upper bound of the 95% confidence interval of the mean label.",
    "labels": "Number of labels in the mean label.",
    "window_begin_timestamp_seconds": "Unix time of the begin of the labeled window.",
    "window_end_timestamp_seconds": "Unix time of the end of the labeled window.",
}
"""Help texts of what people say about answers, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSnapshot:
    """The data for all gauges, read from the database at one time."""

    windows: Mapping[str, WindowSummary]
    """Summaries of windows by name, shortest window first."""
    backlog: Backlog
    spent: BudgetDay
    """Judge usage for the current UTC day."""
    shares: Mapping[str, float]
    """Used share of the day's budget, by limit; empty without a budget."""
    alerts: tuple[Alert, ...]
    """Open alerts, oldest first."""
    baselines: tuple[BaselineVersion, ...]
    """Active baselines of whole services."""
    verdict: Verdict | None = None
    """The verdict on all services."""
    estimates: Sequence[LabeledWindow] = ()
    """The mean labels of services and routes."""
    forwarding: Sequence[WaitingRequests] = ()
    """The requests that wait to be forwarded, by target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLimits:
    """The (route, scorer) pairs that are exported, and the number of routes, scorers and pairs that are not."""

    route_scorers: frozenset[RouteScorer] = frozenset()
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of dropped names by dimension: routes, scorers, and (route, scorer) pairs."""

    def includes(self, group: Coverage | RouteSummary) -> bool:
        """Return whether a group's route and scorer are exported."""
        return (group.service, group.route, group.scorer) in self.route_scorers

    def routes(self, groups: Iterable[RouteSummary]) -> list[RouteSummary]:
        """Return the summaries for the newest fingerprints of each exported route and scorer."""
        return _newest(filter(self.includes, groups), lambda group: (group.service, group.route, group.scorer))

    def services(self, groups: Iterable[ServiceSummary]) -> list[ServiceSummary]:
        """Return the summaries for the newest fingerprints of each exported service and scorer."""
        included = {(service, scorer) for service, _, scorer in self.route_scorers}
        shown = (group for group in groups if (group.service, group.scorer) in included)
        return _newest(shown, lambda group: (group.service, group.scorer))


def _newest(summaries: Iterable[_Summary], key: Callable[[_Summary], tuple[str, ...]]) -> list[_Summary]:
    groups: dict[tuple[str, ...], list[_Summary]] = {}
    for summary in summaries:
        groups.setdefault(key(summary), []).append(summary)
    ordered = (
        sorted(group, key=lambda summary: (summary.newest, summary.latest), reverse=True) for group in groups.values()
    )
    return [summary for group in ordered for summary in islice(group, MAX_FINGERPRINTS)]


def choose_series(snapshot: MetricsSnapshot) -> SeriesLimits:
    """Choose the routes and scorers with the most exchanges. Ties are broken by name, so that scrapes do not vary."""
    longest = list(snapshot.windows.values())[-1]
    seen: Counter[RouteScorer] = Counter()
    for coverage in longest.coverage:
        if not coverage.has_exchanges:
            continue
        seen[coverage.service, coverage.route, coverage.scorer] += coverage.seen
    for mean in longest.routes:  # imported scores have no counted exchanges
        seen[mean.service, mean.route, mean.scorer] += 0
    by_route: Counter[tuple[str, str]] = Counter()
    by_scorer: Counter[tuple[str]] = Counter()
    for (service, route, scorer), count in seen.items():
        by_route[service, route] += count
        by_scorer[scorer,] += count
    routes, routes_dropped = _busiest(by_route, MAX_ROUTES)
    scorers, scorers_dropped = _busiest(by_scorer, MAX_SCORERS)
    pairs = Counter({key: count for key, count in seen.items() if key[:2] in routes and key[2:] in scorers})
    shown, _ = _busiest(pairs, MAX_ROUTE_SCORERS)
    dropped = {"routes": routes_dropped, "scorers": scorers_dropped, "routes_of_scorers": len(seen) - len(shown)}
    return SeriesLimits(route_scorers=shown, dropped=dropped)


def _busiest(counts: Mapping[_Name, int], limit: int) -> tuple[frozenset[_Name], int]:
    """Return the names with the highest counts, and the number of remaining names."""
    usable = [name for name in counts if len("".join(name)) <= MAX_NAME_LENGTH]
    shown = sorted(usable, key=lambda name: (-counts[name], name))[:limit]
    return frozenset(shown), len(counts) - len(shown)


def build_families(snapshot: MetricsSnapshot) -> Iterator[GaugeMetricFamily]:
    """Yield all database gauges. Unknown values are omitted; they are never exported as 0."""
    limits = choose_series(snapshot)
    for end, attribute in (("begin", "since"), ("end", "until")):
        times = [((name,), getattr(window, attribute).timestamp()) for name, window in snapshot.windows.items()]
        help_text = f"Unix time of the {end} of a window: begin <= answer time < end."
        yield _family(f"germane_window_{end}_timestamp_seconds", help_text, ("window",), times)
    yield from _mean_families(snapshot, limits)
    yield from _count_families(snapshot, limits)
    samples = [
        ((version.key.service, route, version.key.scorer, version.key.fingerprint), level.mean)
        for version in snapshot.baselines
        if version.baseline is not None
        for route, level in version.baseline.routes.items()
        if route != POOLED_ROUTE and (version.key.service, route, version.key.scorer) in limits.route_scorers
    ]
    help_text = "Mean of the active baseline in [0, 1], for routes that have their own baseline."
    yield _family("germane_baseline_mean", help_text, ("service", "route", "scorer", "fingerprint"), samples)
    groups = Counter(
        (alert.service, alert.route or "", alert.scorer or "", alert.rule, alert.severity, alert.state)
        for alert in snapshot.alerts
    )
    help_text = "Open alerts by rule, severity and state. Not exported if there are no open alerts."
    yield _family("germane_alerts_open", help_text, _ALERT_LABELS, islice(groups.items(), MAX_ALERT_GROUPS))
    yield from _verdict_families(snapshot)
    yield from _label_families(snapshot, limits)
    yield from _queue_families(snapshot)
    yield from _usage_families(snapshot)
    yield _family(
        "germane_series_dropped",
        "Number of routes, scorers and (route, scorer) pairs that are not exported because of the limit on series.",
        ("what",),
        (((dimension,), number) for dimension, number in limits.dropped.items()),
    )


def _verdict_families(snapshot: MetricsSnapshot) -> Iterator[GaugeMetricFamily]:
    samples: list[Sample] = []
    drops: list[Sample] = []
    if snapshot.verdict is not None:
        verdict = snapshot.verdict
        samples = [(("worse",), len(verdict.movements) if verdict.is_worse else 0), (("",), verdict.n_routes)]
        drops = [
            ((move.situation.service or "", move.route or "", move.situation.scorer or ""), move.drop)
            for move in verdict.movements[:MAX_ALERT_GROUPS]
            if verdict.is_worse and None not in move.levels
        ]
    help_text = "Routes, or services as a whole, that got worse in the overview's verdict; without a state, all routes."
    yield _family("germane_verdict_routes", help_text, ("state",), samples)
    help_text = "Decrease of the mean of each route, or service without a route, that got worse in the verdict."
    yield _family("germane_verdict_drop", help_text, ("service", "route", "scorer"), drops)


def _label_families(snapshot: MetricsSnapshot, limits: SeriesLimits) -> Iterator[GaugeMetricFamily]:
    values: dict[str, list[Sample]] = {name: [] for name in _LABEL_ESTIMATES}
    for window in snapshot.estimates:
        is_shown = window.route is None or (window.service, window.route, window.scorer) in limits.route_scorers
        if window.estimate is None or window.outdated is not None or not is_shown:
            continue
        place = (window.service or "", window.route or "", window.scorer)
        low, high = window.estimate.interval
        times = (window.since.timestamp(), window.until.timestamp())
        for name, value in zip(values, (window.estimate.mean, low, high, window.estimate.n, *times), strict=True):
            values[name].append((place, value))
    for name, help_text in _LABEL_ESTIMATES.items():
        yield _family(f"germane_people_{name}", help_text, ("service", "route", "scorer"), values[name])


def _family(name: str, help_text: str, labels: Sequence[str], samples: Iterable[Sample]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _mean_families(snapshot: MetricsSnapshot, limits: SeriesLimits) -> Iterator[GaugeMetricFamily]:
    routes: list[tuple[Sequence[str], Estimate]] = []
    services: list[tuple[Sequence[str], Estimate]] = []
    for name, window in snapshot.windows.items():
        for route in limits.routes(window.routes):
            newest = str(route.newest).lower()
            routes.append(((route.service, route.route, route.scorer, route.fingerprint, newest, name), route))
        for service in limits.services(window.services):
            newest = str(service.newest).lower()
            services.append(((service.service, service.scorer, service.fingerprint, newest, name), service))
    for prefix, scope, labels, estimates in (
        ("germane_", "", _ROUTE_LABELS, routes),
        ("germane_service_", " across all routes of a service", _SERVICE_LABELS, services),
    ):
        help_text = f"Number of scores in the mean{scope}, by answer time."
        yield _family(f"{prefix}scores", help_text, labels, ((values, estimate.n) for values, estimate in estimates))
        for name, (template, value_of) in _ESTIMATES.items():
            numbers = [(values, value_of(estimate)) for values, estimate in estimates if estimate.has_min_samples]
            samples = [(values, number) for values, number in numbers if number is not None]
            yield _family(prefix + name, template.format(scope=scope), labels, samples)


def _count_families(snapshot: MetricsSnapshot, limits: SeriesLimits) -> Iterator[GaugeMetricFamily]:
    def covered(window: WindowSummary) -> Iterator[Coverage]:
        return (counts for counts in window.coverage if counts.has_exchanges and limits.includes(counts))

    outcomes: list[Sample] = []
    seen: list[Sample] = []
    for name, window in snapshot.windows.items():
        for counts in covered(window):
            labels = (counts.service, counts.route, counts.scorer, name)
            seen.append((labels, counts.seen))
            outcomes += [((*labels, "scored", ""), counts.scored), ((*labels, "pending", ""), counts.pending)]
            for outcome, reasons in (("skipped", counts.skipped), ("failed", counts.failed)):
                outcomes += [((*labels, outcome, reason), number) for reason, number in reasons.items()]
    yield _family(
        "germane_exchanges",
        "Exchanges by outcome for a scorer: scored, skipped, failed or pending, with the reason. "
        "They add up to germane_exchanges_seen.",
        (*_COUNT_LABELS, "outcome", "reason"),
        outcomes,
    )
    yield _family(
        "germane_exchanges_seen",
        "Exchanges by scorer. The scorer is empty for exchanges dropped before a scorer was assigned.",
        _COUNT_LABELS,
        seen,
    )


def _queue_families(snapshot: MetricsSnapshot) -> Iterator[GaugeMetricFamily]:
    backlog = snapshot.backlog
    counts = {("", "undecided"): backlog.outstanding.undecided, **backlog.outstanding.by_state()}
    help_text = "Waiting exchanges by state: undecided, or, for each scorer, candidate, ready, postponed or running."
    yield _family("germane_queue_depth", help_text, ("scorer", "state"), counts.items())
    lag = [((), backlog.lag.total_seconds())]
    yield _family("germane_queue_lag_seconds", "Time that the oldest exchange has been waiting for a score.", (), lag)
    waiting = [((item.target,), item) for item in snapshot.forwarding]
    help_text = "Requests that wait to be forwarded, by target. Not exported if none waits."
    sizes = ((target, item.requests) for target, item in waiting)
    yield _family("germane_forwarding_requests", help_text, ("target",), sizes)
    ages = ((target, item.age.total_seconds()) for target, item in waiting)
    yield _family("germane_forwarding_lag_seconds", "Time that the oldest of these waits.", ("target",), ages)
    help_text = "Workers with a heartbeat within the last task_lease seconds."
    yield _family("germane_workers", help_text, (), [((), backlog.workers)])


def _usage_families(snapshot: MetricsSnapshot) -> Iterator[GaugeMetricFamily]:
    spent = snapshot.spent
    help_text = "Used share of the day's budget, in [0, 1] or slightly above. Not exported without a budget."
    samples = [((limit,), share) for limit, share in snapshot.shares.items()]
    yield _family("germane_budget_used_ratio", help_text, ("limit",), samples)
    is_known = bool(snapshot.shares or spent.requests)
    for name, noun, value in (
        ("judge_requests_today", "Judge requests", spent.requests),
        ("judge_tokens_today", "Judge tokens", spent.tokens),
        ("judge_cost_today_usd", "Judge cost in US dollars", spent.usd),
    ):
        help_text = f"{noun} so far today (UTC), if a budget is set. Resets to 0 at midnight."
        yield _family(f"germane_{name}", help_text, (), [((), value)] if is_known else [])
