"""Evidence for an alert about scores: the worst answers, the largest shifts, and the likely cause.

It is collected when the alert fires, by comparing means before and after the estimated start. What explains it is
collected again whenever it is shown or sent, because groups reach the minimum number of answers later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from germane.alert import Alert, Cause, ScoreLevel, ScoreShift
from germane.alerting.changes import find_changes
from germane.alerting.contrasts import (
    MIN_SCORES,
    MIN_SHIFT,
    Groups,
    MeanPair,
    critical_z,
    fell_significantly,
    find_carriers,
)
from germane.alerting.intervals import combine_levels, is_higher
from germane.exchange import Exchange, matches_attributes
from germane.score import MIN_SAMPLES
from germane.settings import SCORE_RULES, Rule, matches_patterns
from germane.storage import DetectorScoreQuery, RouteMean, TrackingStore

MAX_EXCHANGES: Final = 5
"""Number of worst exchanges in an alert."""
MAX_EXTRA_REFUSALS: Final = 2
"""Number of refusals among the worst exchanges if refusals became more frequent but are not the main cause."""
MAX_CANDIDATES: Final = 500
"""Maximum number of low scores to search for exchanges that match a restricted rule."""
MAX_SCORES_READ: Final = 20_000
"""Maximum number of scores of a breakdown whose dimension is not in the rollups."""
MAX_SHIFTS: Final = 3
"""Number of shifts listed per dimension in an alert."""
COMPARISON_PERIOD: Final = timedelta(days=7)
"""Minimum length of the comparison period before the start."""
CONTEXT_SCORER: Final = "context_relevance"
MIN_CONTEXT_DROP: Final = 0.05
"""If context relevance fell by this much, retrieval is the likely cause."""
GOOD_EXCHANGE: Final = "good_exchange"
"""Key in an alert's details: id of the exchange with the highest score on the day before the onset."""
JUDGE: Final = "judge_since"
"""Key in a drop alert's details for how the anchors' scores changed since before the onset. Its ``round`` is None while
no round is newer than the onset's interval."""
REFUSALS: Final = "refusals"
"""Key in an alert's details: shares of noncommittal answers before and after the onset, if they rose significantly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScope:
    """The answers that a rule watches."""

    routes: tuple[str, ...] = ()
    """Patterns; empty for all routes."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Patterns by name."""

    def matches_route(self, route: str) -> bool:
        """Return whether the rule watches a route."""
        return matches_patterns(self.routes, route)

    def matches(self, exchange: Exchange) -> bool:
        """Return whether the rule watches an exchange."""
        return self.matches_route(exchange.route) and matches_attributes(exchange.attributes, self.attributes)


UNRESTRICTED: Final = RuleScope()


def find_scope(rules: Iterable[Rule], alert: Alert) -> RuleScope:
    """Return the answers that an alert's rule watches."""
    matching = (
        RuleScope(routes=rule.routes, attributes=getattr(rule, "attributes", {}))
        for rule in rules
        if rule.name == alert.rule and (alert.route is None or rule.matches_route(alert.route))
    )
    return next(matching, UNRESTRICTED)


class EvidenceCollector:
    """Adds evidence to alerts.

    Args:
        store: Store to read scores from.
        breakdowns: Dimensions to search for shifts, in addition to the route.
        as_of: In a backtest, returns the point in time at which data is read.
    """

    def __init__(
        self,
        store: TrackingStore,
        breakdowns: Sequence[str] = (),
        *,
        as_of: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._store = store
        self._breakdowns = [name for name in breakdowns if name != "route"]
        self._as_of = as_of

    def add_to(self, alert: Alert, scope: RuleScope = UNRESTRICTED) -> Alert:
        """Return an alert with worst exchanges, shifts and cause. Alerts that are not about scores are unchanged.

        Args:
            alert: The alert.
            scope: The answers that its rule watches.
        """
        if alert.type not in SCORE_RULES or alert.scorer is None:
            return alert
        since, explained = _start_of(alert), self.explain(alert, scope)
        good = self._good_exchange(alert, since, scope)
        return replace(
            explained,
            exchange_ids=tuple(self._worst_exchanges(explained, since, scope)),
            details={**explained.details, **({GOOD_EXCHANGE: good} if good else {})},
        )

    def explain(self, alert: Alert, scope: RuleScope = UNRESTRICTED) -> Alert:
        """Return an alert with the shifts, the cause and the changes around its onset that are known now."""
        if alert.type not in SCORE_RULES or alert.scorer is None:
            return alert
        since = _start_of(alert)
        pairs = self._mean_pairs(alert, since, scope)
        own = [pair for pair in pairs if pair.since.scorer == alert.scorer]
        if alert.shifts and not own:  # the scores from before the onset have been deleted since
            return alert
        by_scorer = _group([pair for pair in pairs if pair.since.scorer != alert.scorer], "scorer")
        candidates = len(by_scorer) + 1  # refusals are one more candidate for the cause
        fallen = [name for name, group in by_scorer.items() if fell_significantly(group, candidates)]
        scorer_shifts = _shifts("scorer", by_scorer, fallen)
        route_shifts, attribute_shifts = self._group_shifts(alert, since, scope, own)
        refusals = _rise_of_refusals(own, candidates)
        if (cause := alert.cause) != "judge_drift":  # which scores of the same answers have shown
            cause = _likely_cause(alert, own, scorer_shifts, refusals)
        return replace(
            alert,
            # A new route's scores from before the estimated onset are not a baseline for comparison.
            baseline=alert.baseline or (None if alert.details.get("new_route") else _level_before(alert, own)),
            shifts=(*route_shifts[:MAX_SHIFTS], *attribute_shifts[:MAX_SHIFTS], *scorer_shifts[:MAX_SHIFTS]),
            cause=cause,
            details={
                **{name: value for name, value in alert.details.items() if name != REFUSALS},
                **({REFUSALS: list(refusals)} if refusals else {}),
                **find_changes(self._store.trends, alert, since, self._as_of()),
            },
        )

    def _worst_exchanges(self, alert: Alert, since: datetime, scope: RuleScope) -> list[str]:
        """Return the ids of answers that show the change.

        They are from routes that fell, and of the kind that became frequent.

        All refusals score 0, so they would hide answers that drift off topic. They are listed first only if they are
        the cause, and last if there are too few other answers.
        """
        shifts = [shift for shift in alert.shifts if shift.dimension == "route"]
        # Routes that fell by less than half the largest fall are not counted as affected.
        routes = [shift.name for shift in shifts if _fall(shift) >= _fall(shifts[0]) / 2]

        def load_lowest(*, refusals: bool) -> list[str]:
            lowest = [
                scored
                for route in (routes if alert.route is None and routes else [alert.route])
                for scored in self._store.answers.worst(
                    scorer=alert.scorer,
                    since=since,
                    until=self._as_of(),
                    service=alert.service,
                    route=route,
                    fingerprint=alert.fingerprint,
                    refusals=refusals,
                    limit=MAX_EXCHANGES if scope == UNRESTRICTED else MAX_CANDIDATES,
                )
                if scope.matches(scored.exchange)
            ]
            lowest.sort(key=lambda scored: scored.score.value or 0.0)
            return [scored.exchange.id for scored in lowest[:MAX_EXCHANGES]]

        is_about_refusals = alert.cause == "refusals_rising" or alert.type == "noncommittal_rate"
        first, second = load_lowest(refusals=is_about_refusals), load_lowest(refusals=not is_about_refusals)
        if REFUSALS in alert.details and not is_about_refusals:
            first = first[: max(MAX_EXCHANGES - MAX_EXTRA_REFUSALS, MAX_EXCHANGES - len(second))]
        return [*first, *second][:MAX_EXCHANGES]

    def _good_exchange(self, alert: Alert, since: datetime, scope: RuleScope) -> str | None:
        """Return the exchange with the highest score on the day before the onset, as a contrast to the worst ones."""
        if alert.scorer is None or alert.fingerprint is None:
            return None
        query = DetectorScoreQuery(
            service=alert.service,
            scorer=alert.scorer,
            fingerprint=alert.fingerprint,
            since=since - timedelta(days=1),
            until=since,
            by_answer=True,
        )
        scores = [
            score
            for score in self._store.detectors.list_past_scores(query, attributes=bool(scope.attributes))
            if scope.matches_route(score.route)
            and alert.route in {None, score.route}
            and matches_attributes(score.attributes, scope.attributes)
        ]
        best = max(scores, key=lambda score: (score.value, score.answered_at), default=None)
        return None if best is None else best.exchange_id

    def _mean_pairs(self, alert: Alert, since: datetime, scope: RuleScope) -> list[MeanPair]:
        """Return the means of all scorers on the alert's routes.

        For a rule with attributes, return only one scorer's means.
        """
        trends, before = self._store.trends, since - _comparison_period(alert)
        load: Callable[..., Sequence[RouteMean]] = partial(trends.summary, service=alert.service, histograms=False)
        if scope.attributes:
            selected: dict[str, Any] = {"scorer": alert.scorer, "service": alert.service, "route": alert.route}
            load = partial(trends.means_with_attributes, scope.attributes, **selected)
        return _pair(alert, scope, load(since=before, until=since), load(since=since, until=self._as_of()))

    def _group_shifts(
        self, alert: Alert, since: datetime, scope: RuleScope, own: Sequence[MeanPair]
    ) -> tuple[list[ScoreShift], list[ScoreShift]]:
        """Return the shifts of routes and of attribute values, for each attribute with at least two values."""
        by_route = {} if alert.route is not None else _group(own, "route")
        by_label: dict[str, Groups] = {}
        selected: dict[str, Any] = {"scorer": alert.scorer, "service": alert.service, "route": alert.route}
        trends, names = self._store.trends, [] if scope.attributes else self._breakdowns
        if sum(pair.before.n + pair.since.n for pair in own) > MAX_SCORES_READ:
            # Dimensions that the worker has not added to the rollups yet would take seconds.
            names = [name for name in names if name in trends.list_rolled_dimensions()]
        for dimension in names:
            selected |= {"by": dimension, "histograms": False}
            earlier = trends.means(**selected, since=since - _comparison_period(alert), until=since)
            later = trends.means(**selected, since=since, until=self._as_of())
            groups = _group(_pair(alert, scope, earlier, later), "label")
            if len(groups) > 1:
                name = dimension.removeprefix("attributes.")
                by_label[dimension] = {f"{name}={label}": pairs for label, pairs in groups.items()}
        carriers = find_carriers({"route": by_route, **by_label})
        routes = _shifts("route", by_route, [carriers.pop("route", None)])
        labels = {name: group for groups in by_label.values() for name, group in groups.items()}
        return routes, _shifts("attribute", labels, carriers.values())


def _start_of(alert: Alert) -> datetime:
    return alert.onset or alert.evaluated_at - timedelta(seconds=alert.window or 0.0)


def _comparison_period(alert: Alert) -> timedelta:
    return max(COMPARISON_PERIOD, timedelta(seconds=alert.window or 0.0))


def _pair(alert: Alert, scope: RuleScope, earlier: Iterable[RouteMean], later: Iterable[RouteMean]) -> list[MeanPair]:
    """Pair the means from before and after the onset by names, label and fingerprint. Scores from different judges are
    not comparable.
    """

    def by_key(means: Iterable[RouteMean]) -> dict[tuple[str | None, ...], RouteMean]:
        return {
            (mean.service, mean.route, mean.scorer, mean.fingerprint, mean.label): mean
            for mean in means
            if mean.service == alert.service
            and mean.newest
            and scope.matches_route(mean.route)
            and alert.route in {None, mean.route}
        }

    before = by_key(earlier)
    return [MeanPair(before[key], mean) for key, mean in by_key(later).items() if key in before]


def _group(pairs: Iterable[MeanPair], name: str) -> Groups:
    groups: Groups = {}
    for pair in pairs:
        groups.setdefault(getattr(pair.since, name), []).append(pair)
    return groups


def _shifts(dimension: Any, groups: Groups, supported: Collection[str | None]) -> list[ScoreShift]:
    """Return the groups whose mean fell: those that sentences may name first, then by size, largest first."""
    shifts = [
        ScoreShift(
            dimension=dimension,
            name=name,
            before=_mean_level(group, [pair.before for pair in group]),
            since=_mean_level(group, [pair.since for pair in group]),
            supported=name in supported,
        )
        for name, group in groups.items()
    ]
    fallen = [
        shift for shift in shifts if min(shift.before.n, shift.since.n) >= MIN_SCORES and _fall(shift) >= MIN_SHIFT
    ]
    return sorted(fallen, key=lambda shift: (not shift.supported, -_fall(shift)))


def _fall(shift: ScoreShift) -> float:
    return shift.before.mean - shift.since.mean


def _mean_level(pairs: Sequence[MeanPair], means: Sequence[RouteMean]) -> ScoreLevel:
    """Return the mean of means, weighted by scores since the start, so that the route mix does not affect it."""
    total = sum(pair.since.n for pair in pairs)
    levels = [ScoreLevel(mean=mean.mean, n=mean.n, interval=mean.interval) for mean in means]
    return levels[0] if len(levels) == 1 else combine_levels(levels, [pair.since.n / total for pair in pairs])


def _weighted_mean(pairs: Sequence[MeanPair], value: Callable[[MeanPair], float]) -> float:
    """Return the mean of a value over pairs, weighted by the number of scores since the start."""
    return sum(pair.since.n * value(pair) for pair in pairs) / sum(pair.since.n for pair in pairs)


def _rise_of_refusals(pairs: Sequence[MeanPair], candidates: int) -> tuple[float, float] | None:
    """Return the shares of noncommittal answers before and since the start.

    Return None if the share did not rise significantly, or if there are too few scores.
    """
    if any(each.noncommittal_share is None for pair in pairs for each in (pair.before, pair.since)):
        return None
    before_n, since_n = sum(pair.before.n for pair in pairs), sum(pair.since.n for pair in pairs)
    if min(before_n, since_n) < MIN_SAMPLES:
        return None
    before = _weighted_mean(pairs, lambda pair: pair.before.noncommittal_share or 0.0)
    since = _weighted_mean(pairs, lambda pair: pair.since.noncommittal_share or 0.0)
    return (before, since) if is_higher(since, since_n, before, before_n, critical_z(candidates)) else None


def _level_before(alert: Alert, pairs: Sequence[MeanPair]) -> ScoreLevel | None:
    """Return the earlier level of the value that the rule evaluates."""
    if not pairs:
        return None
    shares = {"low_score_rate": "low_share", "noncommittal_rate": "noncommittal_share"}
    if alert.type not in shares:
        return _mean_level(pairs, [pair.before for pair in pairs])
    share = _weighted_mean(pairs, lambda pair: getattr(pair.before, shares[alert.type]) or 0.0)
    return ScoreLevel(mean=share, n=sum(pair.before.n for pair in pairs))


def _likely_cause(
    alert: Alert,
    pairs: Sequence[MeanPair],
    scorer_shifts: Iterable[ScoreShift],
    refusals: tuple[float, float] | None,
) -> Cause | None:
    """Return the likely cause: less relevant contexts, more refusals, or drifting answers.

    Refusals are the cause if they rose significantly and explain at least half of the drop. Each refusal lowers the sum
    of scores by the mean score of the answers that are not refusals.
    """
    if not pairs:
        return None
    if any(
        shift.name == CONTEXT_SCORER and shift.supported and _fall(shift) >= MIN_CONTEXT_DROP for shift in scorer_shifts
    ):
        return "retrieval_worse"
    if alert.type == "noncommittal_rate":
        return "refusals_rising"
    if any(pair.since.noncommittal_share is None for pair in pairs):
        return None
    fall = _weighted_mean(pairs, lambda pair: pair.before.mean - pair.since.mean)
    if refusals is not None and fall >= MIN_SHIFT:
        before, since = refusals
        by_refusals = (since - before) * _weighted_mean(pairs, lambda pair: pair.before.mean) / max(1e-9, 1 - before)
        if by_refusals >= fall / 2:
            return "refusals_rising"
    return "answers_drifting" if fell_significantly(pairs, 1) else None
