"""Diagnosis of rules: the reasons each rule is not firing, and backtests on past data."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from germane.alert import Alert, Silence
from germane.errors import GermaneError
from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import (
    format_date_time,
    format_duration,
    format_interval,
    format_number,
    format_percent,
)
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
Statement = tuple[Literal["obstacle", "good", "bad"], str]
"""A sentence about an obstacle, or about a value that the rule checks."""


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
    view: ViewParams | None = None
    """The view whose time zone is used for dates."""

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
class RuleDiagnosis:
    """A rule and the reasons it is not firing."""

    rule: AnyRule
    enabled: bool
    obstacles: Sequence[str]
    """Obstacles, as sentences. Empty if nothing prevents the rule from firing."""
    observations: Sequence[str]
    """The values that the rule checks, as sentences, if they are known without an evaluation."""
    is_violated: bool
    """Whether one of the observed values violates the rule."""
    alert: Alert | None
    """The open alert raised by this rule, if any."""

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
    diagnoses = []
    for rule, enabled in rules:
        statements = list(_statements(context, rule, scope, facts, enabled=enabled))
        diagnoses.append(
            RuleDiagnosis(
                rule=rule,
                enabled=enabled,
                obstacles=[words for kind, words in statements if kind == "obstacle"],
                observations=[words for kind, words in statements if kind != "obstacle"],
                is_violated=any(kind == "bad" for kind, _ in statements),
                alert=next((alert for alert in facts.alerts if alert.rule == rule.name), None),
            )
        )
    return facts, diagnoses


def _statements(
    context: InsightContext, rule: AnyRule, scope: DiagnosisScope, facts: DiagnosisFacts, *, enabled: bool
) -> Iterator[Statement]:
    if not enabled:
        yield "obstacle", "The rule is disabled in the settings (enabled = false)."
    if scope.route is not None and not rule.matches_route(scope.route):
        yield "obstacle", "The rule's route patterns do not match this route."
    elif scope.scorer is not None and rule.scorer not in {None, scope.scorer}:
        yield "obstacle", f"The rule covers only scores from {rule.scorer}."
    else:
        means = [group for group in facts.means if rule.scorer in {None, group.scorer}]
        means = [group for group in means if rule.matches_route(group.route)]
        if rule.type == "budget_exhausted" and context.settings.budget is None:
            yield "obstacle", "No budget is configured."
        elif rule.type in SCORE_RULES and not means:
            yield "obstacle", f"There are no scores{f' from {rule.scorer}' if rule.scorer else ''} in this window."
        elif isinstance(rule, Drop):
            yield from (("obstacle", words) for words in _drop_obstacles(rule, means, scope, facts))
            yield from (("good", words) for words in _provisional_baselines(rule, means, scope, facts))
            yield from (("good", words) for words in _undetected_drops(rule, means, facts))
        elif isinstance(rule, WindowRule):
            yield from _window_statements(context, rule, scope)
    yield from (("obstacle", words) for words in _silence_obstacles(rule, scope, facts))
    if not facts.is_evaluated:
        yield "obstacle", "No worker is running, and only workers evaluate rules."


def _drop_obstacles(
    rule: Drop, means: Sequence[RouteSummary], scope: DiagnosisScope, facts: DiagnosisFacts
) -> Iterator[str]:
    for service, scorer in sorted({(group.service, group.scorer) for group in means}):
        names = (service, scorer)
        subject = f"{scorer} for {service}"
        versions = [version for version in facts.versions if version.key[:2] == names]
        versions = [version for version in versions if bool(version.key.scope) == bool(rule.attributes)]
        if versions:
            baselines = [version.baseline for version in versions if version.baseline]
            covered = {route for baseline in baselines for route in (*baseline.routes, *baseline.pooled)}
            for route in sorted({group.route for group in means if (group.service, group.scorer) == names} - covered):
                yield f"{subject}: the baseline does not cover route {route} until the route has enough scores."
            continue
        until = max((version.until for version in facts.learning if version.key[:2] == names), default=None)
        if until is None:
            yield f"{subject}: no baseline is being learned, because no worker has evaluated the rule yet."
        else:
            moment = format_date_time(until, scope.view)
            yield (
                f"{subject}: learning a baseline until {moment}. Large drops are detected after one day and 200 scores."
            )


def _provisional_baselines(
    rule: Drop, means: Sequence[RouteSummary], scope: DiagnosisScope, facts: DiagnosisFacts
) -> Iterator[str]:
    names = {(group.service, group.scorer) for group in means}
    for version in facts.learning:
        service, scorer, _, version_scope = version.key
        if version.provisional and (service, scorer) in names and bool(version_scope) == bool(rule.attributes):
            until = format_date_time(version.until, scope.view)
            yield f"{scorer} for {service}: until {until}, the baseline is provisional, and drops below 0.1 are missed."


def _undetected_drops(rule: Drop, means: Sequence[RouteSummary], facts: DiagnosisFacts) -> Iterator[str]:
    """Explain why a mean may be lower without an alert, for services with a baseline and no open alert."""
    alerted = {(alert.service, alert.scorer) for alert in facts.alerts if alert.rule == rule.name}
    learned = {version.key[:2] for version in facts.versions if bool(version.key.scope) == bool(rule.attributes)}
    for service, scorer in sorted({(group.service, group.scorer) for group in means}):
        if (service, scorer) in learned and not {(service, scorer), (service, None)} & alerted:
            yield (
                f"{scorer} for {service}: no drop detected. To keep false alerts to {rule.false_alerts_per_year:g} per "
                "year, detection waits for more evidence than the overview, which can report a drop earlier."
            )


def _window_statements(context: InsightContext, rule: WindowRule, scope: DiagnosisScope) -> Iterator[Statement]:
    """Yield a statement about the scores in the rule's window, for each route."""
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
            kind, words = _check_window(rule, mean, window)
            yield kind, f"Route {mean.route}, service {mean.service}: {words}."


def _check_window(rule: WindowRule, mean: RouteMean, window: timedelta) -> Statement:
    """Check the scores of one route in the rule's window against the rule."""
    from germane.alerting import evaluate_mean_threshold, evaluate_share

    if mean.n < rule.min_samples:
        longer = "the window is extended until it contains enough scores"
        return "obstacle", f"n={mean.n} in {format_duration(window)}, but the rule needs {rule.min_samples}; {longer}"
    if isinstance(rule, MeanThreshold):
        interval = format_interval(mean.interval)
        words = f"the mean is {format_number(mean.mean)} (95% interval {interval}, n={mean.n:,})"
        if evaluate_mean_threshold(rule, mean).state == "bad":
            return "bad", f"{words}, below {rule.threshold:g}"
        qualifier = "" if mean.mean >= rule.threshold else "significantly "
        return "good", f"{words}, not {qualifier}below {rule.threshold:g}"
    if not isinstance(rule, (LowScoreRate, NoncommittalRate)):
        return "good", f"n={mean.n:,}"
    share = mean.low_share if isinstance(rule, LowScoreRate) else mean.noncommittal_share
    if share is None:
        return "obstacle", f"{mean.scorer} does not detect noncommittal answers"
    words, threshold = f"the share is {format_percent(share)} (n={mean.n:,})", format_percent(rule.threshold)
    if evaluate_share(rule, mean, share).state == "bad":
        return "bad", f"{words}, above {threshold}"
    qualifier = "significantly " if share > rule.threshold else ""
    return "good", f"{words}, not {qualifier}above {threshold}"


def _silence_obstacles(rule: AnyRule, scope: DiagnosisScope, facts: DiagnosisFacts) -> Iterator[str]:
    """Describe the silences that would suppress the rule's alerts, as far as the labels are known."""
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
            some = "" if len(decidable) == len(silence.matchers) else "Some "
            noun = f"{some}notifications are".capitalize()
            until = format_date_time(silence.ends_at, scope.view)
            yield f"{noun} silenced until {until}. The alert still fires and resolves."


def run_rule_backtest(
    context: InsightContext, rule: AnyRule, scope: DiagnosisScope, max_scores: int = MAX_BACKTEST_SCORES
) -> BacktestReport:
    """Backtest one rule over the window, evaluating it less often than a worker would.

    Raises:
        BacktestTooLarge: The window contains more than ``max_scores`` scores.
        BacktestBusy: Another backtest is running. Only one runs at a time, because it keeps the database busy.
    """
    from germane.alerting import default_step, run_backtest

    since = max(scope.since, scope.until - MAX_BACKTEST_LENGTH)
    scores = sum(group.n for group in context.store.trends.summary(since=since, until=scope.until, histograms=False))
    if scores > max_scores:
        raise BacktestTooLarge(f"{scores:,} scores are too many for a backtest on this page (maximum {max_scores:,}).")
    if not _backtest_lock.acquire(blocking=False):
        raise BacktestBusy("Another backtest is running.")
    try:
        step = max(default_step(rule), (scope.until - since) / MAX_EVALUATIONS)
        return run_backtest(context.store, context.settings, [rule], since=since, until=scope.until, step=step)
    finally:
        _backtest_lock.release()
