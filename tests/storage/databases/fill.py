"""Fills an empty database with rows of every kind, and prints what the store reads back: ``python fill.py URL``.

See the README in this directory.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from germane.annotation import Feedback, RecordedScore
from germane.calibration import Calibration
from germane.exchange import Context, Exchange, Message
from germane.score import Score, UnscoredReason
from germane.settings import Budget
from germane.storage import (
    ExportSelection,
    JobRun,
    JobRuns,
    RateLimit,
    RequestUsage,
    RescoreResult,
    SamplerStep,
    SamplingDecision,
    SelectedCandidate,
    TaskClaim,
    TrackingStore,
    WorkerHeartbeat,
    dump_line,
)

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
LEASE = timedelta(hours=1)
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}
MEAN = ("service", "route", "scorer", "fingerprint", "newest", "n", "mean")
"""Summary fields whose values have not changed. Earlier revisions computed intervals differently."""
ODD = (
    "How do I pay?",
    'It\'s "quoted", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */',
    "two\nlines\tand \u2028 a separator",
    "\u0627\u0644\u0633\u0639\u0631 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u00fc\u00df",
    "NUL \0 and half a pair \ud800",
    "",
    "<script>alert(1)</script>",
    "long " * 40,
)


def an_exchange(number: int) -> Exchange:
    text = ODD[number % len(ODD)]
    return Exchange(
        id=f"{number + 1:032x}",
        trace_id=f"{number // 2 + 1:032x}",
        span_id=f"{number + 1:016x}",
        service="shop" if number % 3 else "caf\u00e9",
        route=("ask", "search", "ask/{id}")[number % 3],
        question=text,
        answer=None if number == 9 else f"{number}: {text}",
        contexts=(Context(text, f"page {number}", 0.25), Context("", None, None))[: number % 3],
        history=(Message("user", text),) if number % 2 else (),
        model=None if number % 2 else "gpt-4o-mini",
        prompt_version="7" if number % 4 else None,
        session=f"s{number % 3}" if number % 5 else None,
        user=f"u{number % 4}" if number % 5 else None,
        attributes={"tenant": "acme", "trial": bool(number % 2), "seats": number, "share": number / 8, text[:20]: text},
        status=("ok", "ok", "ok", "error")[number % 4],
        error=f"ValueError: {text}" if number % 4 == 3 else None,
        started_at=NOON - timedelta(hours=number, microseconds=number * 1001),
        duration=number / 16,
        sampling_key=(number + 1) / 32,
        traced=bool(number % 2),
    )


def score_of(task: Any, number: int) -> Score:
    """Return a score: a failure for exchange 4, and a score with a different fingerprint for exchange 1."""
    names = {"scorer": task.scorer, "fingerprint": task.fingerprint + " served" * (number == 1), "scored_at": NOON}
    text = ODD[number % len(ODD)]
    if number == 4:
        return Score(**names, reason=UnscoredReason.UNPARSABLE, explanation=f"the judge said: {text}")
    return Score(
        **names,
        value=number / 4 - 0.25,
        label="partly_relevant",
        explanation=text,
        details={"questions": [{"text": text, "similarity": 0.5}], "requests": 3},
        judge="gpt-4o-mini",
        embedder="text-embedding-3-small",
        input_tokens=100 + number,
        output_tokens=10,
        cost=0.0001,
        latency=0.5,
    )


def claim(store: TrackingStore, owner: str, limit: int) -> Sequence[TaskClaim]:
    return store.queue.claim_tasks(owner, SCORERS, limit=limit, lease=LEASE)


def fill(store: TrackingStore) -> list[int]:
    """Write exchanges: 0 to 3 scored, 4 failed, 5 and half of 6 skipped, 7 postponed, 8 running, 9 pending, 10 and 11
    undecided.

    Returns the ids of the running tasks.
    """
    exchanges = [an_exchange(number) for number in range(12)]
    store.exchanges.add(exchanges)
    place = {one.id: number for number, one in enumerate(exchanges)}
    for number in (0, 1, 2, 3, 4, 7, 8, 9, 5, 6):
        skip = {
            5: dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED),
            6: {"faithfulness": UnscoredReason.MISSING_INPUT},
        }.get(number, {})
        kind = "not_sampled" if number == 5 else "sampled"
        store.sampling.assign_tasks([SamplingDecision(exchanges[number].id, 0.5, kind, skip)], SCORERS)
        if number <= 4:
            claims = claim(store, "done", 1)
            store.queue.complete_tasks("done", [(task, score_of(task, number)) for one in claims for task in one.tasks])
        if number == 7:
            tasks = [task for one in claim(store, "away", 1) for task in one.tasks]
            store.queue.postpone_tasks(
                "away", tasks, until=NOON + LEASE, reason=UnscoredReason.JUDGE_TIMEOUT, error=ODD[1]
            )
        if number == 8:
            (running,) = claim(store, "running", 1)
            assert place[running.exchange.id] == 8
    store.exchanges.count_dropped({("shop", "ask"): 7}, SCORERS, at=NOON)
    store.exchanges.declare_routes("shop", ["never"])
    assert store.workers.acquire_lease("sampler", "someone", ttl=LEASE)
    return [task.id for task in running.tasks]


def fill_labels_and_limits(store: TrackingStore) -> None:
    """Write rate limits, labels, a recorded score and a calibration."""
    store.quota.reserve_slots([RateLimit("requests", 60), RateLimit("tokens", 600)], [(1, 9)])
    label: dict[str, Any] = {"score": 0.25, "comment": ODD[3], "user": "u1", "created_at": NOON}
    store.labels.add_feedback([Feedback(id=name, exchange_id=name * 32, **label) for name in ("1", "9")])
    store.labels.add_feedback([Feedback(id="2", exchange_id=f"{2:032x}", **label)])
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=f"{11:032x}", name="mine", value=-0.5, explanation=ODD[1], recorded_at=NOON)]
    )
    floor: dict[str, Any] = {"floor": 0.07, "topic_floor": 0.2, "n": 400, "made_at": NOON}
    store.labels.add_calibrations([Calibration(embedder="e", scorer="relevancy", fingerprint="f1", **floor)])


def fill_fleet(store: TrackingStore, running: Sequence[int]) -> None:
    """Write a candidate (12), selected (13), skipped (14, 15), labeled (16) and erased (17) exchanges, and workers."""
    fleet = [replace(an_exchange(number), capture_probability=0.75) for number in range(12, 18)]
    store.exchanges.add(fleet)
    ids = dict(enumerate((one.id for one in fleet), start=12))
    seen: dict[str, Any] = {"proxy": 0.25, "proxy_probability": 0.5}
    unfit: dict[str, Any] = {"skip": {"faithfulness": UnscoredReason.FILTERED}}
    store.sampling.assign_tasks(
        [SamplingDecision(ids[number], None, "candidate", **seen) for number in (12, 13, 14)], SCORERS
    )
    store.sampling.assign_tasks(
        [SamplingDecision(ids[number], None, "candidate", **unfit) for number in (15, 16)], SCORERS
    )
    step = SamplerStep("sampler", "someone", "the first interval")
    assert store.sampling.select_candidates(step, [SelectedCandidate(ids[13], 0.375, "suspicion")])
    assert store.sampling.skip_candidates(step, {ids[14]: 0.125, ids[16]: 0.0625}, UnscoredReason.NOT_SAMPLED)
    assert store.sampling.skip_candidates(step, {ids[15]: None}, UnscoredReason.BUDGET)
    _give_bad_label(store, ids[16])
    _score_and_erase(store, ids[17])
    _use_budget(store)
    _send_heartbeats(store, running)
    store.exchanges.count_dropped({("shop", "ask"): 3}, SCORERS, UnscoredReason.EXCHANGE_LIMIT, at=NOON)


def _give_bad_label(store: TrackingStore, exchange_id: str) -> None:
    fields: dict[str, Any] = {"score": 0.0, "comment": ODD[1], "user": "u2", "created_at": NOON}
    store.labels.add_feedback([Feedback(id="16", exchange_id=exchange_id, **fields)])
    assert store.sampling.apply_feedback(["16"], [exchange_id], SCORERS, holder=("sampler", "someone")) == 1


def _score_and_erase(store: TrackingStore, exchange_id: str) -> None:
    """Score the oldest exchange, and erase its text."""
    store.sampling.assign_tasks(
        [SamplingDecision(exchange_id, 0.75, "always", proxy=-0.5, proxy_probability=1.0)], SCORERS
    )
    (oldest,) = claim(store, "done", 1)
    assert oldest.exchange.id == exchange_id
    store.queue.complete_tasks("done", [(task, score_of(task, 6)) for task in oldest.tasks])
    assert store.retention.prune(texts_before=oldest.exchange.started_at + timedelta(seconds=1)).texts == 1


def _use_budget(store: TrackingStore) -> None:

    yesterday = {(NOON - timedelta(days=1)).date(): RequestUsage(7, 700.0, 0.25)}
    store.quota.reserve_budget(Budget(requests_per_day=100), [RequestUsage(2, 300.0, 0.5)] * 2, settled=yesterday)


def _send_heartbeats(store: TrackingStore, running: Sequence[int]) -> None:
    """Write the worker that runs these tasks, and an idle one."""
    known: dict[str, Any] = {"service": "caf\u00e9", "version": "0.4.0", "scorers": SCORERS, "concurrency": 8}
    assert (
        store.workers.heartbeat(
            WorkerHeartbeat(id="running", host="a", pid=1, in_flight=1, **known), running, lease=LEASE
        )
        == 2
    )
    store.workers.heartbeat(WorkerHeartbeat(id="idle", host="b", pid=2, problem=ODD[1], **known), [], lease=LEASE)


def fill_jobs_and_rescores(store: TrackingStore) -> None:
    """Write job runs, and request a rescore of a scored and a failed exchange."""
    good = JobRun(started_at=NOON - timedelta(seconds=2), seconds=0.25)
    bad = JobRun(started_at=NOON, seconds=1.5, problem=ODD[4])
    jobs = (JobRuns(name="watch", every=2.0, runs=(good, bad)), JobRuns(name="save", runs=(good,)))
    known: dict[str, Any] = {"service": "caf\u00e9", "version": "0.6.0", "scorers": SCORERS, "problem": ODD[4]}
    store.workers.heartbeat(WorkerHeartbeat(id="idle", host="b", pid=2, jobs=jobs, **known), [], lease=LEASE)
    pairs = [(f"{number + 1:032x}", "relevancy") for number in (2, 4)]
    assert store.queue.rescore(pairs, SCORERS) == RescoreResult(ready=2)


def alerting() -> dict[str, Any]:
    """Return the functions that write and read rollups, markers and the tables of alerting."""
    return runpy.run_path(str(Path(__file__).with_name("fill_alerting.py")))


def vars_of_calibration(calibration: Calibration) -> dict[str, Any]:
    """Return the columns that have the same names as the fields."""
    return {name: value for name, value in asdict(calibration).items() if name not in ("topic_floor", "is_default")}


def read(store: TrackingStore) -> dict[str, Any]:
    """Return everything that the store can read."""
    ids = sorted(exchange.id for exchange in store.answers.list_exchanges(limit=1000))
    everything = ExportSelection()
    return alerting()["read"](store) | {
        "exchanges": [asdict(one) for one in store.answers.list_exchanges(limit=1000)],
        "scores": [{"exchange_id": one.exchange.id, **asdict(one.score)} for one in store.answers.worst(limit=1000)],
        "coverage": [asdict(one) for one in store.trends.coverage()],
        "counts": asdict(store.answers.counts()),
        "summary": [{name: getattr(one, name) for name in MEAN} for one in store.trends.summary()],
        "feedback": [asdict(one.feedback) for one in store.labels.list_feedback()],
        "calibrations": [
            {**vars_of_calibration(one), "high": one.topic_floor} for one in store.labels.list_calibrations()
        ],
        "uses": sorted(one.name for one in store.quota.load_rate_limit_usage()),
        "records": [json.loads(dump_line(one)) for one in store.transfer.load_records(everything, limit=1000)],
        "dropped": sorted((one.scorer, one.reason, one.count) for one in store.transfer.load_dropped(everything)),
        "candidates": [asdict(one) for one in store.sampling.list_candidates(1000)],
        "cursor": store.sampling.load_cursor("sampler"),
        "unconsidered": [one.feedback.id for one in store.sampling.list_pending_feedback(1000)],
        "workers": [asdict(one) for one in store.workers.list_workers()],
        "spending": [asdict(one) for one in store.quota.load_usage_by_day(2)],
        "outstanding": asdict(store.queue.load_outstanding()),
        "troubles": [asdict(one) for one in store.queue.list_retries()],
        "jobs": [asdict(one) for one in store.workers.list_job_runs()],
        "sheets": [asdict(detail) for id_ in ids if (detail := store.answers.load_detail(id_)) is not None],
        "disagreements": [asdict(one) for one in store.labels.count_disagreements()],
    }


def main() -> None:
    store = TrackingStore(sys.argv[1], clock=lambda: NOON)
    store.migrate()
    running = fill(store)
    fill_labels_and_limits(store)
    fill_fleet(store, running)
    alerting()["fill"](store)
    fill_jobs_and_rescores(store)
    json.dump(read(store), sys.stdout, default=str, indent=1, sort_keys=True)
    store.close()


if __name__ == "__main__":
    main()
