"""Composite scores in a running monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from germane.monitor import Monitor
from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault, JudgeRequest


def test_a_transient_failure_of_one_part_is_retried(
    store: TrackingStore, judge: FakeJudge, start_judged: Callable[..., Monitor], new_exchange: Any, until: Any
) -> None:
    """The composite score waits until the part succeeds. An unparsable part is final and is marked."""
    judge.first_token = {"4": 1.0}
    judge.outage = Fault("status", status=503)
    store.exchanges.add([new_exchange()])
    start_judged(store, judge, scorers=("combined_relevancy",))
    until(lambda: judge.requests)

    judge.outage = None
    until(lambda: store.answers.counts().done == 1)

    (scored,) = store.answers.worst()
    assert scored.score.details["missing"] == []


def test_an_unparsable_part_is_omitted_and_recorded_in_the_details(
    store: TrackingStore, judge: FakeJudge, start_judged: Callable[..., Monitor], new_exchange: Any, until: Any
) -> None:
    """The weights of the other parts are renormalized immediately."""

    def mumble(request: JudgeRequest) -> str | None:
        return "well" if "intent" in request.text else None

    judge.first_token = {"4": 1.0}
    judge.replies = mumble
    store.exchanges.add([new_exchange()])
    start_judged(store, judge, scorers=("combined_relevancy",))

    until(lambda: store.answers.counts().done == 1)

    (scored,) = store.answers.worst()
    assert scored.score.details["missing"] == ["intent_match"]
    assert (scored.score.label or "").endswith(" (incomplete)")
