"""Usage and concurrency of an evaluation run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import germane
from germane.exchange import Exchange
from germane.score import Score
from germane.testing import FakeJudge, Fault

pytestmark = pytest.mark.usefixtures("bare")
ROWS = [{"question": f"How do I pay for item {number}?", "answer": f"Item {number} by card."} for number in range(12)]


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """Return a judge that runs in this process."""
    with FakeJudge() as running:
        yield running


def test_a_run_counts_its_requests_and_tokens(judge: FakeJudge) -> None:
    """The counts cover the judge and the embedder, as reported by the server."""
    evaluation = germane.evaluate(ROWS, **judge.settings())

    assert evaluation.usage.requests == len(judge.requests)
    assert evaluation.usage.input_tokens == sum(score.input_tokens or 0 for score in evaluation.scores)
    assert evaluation.tokens == sum((s.input_tokens or 0) + (s.output_tokens or 0) for s in evaluation.scores)
    assert evaluation.seconds > 0


def test_tokens_of_failed_scores_are_counted(judge: FakeJudge) -> None:
    """An unparsable reply still uses tokens."""
    judge.outage = Fault("empty")

    evaluation = germane.evaluate(ROWS[:1], **judge.settings())

    assert [score.state for score in evaluation.scores] == ["failed"]
    assert evaluation.usage.requests == len(judge.requests) > 0


def test_usage_of_user_defined_scorers_is_counted(judge: FakeJudge) -> None:
    """Their usage is added to the judge's. Identical rows count once."""

    class Paid:
        name = "paid"
        fingerprint = "paid-1"
        requires = frozenset({"answer"})
        range = (0.0, 1.0)

        async def score(self, exchange: Exchange) -> Score | float:
            return Score(scorer="paid", fingerprint="paid-1", value=0.5, input_tokens=10, cost=0.25)

    alone = germane.evaluate([ROWS[0], ROWS[0], ROWS[1]], [Paid()])
    both = germane.evaluate(ROWS[:1], ["answer_relevancy", Paid()], **judge.settings())
    judged: Any = both.rows[0].scores["answer_relevancy"].input_tokens

    assert (alone.cost, alone.tokens) == (0.5, 20)
    assert (both.cost, both.usage.input_tokens) == (0.25, judged + 10)


def test_the_number_of_concurrent_judge_requests_is_limited(judge: FakeJudge) -> None:
    """The limit does not depend on the number of rows."""
    judge.latency = 0.01
    germane.evaluate(ROWS, scorers=["answer_relevancy"], concurrency=3, **judge.settings())

    assert judge.max_in_flight <= 2 * 3  # three judge requests, plus embeddings
