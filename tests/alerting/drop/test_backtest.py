"""What rules would have told over stored history: the same that they did tell, and nothing is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from germane.alerting.backtest import Preview, Replayed, run_backtest
from germane.alerting.backtest.backtest import step_of
from germane.alerting.backtest.historical_store import Hindsight, Queue
from germane.alerting.detector import kept, seen
from germane.score import Reason, Score
from germane.settings import Budget, BudgetExhausted, Floor, NoData, ScorerError, load
from germane.settings.rules import AnyRule, Drop
from germane.storage import Decision, Expense, Store
from germane.storage.db import tables
from germane.storage.db.tables import metadata

START = datetime.fromisoformat("2026-01-05T00:00:00+00:00")
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
CALM = Drop(critical_drop=None)
"""Never more than a warning."""
NUMBERS = ("key", "labels", "severity", "fingerprint", "onset", "kind")


def previewed(
    world: Any, *rules: AnyRule, since: datetime = START, step: timedelta | None = None, **settings: Any
) -> Preview:
    """Return what rules would have told up to now."""
    return run_backtest(world.store, load(**settings), rules or (Drop(),), since=since, until=world.now, step=step)


def one_of(world: Any, rule: AnyRule, **given: Any) -> Replayed:
    """Return what one rule would have told."""
    (found,) = previewed(world, rule, **given).replayed
    return found


def rows(world: Any) -> dict[str, list[Any]]:
    """Return all there is in the database."""
    with world.store._database.read() as connection:
        counts = {
            name: connection.execute(select(func.count()).select_from(each)).scalar_one()
            for name, each in metadata.tables.items()
        }
        versions = connection.execute(select(tables.detector.c.row_version, tables.detector.c.state)).all()
    return {**counts, "progress": versions}


def end(world: Any, count: int, hours: float, made: Callable[[datetime, str], Score]) -> None:
    """Have exchanges come evenly over the next hours, and end as a function of their moment and fingerprint says."""
    moments = [world.now + timedelta(hours=hours) * (number + 1) / count for number in range(count)]
    exchanges = [world._exchange(moment) for moment in moments]
    world.store.add(exchanges)
    world.store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {"relevancy": "f1"})
    claims = world.store.claim("me", {"relevancy": "f1"}, limit=count, lease=DAY)
    results = [(task, made(one.exchange.started_at, task.fingerprint)) for one in claims for task in one.tasks]
    world.store.complete("me", results)
    world.now = moments[-1]


def late(moment: datetime, fingerprint: str) -> Score:
    """Score half a day after the answer."""
    return Score(scorer="relevancy", fingerprint=fingerprint, value=0.8, scored_at=moment + 12 * HOUR)


def failed(_: datetime, fingerprint: str) -> Score:
    """Fail."""
    return Score(scorer="relevancy", fingerprint=fingerprint, reason=Reason.JUDGE_UNREACHABLE, explanation="gone")


def months(world: Any, watch: Any) -> list[str]:
    """Let scores drop for five days and recover; return what live watching said."""
    world.learned(watch, per_day=40)
    told = []
    for days, mean in ((1, 0.8), (5, 0.62), (9, 0.8)):
        for _ in range(days):
            world.days(1, per_day=40, mean=mean)
            told += world.look(watch)
    return told


def test_a_drop_is_found_as_it_was_when_it_was_live(world: Any) -> None:
    """The same evidence, onset and carriers; nothing is written."""
    assert months(world, world.watch(CALM)) == ["fired", "resolved"]
    (live,) = world.fired
    before = rows(world)

    found = one_of(world, CALM, step=8 * HOUR)

    assert rows(world) == before
    (one,) = found.episodes
    assert {name: getattr(one.fired, name) for name in NUMBERS} == {name: getattr(live, name) for name in NUMBERS}
    assert one.fired.evidence == pytest.approx(live.evidence, rel=1e-9)  # other batches add in another order
    assert [each["half"] for each in one.fired.details["carriers"]] == [
        each["half"] for each in live.details["carriers"]
    ]
    assert live.fired_at is not None
    assert one.fired.fired_at is not None
    assert live.fired_at - DAY < one.fired.fired_at <= live.fired_at
    assert (one.last.state, one.last.resolve_reason, found.resolved) == ("resolved", "recovered", 1)
    assert one.seconds == (one.until - one.fired.fired_at).total_seconds()
    assert "relevancy of service shop dropped from 0.7" in one.fired.message
    assert found.notifications["firing"] == found.notifications["resolved"] == 1
    assert [event.what for event in one.events if event.what != "repeated"] == ["fired", "resolved"]

    later = one_of(world, CALM, since=START + 15 * DAY, step=8 * HOUR)  # by what was in force then
    assert "by baseline version 1, learned from" in later.notes[0]
    assert [each.fired.baseline for each in later.episodes] == [live.baseline]


def test_a_floor_fires_and_resolves_once(small: Any) -> None:
    """By the look that watches, with its hysteresis and the time that it keeps firing."""
    for days, mean in ((1, 0.8), (1, 0.4), (2, 0.8)):
        small.days(days, per_day=40, mean=mean)
    before = rows(small)

    found = one_of(small, Floor(scorer="relevancy", threshold=0.6))

    assert rows(small) == before
    (one,) = found.episodes
    assert one.fired.labels == {"service": "shop", "scorer": "relevancy", "route": "ask"}
    assert one.fired.fired_at is not None
    assert START + DAY < one.fired.fired_at < START + 2 * DAY
    assert START + 2 * DAY < one.until < START + 4 * DAY
    assert "relevancy of route ask in shop is below 0.6" in one.fired.message
    assert found.notifications == {"firing": 1, "resolved": 1, "repeated": one.seconds // 86_400}


def test_without_a_baseline_it_is_learned_from_the_first_fortnight(small: Any) -> None:
    """Of a history that nobody has watched, which is said; live watching would have found the same."""
    small.days(1, per_day=1)
    small.days(14, per_day=40)
    small.days(4, per_day=40, mean=0.5)

    found = one_of(small, CALM, step=6 * HOUR)

    (one,) = found.episodes
    assert one.last.state == "firing"
    assert one.until == small.now
    (note,) = found.notes
    assert "by a baseline learned from 2026-01-06 00:00 to 2026-01-20 00:00 UTC, as the replay found none" in note
    assert one_of(small, Drop(min_drop=0.9), step=DAY).episodes == ()


def test_a_time_too_short_to_learn_says_so(small: Any) -> None:
    """Nothing fires of what nothing is known of."""
    small.days(3, per_day=40)

    found = one_of(small, Drop())

    assert found.episodes == ()
    assert found.step == HOUR
    assert "nothing is watched yet, learning would go on until 2026-01-19" in found.notes[0]


def test_missing_scores_are_found_as_they_were_missing(small: Any) -> None:
    """Answers that were scored half a day late are scored now; then they were not."""
    rule = NoData(scorer="relevancy", at_least=7200)
    small.days(1, per_day=96)
    end(small, 48, 12, late)
    small.days(1, per_day=96)

    found = one_of(small, rule)

    (one,) = found.episodes
    assert one.fired.fired_at is not None
    assert START + DAY < one.fired.fired_at < START + 1.2 * DAY
    assert START + 1.5 * DAY < one.until < START + 2 * DAY
    assert "no answer of service shop was scored by relevancy since" in one.fired.message


def test_failures_and_a_spent_budget_are_found_in_the_counts(small: Any) -> None:
    """By what became of answers in the end; without a budget there is nothing to look at, which is said."""
    small.days(1, per_day=96)
    end(small, 96, 24, failed)
    small.days(1, per_day=96)

    errors = one_of(small, ScorerError(min_count=3))
    assert [one.fired.labels for one in errors.episodes] == [{"service": "shop", "scorer": "relevancy"}]
    assert errors.resolved == 1

    (missing,) = previewed(small, BudgetExhausted()).unreplayed
    assert missing.why == "there is no budget in the settings that could be spent"


def test_a_spent_budget_is_found_from_the_first_answer_that_was_not_paid_for(small: Any) -> None:
    """On that day alone; the next one begins with a budget of its own."""
    budget = Budget(calls_per_day=96)
    small.days(1, per_day=96)
    small.score(small.values(48), hours=12)
    small.store.reserve_budget(budget, [Expense(1, 0, 0)] * 96)
    unpaid = [small._exchange(small.now + timedelta(minutes=30 * number)) for number in range(1, 20)]
    small.store.add(unpaid)
    reason = {"relevancy": Reason.BUDGET}
    small.store.assign([Decision(one.id, 1.0, "budget", reason) for one in unpaid], {"relevancy": "f1"})
    small.now += DAY

    found = one_of(small, BudgetExhausted(), budget=budget.model_dump())

    (one,) = found.episodes
    assert one.fired.fired_at == START + 1.5 * DAY + 2 * HOUR
    assert one.until == START + 2 * DAY
    assert "96 of 96 calls are spent" in one.fired.message


def test_of_a_busy_service_only_so_many_scores_are_read_as_may_be_wanted(small: Any) -> None:
    """By the draw of the detector itself; a baseline that wants more gets more."""
    small.score(small.values(600), hours=2)
    stream = ("shop", "relevancy", "f1")
    window = {"since": START, "until": small.now + HOUR, "attributes": False}

    few, all_ = (Queue(small.store, [stream], **window, keep=lambda _, keep=keep: keep) for keep in (0.0, 1.0))

    share = 2 * seen(600 * 24 / 3)
    found = few.waiting(small.now, 1000)
    assert found
    assert [one.exchange_id for one in all_.waiting(small.now, 1000) if kept(one.exchange_id, share)] == [
        one.exchange_id for one in found
    ]
    assert len(found) < 0.6 * 600
    assert [one.id for one in few.waiting(small.now, 3)] == [one.id for one in found[:3]]
    few.take([found[0].id])
    assert few.waiting(small.now, 1) == found[1:2]
    assert few.waiting(START, 9) == []


def test_hindsight_takes_what_a_store_takes() -> None:
    """Whoever watches asks it as they ask the store."""
    asked = {name for name in vars(Hindsight) if not name.startswith("_")}
    for name in asked:
        ours, theirs = (inspect.signature(getattr(each, name)).parameters for each in (Hindsight, Store))
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in ours.values())
        assert takes_any or ours.keys() >= theirs.keys() - {"until", "superseded", "day"}, name


def test_there_must_be_a_time_to_replay() -> None:
    """Backwards, or in steps that lead nowhere, nothing is replayed."""
    for until, step in ((START, None), (START + DAY, timedelta())):
        with pytest.raises(ValueError, match="nothing to replay"):
            run_backtest(Store("sqlite://"), load(), (Drop(),), since=START, until=until, step=step)


def test_how_often_a_rule_is_looked_at() -> None:
    """Hourly, or twelve times in its window; of missing scores three times in the shortest wait."""
    rules = (Drop(), Floor(threshold=0.5), Floor(threshold=0.5, window=3600), NoData(), ScorerError())

    assert [step_of(rule) / timedelta(minutes=1) for rule in rules] == [60, 60, 5, 5, 5]
