"""Backtests find the alerts that live evaluation raised, and write nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from germane.alerting.backtest import BacktestReport, RuleBacktest, default_step, run_backtest
from germane.alerting.backtest_history import HistoricalInputs
from germane.alerting.detector.score_batch import is_sampled, sampling_rate
from germane.score import Score, UnscoredReason
from germane.settings import Budget, BudgetExhausted, MeanThreshold, NoData, ScorerError, load_settings
from germane.settings.rules import AnyRule, Drop
from germane.storage import AlertTransaction, RequestUsage, SamplingDecision, TrackingStore
from germane.storage.db import tables
from germane.storage.db.tables import metadata
from germane.testing import transaction

START = datetime.fromisoformat("2026-01-05T00:00:00+00:00")
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
CALM = Drop(critical_drop=None)
"""A drop rule that never becomes critical."""
ALERT_FIELDS = ("key", "labels", "severity", "fingerprint", "onset", "type")


def backtest(
    simulation: Any, *rules: AnyRule, since: datetime = START, step: timedelta | None = None, **settings: Any
) -> BacktestReport:
    """Run a backtest up to now."""
    return run_backtest(
        simulation.store, load_settings(**settings), rules or (Drop(),), since=since, until=simulation.now, step=step
    )


def backtest_rule(simulation: Any, rule: AnyRule, **given: Any) -> RuleBacktest:
    """Run a backtest of one rule."""
    (found,) = backtest(simulation, rule, **given).rules
    return found


def rows(simulation: Any) -> dict[str, list[Any]]:
    """Return row counts and detector states."""
    with transaction(simulation.store, read_only=True) as connection:
        counts = {
            name: connection.execute(select(func.count()).select_from(each)).scalar_one()
            for name, each in metadata.tables.items()
        }
        versions = connection.execute(select(tables.detector.c.row_version, tables.detector.c.state)).all()
    return {**counts, "progress": versions}


def end(simulation: Any, count: int, hours: float, made: Callable[[datetime, str], Score]) -> None:
    """Store exchanges over the next hours, with scores that a function computes from time and fingerprint."""
    moments = [simulation.now + timedelta(hours=hours) * (number + 1) / count for number in range(count)]
    exchanges = [simulation._exchange(moment) for moment in moments]
    simulation.store.exchanges.add(exchanges)
    simulation.store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"relevancy": "f1"}
    )
    claims = simulation.store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=count, lease=DAY)
    results = [(task, made(one.exchange.started_at, task.fingerprint)) for one in claims for task in one.tasks]
    simulation.store.queue.complete_tasks("me", results)
    simulation.now = moments[-1]


def late(moment: datetime, fingerprint: str) -> Score:
    """Score half a day after the answer."""
    return Score(scorer="relevancy", fingerprint=fingerprint, value=0.8, scored_at=moment + 12 * HOUR)


def failed(_: datetime, fingerprint: str) -> Score:
    """Return a failure."""
    return Score(
        scorer="relevancy", fingerprint=fingerprint, reason=UnscoredReason.JUDGE_UNREACHABLE, explanation="gone"
    )


def months(simulation: Any, watcher: Any) -> list[str]:
    """Let scores drop for five days and recover; return the live events."""
    simulation.learn_baseline(watcher, per_day=40)
    events = []
    for days, mean in ((1, 0.8), (5, 0.62), (9, 0.8)):
        for _ in range(days):
            simulation.pass_days(1, per_day=40, mean=mean)
            events += simulation.evaluate(watcher)
    return events


@pytest.mark.slow
def test_a_backtest_reproduces_the_alert_of_the_live_evaluation(simulation: Any) -> None:
    """The evidence and onset are the same, and nothing is written."""
    assert months(simulation, simulation.new_watcher(CALM)) == ["fired", "recovering", "resolved"]
    (live,) = simulation.fired
    before = rows(simulation)

    found = backtest_rule(simulation, CALM, step=8 * HOUR)

    assert rows(simulation) == before
    (one,) = found.episodes
    assert {name: getattr(one.fired, name) for name in ALERT_FIELDS} == {
        name: getattr(live, name) for name in ALERT_FIELDS
    }
    assert live.fired_at is not None
    assert one.fired.fired_at is not None
    assert live.fired_at - DAY < one.fired.fired_at <= live.fired_at
    assert (one.last.state, one.last.resolve_reason, found.resolved) == ("resolved", "recovered", 1)
    assert one.seconds == (one.until - one.fired.fired_at).total_seconds()
    assert one.fired.baseline is not None
    assert (one.fired.type, round(one.fired.baseline.mean, 1)) == ("drop", 0.8)
    assert found.notifications["firing"] == found.notifications["resolved"] == 1
    assert [event.type for event in one.events if event.type not in {"repeated", "recovering"}] == [
        "fired",
        "resolved",
    ]

    later = backtest_rule(simulation, CALM, since=START + 15 * DAY, step=8 * HOUR)  # with the settings of that time
    assert "baseline version 1, learned from" in later.notes[0]
    assert [each.fired.baseline for each in later.episodes] == [live.baseline]


def test_a_mean_threshold_fires_and_resolves_once_in_a_backtest(sqlite_simulation: Any) -> None:
    """The recovery margin and keep_firing_for apply as in live evaluation."""
    for days, mean in ((1, 0.8), (1, 0.4), (2, 0.8)):
        sqlite_simulation.pass_days(days, per_day=40, mean=mean)
    before = rows(sqlite_simulation)

    found = backtest_rule(sqlite_simulation, MeanThreshold(scorer="relevancy", threshold=0.6))

    assert rows(sqlite_simulation) == before
    (one,) = found.episodes
    assert one.fired.labels == {"service": "shop", "scorer": "relevancy", "route": "ask"}
    assert one.fired.fired_at is not None
    assert START + DAY < one.fired.fired_at < START + 2 * DAY
    assert START + 2 * DAY < one.until < START + 4 * DAY
    assert (one.fired.type, one.fired.threshold) == ("mean_threshold", 0.6)
    assert found.notifications == {"firing": 1, "resolved": 1, "repeated": one.seconds // 86_400}


def test_a_missing_baseline_is_learned_during_the_backtest(sqlite_simulation: Any) -> None:
    """The baseline is learned from the first 14 days, and a note states this."""
    sqlite_simulation.pass_days(1, per_day=1)
    sqlite_simulation.pass_days(14, per_day=40)
    sqlite_simulation.pass_days(4, per_day=40, mean=0.5)

    found = backtest_rule(sqlite_simulation, CALM, step=6 * HOUR)

    (one,) = found.episodes
    assert one.last.state == "firing"
    assert one.until == sqlite_simulation.now
    provisional, learned = found.notes
    assert "provisional baseline learned from 2026-01-06 00:00 to 2026-01-11 " in provisional
    assert (
        ": baseline learned from 2026-01-06 00:00 to 2026-01-20 00:00 UTC in this backtest, because none was active"
        in learned
    )
    assert backtest_rule(sqlite_simulation, Drop(min_drop=0.9), step=DAY).episodes == ()


def test_a_backtest_over_a_short_period_reports_that_learning_is_incomplete(sqlite_simulation: Any) -> None:
    """Until learning ends, nothing fires."""
    sqlite_simulation.pass_days(3, per_day=40)

    found = backtest_rule(sqlite_simulation, Drop())

    assert found.episodes == ()
    assert found.step == HOUR
    assert "no baseline yet; one would be learned until 2026-01-19" in found.notes[0]


def test_late_scores_count_as_missing_until_they_arrive_in_a_backtest(sqlite_simulation: Any) -> None:
    """If scores are computed half a day late, no_data fires."""
    rule = NoData(scorer="relevancy", at_least=7200)
    sqlite_simulation.pass_days(1, per_day=96)
    end(sqlite_simulation, 48, 12, late)
    sqlite_simulation.pass_days(1, per_day=96)

    found = backtest_rule(sqlite_simulation, rule)

    (one,) = found.episodes
    assert one.fired.fired_at is not None
    assert START + DAY < one.fired.fired_at < START + 1.2 * DAY
    assert START + 1.5 * DAY < one.until < START + 2 * DAY
    assert one.fired.details["waiting"] > 0


@pytest.mark.slow
def test_a_backtest_includes_permanent_scoring_failures(sqlite_simulation: Any) -> None:
    """Without a configured budget, the budget rule is skipped, with a reason."""
    sqlite_simulation.pass_days(1, per_day=96)
    end(sqlite_simulation, 96, 24, failed)
    sqlite_simulation.pass_days(1, per_day=96)

    errors = backtest_rule(sqlite_simulation, ScorerError(min_samples=3))
    assert [one.fired.labels for one in errors.episodes] == [{"service": "shop", "scorer": "relevancy"}]
    assert errors.resolved == 1

    (missing,) = backtest(sqlite_simulation, BudgetExhausted()).skipped
    assert missing.reason == "no budget is configured"


def test_a_backtest_treats_the_budget_as_exhausted_from_the_first_skipped_answer(sqlite_simulation: Any) -> None:
    """The alert is limited to that day."""
    budget = Budget(requests_per_day=96)
    sqlite_simulation.pass_days(1, per_day=96)
    sqlite_simulation.add_scores(sqlite_simulation.values(48), hours=12)
    sqlite_simulation.store.quota.reserve_budget(budget, [RequestUsage(1, 0, 0)] * 96)
    unpaid = [
        sqlite_simulation._exchange(sqlite_simulation.now + timedelta(minutes=30 * number)) for number in range(1, 20)
    ]
    sqlite_simulation.store.exchanges.add(unpaid)
    reason = {"relevancy": UnscoredReason.BUDGET}
    sqlite_simulation.store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "budget", reason) for one in unpaid], {"relevancy": "f1"}
    )
    sqlite_simulation.now += DAY

    found = backtest_rule(sqlite_simulation, BudgetExhausted(), budget=budget.model_dump())

    (one,) = found.episodes
    assert one.fired.fired_at == START + 1.5 * DAY + 2 * HOUR
    assert one.until == START + 2 * DAY
    assert [spent.partition(" requests")[0] for spent in one.fired.details["spent"]] == ["96 of 96"]


def test_backtests_sample_busy_services_like_the_detector(sqlite_simulation: Any) -> None:
    """Twice the detector's sample is loaded, or as much as an existing baseline needs."""
    sqlite_simulation.add_scores(sqlite_simulation.values(600), hours=2)
    now = sqlite_simulation.now
    moment = [now]
    window = {"since": START, "until": now + HOUR, "clock": lambda: moment[0], "attributes": False}

    sampled, full = (
        HistoricalInputs(
            sqlite_simulation.store, [("shop", "relevancy", "f1")], **window, baseline_rate=lambda _, rate=rate: rate
        )
        for rate in (0.0, 1.0)
    )

    rate = 2 * sampling_rate(600 * 24 / 3)
    scores = sampled.list_new_scores(1000)
    assert scores
    assert len(scores) < 0.6 * 600
    expected = [score.exchange_id for score in full.list_new_scores(1000) if is_sampled(score.exchange_id, rate)]
    assert [score.exchange_id for score in scores] == expected
    assert sampled.list_new_scores(3) == scores[:3]
    sampled.apply(AlertTransaction(processed_score_ids=[scores[0].id]))
    assert sampled.list_new_scores(1) == scores[1:2]
    moment[0] = START
    assert sampled.list_new_scores(9) == []


def test_a_backtest_with_an_empty_period_or_step_is_rejected() -> None:
    """Nothing can be evaluated."""
    for until, step in ((START, None), (START + DAY, timedelta())):
        with pytest.raises(ValueError, match="nothing to backtest"):
            run_backtest(TrackingStore("sqlite://"), load_settings(), (Drop(),), since=START, until=until, step=step)


def test_the_default_step_of_a_backtest_depends_on_the_rule() -> None:
    """Rules are evaluated hourly, but at least 12 times per window and 3 times per no_data wait."""
    rules = (Drop(), MeanThreshold(threshold=0.5), MeanThreshold(threshold=0.5, window=3600), NoData(), ScorerError())

    assert [default_step(rule) / timedelta(minutes=1) for rule in rules] == [60, 60, 5, 5, 5]
