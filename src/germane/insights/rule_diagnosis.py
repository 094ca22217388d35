"""Diagnosis of rules: the reasons each rule is not firing, and backtests on past data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from germane import alerting
from germane.alert import Alert, ScoreLevel, Silence
from germane.errors import GermaneError
from germane.insights.context import InsightContext
from germane.insights.health import load_health
from germane.settings import SCORE_RULES, AnyRule, Drop, LowScoreRate, MeanThreshold, NoncommittalRate, WindowRule
from germane.storage import BaselineVersion, RouteMean, RouteSummary

if TYPE_CHECKING:
    from germane.alerting import BacktestReport

MAX_EVALUATIONS: Final = 56
"""Maximum number of evaluations per backtest: one every three hours in a week."""
MAX_BACKTEST_LENGTH: Final = timedelta(days=31)
MAX_BACKTEST_SCORES: Final = 100_000
"""Maximum number of scores for a backtest on a page. The command line has no such limit."""
_backtest_lock = threading.Lock()
AnyWindowRule = MeanThreshold | LowScoreRate | NoncommittalRate
FindingKind = Literal[
    "disabled", "other_route", "other_scorer", "no_budget", "no_scores", "uncovered_route", "not_learning", "learning",
    "few_scores", "share_unknown", "silenced", "partly_silenced", "no_worker",
    "provisional", "no_drop", "mean_below", "mean_not_below", "share_above", "share_not_above",
]  # fmt: skip
"""What is true of a rule: obstacles first, then observations."""
_OBSERVATIONS: Final = frozenset(get_args(FindingKind)[get_args(FindingKind).index("provisional") :])


class BacktestTooLarge(GermaneError):
    """The window contains too many scores for a page."""


class BacktestBusy(GermaneError):
    """Another backtest is running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisScope:
    """The window, service and route of a diagnosis."""

    since: datetime
    until: datetime
    service: str | None = None
    route: str | None = None
    scorer: str | None = None

    def matches(self, service: str, route: str | None) -> bool:
        """Return whether a service, or one of its routes, is in scope."""
        return self.service in {None, service} and (None in {self.route, route} or route == self.route)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFacts:
    """The data that rules evaluate now."""

    means: Sequence[RouteSummary]
    """Means in scope of the scores with the newest fingerprint."""
    versions: Sequence[BaselineVersion]
    """Active baselines."""
    learning: Sequence[BaselineVersion]
    silences: Sequence[Silence]
    alerts: Sequence[Alert]
    """Open alerts in scope."""
    is_evaluated: bool
    """Whether a running process evaluates rules."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that prevents a rule from firing, or a value that it checks."""

    kind: FindingKind
    service: str | None = None
    scorer: str | None = None
    route: str | None = None
    until: datetime | None = None
    """End of a learning period or of a silence."""
    limit: float | None = None
    """The rule's threshold, its minimum number of scores, or its maximum number of false alerts per year."""
    level: ScoreLevel | None = None
    """The mean or share in the rule's window."""
    window: timedelta | None = None

    @property
    def is_obstacle(self) -> bool:
        """Whether it prevents the rule from firing."""
        return self.kind not in _OBSERVATIONS

    @property
    def is_violation(self) -> bool:
        """Whether it makes the rule fire."""
        return self.kind in {"mean_below", "share_above"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDiagnosis:
    """A rule and the reasons it is not firing."""

    rule: AnyRule
    enabled: bool
    findings: Sequence[Finding]
    alert: Alert | None
    """The open alert raised by this rule, if any."""

    @property
    def obstacles(self) -> Sequence[Finding]:
        """Obstacles. Empty if nothing prevents the rule from firing."""
        return [finding for finding in self.findings if finding.is_obstacle]

    @property
    def observations(self) -> Sequence[Finding]:
        """The values that the rule checks, if they are known without an evaluation."""
        return [finding for finding in self.findings if not finding.is_obstacle]

    @property
    def is_violated(self) -> bool:
        """Whether one of the observed values violates the rule."""
        return any(finding.is_violation for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The state of the rule in a few words."""
        if not self.enabled:
            return "off"
        if self.alert is not None:
            return self.alert.state
        if self.obstacles:
            return "blocked"
        return "would fire" if self.is_violated else "ok"


def diagnose_rules(context: InsightContext, scope: DiagnosisScope) -> tuple[DiagnosisFacts, list[RuleDiagnosis]]:
    """Return the data that rules evaluate now, and the diagnosis of each rule."""
    store, settings = context.store, context.settings
    summaries = store.trends.summary(since=scope.since, until=scope.until, histograms=False)
    facts = DiagnosisFacts(
        means=[
            group
            for group in summaries
            if group.newest and scope.matches(group.service, group.route) and scope.scorer in {None, group.scorer}
        ],
        versions=[version for version in store.baselines.list_versions() if version.status == "active"],
        learning=store.baselines.list_learning(),
        silences=store.alerts.list_silences(),
        alerts=[alert for alert in store.alerts.list_open() if scope.matches(alert.service, alert.route)],
        is_evaluated=load_health(context).state in {"running", "degraded"},
        now=store.now(),
    )
    rules = [(rule, True) for rule in settings.active_rules]
    rules += [(rule, False) for rule in settings.rules if rule not in settings.active_rules]
    diagnoses = [
        RuleDiagnosis(
            rule=rule,
            enabled=enabled,
            findings=list(_findings(context, rule, scope, facts, enabled=enabled)),
            alert=next((alert for alert in facts.alerts if alert.rule == rule.name), None),
        )
        for rule, enabled in rules
    ]
    return facts, diagnoses


def _findings(
    context: InsightContext, rule: AnyRule, scope: DiagnosisScope, facts: DiagnosisFacts, *, enabled: bool
) -> Iterator[Finding]:
    if not enabled:
        yield Finding(kind="disabled")
    if scope.route is not None and not rule.matches_route(scope.route):
        yield Finding(kind="other_route")
    elif scope.scorer is not None and rule.scorer not in {None, scope.scorer}:
        yield Finding(kind="other_scorer", scorer=rule.scorer)
    else:
        yield from _data_findings(context, rule, scope, facts)
    yield from _silence_obstacles(rule, scope, facts)
    if not facts.is_evaluated:
        yield Finding(kind="no_worker")


def _data_findings(
    context: InsightContext, rule: AnyRule, scope: DiagnosisScope, facts: DiagnosisFacts
) -> Iterator[Finding]:
    """Yield findings about the scores, baselines and budget that the rule evaluates."""
    means = [group for group in facts.means if rule.scorer in {None, group.scorer} and rule.matches_route(group.route)]
    if rule.type == "budget_exhausted" and context.settings.budget is None:
        yield Finding(kind="no_budget")
    elif rule.type in SCORE_RULES and not means:
        yield Finding(kind="no_scores", scorer=rule.scorer)
    elif isinstance(rule, Drop):
        yield from _drop_findings(rule, means, facts)
    elif isinstance(rule, WindowRule):
        yield from _window_findings(context, rule, scope)


def _drop_findings(rule: Drop, means: Sequence[RouteSummary], facts: DiagnosisFacts) -> Iterator[Finding]:
    """Yield obstacles, and explain why a mean may be lower without an alert, for each service and scorer."""
    active, learning = _with_scope(rule, facts.versions), _with_scope(rule, facts.learning)
    alerted = {(alert.service, alert.scorer) for alert in facts.alerts if alert.rule == rule.name}
    streams: dict[tuple[str, str], set[str]] = {}
    for group in means:
        streams.setdefault((group.service, group.scorer), set()).add(group.route)
    for version in learning:
        service, scorer, *_ = version.key
        if version.provisional and (service, scorer) in streams:
            yield Finding(kind="provisional", service=service, scorer=scorer, until=version.until)
    for (service, scorer), routes in sorted(streams.items()):
        place: dict[str, Any] = {"service": service, "scorer": scorer}
        baselines = [version.baseline for version in active if version.key[:2] == (service, scorer)]
        until = max((version.until for version in facts.learning if version.key[:2] == (service, scorer)), default=None)
        if not baselines:
            yield Finding(kind="not_learning" if until is None else "learning", until=until, **place)
        else:
            covered = {name for baseline in baselines if baseline for name in (*baseline.routes, *baseline.pooled)}
            yield from (Finding(kind="uncovered_route", route=route, **place) for route in sorted(routes - covered))
            if not {(service, scorer), (service, None)} & alerted:
                yield Finding(kind="no_drop", limit=rule.false_alerts_per_year, **place)


def _with_scope(rule: Drop, versions: Iterable[BaselineVersion]) -> list[BaselineVersion]:
    """Return the baselines of all answers, or those of answers with certain attributes if the rule selects these."""
    return [version for version in versions if bool(version.key.scope) == bool(rule.attributes)]


def _window_findings(context: InsightContext, rule: AnyWindowRule, scope: DiagnosisScope) -> Iterator[Finding]:
    """Yield a finding about the scores in the rule's window, for each route."""
    window = timedelta(seconds=rule.window)
    scorer = rule.scorer or scope.scorer
    if scorer is None or rule.attributes:
        return
    means = context.store.trends.means(
        scorer=scorer,
        since=scope.until - window,
        until=scope.until,
        route=scope.route,
        service=scope.service,
        histograms=False,
    )
    for mean in means:
        if mean.newest and rule.matches_route(mean.route):
            yield _check_window(rule, mean, window)


def _check_window(rule: AnyWindowRule, mean: RouteMean, window: timedelta) -> Finding:
    """Check the scores of one route in the rule's window against the rule."""
    place: dict[str, Any] = {"service": mean.service, "scorer": mean.scorer, "route": mean.route, "window": window}
    if mean.n < rule.min_samples:
        level = ScoreLevel(mean=mean.mean, n=mean.n)
        return Finding(kind="few_scores", level=level, limit=rule.min_samples, **place)
    kind: FindingKind
    if isinstance(rule, MeanThreshold):
        result = alerting.evaluate_mean_threshold(rule, mean)
        kind = "mean_below" if result.state == "bad" else "mean_not_below"
    else:
        share = mean.low_share if isinstance(rule, LowScoreRate) else mean.noncommittal_share
        if share is None:
            return Finding(kind="share_unknown", **place)
        result = alerting.evaluate_share(rule, mean, share)
        kind = "share_above" if result.state == "bad" else "share_not_above"
    return Finding(kind=kind, level=result.current, limit=result.threshold, **place)


def _silence_obstacles(rule: AnyRule, scope: DiagnosisScope, facts: DiagnosisFacts) -> Iterator[Finding]:
    """Yield the silences that would suppress the rule's alerts, as far as the labels are known."""
    labels = {"service": scope.service, "route": scope.route, "scorer": rule.scorer or scope.scorer}
    known = {name: value for name, value in labels.items() if value is not None}
    alert = Alert(
        id="",
        key="",
        rule=rule.name,
        type=rule.type,
        labels=known,
        state="firing",
        starts_at=facts.now,
        evaluated_at=facts.now,
    )
    for silence in facts.silences:
        decidable = {name: pattern for name, pattern in silence.matchers.items() if name in {"rule", *known}}
        if replace(silence, matchers=decidable).covers(alert, facts.now):
            is_whole = len(decidable) == len(silence.matchers)
            yield Finding(kind="silenced" if is_whole else "partly_silenced", until=silence.ends_at)


def run_rule_backtest(
    context: InsightContext, rule: AnyRule, scope: DiagnosisScope, max_scores: int = MAX_BACKTEST_SCORES
) -> BacktestReport:
    """Backtest one rule over the window, evaluating it less often than a worker would.

    Raises:
        BacktestTooLarge: The window contains more than ``max_scores`` scores.
        BacktestBusy: Another backtest is running. Only one runs at a time, because it keeps the database busy.
    """
    since = max(scope.since, scope.until - MAX_BACKTEST_LENGTH)
    scores = sum(group.n for group in context.store.trends.summary(since=since, until=scope.until, histograms=False))
    if scores > max_scores:
        raise BacktestTooLarge(f"{scores:,} scores are too many for a backtest on this page (maximum {max_scores:,}).")
    if not _backtest_lock.acquire(blocking=False):
        raise BacktestBusy("Another backtest is running.")
    try:
        step = max(alerting.default_step(rule), (scope.until - since) / MAX_EVALUATIONS)
        return alerting.run_backtest(context.store, context.settings, [rule], since=since, until=scope.until, step=step)
    finally:
        _backtest_lock.release()
