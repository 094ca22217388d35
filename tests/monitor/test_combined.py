"""A score that is put together from others, online."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from germane.monitor import Monitor
from germane.storage import Store
from germane.testing import FakeJudge, Fault
from germane.testing.judge import Request


def test_a_moments_trouble_of_one_part_does_not_stay_in_the_score(
    store: Store, judge: FakeJudge, start_judged: Callable[..., Monitor], new_exchange: Any, until: Any
) -> None:
    """The whole waits for it, and is whole then; what cannot be read is final, and marked."""
    judge.first_token = {"4": 1.0}
    judge.outage = Fault("status", status=503)
    store.add([new_exchange()])
    start_judged(store, judge, scorers=("combined_relevancy",))
    until(lambda: judge.requests)

    judge.outage = None
    until(lambda: store.counts().done == 1)

    (scored,) = store.worst()
    assert scored.score.details["missing"] == []


def test_a_part_that_cannot_be_read_is_left_out_and_marked(
    store: Store, judge: FakeJudge, start_judged: Callable[..., Monitor], new_exchange: Any, until: Any
) -> None:
    """The rest is renormalised, at once."""

    def mumble(request: Request) -> str | None:
        return "well" if "intent" in request.text else None

    judge.first_token = {"4": 1.0}
    judge.replies = mumble
    store.add([new_exchange()])
    start_judged(store, judge, scorers=("combined_relevancy",))

    until(lambda: store.counts().done == 1)

    (scored,) = store.worst()
    assert scored.score.details["missing"] == ["intent_match"]
    assert (scored.score.label or "").endswith(" (incomplete)")
