"""How much there is to score, and what scores took."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Decision, Store

Make = Callable[..., Exchange]


def test_exchanges_are_counted_from_a_moment_on(store: Store, make: Make) -> None:
    """With when the oldest of them began."""
    exchanges = [make(minutes) for minutes in range(5)]
    store.add(exchanges)

    found = store.traffic(since=exchanges[2].started_at)
    assert (found.exchanges, found.first) == (3, exchanges[2].started_at)
    nothing = store.traffic(since=exchanges[-1].started_at + timedelta(seconds=1))
    assert (nothing.exchanges, nothing.first) == (0, None)


def test_a_sample_is_uniform_and_always_the_same(store: Store, make: Make) -> None:
    """Those with the lowest draws, which say nothing of what stands in them."""
    exchanges = [make(minutes, draw=(9 - minutes) / 10 + 0.05) for minutes in range(10)]
    store.add(exchanges)

    assert store.sample(since=exchanges[0].started_at, limit=3) == exchanges[7:]
    assert store.sample(since=exchanges[0].started_at, limit=99) == exchanges


def test_a_sample_has_no_erased_text(store: Store, make: Make) -> None:
    """How long texts are would be estimated too low."""
    exchanges = [make(minutes) for minutes in range(4)]
    store.add(exchanges)
    store.prune(texts_before=exchanges[2].started_at)

    assert store.sample(since=exchanges[0].started_at, limit=99) == exchanges[2:]


def test_what_scores_took_is_averaged_by_scorer(store: Store, make: Make, clock: Any) -> None:
    """Over those whose server told; a score that took no request says nothing of those that do."""
    exchanges = [make(minutes) for minutes in range(4)]
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {"a": "f1"})
    tokens = [(100, 10), (300, 30), (None, None), (0, 0)]
    claims = store.claim("me", {"a": "f1"}, limit=4, lease=timedelta(minutes=1))
    for claim, (read, written) in zip(claims, tokens, strict=True):
        score = Score(scorer="a", fingerprint="f1", value=0.5, input_tokens=read, output_tokens=written)
        store.complete("me", [(claim.tasks[0], score)])

    (usage,) = store.usage(since=exchanges[0].started_at)
    assert (usage.scorer, usage.scores) == ("a", 2)
    assert (usage.input_tokens, usage.output_tokens) == (pytest.approx(200.0, abs=1e-9), pytest.approx(20.0, abs=1e-9))
    assert store.usage(since=clock.now) == []
