"""Query plans: every query of the store uses an index, on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.exports import load_records

from germane.annotation import Feedback, RecordedScore, SavedView
from germane.baseline import Baseline
from germane.calibration import Calibration
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.settings import Budget
from germane.storage import (
    AlertTransaction,
    AnswerCursor,
    AnswerFilter,
    BaselineKey,
    DeliveryOutcome,
    DetectorScoreQuery,
    DetectorState,
    ExportSelection,
    JobRun,
    JobRuns,
    LabelPopulation,
    OutgoingRequest,
    RateLimit,
    ReceivedItem,
    RequestUsage,
    SamplerStep,
    SamplingDecision,
    SelectedCandidate,
    TraceOutcome,
    TrackingStore,
    UncapturedTrace,
    WatchKey,
    WorkerHeartbeat,
    forwarding_queue,
    sink_queue,
)
from germane.storage.answers.filter import SORTS
from germane.storage.answers.lowest_scores import ScoreFilter, find_lowest, scan_by_value, scan_route, scan_small_window
from germane.storage.sink_items import mark_for_sinks, write_pending
from germane.testing import engine_of, transaction
from germane.trace_outline import UnreadableTrace

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
Statement = tuple[str, Any]
JOB_RUNS = (JobRuns(name="watch", runs=(JobRun(started_at=datetime(2026, 3, 1, tzinfo=UTC), seconds=0.1),)),)
HEARTBEAT = WorkerHeartbeat(id="me", host="h", pid=1, service="shop", version="1", scorers={"c": "f3"}, jobs=JOB_RUNS)
CALIBRATION = Calibration(
    embedder="e",
    scorer="a",
    fingerprint="f1",
    floor=0.07,
    topic_floor=0.2,
    n=400,
    made_at=datetime(2026, 3, 1, tzinfo=UTC),
)
BASELINE = Baseline(
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


def receive_spans(store: TrackingStore, clock: Any) -> None:
    """Stage spans, finish one trace of two, and forward requests."""
    items = [ReceivedItem(f"{number:032x}", f"{number:016x}", False, "shop", "s", b"x", 1.0) for number in range(2)]
    store.received.stage(items, max_wait=9.0, requests=[OutgoingRequest("traces", b"x")])
    clock.advance(seconds=2)
    claimed = store.received.claim("me", limit=1, max_size=100, lease=LEASE)
    store.received.complete("me", [TraceOutcome(trace, None) for trace in claimed])
    claimed = store.received.claim("me", limit=1, max_size=100, lease=LEASE)
    skipped = UncapturedTrace("shop", "ask", clock.now, UnscoredReason.UNREADABLE)
    sample = UnreadableTrace(trace_id="1", service="shop", scope="s", reason="no_answer", started_at=clock.now)
    counted = WatchKey.at(0, "shop", "s", "no_answer")
    store.received.complete("me", [TraceOutcome(trace, skipped, counted, sample) for trace in claimed])
    store.exchanges.list_watched(since=clock.now - LEASE, until=clock.now)
    store.unreadable.add([sample])
    store.unreadable.list_traces()
    store.unreadable.get_trace("1")
    store.received.stage(items, max_wait=9.0)
    store.received.expire(age=LEASE)
    store.received.measure()
    store.forwarding.measure()
    store.forwarding.attach("e", {"score": 0.5})
    store.outbox.claim(forwarding_queue(""), "me", lease=LEASE)
    clock.advance(seconds=-2)


def feed_sinks(store: TrackingStore, exchange: Any, clock: Any) -> None:
    """Queue exchanges for sinks, and send one of them."""
    queue = sink_queue("there", batch_size=2)
    store.sinks.resend(["there", "elsewhere"], exchange.started_at)
    with transaction(store) as connection:
        mark_for_sinks(connection, [exchange.id])
        write_pending(connection, ["there", "elsewhere"], lambda _: clock.now)
    store.outbox.list_due([queue])
    (item, *_) = store.outbox.claim(queue, "me", lease=LEASE)
    store.outbox.record_attempt(queue, "me", {item.id: DeliveryOutcome(error="status 413")})
    store.outbox.list_queues("sink")
    store.sinks.list_undelivered()
    store.sinks.load([exchange.id])


def call_every_method(store: TrackingStore, make: Make, clock: Any) -> None:
    """Call every method that reads or writes, with and without filters."""
    exchanges = [make(number, route=f"route-{number % 3}") for number in range(20)]
    window: dict[str, Any] = {"since": exchanges[0].started_at, "until": exchanges[-1].started_at}
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "uniform") for exchange in store.sampling.list_undecided(18)],
        {"a": "f1", "b": "f2"},
    )
    score_tasks(store, clock)
    sample_candidates(store, make)
    receive_spans(store, clock)
    feed_sinks(store, exchanges[0], clock)
    use_quotas(store, window)
    record_feedback(store, exchanges, window, clock)
    store.answers.list_exchanges()
    store.answers.list_exchanges(route="route-1", **window)
    store.answers.worst()
    store.answers.worst(scorer="a", fingerprint="f1", route="route-1", **window)
    watch_judge(store, clock)
    search_answers(store, window)
    store.queue.rescore([(exchange.id, "a") for exchange in exchanges], {"a": "f1"}, budgeted=True)
    store.queue.rescore([(exchange.id, "b") for exchange in exchanges], {"b": "f9"})
    find_lowest_with_each_strategy(store, window)
    summarize_trends(store, window)
    store.health.list_retries()
    store.backlog.load_outstanding()
    store.backlog.load_backlog(alive_within=LEASE)
    store.health.load_health()
    store.health.summarize_sampling()
    transfer_records(store, window)
    store.answers.counts()
    store.answers.counts(at_most=5)
    store.views.add_view(SavedView(name="low", path="/answers?low=1", created_at=clock.now))
    store.views.list_views()
    store.views.delete_view("low")
    run_detector(store, clock)
    prune_and_forget(store, clock)


def score_tasks(store: TrackingStore, clock: Any) -> None:
    """Complete, postpone, release and expire tasks, as workers that come and go do."""
    tasks = [
        task
        for claim in store.queue.claim_tasks("me", {"a": "f1", "b": "f2"}, limit=9, lease=LEASE)
        for task in claim.tasks
    ]
    values = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in tasks[2:]]
    store.queue.complete_tasks("me", values)
    store.queue.postpone_tasks("me", tasks[:2], until=clock.now, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
    store.queue.claim_tasks("me", {"a": "f1"}, limit=1, lease=LEASE)
    store.workers.heartbeat(HEARTBEAT, [task.id for task in tasks], lease=LEASE)
    store.workers.list_workers(within=LEASE)
    store.workers.list_job_runs()
    store.orphans.list_orphaned_scorers()
    clock.advance(hours=2)
    store.workers.heartbeat(HEARTBEAT, [], lease=LEASE)
    store.orphans.expire_orphaned_tasks(limit=1)
    store.workers.deregister_worker("me")
    clock.advance(hours=-2)
    store.queue.release_tasks("me")
    store.workers.acquire_lease("job", "me", ttl=LEASE)


def sample_candidates(store: TrackingStore, make: Make) -> None:
    """Select and skip candidates at the end of an interval."""
    candidates = [make(number) for number in range(4)]
    store.exchanges.add(candidates)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, None, "candidate") for exchange in candidates], {"a": "f1"}, holder=("job", "me")
    )
    store.pool.list_candidates(2, after=store.pool.list_candidates(2)[0])
    store.pool.select_candidates(
        SamplerStep("job", "me", "here"), [SelectedCandidate(candidates[0].id, 0.5, "uniform")]
    )
    store.pool.skip_candidates(SamplerStep("job", "me", "there"), {candidates[1].id: 0.5}, UnscoredReason.NOT_SAMPLED)
    store.pool.save_cursor(SamplerStep("job", "me", store.pool.load_cursor("job") or ""))
    store.pool.count_in_progress()


def use_quotas(store: TrackingStore, window: dict[str, Any]) -> None:
    """Reserve requests and money, and measure traffic and usage."""
    store.quota.traffic_by_hour(**window)
    store.quota.reserve_slots([RateLimit("requests", 60), RateLimit("tokens", 600)], [(1, 9)])
    store.quota.load_rate_limit_usage()
    budget = Budget(requests_per_hour=9, usd_per_day=1.0)
    store.quota.reserve_budget(budget, [RequestUsage(1, 9.0, 0.1)], settled={date(2026, 2, 28): RequestUsage(-1)})
    store.quota.load_usage()
    store.quota.load_usage_by_day(7)
    store.quota.load_traffic(since=window["since"])
    store.answers.sample_exchanges(since=window["since"], limit=5)
    store.quota.judge_usage(since=window["since"])


def record_feedback(store: TrackingStore, exchanges: list[Exchange], window: dict[str, Any], clock: Any) -> None:
    """Record labels, scores from elsewhere and calibrations, and apply the labels."""
    store.exchanges.declare_routes("shop", ["ask"])
    store.exchanges.count_dropped({("shop", "ask"): 1}, ["a"])
    store.labels.add_feedback([Feedback(id="f1", exchange_id=exchanges[0].id, score=1.0, created_at=clock.now)])
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=exchanges[0].id, name="mine", value=0.5, recorded_at=clock.now)]
    )
    store.labels.add_calibrations([CALIBRATION])
    store.labels.list_feedback()
    store.labels.list_feedback(route="route-1", **window)
    store.sampling.list_pending_feedback(5)
    store.sampling.apply_feedback(["f1"], [exchanges[0].id], {"a": "f1", "b": "f2"})
    store.answers.get_exchanges([exchange.id for exchange in exchanges])
    store.answers.get_scores([exchange.id for exchange in exchanges])
    store.labels.list_calibrations()
    with suppress(UsageError):  # no answer can be drawn if texts are erased
        draw_labels(store, window)


def draw_labels(store: TrackingStore, window: dict[str, Any]) -> None:
    """Draw a wave, and label and skip its answers."""
    wave = store.draws.draw(LabelPopulation(**window, scorer="a", service="shop", route="route-1"), 2)
    store.draws.draw(LabelPopulation(**window, scorer="a"), 2)
    for verdict in ("answers", "skipped"):
        _, exchange_id = store.draws.next_answer(wave.id) or (0, "")
        store.draws.settle(wave.id, exchange_id, verdict, user="Ada")  # type: ignore[arg-type]  # one of the verdicts
    store.draws.list_labels([wave.id])
    store.draws.list_waves(scorer="a")
    store.draws.undo(wave.id, user="Ada")
    store.retention.forget(user="Ada")


def watch_judge(store: TrackingStore, clock: Any) -> None:
    """Draw anchors, and score them in a round."""
    if not store.anchors.refill("a", 2, text_lifetime=LEASE).active:  # the texts are erased after scoring
        return
    store.anchors.start_round("a", "daily")
    pending = store.anchors.next_pending("a")
    assert pending is not None
    store.anchors.save_score("a", pending, Score(scorer="a", fingerprint="f1", value=0.5))
    store.anchors.close_round("a", "judge_timeout")
    assert store.anchors.load_status("a").pending == 0
    store.anchors.has_new_judge("a", "f1")
    store.anchors.count_rounds("a", "daily", since=clock.now - LEASE)
    store.anchors.restart("a")
    store.anchors.list_scorers()
    store.anchors.load_rounds("a")


def transfer_records(store: TrackingStore, window: dict[str, Any]) -> None:
    """Export and restore."""
    stored = store.transfer.load_stored(ExportSelection())
    store.transfer.load_stored(ExportSelection(**window, route="route-1", scorer="a"), after=stored[-1])
    store.transfer.load_dropped(ExportSelection())
    store.transfer.load_dropped(ExportSelection(**window))
    store.transfer.restore_records(load_records(store))
    store.transfer.restore_dropped(store.transfer.load_dropped(ExportSelection()))


def run_detector(store: TrackingStore, clock: Any) -> None:
    """Learn baselines in every way and advance a detector."""
    store.workers.acquire_lease("watcher", "me", ttl=LEASE)
    holder = ("watcher", "me")
    found = store.detectors.list_new_scores(5, attributes=True) + store.detectors.list_new_scores(5)
    past = DetectorScoreQuery(service="shop", scorer="a", fingerprint="f1", since=clock.now - LEASE, until=clock.now)
    store.detectors.list_past_scores(past, attributes=True)
    store.detectors.count_past_scores(past)
    store.detectors.most_common_release(past)
    key = BaselineKey("shop", "a", "f1")
    window = {"since": clock.now, "until": clock.now + LEASE}
    version = store.baselines.begin_learning(key, "first", **window, holder=holder)
    assert version is not None
    store.baselines.extend_learning(version.id, clock.now + 2 * LEASE, holder=holder)
    store.baselines.activate_baseline(version.id, BASELINE, ("m", "7"))
    store.baselines.replace_baseline(key, "imported", BASELINE, (None, None))
    other = store.baselines.restart_learning(key, "accepted", **window)
    assert other is not None
    store.baselines.cancel_learning(other.id, holder=holder)
    store.baselines.list_versions()
    store.baselines.list_versions(superseded=True)
    store.baselines.list_learning()
    detector = DetectorState(rule="drop", service="shop", scorer="a", parameters="p", baseline_id=version.id, state={})
    ids = sorted({one.id for one in found})
    assert store.alerts.commit(AlertTransaction(holder=holder, detector_states=[detector], processed_score_ids=ids))
    (state,) = store.detectors.list_states()
    assert store.alerts.commit(AlertTransaction(holder=holder, detector_states=[state]))


def find_lowest_with_each_strategy(store: TrackingStore, window: dict[str, Any]) -> None:
    """Find the lowest scores with the strategies intended for large tables."""
    strategies = (
        partial(scan_small_window, few=0),
        partial(scan_route, few=0),
        partial(scan_by_value, steps=(1, None)),
    )
    for score_filter in (ScoreFilter(), ScoreFilter(scorer="a", route="route-1", low=True, **window)):
        with transaction(store, read_only=True) as connection:
            find_lowest(connection, score_filter, 15, strategies)
            scan_route(connection, replace(score_filter, route="route-2"), 5)


def search_answers(store: TrackingStore, window: dict[str, Any]) -> None:
    """Search answers in every order and with every filter, and load one."""
    parts: list[dict[str, Any]] = [{}, {"model": "m"}, {"text": "card"}, {"labeled": True}, {"labeled": False}]
    parts += [{"state": "failed"}, {"state": "any"}, {"state": "waiting", "reason": "judge_timeout"}]
    (newest,) = store.answers.list_exchanges(limit=1)
    for state in ("scored", "failed", "any"):
        parts += [{"state": state, "question": "why"}, {"state": state, "ids": (newest.id,)}]
    store.questions.group_by_question(AnswerFilter(scorer="a", **window))
    store.answers.summarize_matches(AnswerFilter(session="s1", **window))
    for part in parts:
        chosen = AnswerFilter(scorer="a", route="route-1", low=True, below=0.9, **window, **part)
        for sort in SORTS:
            page = store.answers.search(chosen, sort=sort, limit=2)
            store.answers.search(
                chosen, sort=sort, after=page.next_cursor or AnswerCursor(0.1, window["until"], "1"), limit=2
            )
            store.answers.search(AnswerFilter(**part), sort=sort, limit=2)
        store.answers.find_ids(chosen, limit=2)
        store.answers.count_matches(chosen)
        store.questions.load_question_scores(chosen)
        store.questions.load_question_scores(AnswerFilter(**part))
    store.answers.find_neighbors(AnswerFilter(), "nobody")
    (exchange,) = store.answers.list_exchanges(limit=1)
    store.questions.find_last_good(exchange, Score(scorer="a", fingerprint="f1", value=0.1))
    store.answers.load_detail(exchange.id)
    store.labels.count_disagreements()
    store.labels.count_disagreements(scorer="a", route="route-1", **window)


def summarize_trends(store: TrackingStore, window: dict[str, Any]) -> None:
    """Query trends before and after rollups are made."""
    store.trends.over_time(scorer="a", bucket=timedelta(minutes=5), **window)
    store.trends.over_time(scorer="a", bucket=timedelta(minutes=5), route="route-1", **window)
    store.trends.summary()
    store.trends.summary(**window)
    store.trends.means(scorer="a", since=window["since"])
    store.trends.means(scorer="a", since=None, route="route-1")
    store.trends.coverage()
    store.trends.coverage(since=window["since"])
    query_trends(store, window)
    store.rollups.update(1, breakdowns=["model", "attributes.tier"])
    query_trends(store, window)
    store.rollups.update()
    store.rollups.count_dirty_hours()
    query_trends(store, window)


def query_trends(store: TrackingStore, window: dict[str, Any]) -> None:
    """Query trends by week, day and hour, from rollups and from rows."""
    days = {"scorer": "a", "bucket": timedelta(days=1), "until": window["until"] + timedelta(days=20)}
    for by in (None, "route", "service", "model", "prompt_version", "attributes.tier"):
        store.trends.over_time(**days, since=window["since"] - timedelta(days=20), by=by)
        store.trends.over_time(
            **days, since=window["since"] - timedelta(days=20), by=by, route="route-1", service="shop"
        )
    store.trends.means(scorer="a", since=window["since"], by="model")
    store.trends.means(scorer="a", since=None, by="model")
    store.trends.summary_by_label(by="model", scorer="a", service="shop", **window)
    store.trends.coverage_over_time(**days, since=window["since"])
    hours = {"bucket": timedelta(hours=1), **window}
    for place in ({}, {"route": "route-1"}, {"service": "shop"}, {"route": "route-1", "service": "shop"}):
        store.trends.durations_over_time(**hours, **place)
        store.trends.costs_over_time(**hours, scorer="a", **place)
    store.trends.summary(until=window["until"])
    store.trends.coverage(until=window["until"])


def prune_and_forget(store: TrackingStore, clock: Any) -> None:
    """Preview, prune and forget, by age and by size."""
    after = {"texts_before": clock.now, "before": clock.now}
    store.retention.prune(**after, dry_run=True)
    store.retention.prune(texts_before=clock.now - timedelta(minutes=50))
    store.retention.prune(before=clock.now - timedelta(minutes=55), max_size=1)
    for person in ({"user": "u1"}, {"session": "s1"}, {"attribute": ("tenant", "acme")}):
        store.retention.forget(**person, dry_run=True)
        store.retention.forget(**person)


def record_statements(store: TrackingStore, work: Callable[[], None]) -> dict[str, Statement]:
    """Return each distinct statement that the work runs, with the parameters of one execution."""
    statements: dict[str, Statement] = {}

    def record(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        statements[re.sub(r"(\?|%\(\w+\)s[\w: ]*)(, (\?|%\(\w+\)s[\w: ]*))+", "...", statement)] = (
            statement,
            parameters[0] if many and not isinstance(parameters, dict) else parameters,
        )

    engine = engine_of(store)
    event.listen(engine, "before_cursor_execute", record)
    work()
    event.remove(engine, "before_cursor_execute", record)
    return {shape: found for shape, found in statements.items() if re.match("SELECT|UPDATE|DELETE|WITH", shape)}


FORGETTING = "UPDATE label_draw SET state="
"""The beginning of a statement that opens answers of waves that have no label left. Only few answers are drawn."""


def sqlite_scans(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the steps of SQLite's plan that scan a whole table."""
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    steps = [row.detail for row in plan]
    scans = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
    # The table of the revision has one row. All archived days are listed to find a user's answers in their files.
    whole = {"SCAN germane_version", "SCAN archived_day"}
    return [step for step in scans if step not in whole and not reads_selected_rows(step)]


def reads_selected_rows(step: str) -> bool:
    """Return whether the step reads only rows that an earlier step of the same statement selected."""
    return step.split()[1].startswith(("heads", "waiting", "first", "newest")) or "CONSTANT ROW" in step


def postgresql_scans(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """Return the steps of PostgreSQL's plan that scan a whole table even with sequential scans disabled."""
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
    return [step for step in plan if "Seq Scan" in step]


@pytest.mark.slow
def test_every_query_uses_an_index(store: TrackingStore, make: Make, clock: Any) -> None:
    """No query scans a whole table."""
    statements = record_statements(store, lambda: call_every_method(store, make, clock))
    scans = {}
    for shape, (statement, parameters) in statements.items():
        with transaction(store, read_only=True) as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            scans[shape] = (sqlite_scans if on_sqlite else postgresql_scans)(connection, statement, parameters)

    assert len(statements) >= 20
    assert {shape: steps for shape, steps in scans.items() if steps and not shape.startswith(FORGETTING)} == {}


@pytest.mark.slow
@pytest.mark.parametrize("erases", [False, True])
def test_tally_is_updated_last_in_every_transaction(migrated_url: str, make: Make, clock: Any, erases: bool) -> None:
    """A transaction that holds the shared tally rows waits for no other rows, which prevents deadlocks."""
    store = TrackingStore(migrated_url, clock=clock, erase_after_scoring=erases)
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, _parameters: Any, _context: Any, _many: bool) -> None:
        statements.append(statement)

    engine = engine_of(store)
    event.listen(engine, "before_cursor_execute", record)
    event.listen(engine, "commit", lambda _connection: statements.append("COMMIT"))
    call_every_method(store, make, clock)
    store.close()

    counting = [re.match("INSERT INTO tally .* DO UPDATE", statement, re.DOTALL) for statement in statements]
    after = {then for counts, then in zip(counting, statements[1:], strict=False) if counts}
    assert {re.split(r"[ (]", then)[0] for then in after if "INTO tally" not in then} == {"COMMIT"}
