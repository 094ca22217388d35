"""The first minutes of five loads under which samplers lose exchanges; benchmarks/traffic.py replays them fully."""

from __future__ import annotations

from collections import Counter

import pytest
from traffic import LOADS, Load, Outcome, replay

pytestmark = pytest.mark.slow

MINUTES = 2


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_each_sampled_exchange_is_scored_skipped_or_failed_with_a_reason(load: Load) -> None:
    """No exchange is lost at any rate or delay, the tally matches, and all other exchanges were not sampled."""
    outcome = replay(load, MINUTES)

    assert outcome.seen == 60 * MINUTES * load.per_second
    assert outcome.ended == outcome.drawn
    assert outcome.is_whole, outcome
    assert outcome.counted["pending"] == 0


def test_the_benchmark_detects_a_lost_exchange() -> None:
    """Either a sampled exchange has no final state, or the tally counts more exchanges than there are rows."""
    counted = {"seen": 3, "scored": 2, "skipped": 1, "failed": 0, "pending": 0}
    done, rest = Counter({("done", ""): 2}), Counter({("skipped", "not_sampled"): 1})

    assert Outcome(3, 2, states=done, others=rest, counted=counted).is_whole
    assert not Outcome(4, 3, states=done, others=rest, counted=counted | {"seen": 4}).is_whole
    assert not Outcome(3, 2, states=done, others=rest, counted=counted | {"scored": 3, "skipped": 0}).is_whole
    assert not Outcome(3, 2, states=Counter({("pending", ""): 2}), others=rest, counted=counted).is_whole
