"""Traffic counts and average usage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

Make = Callable[..., Exchange]


def test_traffic_counts_exchanges_since_a_given_time(store: TrackingStore, make: Make) -> None:
    """The result includes the start of the oldest exchange."""
    exchanges = [make(minutes) for minutes in range(5)]
    store.exchanges.add(exchanges)

    found = store.quota.load_traffic(since=exchanges[2].started_at)
    assert (found.exchanges, found.first) == (3, exchanges[2].started_at)
    nothing = store.quota.load_traffic(since=exchanges[-1].started_at + timedelta(seconds=1))
    assert (nothing.exchanges, nothing.first) == (0, None)


def test_the_sample_of_exchanges_is_uniform_and_reproducible(store: TrackingStore, make: Make) -> None:
    """A sample consists of the exchanges with the lowest sampling keys, which do not depend on the content."""
    exchanges = [make(minutes, sampling_key=(9 - minutes) / 10 + 0.05) for minutes in range(10)]
    store.exchanges.add(exchanges)

    assert store.answers.sample_exchanges(since=exchanges[0].started_at, limit=3) == exchanges[7:]
    assert store.answers.sample_exchanges(since=exchanges[0].started_at, limit=99) == exchanges


def test_the_sample_of_exchanges_contains_no_erased_text(store: TrackingStore, make: Make) -> None:
    """Otherwise, the length of texts would be underestimated."""
    exchanges = [make(minutes) for minutes in range(4)]
    store.exchanges.add(exchanges)
    store.retention.prune(texts_before=exchanges[2].started_at)

    assert store.answers.sample_exchanges(since=exchanges[0].started_at, limit=99) == exchanges[2:]


def test_token_usage_is_averaged_by_scorer(store: TrackingStore, make: Make, clock: Any) -> None:
    """The average covers scores whose judge reported usage; scores without a request are excluded."""
    exchanges = [make(minutes) for minutes in range(4)]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"a": "f1"})
    tokens = [(100, 10), (300, 30), (None, None), (0, 0)]
    claims = store.queue.claim_tasks("me", {"a": "f1"}, limit=4, lease=timedelta(minutes=1))
    for claim, (read, written) in zip(claims, tokens, strict=True):
        score = Score(scorer="a", fingerprint="f1", value=0.5, input_tokens=read, output_tokens=written)
        store.queue.complete_tasks("me", [(claim.tasks[0], score)])

    (usage,) = store.quota.judge_usage(since=exchanges[0].started_at)
    assert (usage.scorer, usage.scores) == ("a", 2)
    assert (usage.input_tokens, usage.output_tokens) == (pytest.approx(200.0, abs=1e-9), pytest.approx(20.0, abs=1e-9))
    assert store.quota.judge_usage(since=clock.now) == []
