"""Judge failures: no task is lost, and no score is invented."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from germane.delivery import Backoff
from germane.monitor import Monitor
from germane.score import UnscoredReason
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault, transaction

Start = Callable[..., Monitor]
Until = Callable[..., None]
WRONG_KEY = Fault("status", status=401, code="invalid_api_key", message="Incorrect API key provided: sk-abcdef123456")


def test_a_failed_score_is_excluded_from_the_mean(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, attached: Any, new_exchange: Any, until: Until
) -> None:
    """A judge that refuses one answer yields one failed task with its reason; the mean covers the others."""
    judge.faults.extend([None, Fault("refusal"), None])
    store.exchanges.add([new_exchange() for _ in range(3)])
    start_judged(store, judge, concurrency=1)

    until(lambda: len(attached.calls) == 3)

    assert store.answers.counts().failed_reasons == {UnscoredReason.JUDGE_REFUSED: 1}
    (summary,) = store.trends.summary()
    assert summary.n == 2
    assert (summary.coverage.scored, summary.coverage.failed) == (2, {UnscoredReason.JUDGE_REFUSED: 1})
    assert [score.value for score in attached.scores if score.state == "failed"] == [None]


def test_a_rejected_judge_key_pauses_the_scorer(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Few requests are sent, one line is logged, without the key, and tasks stay queued. Scoring resumes once the key
    works."""
    caplog.set_level(logging.INFO, "germane.monitor")
    judge.outage = WRONG_KEY
    store.exchanges.add([new_exchange() for _ in range(30)])
    monitor = start_judged(store, judge, concurrency=2, backoff=Backoff(initial=0.2, maximum=60))
    until(lambda: monitor.status().judge_problem)
    until(lambda: len(judge.chat_requests) >= 4)

    assert "judge_rejected" in str(monitor.status().judge_problem)
    assert len(judge.chat_requests) < 10
    assert store.answers.counts().failed == 0

    judge.outage = None
    until(lambda: store.answers.counts().done == 30)
    until(lambda: monitor.status().judge_problem is None)
    lines = [record.getMessage() for record in caplog.records if "answer_relevancy" in record.getMessage()]
    assert [line.split(" and ")[0] for line in lines] == ["answer_relevancy is paused", "answer_relevancy has resumed"]
    assert "abcdef123456" not in caplog.text


def test_tasks_with_a_rejected_key_fail_after_the_retry_timeout(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """If the key is still rejected, the attempted tasks fail with that reason."""
    judge.outage = WRONG_KEY
    store.exchanges.add([new_exchange()])
    start_judged(store, judge, retry_timeout=0.5)

    until(lambda: store.answers.counts().failed_reasons == {UnscoredReason.JUDGE_REJECTED: 1})

    assert len(judge.chat_requests) > 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=404, code="model_not_found", message="no such model"),
        Fault("status", status=429, code="insufficient_quota", message="you have spent it"),
    ],
    ids=["model", "quota"],
)
def test_an_unknown_model_or_exhausted_quota_pauses_the_scorer(
    store: TrackingStore,
    other_store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    fault: Fault,
) -> None:
    """No task fails, any process can read which scorer is waiting and why, and all tasks are scored once the cause is
    fixed."""
    judge.outage = fault
    store.exchanges.add([new_exchange() for _ in range(12)])
    start_judged(store, judge, concurrency=2)
    until(other_store.health.list_retries)

    (trouble,) = other_store.health.list_retries()
    assert (trouble.scorer, trouble.reason) == ("answer_relevancy", UnscoredReason.JUDGE_REJECTED)
    assert fault.message in trouble.last_error
    assert store.answers.counts().failed == 0
    judge.outage = None
    until(lambda: store.answers.counts().done == 12)
    assert other_store.health.list_retries() == []


def test_a_rejected_embedder_key_pauses_the_scorer(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """No task fails, few requests are sent, and scoring resumes automatically."""
    judge.embedding_faults.extend([WRONG_KEY] * 1_000)
    store.exchanges.add([new_exchange() for _ in range(20)])
    monitor = start_judged(store, judge, concurrency=2, backoff=Backoff(initial=0.1, maximum=60))
    until(lambda: "embedder_error" in str(monitor.status().judge_problem))

    assert store.answers.counts().failed == 0
    judge.embedding_faults.clear()
    until(lambda: store.answers.counts().done == 20)
    assert len(judge.embedding_requests) < 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("status", status=429), UnscoredReason.JUDGE_RATE_LIMITED),
        (Fault("status", status=503), UnscoredReason.JUDGE_UNREACHABLE),
        (Fault("reset"), UnscoredReason.JUDGE_UNREACHABLE),
        (Fault("drip"), UnscoredReason.JUDGE_TIMEOUT),
    ],
    ids=["429", "503", "reset", "drip"],
)
def test_transient_failures_are_retried_until_the_retry_timeout(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    fault: Fault,
    reason: UnscoredReason,
) -> None:
    """Retries do not use up claims: until the timeout, each retry is treated like the first attempt."""
    judge.outage = fault
    store.exchanges.add([new_exchange()])
    start_judged(store, judge, retry_timeout=2.0, judge_timeout=1.0 if fault.kind == "drip" else 30.0)

    until(lambda: store.answers.counts().failed_reasons == {reason: 1})

    assert len(judge.chat_requests) > 1
    with transaction(store, read_only=True) as connection:
        assert connection.exec_driver_sql("SELECT claims FROM scoring_task").scalar_one() == 1


@pytest.mark.parametrize(
    ("replies", "reason"),
    [(["No question."] * 2, UnscoredReason.NO_USABLE_QUESTION), ([[""], [""]], UnscoredReason.UNPARSABLE)],
    ids=["no question", "nothing said"],
)
def test_an_unusable_reply_is_not_retried(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    replies: list[Any],
    reason: UnscoredReason,
) -> None:
    """A retry would not change the judge's reply. Scoring continues with the next exchange."""
    judge.replies = replies
    store.exchanges.add([new_exchange() for _ in range(3)])
    monitor = start_judged(store, judge, concurrency=1)

    until(lambda: store.answers.counts().done + store.answers.counts().failed == 3)

    assert set(store.answers.counts().failed_reasons) == {reason}
    assert store.answers.counts().scores == store.answers.counts().done >= 1
    assert monitor.status().judge_problem is None


def test_an_answer_that_is_too_long_for_the_judge_does_not_affect_other_answers(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """A single rejected exchange does not pause the scorer."""
    judge.faults.append(Fault("status", status=400, code="context_length_exceeded"))
    store.exchanges.add([new_exchange() for _ in range(20)])
    monitor = start_judged(store, judge, concurrency=1, backoff=Backoff(initial=3600, maximum=3600))

    until(lambda: store.answers.counts().done == 19)
    until(lambda: store.answers.counts().failed_reasons == {UnscoredReason.JUDGE_REFUSED: 1})

    assert monitor.status().judge_problem is None


@pytest.mark.slow
def test_a_retry_after_header_from_the_judge_is_respected(
    store: TrackingStore, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """No request is sent for any exchange before that time. Then, all exchanges are scored."""
    judge.faults.append(Fault("status", status=429, retry_after=2))
    replied: list[float] = []
    judge.questions = lambda answer: [f"What was asked after {replied.append(time.monotonic()) or len(replied)}?"]
    store.exchanges.add([new_exchange() for _ in range(6)])
    began = time.monotonic()
    start_judged(store, judge, concurrency=1, backoff=Backoff(initial=0.05, maximum=10))

    until(lambda: store.answers.counts().done == 6)
    assert replied[0] - began >= 2


@contextmanager
def judge_process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "germane.testing.judge", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.slow
def test_no_task_is_lost_when_the_judge_is_killed(
    store: TrackingStore, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """Ten requests in flight yield no score. All tasks are scored when a judge is reachable again."""
    store.exchanges.add([new_exchange() for _ in range(30)])
    with judge_process("--latency", "30") as (process, url):
        where = {"base_url": url, "api_key": "test", "judge": "fake-judge", "embedder": "fake-embedder"}
        monitor = start_judged(store, where, concurrency=10, judge_timeout=60.0)
        until(lambda: monitor.status().in_flight >= 10)
        process.kill()
        process.wait()

    until(lambda: monitor.status().judge_problem)
    counts = store.answers.counts()
    assert (counts.scores, counts.failed) == (0, 0)
    assert counts.pending + counts.running == 30

    port = url.rpartition(":")[2].partition("/")[0]
    with judge_process("--port", port):
        until(lambda: store.answers.counts().done == 30)
        assert store.answers.counts().scores == 30


@pytest.mark.slow
def test_a_failing_judge_lowers_coverage_but_fires_no_alert_about_scores(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """The mean does not change, and the mean_threshold rule does not fire."""
    judge.questions = lambda answer: ["How long is the warranty of the lamp?"]
    store.exchanges.add([new_exchange() for _ in range(3)])
    monitor = start_judged(
        store, judge, concurrency=1, retry_timeout=0, rules=[{"threshold": 0.8, "min_samples": 2, "window": 600}]
    )
    until(lambda: store.answers.counts().done == 3)
    judge.outage = Fault("status", status=500)
    store.exchanges.add([new_exchange() for _ in range(3)])
    until(lambda: store.answers.counts().failed == 3)

    (summary,) = store.trends.summary()
    assert (summary.n, summary.mean) == (3, pytest.approx(1.0))
    assert summary.coverage.share == 0.5
    until(lambda: monitor.status().jobs["evaluate"].last_run)
    assert store.alerts.list_open() == []
