"""Retries of an unreachable, slow or busy judge."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane.errors import ScoringError
from germane.evaluation.rows import read_rows
from germane.evaluation.scoring import MAX_REJECTIONS, RATE_LIMIT_TIMEOUT_FACTOR, RetryingScorer
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.testing import FakeJudge, Fault
from germane.testing.judge_request import JudgeRequest
from germane.testing.judge_server import JudgeReply

pytestmark = pytest.mark.usefixtures("bare")
FIRST = 0.01
AWAY = ScoringError(UnscoredReason.JUDGE_UNREACHABLE, "no connection")
BUSY_NOW = ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "HTTP 429: slow down")


class Scripted:
    """Scorer whose first calls fail as scripted, and whose later calls return scores."""

    name = "scripted"
    fingerprint = "scripted-1"
    requires = frozenset({"answer"})
    range = (0.0, 1.0)

    def __init__(self, *failures: ScoringError | None, always: dict[str, ScoringError] | None = None) -> None:
        self.failures = list(failures)
        self.always = always or {}
        self.asked: list[str] = []
        self.at_work = 0
        self.most_at_work_in_trouble = 0

    async def score(self, exchange: Exchange) -> Score | float:
        """Raise the next scripted failure, or return 1."""
        answer = exchange.answer or ""
        self.asked.append(answer)
        failure = self.always.get(answer) or (self.failures.pop(0) if self.failures else None)
        self.at_work += 1
        await asyncio.sleep(0)
        if len(self.asked) > 10 and failure is not None:
            self.most_at_work_in_trouble = max(self.at_work, self.most_at_work_in_trouble)
        self.at_work -= 1
        if failure is not None:
            raise failure
        return 1.0


def ask(scorer: Scripted, *answers: str, retry_timeout: float = 60.0) -> Sequence[Score]:
    """Return the results of scoring these answers concurrently."""
    rows = read_rows([{"question": "How?", "answer": answer} for answer in answers])

    async def all_of_them() -> Sequence[Score]:
        asker = RetryingScorer(scorer, retry_timeout, first=FIRST)
        return await asyncio.gather(*(asker.score(row.exchange) for row in rows))

    return asyncio.run(all_of_them())


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """Return a judge that runs in this process."""
    with FakeJudge() as running:
        yield running


@pytest.mark.parametrize(
    "failure", [AWAY, BUSY_NOW, ScoringError(UnscoredReason.JUDGE_TIMEOUT, "no reply within 60 s")]
)
def test_temporary_judge_failures_lose_no_scores(failure: ScoringError) -> None:
    """The number of failures does not matter if the judge recovers in time."""
    scorer = Scripted(*[failure] * 14)
    scores = ask(scorer, *"abcdefgh")

    assert [score.value for score in scores] == [1.0] * 8
    assert len(scorer.asked) == 14 + 8


def test_only_one_row_probes_a_paused_judge() -> None:
    """The other rows wait for the result of the probe."""
    scorer = Scripted(*[AWAY] * 14)
    ask(scorer, *"abcdefghij")

    assert scorer.most_at_work_in_trouble == 1


def test_a_retry_after_header_applies_to_all_rows() -> None:
    """The first rejected row sets the delay for all rows."""
    scorer = Scripted(ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "HTTP 429", retry_after=0.3))
    began = time.monotonic()
    scores = ask(scorer, "a", "b")

    assert time.monotonic() - began >= 0.3
    assert [score.value for score in scores] == [1.0, 1.0]


def test_a_run_gives_up_on_an_unreachable_judge(caplog: pytest.LogCaptureFixture) -> None:
    """The remaining rows fail without a request, and one warning contains the reason."""
    answers = [str(number) for number in range(50)]
    scorer = Scripted(always=dict.fromkeys(answers, AWAY))
    with caplog.at_level(logging.WARNING, "germane.evaluation"):
        scores = ask(scorer, *answers, retry_timeout=0.2)

    assert {score.reason for score in scores} == {UnscoredReason.JUDGE_UNREACHABLE}
    assert re.match(
        r"not sent: no score for \d+ s, and the next retry, in -?\d+ s, would exceed", scores[-1].explanation or ""
    )
    assert (scores[-1].explanation or "").endswith("last failure: judge_unreachable: no connection")
    assert [record.message for record in caplog.records if "has stopped" in record.message] == [
        "scripted has stopped sending requests: " + (scores[-1].explanation or "").removeprefix("not sent: ")
    ]


def test_a_retry_after_header_beyond_the_retry_timeout_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """The warning contains the reason."""
    scorer = Scripted(
        always={"a": ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "HTTP 429: spent", retry_after=3600)}
    )
    (first,) = ask(scorer, "a", retry_timeout=300)  # a run that waits would exceed pytest's time limit

    assert scorer.asked == ["a"]
    assert (first.reason, first.explanation) == (UnscoredReason.JUDGE_RATE_LIMITED, "HTTP 429: spent")
    assert "the next retry, in 300 s, would exceed the limit of 300 s" in caplog.text


@pytest.mark.parametrize(
    ("failure", "whose"),
    [
        (ScoringError(UnscoredReason.JUDGE_REJECTED, "HTTP 401"), "the judge"),
        (ScoringError(UnscoredReason.EMBEDDER_ERROR, "HTTP 401", retry_after=0.0, rejected=True), "the embedder"),
    ],
)
def test_a_rejected_judge_key_ends_the_run(failure: ScoringError, whose: str) -> None:
    """This applies to the judge and the embedder. Most rows are never sent."""
    answers = [str(number) for number in range(2 * MAX_REJECTIONS)]
    scorer = Scripted(always=dict.fromkeys(answers, failure))
    rows = read_rows([{"question": "How?", "answer": answer} for answer in answers])

    async def one_by_one() -> list[Score]:
        asker = RetryingScorer(scorer, retry_timeout=600)
        return [await asker.score(row.exchange) for row in rows]

    scores = asyncio.run(one_by_one())  # a run that waits would exceed pytest's time limit

    assert scorer.asked == answers[:MAX_REJECTIONS]
    assert {score.reason for score in scores} == {failure.reason}
    assert (scores[-1].explanation or "").startswith(f"not sent: {whose} rejected {MAX_REJECTIONS} requests in a row")


def test_a_row_is_not_retried_after_the_timeout() -> None:
    """Each request takes a second. The one after which the timeout has passed since the first failure is the last."""
    scorer = Scripted(always={"bad": AWAY})
    (bad,) = read_rows([{"question": "How?", "answer": "bad"}])

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=len(scorer.asked))

    score = asyncio.run(RetryingScorer(scorer, retry_timeout=1.5, first=FIRST, clock=clock).score(bad.exchange))

    assert score.explanation == str(AWAY)
    assert len(scorer.asked) == 3


@pytest.mark.parametrize(("failure", "retry_timeout"), [(AWAY, 0.1), (BUSY_NOW, 0.1 / RATE_LIMIT_TIMEOUT_FACTOR)])
def test_a_row_that_always_fails_does_not_block_the_run(failure: ScoringError, retry_timeout: float) -> None:
    """The row's retries end, and the other rows are scored."""
    scorer = Scripted(always={"bad": failure})

    async def one_by_one() -> Score:
        good, bad = read_rows([{"question": "How?", "answer": answer} for answer in ("good", "bad")])
        asker = RetryingScorer(scorer, retry_timeout, first=FIRST)
        waiting = asyncio.create_task(asker.score(bad.exchange))
        while not waiting.done():
            assert (await asker.score(good.exchange)).value == 1.0
            await asyncio.sleep(0.001)
        return await waiting

    score = asyncio.run(one_by_one())

    assert (score.reason, score.explanation) == (failure.reason, str(failure))


def test_a_retry_timeout_of_zero_disables_retries() -> None:
    """A few failures do not end the run."""
    scorer = Scripted(AWAY, AWAY)
    scores = ask(scorer, "a", "b", "c", retry_timeout=0)

    assert [score.value for score in scores] == [None, None, 1.0]
    assert len(scorer.asked) == 3


@pytest.mark.parametrize(
    ("fault", "times"), [(Fault("status", status=503), 5), (Fault("status", status=429, retry_after=1.2), 2)]
)
def test_a_short_judge_outage_does_not_end_the_run(judge: FakeJudge, fault: Fault, times: int) -> None:
    """Each row is scored over HTTP. Only rejected requests are repeated, and some of them without an option first."""
    judge.faults.extend([fault] * times)
    rows = [{"question": "How?", "answer": f"Item {number} by card."} for number in range(20)]
    evaluation = germane.evaluate(rows, "intent_match", concurrency=2, **judge.settings())

    assert [score.state for score in evaluation.scores] == ["scored"] * 20
    assert 20 + times <= len(judge.chat_requests) <= 20 + 2 * times


@pytest.mark.slow
def test_the_retry_timeout_of_a_run_is_configurable(judge: FakeJudge) -> None:
    """The timeout passed as an argument can exceed the default."""
    judge.outage = Fault("status", status=503)
    rows = [{"question": "How?", "answer": f"Item {number} by card."} for number in range(50)]
    evaluation = germane.evaluate(rows, "intent_match", retry_timeout=0.5, **judge.settings())

    assert {score.reason for score in evaluation.scores} == {UnscoredReason.JUDGE_UNREACHABLE}
    failure = f"HTTP 503: this is a test ({judge.base_url}/chat/completions)"
    assert (evaluation.scores[-1].explanation or "").endswith(f"last failure: judge_unreachable: {failure}")


def test_a_run_gives_up_on_a_judge_that_rejects_every_request(judge: FakeJudge) -> None:
    """The remaining rows fail for the same reason without a request."""
    judge.outage = Fault("status", status=401)
    rows = [{"question": "How?", "answer": f"Item {number} by card."} for number in range(200)]

    evaluation = germane.evaluate(rows, concurrency=2, **judge.settings())

    assert {score.reason for score in evaluation.scores} == {UnscoredReason.JUDGE_REJECTED}
    assert len(judge.chat_requests) < 4 * MAX_REJECTIONS  # each is repeated without its options
    assert (evaluation.scores[-1].explanation or "").startswith("not sent: ")


def test_a_few_rejected_rows_do_not_end_the_run() -> None:
    """A rejection may affect only a single row."""

    class Picky(FakeJudge):
        def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
            is_even = any(f"Item {number} " in str(request.body) for number in range(0, 60, 2))
            return super().reply(request, Fault("status", status=404) if is_even else fault)

    rows = [{"question": "How?", "answer": f"Item {number} by card."} for number in range(60)]

    scorers = ["direct_relevancy"]
    with Picky() as judge:
        evaluation = germane.evaluate(rows, scorers, concurrency=1, **judge.settings())

    assert sum(score.value is not None for score in evaluation.scores) == 30
