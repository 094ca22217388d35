"""Every query that the Store makes has an index, on both databases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event

from germane.annotation import Feedback, Recorded
from germane.baseline import Baseline
from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.settings import Budget
from germane.storage import (
    Advance,
    AnswerFilter,
    Decision,
    Expense,
    JobRuns,
    Key,
    Limit,
    Past,
    Pick,
    Place,
    Presence,
    Progress,
    Run,
    Selection,
    Step,
    Store,
)
from germane.storage.answers.filter import SORTS
from germane.storage.answers.lowest_scores import Chosen, by_value, lowest, of_few, of_route

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
Statement = tuple[str, Any]
SOME_JOBS = (JobRuns(name="watch", runs=(Run(started_at=datetime(2026, 3, 1, tzinfo=UTC), seconds=0.1),)),)
A_PROCESS = Presence(id="me", host="h", pid=1, service="shop", version="1", scorers={"c": "f3"}, jobs=SOME_JOBS)
A_CALIBRATION = Calibration(
    embedder="e", scorer="a", fingerprint="f1", floor=0.07, high=0.2, n=400, made_at=datetime(2026, 3, 1, tzinfo=UTC)
)
A_BASELINE = Baseline(
    service="shop",
    scorer="a",
    fingerprint="f1",
    since=datetime(2026, 2, 1, tzinfo=UTC),
    until=datetime(2026, 3, 1, tzinfo=UTC),
    n=0,
    mean=0.0,
    deviation=0.0,
    scores_per_day=0.0,
    committed_per_day=0.0,
    routes={},
)


def use_everything(store: Store, make: Make, clock: Any) -> None:
    """Call each method that reads or writes, with and without what narrows it."""
    exchanges = [make(number, route=f"route-{number % 3}") for number in range(20)]
    window: dict[str, Any] = {"since": exchanges[0].started_at, "until": exchanges[-1].started_at}
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "uniform") for one in store.unsampled(18)], {"a": "f1", "b": "f2"})
    tasks = [task for claim in store.claim("me", {"a": "f1", "b": "f2"}, limit=9, lease=LEASE) for task in claim.tasks]
    values = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in tasks[2:]]
    store.complete("me", values)
    store.postpone("me", tasks[:2], until=clock.now, reason=Reason.JUDGE_TIMEOUT, error="slow")
    store.claim("me", {"a": "f1"}, limit=1, lease=LEASE)
    store.beat(A_PROCESS, [task.id for task in tasks], lease=LEASE)
    store.workers(within=LEASE)
    store.jobs()
    store.abandoned()
    clock.advance(hours=2)
    store.beat(A_PROCESS, [], lease=LEASE)
    store.expire(limit=1)
    store.dismiss("me")
    clock.advance(hours=-2)
    store.release("me")
    store.elect("job", "me", ttl=LEASE)
    pool = [make(number) for number in range(4)]
    store.add(pool)
    store.assign([Decision(one.id, None, "candidate") for one in pool], {"a": "f1"}, holder=("job", "me"))
    store.candidates(2, after=store.candidates(2)[0])
    store.pick(Step("job", "me", "here"), [Pick(pool[0].id, 0.5, "uniform")])
    store.pass_over(Step("job", "me", "there"), {pool[1].id: 0.5}, Reason.NOT_DRAWN)
    store.move(Step("job", "me", store.cursor("job") or ""))
    store.under_way()
    store.traffic_by_hour(**window)
    store.reserve([Limit("requests", 60), Limit("tokens", 600)], [(1, 9)])
    store.limit_uses()
    budget = Budget(calls_per_hour=9, usd_per_day=1.0)
    store.reserve_budget(budget, [Expense(1, 9.0, 0.1)], settled={date(2026, 2, 28): Expense(-1)})
    store.spent()
    store.spending(7)
    store.traffic(since=window["since"])
    store.sample(since=window["since"], limit=5)
    store.usage(since=window["since"])
    store.declare("shop", ["ask"])
    store.count_dropped({("shop", "ask"): 1}, ["a"])
    store.add_feedback([Feedback(id="f1", exchange_id=exchanges[0].id, score=1.0, created_at=clock.now)])
    store.record([Recorded(exchange_id=exchanges[0].id, name="mine", value=0.5, recorded_at=clock.now)])
    store.add_calibrations([A_CALIBRATION])
    store.feedback()
    store.feedback(route="route-1", **window)
    store.unconsidered_feedback(5)
    store.consider(["f1"], [exchanges[0].id], {"a": "f1", "b": "f2"})
    store.exchanges_of([one.id for one in exchanges])
    store.scores_of([one.id for one in exchanges])
    store.calibrations()
    store.exchanges()
    store.exchanges(route="route-1", **window)
    store.worst()
    store.worst(scorer="a", fingerprint="f1", route="route-1", **window)
    look_for_answers(store, window)
    store.rescore([(one.id, "a") for one in exchanges], {"a": "f1"}, budgeted=True)
    store.rescore([(one.id, "b") for one in exchanges], {"b": "f9"})
    lowest_by_each_way(store, window)
    store.trend(scorer="a", bucket=timedelta(minutes=5), **window)
    store.trend(scorer="a", bucket=timedelta(minutes=5), route="route-1", **window)
    store.summary()
    store.summary(**window)
    store.means(scorer="a", since=window["since"])
    store.means(scorer="a", since=None, route="route-1")
    store.coverage()
    store.coverage(since=window["since"])
    look_at_trends(store, window)
    store.roll(1, trend_by=["model", "attributes.tier"])
    look_at_trends(store, window)
    store.roll()
    store.due()
    look_at_trends(store, window)
    store.troubles()
    store.outstanding()
    store.backlog(lately=LEASE)
    store.pulse()
    store.manner()
    records = store.records(Selection())
    store.records(Selection(**window, route="route-1", scorer="a"), after=records[-1])
    store.dropped(Selection())
    store.dropped(Selection(**window))
    store.restore(records)
    store.restore_dropped(store.dropped(Selection()))
    store.counts()
    store.counts(at_most=5)
    watch(store, clock)
    take_away(store, clock)


def watch(store: Store, clock: Any) -> None:
    """Learn a baseline in every way, and move a detector on."""
    store.elect("watcher", "me", ttl=LEASE)
    holder = ("watcher", "me")
    found = store.arrivals(5, attributes=True) + store.arrivals(5)
    past = Past(service="shop", scorer="a", fingerprint="f1", since=clock.now - LEASE, until=clock.now)
    store.past(past, attributes=True)
    store.count_past(past)
    store.release_of(past)
    key = Key("shop", "a", "f1")
    window = {"since": clock.now, "until": clock.now + LEASE}
    version = store.begin_learning(key, "first", **window, holder=holder)
    assert version is not None
    store.extend_learning(version.id, clock.now + 2 * LEASE, holder=holder)
    store.freeze(version.id, A_BASELINE, ("m", "7"))
    store.supersede(key, "imported", A_BASELINE, (None, None))
    other = store.learn_anew(key, "accepted", **window)
    assert other is not None
    store.give_up_learning(other.id, holder=holder)
    store.baselines()
    store.baselines(superseded=True)
    store.learning()
    detector = Progress(rule="drop", service="shop", scorer="a", parameters="p", baseline_id=version.id, state={})
    ids = sorted({one.id for one in found})
    assert store.advance(Advance(holder=holder, progress=[detector], consumed=ids))
    (kept,) = store.detectors()
    assert store.advance(Advance(holder=holder, progress=[kept]))


def lowest_by_each_way(store: Store, window: dict[str, Any]) -> None:
    """Find the lowest scores by ways that would be too long for these few."""
    ways = (partial(of_few, few=0), partial(of_route, few=0), partial(by_value, steps=(1, None)))
    for narrowed in (Chosen(), Chosen(scorer="a", route="route-1", low=True, **window)):
        with store._database.read() as connection:
            lowest(connection, narrowed, 15, ways)
            of_route(connection, replace(narrowed, route="route-2"), 5)


def look_for_answers(store: Store, window: dict[str, Any]) -> None:
    """Look for answers in every order, by each part of a filter, and at one of them."""
    parts: list[dict[str, Any]] = [{}, {"model": "m"}, {"text": "card"}, {"labelled": True}, {"labelled": False}]
    parts += [{"state": "failed"}, {"state": "any"}, {"state": "waiting", "reason": "judge_timeout"}]
    for part in parts:
        chosen = AnswerFilter(scorer="a", route="route-1", low=True, below=0.9, **window, **part)
        for sort in SORTS:
            page = store.answers(chosen, sort=sort, limit=2)
            store.answers(chosen, sort=sort, after=page.after or Place(0.1, window["until"], "1"), limit=2)
            store.answers(AnswerFilter(**part), sort=sort, limit=2)
        store.count_answers(chosen)
    store.neighbours(AnswerFilter(), "nobody")
    (exchange,) = store.exchanges(limit=1)
    store.sheet(exchange.id)
    store.disagreements()
    store.disagreements(scorer="a", route="route-1", **window)


def look_at_trends(store: Store, window: dict[str, Any]) -> None:
    """Read trends in all ways: weeks, days and hours from rollups, and the rest."""
    days = {"scorer": "a", "bucket": timedelta(days=1), "until": window["until"] + timedelta(days=20)}
    for by in (None, "route", "service", "model", "prompt_version", "attributes.tier"):
        store.trend(**days, since=window["since"] - timedelta(days=20), by=by)
        store.trend(**days, since=window["since"] - timedelta(days=20), by=by, route="route-1", service="shop")
    store.means(scorer="a", since=window["since"], by="model")
    store.means(scorer="a", since=None, by="model")
    store.coverage_trend(**days, since=window["since"])
    store.summary(until=window["until"])
    store.coverage(until=window["until"])


def take_away(store: Store, clock: Any) -> None:
    """Foresee, prune and forget, for age and for size."""
    after = {"texts_before": clock.now, "before": clock.now}
    store.prune(**after, dry_run=True)
    store.prune(texts_before=clock.now - timedelta(minutes=50))
    store.prune(before=clock.now - timedelta(minutes=55), max_size=1)
    for person in ({"user": "u1"}, {"session": "s1"}, {"attribute": ("tenant", "acme")}):
        store.forget(**person, dry_run=True)
        store.forget(**person)


def recorded(store: Store, work: Callable[[], None]) -> dict[str, Statement]:
    """Return each distinct statement that the work runs, with the parameters of one of its runs."""
    statements: dict[str, Statement] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        statements[re.sub(r"(\?|%\(\w+\)s[\w: ]*)(, (\?|%\(\w+\)s[\w: ]*))+", "...", statement)] = (
            statement,
            parameters[0] if many else parameters,
        )

    engine = store._database.engine
    event.listen(engine, "before_cursor_execute", note)
    work()
    event.remove(engine, "before_cursor_execute", note)
    return {shape: found for shape, found in statements.items() if re.match("SELECT|UPDATE|DELETE|WITH", shape)}


def sqlite_scans(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the steps of SQLite's plan that read a whole table."""
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    steps = [row.detail for row in plan]
    return [step for step in steps if step.startswith("SCAN") and "INDEX" not in step and not is_our_list(step)]


def is_our_list(step: str) -> bool:
    """Whether the step reads the few rows that an earlier step of the same statement picked."""
    return step.split()[1].startswith(("heads", "waiting", "first")) or "CONSTANT ROW" in step


def postgresql_scans(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the steps of PostgreSQL's plan that read a whole table although that was made dear."""
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
    return [step for step in plan if "Seq Scan" in step]


def test_every_query_uses_an_index(store: Store, make: Make, clock: Any) -> None:
    """None of them reads a table from end to end."""
    statements = recorded(store, lambda: use_everything(store, make, clock))
    scans = {}
    for shape, (statement, parameters) in statements.items():
        with store._database.read() as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(statements) >= 20
    assert {shape: steps for shape, steps in scans.items() if steps} == {}


@pytest.mark.parametrize("erases", [False, True])
def test_the_tally_comes_last_in_every_transaction(migrated_url: str, make: Make, clock: Any, erases: bool) -> None:
    """Threads of one process share its rows: whoever has them waits for no other row, so that none waits for ever."""
    store = Store(migrated_url, clock=clock, erase_after_scoring=erases)
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, _parameters: Any, _context: Any, _many: bool) -> None:
        statements.append(statement)

    engine = store._database.engine
    event.listen(engine, "before_cursor_execute", note)
    event.listen(engine, "commit", lambda _connection: statements.append("COMMIT"))
    use_everything(store, make, clock)
    store.close()

    counting = [re.match("INSERT INTO tally .* DO UPDATE", statement, re.DOTALL) for statement in statements]
    after = {then for counts, then in zip(counting, statements[1:], strict=False) if counts}
    assert {re.split(r"[ (]", then)[0] for then in after if "INTO tally" not in then} == {"COMMIT"}
