"""Backtests: the alerts and notifications that rules would have produced over the stored history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from germane import sanitize
from germane.alert import Alert, AlertEvent
from germane.alerting.backtest_history import BaselineHistory, HistoricalAlerts, HistoricalInputs, Stream
from germane.alerting.evaluator import AlertEvaluator
from germane.settings import DEFAULT_RULES, AnyRule, Drop, NoData, Settings
from germane.storage import MAX_SCORING_DELAY, TrackingStore

HOUR: Final = timedelta(hours=1)
STEPS_PER_WINDOW: Final = 12
"""Minimum number of evaluations per window. Rules with short windows are evaluated more often than hourly."""
STEPS_PER_WAIT: Final = 3
"""Minimum number of evaluations of a ``no_data`` rule within ``at_least``."""
_SCORE_TIME_NOTE: Final = "scores count from the time of their answers, even if they were computed later"
_NOTES: Final = {
    "no_data": (),
    "scorer_error": ("only final failures count: failed attempts that were retried successfully are not stored",),
    "budget_exhausted": (
        "a daily budget counts as exhausted once it has caused a skipped answer; only daily totals are stored",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEpisode:
    """An alert that fired in a backtest."""

    fired: Alert
    """The alert at the time it fired."""
    last: Alert
    """The alert at the time it resolved, or at the end of the backtest."""
    events: tuple[AlertEvent, ...]
    """The alert's events, oldest first."""
    until: datetime
    """Time at which the alert resolved, or the end of the backtest; UTC."""

    @property
    def seconds(self) -> float:
        """Duration in seconds, from firing to ``until``."""
        return (self.until - (self.fired.fired_at or self.until)).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBacktest:
    """The alerts and notifications that one rule would have produced."""

    rule: AnyRule
    step: timedelta
    """Time between two evaluations. All times are accurate to within this step."""
    episodes: tuple[AlertEpisode, ...]
    """The alerts that fired, oldest first."""
    unfired: int
    """Number of alerts that were pending but never fired."""
    notifications: Counter[str]
    """Number of notifications per channel, by type: ``firing``, ``escalated``, ``repeated`` or ``resolved``."""
    notes: tuple[str, ...]
    """Notes on the baselines used and on limitations of the backtest."""

    @property
    def resolved(self) -> int:
        """Number of fired alerts that resolved."""
        return sum(not episode.last.is_open for episode in self.episodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRule:
    """A rule that cannot be backtested."""

    rule: AnyRule
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """The results for all rules. Each rule was run separately."""

    since: datetime
    """UTC."""
    until: datetime
    scores: int
    """Number of stored scores from ``since`` to ``until``."""
    rules: tuple[RuleBacktest, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()

    @property
    def notifications(self) -> int:
        """Number of notifications that one channel would have received from all rules."""
        return sum(rule.notifications.total() for rule in self.rules)


@dataclass(slots=True)
class _Clock:
    """A clock that the backtest sets."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


def run_backtest(
    store: TrackingStore,
    settings: Settings,
    rules: Sequence[AnyRule],
    *,
    since: datetime,
    until: datetime,
    step: timedelta | None = None,
) -> BacktestReport:
    """Run each rule separately over the stored history. Nothing is written to the database.

    Each step runs the production evaluator on the data that was available at that time. Silences, acknowledgements and
    manual resolutions are not replayed.

    Args:
        store: The store that contains the history.
        settings: Settings with the budget and the poll interval.
        rules: The rules to run. They do not have to be configured.
        since: Start of the backtest, in UTC.
        until: End of the backtest, in UTC. Must not be in the future.
        step: Time between two evaluations. Defaults to :func:`default_step`.

    Raises:
        ValueError: ``since`` is not before ``until``, or ``step`` is not positive.
    """
    if since >= until or (step is not None and step <= timedelta()):
        raise ValueError(f"nothing to backtest from {since} to {until} with a step of {step}")
    summaries = store.trends.summary(since=since - MAX_SCORING_DELAY, until=until, histograms=False)
    streams = {(mean.service, mean.scorer, mean.fingerprint) for mean in summaries}
    scores = sum(mean.n for mean in store.trends.summary(since=since, until=until, histograms=False))
    backtests, skipped = list[RuleBacktest](), list[SkippedRule]()
    for rule in rules:
        if rule.type == "budget_exhausted" and settings.budget is None:
            skipped.append(SkippedRule(rule=rule, reason="no budget is configured"))
        elif rule.type == "judge_drift":
            skipped.append(SkippedRule(rule=rule, reason="the judge would have to score answers again"))
        elif rule.type != "budget_exhausted" and not any(rule.scorer in {None, scorer} for _, scorer, _ in streams):
            of_scorer = "" if rule.scorer is None else f" of {rule.scorer}"
            skipped.append(SkippedRule(rule=rule, reason=f"no score{of_scorer} is stored for this period"))
        else:
            backtests.append(_run_rule(store, settings, rule, streams, since, until, step or default_step(rule)))
    return BacktestReport(since=since, until=until, scores=scores, rules=tuple(backtests), skipped=tuple(skipped))


def default_step(rule: AnyRule) -> timedelta:
    """Return the default time between two evaluations: one hour, or less for rules with short windows."""
    if isinstance(rule, NoData):
        return min(HOUR, timedelta(seconds=rule.at_least / STEPS_PER_WAIT))
    window = getattr(rule, "window", None)
    return HOUR if window is None else min(HOUR, timedelta(seconds=window / STEPS_PER_WINDOW))


def _run_rule(
    store: TrackingStore,
    settings: Settings,
    rule: AnyRule,
    streams: set[Stream],
    since: datetime,
    until: datetime,
    step: timedelta,
) -> RuleBacktest:
    clock, ids = _Clock(since), count(1)
    versions = BaselineHistory(store.baselines.list_versions(superseded=True), since, clock)
    watched = [stream for stream in streams if isinstance(rule, Drop) and rule.scorer in {None, stream[1]}]
    inputs = HistoricalInputs(
        store,
        watched,
        since=since,
        until=until,
        clock=clock,
        attributes=bool(getattr(rule, "attributes", None)),
        baseline_rate=versions.max_sampling_rate,
    )
    alerts = HistoricalAlerts(inputs)
    others = [other.model_copy(update={"enabled": False}) for other in DEFAULT_RULES if other.type != rule.type]
    evaluator = AlertEvaluator(
        store,
        settings.model_copy(update={"rules": (rule.model_copy(update={"enabled": True}), *others)}),
        holder=None,
        scorers=sorted({scorer for _, scorer, _ in streams}),
        channels={"backtest": lambda _: True},
        clock=clock,
        new_id=lambda: f"{next(ids):032x}",
        alerts=alerts,
        inputs=inputs,
        versions=versions,
        as_of=clock,
    )
    while clock.now < until:
        clock.now = min(clock.now + step, until)
        evaluator.evaluate()
    episodes = []
    for fired in alerts.fired.values():
        last = alerts.alerts[fired.id]
        events = tuple(event for event in alerts.events if event.alert_id == fired.id)
        episodes.append(AlertEpisode(fired=fired, last=last, events=events, until=last.resolved_at or until))
    return RuleBacktest(
        rule=rule,
        step=step,
        episodes=tuple(episodes),
        unfired=len(alerts.alerts) - len(alerts.fired),
        notifications=Counter(notification.type for notification in alerts.notifications),
        notes=_notes(rule, versions),
    )


def _notes(rule: AnyRule, history: BaselineHistory) -> tuple[str, ...]:
    if not isinstance(rule, Drop):
        return _NOTES.get(rule.type, (_SCORE_TIME_NOTE,))
    notes = []
    for version in history.list_all():
        key = version.key
        if rule.scorer not in {None, key.scorer}:
            continue
        scorer, service, fingerprint = (
            sanitize.line(name, width) for name, width in ((key.scorer, 40), (key.service, 40), (key.fingerprint, 12))
        )
        stream = f"{scorer} for {service} ({fingerprint})"
        window = f"learned from {version.since:%Y-%m-%d %H:%M} to {version.until:%Y-%m-%d %H:%M} UTC"
        active_from = max(version.until, version.created_at)
        if version.baseline is None:
            if version.status == "learning":
                until = f"{version.until:%Y-%m-%d %H:%M} UTC"
                notes.append(f"{stream}: no baseline yet; one would be learned until {until}")
        elif version.id in history.learned_ids:
            kind = "provisional baseline" if version.is_provisional else "baseline"
            notes.append(f"{stream}: {kind} {window} in this backtest, because none was active")
        else:
            active = f"active from {active_from:%Y-%m-%d %H:%M} UTC"
            notes.append(f"{stream}: baseline version {version.number}, {window}, {active}")
    return tuple(notes)
