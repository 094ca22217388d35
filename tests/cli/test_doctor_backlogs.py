"""Tests of what `germane doctor` says about backlogs, rate limits and retries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.conftest import about, an_exchange, silent

from germane.annotation import RecordedScore
from germane.score import UnscoredReason
from germane.storage import RateLimit, SamplingDecision, TrackingStore, WorkerHeartbeat
from germane.testing import transaction

Call = Callable[..., Any]
Scored = Callable[..., Any]


def test_a_stalled_backlog_is_an_error(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Old tasks mean that no process is scoring."""
    (scored_one,) = scored(store, [0.5])
    store.exchanges.add([silent(scored_one, 1)])
    assert (
        about(call("doctor", "--offline", "--json"), "scoring")["level"] == "ok"
    )  # it has been waiting for only a minute
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE exchange SET started_at = '2026-01-01 00:00:00.000000'")

    finding = about(call("doctor", "--offline", "--json"), "scoring")

    assert finding["level"] == "error"
    assert "1 unsampled exchange, but no process is scoring" in finding["message"]
    assert "germane.start(role='all')" in finding["fix"]


def add_backlog(store: TrackingStore, scored: Scored, *, waiting: int, since: timedelta) -> None:
    """Store 30 scores from the last ten minutes, and tasks for the same scorer that have waited since a given time."""
    (scored_one, *_) = scored(store, [0.5] * 30, scorer="relevancy", fingerprint="f")
    exchanges = [silent(scored_one, number + 1) for number in range(waiting)]
    store.exchanges.add(exchanges)
    decisions = [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges]
    store.sampling.assign_tasks(decisions, {"relevancy": "f"})
    with transaction(store) as connection:
        connection.exec_driver_sql(
            "UPDATE scoring_task SET first_pending_at = ? WHERE state = 'pending'",
            ((store.now() - since).isoformat(" ", "microseconds")[:26],),
        )


@pytest.mark.parametrize(("hours", "growing"), [(0.1, " and growing"), (9, "")])
def test_the_severity_of_a_backlog_depends_on_the_time_to_drain_it(
    call: Call, store: TrackingStore, scored: Scored, hours: float, growing: str
) -> None:
    """1,000 tasks at 180 scores per hour take 6 hours, even if they have not waited long yet."""
    add_backlog(store, scored, waiting=1000, since=timedelta(hours=hours))

    ended = call("doctor", "--offline", "--json")

    finding = about(ended, "scoring")
    assert finding["message"] == f"scoring cannot keep up: relevancy is 6 h behind{growing} (1000 pending scores)"
    assert (finding["level"], ended.code) == ("error", 4)
    assert "add workers" in finding["fix"]


def test_a_backlog_that_drains_within_an_hour_is_not_an_error(call: Call, store: TrackingStore, scored: Scored) -> None:
    """100 tasks at 180 scores per hour take less than an hour."""
    add_backlog(store, scored, waiting=100, since=timedelta(minutes=20))

    assert about(call("doctor", "--offline", "--json"), "scoring")["level"] == "ok"


@pytest.mark.parametrize("slow", [30, 0])
@pytest.mark.parametrize("other", ["free", "answer_relevancy with an old fingerprint", "external"])
def test_a_fast_scorer_does_not_hide_a_slow_one(
    call: Call, store: TrackingStore, scored: Scored, slow: int, other: str
) -> None:
    """A backlog is measured at its scorer's rate. Other scorers, fingerprints and external scores do not count."""
    if slow:
        scored(store, [0.5] * slow)
    if other == "external":
        exchanges = [an_exchange() for _ in range(300)]
        store.exchanges.add(exchanges)
        at = datetime.now(UTC)
        store.exchanges.record_scores(
            [
                RecordedScore(exchange_id=each.id, name="answer_relevancy", value=0.5, recorded_at=at)
                for each in exchanges
            ]
        )
    elif other == "free":
        scored(store, [0.5] * 300, scorer="noncommittal", fingerprint="n")
    else:
        scored(store, [0.5] * 300, fingerprint="old")
    waiting = [an_exchange() for _ in range(1000)]
    store.exchanges.add(waiting)
    decisions = [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in waiting]
    store.sampling.assign_tasks(decisions, {"answer_relevancy": "f1"})
    with transaction(store) as connection:
        connection.exec_driver_sql(
            "UPDATE scoring_task SET first_pending_at = ? WHERE state = 'pending'",
            ((store.now() - timedelta(hours=9)).isoformat(" ", "microseconds")[:26],),
        )
        connection.exec_driver_sql(  # exchanges with external scores would otherwise be unsampled
            "UPDATE exchange SET sampling_reason = 'sampled' WHERE sampling_reason IS NULL"
        )

    finding = about(call("doctor", "--offline", "--json"), "scoring")

    assert finding["level"] == "error"
    if slow:
        assert finding["message"] == "scoring cannot keep up: answer_relevancy is 6 h behind (1000 pending scores)"
    else:
        assert finding["message"] == "answer_relevancy: 1000 pending scores, but no process is scoring"


def test_each_scorer_with_a_slow_backlog_is_reported(call: Call, store: TrackingStore, scored: Scored) -> None:
    """There is one finding per scorer. Tasks with a fingerprint that no process runs are reported separately."""
    waiting = [an_exchange() for _ in range(500)]
    for scorer in ("faithfulness", "answer_relevancy"):
        scored(store, [0.5] * 10, scorer=scorer)
    scored(store, [0.5] * 10, scorer="faithfulness", fingerprint="old")
    store.exchanges.add(waiting)
    decisions = [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in waiting]
    store.sampling.assign_tasks(decisions, {"answer_relevancy": "f1", "faithfulness": "f1"})
    others = [an_exchange() for _ in range(500)]
    store.exchanges.add(others)
    decisions = [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in others]
    store.sampling.assign_tasks(decisions, {"faithfulness": "old"})
    scorers = {"answer_relevancy": "f1", "faithfulness": "f1"}
    store.workers.heartbeat(
        WorkerHeartbeat(id="me", host="here", pid=1, service="shop", version="1", scorers=scorers),
        [],
        lease=timedelta(minutes=1),
    )

    findings = call("doctor", "--offline", "--json").content["findings"]

    assert [finding["message"] for finding in findings if finding["subject"] == "scoring"] == [
        f"scoring cannot keep up: {scorer} is 8 h behind and growing (500 pending scores)"
        for scorer in ("answer_relevancy", "faithfulness")
    ]


def test_doctor_shows_rate_limits_with_their_delay(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each configured limit is shown."""
    assert not [one for one in call("doctor", "--offline", "--json").content["findings"] if "minute" in one["subject"]]
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "60")
    monkeypatch.setenv("GERMANE_TOKENS_PER_MINUTE", "9000")
    store.quota.reserve_slots([RateLimit("requests", 60)], [(1.0,)], waited=2.5)

    ended = call("doctor", "--offline", "--json")

    assert about(ended, "requests_per_minute")["message"].startswith("60, shared by all processes")
    assert "was delayed by 2.5 s" in about(ended, "requests_per_minute")["message"]
    assert "no requests yet" in about(ended, "tokens_per_minute")["message"]


def test_a_backlog_caused_by_a_rate_limit_is_a_warning(
    call: Call, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is scoring as fast as the limit allows."""
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "60")
    (scored_one,) = scored(store, [0.5])
    waiting = silent(scored_one, 1)
    store.exchanges.add([waiting])
    store.sampling.assign_tasks([SamplingDecision(waiting.id, 1.0, "sampled")], {"answer_relevancy": "f1"})
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-01 00:00:00.000000'")
    assert about(call("doctor", "--offline", "--json"), "scoring")["level"] == "error"
    store.quota.reserve_slots([RateLimit("requests", 60)], [(1.0,)])

    finding = about(call("doctor", "--offline", "--json"), "scoring")

    assert finding["level"] == "warning"
    assert "a rate limit is lower than the incoming traffic" in finding["message"]
    assert "raise the limit" in finding["fix"]


def postpone(store: TrackingStore, scored: Scored, reason: UnscoredReason, error: str, *, until: timedelta) -> None:
    """Record failed requests from another process."""
    (scored_one,) = scored(store, [0.5])
    waiting = [silent(scored_one, number) for number in (1, 2)]
    store.exchanges.add(waiting)
    decisions = [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in waiting]
    store.sampling.assign_tasks(decisions, {"answer_relevancy": "f1"})
    claims = store.queue.claim_tasks("another process", {"answer_relevancy": "f1"}, limit=2, lease=timedelta(minutes=1))
    tasks = [task for claim in claims for task in claim.tasks]
    store.queue.postpone_tasks("another process", tasks, until=datetime.now(UTC) + until, reason=reason, error=error)


@pytest.mark.parametrize(
    ("reason", "status", "fix"),
    [
        (UnscoredReason.JUDGE_REJECTED, "error", "OPENAI_API_KEY"),
        (UnscoredReason.JUDGE_UNREACHABLE, "error", "OPENAI_BASE_URL"),
        (UnscoredReason.JUDGE_RATE_LIMITED, "warning", "rate"),
    ],
)
def test_doctor_shows_retries_in_other_processes(
    call: Call, store: TrackingStore, scored: Scored, reason: UnscoredReason, status: str, fix: str
) -> None:
    """The finding names the scorer, the reason, the start and the fix."""
    postpone(store, scored, reason, f"{reason}: HTTP 999: so it says", until=timedelta(minutes=2))
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-02 03:04:00.000000'")

    ended = call("doctor", "--offline", "--json")
    finding = about(ended, "scorer answer_relevancy")

    assert finding["level"] == status
    assert finding["message"] == (
        f"2 tasks waiting for a retry, the oldest since 2026-01-02 03:04 UTC: {reason}: HTTP 999: so it says"
    )
    assert fix in finding["fix"]
    assert about(ended, "scoring")["level"] == "ok"


def test_retries_that_no_process_continues_are_an_error(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The process that retried is gone."""
    postpone(store, scored, UnscoredReason.JUDGE_TIMEOUT, "no reply", until=timedelta(hours=-1))
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET first_pending_at = '2026-01-02 03:04:00.000000'")

    ended = call("doctor", "--offline", "--json")

    assert "judge_timeout: no reply" in about(ended, "scorer answer_relevancy")["message"]
    assert about(ended, "scoring")["level"] == "error"


def test_a_scorer_with_mostly_failed_scores_is_an_error(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The most frequent reason determines the fix."""
    scored(store, [0.9, UnscoredReason.JUDGE_REJECTED, UnscoredReason.JUDGE_REJECTED])

    finding = about(call("doctor", "--offline", "--json"), "scorer answer_relevancy")

    assert (finding["level"], "judge_rejected" in finding["message"]) == ("error", True)
    assert "OPENAI_API_KEY" in finding["fix"]
