"""From end to end: whatever fails, a score without a value says why."""

from __future__ import annotations

from typing import Any

import pytest

from germane.score import Reason
from germane.testing import Fault

JUDGE = {
    "reset": Reason.JUDGE_UNREACHABLE,
    "garbage": Reason.UNPARSABLE,
    "no_choices": Reason.UNPARSABLE,
    "empty": Reason.UNPARSABLE,
    "thinking": Reason.UNPARSABLE,
    "refusal": Reason.JUDGE_REFUSED,
    "content_filter": Reason.JUDGE_REFUSED,
    "hang": Reason.JUDGE_TIMEOUT,
    "drip": Reason.JUDGE_TIMEOUT,
}
EMBEDDER = ("nan", "zeros", "wrong_dimension", "uneven_dimension", "wrong_count", "garbage", "reset")


@pytest.mark.parametrize(("kind", "reason"), JUDGE.items())
def test_a_judge_that_fails_never_makes_a_number(bench: Any, kind: Any, reason: Reason) -> None:
    """The score is absent, with the judge's reason, and nothing is embedded."""
    bench.fake.outage = Fault(kind)
    bench.server = {"timeout": 0.3, "retries": 0}

    (score,) = bench.score()

    assert (score.state, score.value, score.reason) == ("failed", None, reason)
    assert score.explanation
    assert len(bench.fake.chats) == 1
    assert bench.fake.embeddings == []


@pytest.mark.parametrize("kind", EMBEDDER)
def test_an_embedder_that_fails_never_makes_a_number(bench: Any, kind: Any) -> None:
    """Likewise with the embedder's reason."""
    bench.fake.embedding_faults.append(Fault(kind))
    bench.server = {"retries": 0}

    (score,) = bench.score()

    assert (score.state, score.value, score.reason) == ("failed", None, Reason.EMBEDDER_ERROR)


def test_the_pause_of_a_busy_server_reaches_the_score(bench: Any) -> None:
    """Whoever schedules the next try can read it."""
    bench.fake.outage = Fault("status", status=429, retry_after=21)

    (score,) = bench.score()

    assert score.details == {"retry_after": 21}
