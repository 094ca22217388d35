"""Sampling: each exchange is scored or skipped, and none is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Context
from germane.monitor import Monitor
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.monitor.sampling.sampler import decide_sampling as decide_on
from germane.score import UnscoredReason
from germane.settings import AlwaysScore, Settings
from germane.storage import SamplingDecision, TrackingStore


class Needs:
    """A scorer with given inputs that always returns the same score."""

    range = (0.0, 1.0)
    fingerprint = "f1"

    def __init__(self, *required: str, name: str = "needs") -> None:
        self.name = name
        self.requires = frozenset(required)

    async def score(self, exchange: Any) -> float:
        return 0.5


PLAIN = Needs("question", "answer")


def decide(exchange: Any, *, sample_rate: float | None, scorers: list[Needs], **rules: Any) -> SamplingDecision:
    eligibility = EligibilityChecker(scorers, **rules).check(exchange)
    return decide_on(
        exchange, sample_rate=sample_rate, eligibility=eligibility, scorers=[scorer.name for scorer in scorers]
    )


def test_the_sampling_key_decides_whether_an_exchange_is_scored(new_exchange: Any) -> None:
    """An exchange is sampled if its key is at most the sample rate. Its probability is the sample rate either way."""
    drawn = decide(new_exchange(sampling_key=0.3), sample_rate=0.3, scorers=[PLAIN])
    passed_over = decide(new_exchange(sampling_key=0.31), sample_rate=0.3, scorers=[PLAIN])

    assert (drawn.sampling_reason, drawn.probability, drawn.skip) == ("sampled", 0.3, {})
    assert (passed_over.sampling_reason, passed_over.probability) == ("not_sampled", 0.3)
    assert passed_over.skip == {"needs": UnscoredReason.NOT_SAMPLED}


@pytest.mark.parametrize(("rate", "kept", "probability"), [(0.3, 0.2, 0.2), (0.1, 0.2, 0.1)])
@pytest.mark.parametrize("draw", [0.05, 0.15])
def test_inclusion_probability_accounts_for_the_exchange_limit(
    new_exchange: Any, rate: float, kept: float, probability: float, draw: float
) -> None:
    """Capture and sampling use the same key, so the probability is the smaller of the two, sampled or not."""
    decision = decide(new_exchange(sampling_key=draw, capture_probability=kept), sample_rate=rate, scorers=[PLAIN])

    assert decision.probability == probability
    assert decision.sampling_reason == ("sampled" if draw <= rate else "not_sampled")


def test_nothing_is_sampled_at_a_sample_rate_of_0(new_exchange: Any) -> None:
    """Skipped exchanges have no probability, because a probability is never 0."""
    decision = decide(new_exchange(sampling_key=2**-53), sample_rate=0.0, scorers=[PLAIN])

    assert (decision.sampling_reason, decision.probability) == ("not_sampled", None)


@pytest.mark.parametrize("rate", [0.0, None])
def test_an_always_score_rule_overrides_the_sampling_key(new_exchange: Any, rate: float | None) -> None:
    """The probability is the capture probability."""
    asked_for = new_exchange(sampling_key=0.35, capture_probability=0.4)

    decision = decide(asked_for, sample_rate=rate, scorers=[PLAIN], always_score=[AlwaysScore(routes=("ask",))])

    assert (decision.sampling_reason, decision.probability, decision.skip) == ("always", 0.4, {})


def test_an_exchange_becomes_a_candidate_if_there_is_a_budget(new_exchange: Any) -> None:
    """Its probability is not known yet. An exchange that no scorer can score does not become a candidate."""
    grounded = Needs("answer", "contexts", name="grounded")

    waits = decide(new_exchange(), sample_rate=None, scorers=[PLAIN, grounded])
    empty = decide(new_exchange(answer=None), sample_rate=None, scorers=[PLAIN])

    assert (waits.sampling_reason, waits.probability) == ("candidate", None)
    assert waits.skip == {"grounded": UnscoredReason.MISSING_INPUT}
    assert (empty.sampling_reason, empty.probability) == ("sampled", 1.0)


def test_a_higher_sample_rate_includes_all_exchanges_of_a_lower_one(new_exchange: Any) -> None:
    """Raising the rate adds exchanges and removes none."""
    exchanges = [new_exchange() for _ in range(300)]
    few, many = (
        {one.id for one in exchanges if decide(one, sample_rate=rate, scorers=[PLAIN]).sampling_reason == "sampled"}
        for rate in (0.2, 0.6)
    )

    assert few < many


@pytest.mark.parametrize("missing", ["question", "answer"])
@pytest.mark.parametrize("text", [None, "", " \n", "\u200b"])
@pytest.mark.parametrize("draw", [0.01, 0.99])
def test_an_exchange_with_a_missing_input_counts_as_skipped_at_any_sample_rate(
    new_exchange: Any, missing: str, text: str | None, draw: float
) -> None:
    """Without question or answer, an exchange is skipped regardless of its key, with probability 1."""
    decision = decide(new_exchange(**{missing: text, "sampling_key": draw}), sample_rate=0.5, scorers=[PLAIN])

    assert decision.skip == {"needs": UnscoredReason.MISSING_INPUT}
    assert decision.probability == 1.0


@pytest.mark.parametrize("status", ["abandoned", "cancelled", "error"])
@pytest.mark.parametrize("draw", [0.01, 0.99])
def test_an_incomplete_answer_is_not_scored(new_exchange: Any, status: str, draw: float) -> None:
    """It is skipped and counted regardless of its key."""
    decision = decide(new_exchange(status=status, sampling_key=draw), sample_rate=0.5, scorers=[PLAIN])

    assert decision.skip == {"needs": UnscoredReason.FILTERED}
    assert decision.probability == 1.0


def test_a_missing_input_affects_only_the_scorers_that_need_it(new_exchange: Any) -> None:
    """A scorer that needs contexts skips the exchange. The probability for the other scorers is still the rate."""
    grounded = Needs("answer", "contexts", name="grounded")
    scorers = [PLAIN, grounded]
    with_context = new_exchange(sampling_key=0.1, contexts=(Context("two years"),))

    assert decide(new_exchange(sampling_key=0.1), sample_rate=0.5, scorers=scorers).skip == {
        "grounded": UnscoredReason.MISSING_INPUT
    }
    assert decide(new_exchange(sampling_key=0.1), sample_rate=0.5, scorers=scorers).probability == 0.5
    assert decide(with_context, sample_rate=0.5, scorers=scorers).skip == {}
    assert decide(new_exchange(sampling_key=0.9), sample_rate=0.5, scorers=scorers).skip == {
        "needs": UnscoredReason.NOT_SAMPLED,
        "grounded": UnscoredReason.MISSING_INPUT,
    }


@pytest.mark.parametrize(("url", "rate"), [("sqlite", 0.0), ("sqlite", 1.0), ("postgresql", 0.1)], indirect=["url"])
def test_every_exchange_is_scored_or_skipped(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
    rate: float,
) -> None:
    """Each of 1,200 exchanges, more than a batch, is scored, or skipped with a reason."""
    exchanges = [new_exchange(answer=None if number % 10 == 0 else "yes") for number in range(1200)]
    store.exchanges.add(exchanges)
    start(store, [PLAIN], settings=settings(sample_rate=rate))

    until(
        lambda: (
            store.answers.counts().undecided == 0
            and store.answers.counts().pending + store.answers.counts().running == 0
        )
    )

    drawn = sum(1 for exchange in exchanges if exchange.sampling_key <= rate and exchange.answer is not None)
    counts = store.answers.counts()
    assert counts.scores == counts.done == drawn
    assert counts.skipped_reasons.get(UnscoredReason.MISSING_INPUT) == 120
    assert counts.skipped_reasons.get(UnscoredReason.NOT_SAMPLED, 0) == 1200 - 120 - drawn
    (coverage,) = store.trends.coverage()
    assert coverage.seen == 1200 == coverage.scored + sum(coverage.skipped.values())


def test_a_held_span_is_released_if_its_exchange_is_not_scored(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    attached: Any,
    new_exchange: Any,
    until: Any,
) -> None:
    """A sampled exchange that cannot be scored is attached as skipped; an unsampled one is not attached."""
    in_vain, passed_over = new_exchange(answer=None, sampling_key=0.1), new_exchange(sampling_key=0.9)
    store.exchanges.add([in_vain, passed_over])
    start(store, [PLAIN], settings=settings(sample_rate=0.5))

    until(lambda: attached.calls)
    until(lambda: store.answers.counts().undecided == 0)

    ((exchange, (score,)),) = attached.calls
    assert (exchange.id, score.state, score.reason) == (in_vain.id, "skipped", UnscoredReason.MISSING_INPUT)


def test_nothing_is_sampled_without_scorers(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
) -> None:
    """Exchanges stay undecided, and a later start with a judge scores them."""
    store.exchanges.add([new_exchange()])
    monitor = start(store, [], settings=settings(rules=[{"threshold": 0.5}]))

    until(lambda: monitor.status().jobs["evaluate"].last_run)

    assert store.answers.counts().undecided == 1


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_only_one_process_holds_the_leader_lease(store: TrackingStore, url: str) -> None:
    """Another process can acquire the lease after it is released or expires."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    term = timedelta(seconds=30)
    shared = TrackingStore(url, clock=lambda: now[0])
    one, other = (LeaderLease(shared, "sampler", name, ttl=term, clock=lambda: now[0]) for name in ("one", "other"))

    assert (one.acquire(), other.acquire()) == (True, False)
    one.release()
    now[0] += timedelta(seconds=11)
    assert (other.acquire(), one.acquire()) == (True, False)
    now[0] += timedelta(seconds=31)
    assert (one.acquire(), other.acquire()) == (True, False)
    shared.close()
