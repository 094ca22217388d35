"""What becomes of scores when the judge fails: nothing is lost, nothing is invented."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from germane.monitor import Monitor
from germane.monitor.loop.backoff import Backoff
from germane.score import Reason
from germane.settings import Settings
from germane.storage import Store
from germane.testing import FakeJudge, Fault

Start = Callable[..., Monitor]
Until = Callable[..., None]
WRONG_KEY = Fault("status", status=401, code="invalid_api_key", message="Incorrect API key provided: sk-abcdef123456")


def test_a_failure_is_no_score_and_in_no_mean(
    store: Store, judge: FakeJudge, start_judged: Start, attached: Any, new_exchange: Any, until: Until
) -> None:
    """A judge that refuses one answer yields one failed task with its reason; the mean knows the others alone."""
    judge.faults.extend([None, Fault("refusal"), None])
    store.add([new_exchange() for _ in range(3)])
    start_judged(store, judge, concurrency=1)

    until(lambda: len(attached.calls) == 3)

    assert store.counts().failed_reasons == {Reason.JUDGE_REFUSED: 1}
    (summary,) = store.summary()
    assert summary.n == 2
    assert (summary.coverage.scored, summary.coverage.failed) == (2, {Reason.JUDGE_REFUSED: 1})
    assert [score.value for score in attached.scores if score.state == "failed"] == [None]


def test_a_rejected_key_is_said_once_and_not_hammered(
    store: Store,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dead key pauses the scorer: few requests, one line in the log without the key, the queue kept; it resumes by
    itself once the key works."""
    caplog.set_level(logging.INFO, "germane.monitor")
    judge.outage = WRONG_KEY
    store.add([new_exchange() for _ in range(30)])
    monitor = start_judged(store, judge, concurrency=2, backoff=Backoff(first=0.2, limit=60))
    until(lambda: monitor.status().judge_problem)
    until(lambda: len(judge.chats) >= 4)

    assert "judge_rejected" in str(monitor.status().judge_problem)
    assert len(judge.chats) < 10
    assert store.counts().failed == 0

    judge.outage = None
    until(lambda: store.counts().done == 30)
    until(lambda: monitor.status().judge_problem is None)
    lines = [record.getMessage() for record in caplog.records if "answer_relevancy" in record.getMessage()]
    assert [line.split(",")[0] for line in lines] == ["answer_relevancy pauses", "answer_relevancy goes on"]
    assert "abcdef123456" not in caplog.text


def test_tasks_of_a_rejected_key_fail_only_after_the_time_for_retries(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """When the key stays dead for longer than retry_for, what was tried ends failed with that reason."""
    judge.outage = WRONG_KEY
    store.add([new_exchange()])
    start_judged(store, judge, retry_for=0.5)

    until(lambda: store.counts().failed_reasons == {Reason.JUDGE_REJECTED: 1})

    assert len(judge.chats) > 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=404, code="model_not_found", message="no such model"),
        Fault("status", status=429, code="insufficient_quota", message="you have spent it"),
    ],
    ids=["model", "quota"],
)
def test_what_somebody_must_mend_pauses_the_scorer_and_any_process_can_tell(
    store: Store,
    other_store: Store,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    fault: Fault,
) -> None:
    """A model that is not there and a quota that is spent: nothing fails, the database says which scorer waits and why,
    and all are scored once it is mended."""
    judge.outage = fault
    store.add([new_exchange() for _ in range(12)])
    start_judged(store, judge, concurrency=2)
    until(other_store.troubles)

    (trouble,) = other_store.troubles()
    assert (trouble.scorer, trouble.reason) == ("answer_relevancy", Reason.JUDGE_REJECTED)
    assert fault.message in trouble.error
    assert store.counts().failed == 0
    judge.outage = None
    until(lambda: store.counts().done == 12)
    assert other_store.troubles() == []


def test_an_embedder_that_rejects_its_key_pauses_the_scorer_too(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """Nothing fails for it, few requests are made in vain, and it resumes by itself."""
    judge.embedding_faults.extend([WRONG_KEY] * 1_000)
    store.add([new_exchange() for _ in range(20)])
    monitor = start_judged(store, judge, concurrency=2, backoff=Backoff(first=0.1, limit=60))
    until(lambda: "embedder_error" in str(monitor.status().judge_problem))

    assert store.counts().failed == 0
    judge.embedding_faults.clear()
    until(lambda: store.counts().done == 20)
    assert len(judge.embeddings) < 40


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("status", status=429), Reason.JUDGE_RATE_LIMITED),
        (Fault("status", status=503), Reason.JUDGE_UNREACHABLE),
        (Fault("reset"), Reason.JUDGE_UNREACHABLE),
        (Fault("drip"), Reason.JUDGE_TIMEOUT),
    ],
    ids=["429", "503", "reset", "drip"],
)
def test_passing_trouble_uses_up_no_attempt_and_has_an_age(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until, fault: Fault, reason: Reason
) -> None:
    """A task is tried again and again, each time as if it were the first, until that has gone on for retry_for."""
    judge.outage = fault
    store.add([new_exchange()])
    start_judged(store, judge, retry_for=2.0, judge_timeout=1.0 if fault.kind == "drip" else 30.0)

    until(lambda: store.counts().failed_reasons == {reason: 1})

    assert len(judge.chats) > 1
    with store._database.read() as connection:
        assert connection.exec_driver_sql("SELECT attempts FROM scoring_task").scalar_one() == 1


@pytest.mark.parametrize(
    ("replies", "reason"),
    [(["No question."] * 2, Reason.NO_USABLE_QUESTION), ([[""], [""]], Reason.UNPARSABLE)],
    ids=["no question", "nothing said"],
)
def test_a_reply_that_is_no_use_is_final(
    store: Store,
    judge: FakeJudge,
    start_judged: Start,
    new_exchange: Any,
    until: Until,
    replies: list[Any],
    reason: Reason,
) -> None:
    """The judge answered: asking for ever would bring no other reply. The scorer goes on with the next exchange."""
    judge.replies = replies
    store.add([new_exchange() for _ in range(3)])
    monitor = start_judged(store, judge, concurrency=1)

    until(lambda: store.counts().done + store.counts().failed == 3)

    assert set(store.counts().failed_reasons) == {reason}
    assert store.counts().rows == store.counts().done >= 1
    assert monitor.status().judge_problem is None


def test_an_answer_too_long_for_the_judge_pauses_nobody(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """A single exchange that is refused among good ones fails alone: the scorer goes on."""
    judge.faults.append(Fault("status", status=400, code="context_length_exceeded"))
    store.add([new_exchange() for _ in range(20)])
    monitor = start_judged(store, judge, concurrency=1, backoff=Backoff(first=3600, limit=3600))

    until(lambda: store.counts().done == 19)
    until(lambda: store.counts().failed_reasons == {Reason.JUDGE_REFUSED: 1})

    assert monitor.status().judge_problem is None


def test_a_judge_that_asks_for_a_pause_gets_it(
    store: Store, judge: FakeJudge, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """Retry-After is honoured: until then no request is made for any exchange, then all are scored."""
    judge.faults.append(Fault("status", status=429, retry_after=2))
    replied: list[float] = []
    judge.questions = lambda answer: [f"What was asked after {replied.append(time.monotonic()) or len(replied)}?"]
    store.add([new_exchange() for _ in range(6)])
    began = time.monotonic()
    start_judged(store, judge, concurrency=1, backoff=Backoff(first=0.05, limit=10))

    until(lambda: store.counts().done == 6)
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


def test_killing_the_judge_loses_and_invents_nothing(
    store: Store, start_judged: Start, new_exchange: Any, until: Until
) -> None:
    """The judge is killed with ten requests in flight: no score comes of them, no task is lost, and all are scored
    once a judge listens at the same address again."""
    store.add([new_exchange() for _ in range(30)])
    with judge_process("--latency", "30") as (process, url):
        where = {"base_url": url, "api_key": "test", "judge": "fake-judge", "embedder": "fake-embedder"}
        monitor = start_judged(store, where, concurrency=10, judge_timeout=60.0)
        until(lambda: monitor.status().in_flight >= 10)
        process.kill()
        process.wait()

    until(lambda: monitor.status().judge_problem)
    counts = store.counts()
    assert (counts.rows, counts.failed) == (0, 0)
    assert counts.pending + counts.running == 30

    port = url.rpartition(":")[2].partition("/")[0]
    with judge_process("--port", port):
        until(lambda: store.counts().done == 30)
        assert store.counts().rows == 30


def test_coverage_tells_of_a_broken_judge_and_no_alert_of_quality(
    store: Store,
    judge: FakeJudge,
    start_judged: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
) -> None:
    """A judge that breaks for good lowers the coverage; the mean stays, and the floor does not fire."""
    judge.questions = lambda answer: ["How long is the warranty of the lamp?"]
    store.add([new_exchange() for _ in range(3)])
    monitor = start_judged(
        store, judge, concurrency=1, retry_for=0, rules=[{"threshold": 0.8, "min_count": 2, "window": 600}]
    )
    until(lambda: store.counts().done == 3)
    judge.outage = Fault("status", status=500)
    store.add([new_exchange() for _ in range(3)])
    until(lambda: store.counts().failed == 3)

    (summary,) = store.summary()
    assert (summary.n, summary.mean) == (3, pytest.approx(1.0))
    assert summary.coverage.share == 0.5
    assert monitor.status().open_alerts == ()
