"""Which exchanges are scored, and that none vanishes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Context
from germane.monitor import Monitor
from germane.monitor.loop.leader import Office
from germane.monitor.sampling.eligibility import Fitness
from germane.monitor.sampling.sampler import decide as decide_on
from germane.score import Reason
from germane.settings import Always, Settings
from germane.storage import Decision, Store


class Needs:
    """A scorer with the inputs that it needs; gives everything the same score."""

    range = (0.0, 1.0)
    fingerprint = "f1"

    def __init__(self, *required: str, name: str = "needs") -> None:
        self.name = name
        self.requires = frozenset(required)

    async def score(self, exchange: Any) -> float:
        return 0.5


PLAIN = Needs("question", "answer")


def decide(exchange: Any, *, rate: float | None, scorers: list[Needs], **rules: Any) -> Decision:
    fit = Fitness(scorers, **rules).of(exchange)
    return decide_on(exchange, rate=rate, fit=fit, scorers=[scorer.name for scorer in scorers])


def test_the_draw_decides(new_exchange: Any) -> None:
    """An exchange is drawn when its draw is at most the rate; its probability is the rate either way."""
    drawn = decide(new_exchange(draw=0.3), rate=0.3, scorers=[PLAIN])
    passed_over = decide(new_exchange(draw=0.31), rate=0.3, scorers=[PLAIN])

    assert (drawn.sampling_reason, drawn.probability, drawn.skip) == ("drawn", 0.3, {})
    assert (passed_over.sampling_reason, passed_over.probability) == ("not_drawn", 0.3)
    assert passed_over.skip == {"needs": Reason.NOT_DRAWN}


@pytest.mark.parametrize(("rate", "kept", "probability"), [(0.3, 0.2, 0.2), (0.1, 0.2, 0.1)])
@pytest.mark.parametrize("draw", [0.05, 0.15])
def test_the_probability_counts_the_capture_limit(
    new_exchange: Any, rate: float, kept: float, probability: float, draw: float
) -> None:
    """Kept and drawn go by one draw: the probability of both is the smaller of the two, drawn or not."""
    decision = decide(new_exchange(draw=draw, capture_probability=kept), rate=rate, scorers=[PLAIN])

    assert decision.probability == probability
    assert decision.sampling_reason == ("drawn" if draw <= rate else "not_drawn")


def test_at_a_rate_of_0_nothing_is_drawn(new_exchange: Any) -> None:
    """There is no probability then, which is never 0."""
    decision = decide(new_exchange(draw=2**-53), rate=0.0, scorers=[PLAIN])

    assert (decision.sampling_reason, decision.probability) == ("not_drawn", None)


@pytest.mark.parametrize("rate", [0.0, None])
def test_what_a_rule_asks_for_is_scored_whatever_the_draw(new_exchange: Any, rate: float | None) -> None:
    """Its probability is that of being kept."""
    asked_for = new_exchange(draw=0.35, capture_probability=0.4)

    decision = decide(asked_for, rate=rate, scorers=[PLAIN], always=[Always(routes=("ask",))])

    assert (decision.sampling_reason, decision.probability, decision.skip) == ("always", 0.4, {})


def test_under_a_budget_an_exchange_waits_for_its_interval(new_exchange: Any) -> None:
    """It becomes a candidate of which no probability is known yet; what no scorer can take does not wait."""
    grounded = Needs("answer", "contexts", name="grounded")

    waits = decide(new_exchange(), rate=None, scorers=[PLAIN, grounded])
    empty = decide(new_exchange(answer=None), rate=None, scorers=[PLAIN])

    assert (waits.sampling_reason, waits.probability) == ("candidate", None)
    assert waits.skip == {"grounded": Reason.MISSING_INPUT}
    assert (empty.sampling_reason, empty.probability) == ("drawn", 1.0)


def test_what_is_drawn_at_a_rate_is_drawn_at_every_higher_one(new_exchange: Any) -> None:
    """Raising the rate adds exchanges and takes none away."""
    exchanges = [new_exchange() for _ in range(300)]
    few, many = (
        {one.id for one in exchanges if decide(one, rate=rate, scorers=[PLAIN]).sampling_reason == "drawn"}
        for rate in (0.2, 0.6)
    )

    assert few < many


@pytest.mark.parametrize("missing", ["question", "answer"])
@pytest.mark.parametrize("text", [None, "", " \n", "\u200b"])
@pytest.mark.parametrize("draw", [0.01, 0.99])
def test_a_missing_input_is_counted_whenever_it_is_missing(
    new_exchange: Any, missing: str, text: str | None, draw: float
) -> None:
    """Without question or answer an exchange is skipped for that reason whatever its draw, with probability 1."""
    decision = decide(new_exchange(**{missing: text, "draw": draw}), rate=0.5, scorers=[PLAIN])

    assert decision.skip == {"needs": Reason.MISSING_INPUT}
    assert decision.probability == 1.0


@pytest.mark.parametrize("status", ["abandoned", "cancelled", "error"])
@pytest.mark.parametrize("draw", [0.01, 0.99])
def test_an_answer_that_was_cut_short_is_not_scored(new_exchange: Any, status: str, draw: float) -> None:
    """Half an answer says nothing of how good the answers are: it is skipped, and counted whatever its draw."""
    decision = decide(new_exchange(status=status, draw=draw), rate=0.5, scorers=[PLAIN])

    assert decision.skip == {"needs": Reason.FILTERED}
    assert decision.probability == 1.0


def test_an_input_that_one_scorer_lacks_is_nothing_to_the_others(new_exchange: Any) -> None:
    """A scorer that needs contexts skips an exchange without; the probability for the rest stays the rate."""
    grounded = Needs("answer", "contexts", name="grounded")
    scorers = [PLAIN, grounded]
    with_context = new_exchange(draw=0.1, contexts=(Context("two years"),))

    assert decide(new_exchange(draw=0.1), rate=0.5, scorers=scorers).skip == {"grounded": Reason.MISSING_INPUT}
    assert decide(new_exchange(draw=0.1), rate=0.5, scorers=scorers).probability == 0.5
    assert decide(with_context, rate=0.5, scorers=scorers).skip == {}
    assert decide(new_exchange(draw=0.9), rate=0.5, scorers=scorers).skip == {
        "needs": Reason.NOT_DRAWN,
        "grounded": Reason.MISSING_INPUT,
    }


@pytest.mark.parametrize(("url", "rate"), [("sqlite", 0.0), ("sqlite", 1.0), ("postgresql", 0.1)], indirect=["url"])
def test_every_exchange_of_a_replay_ends_somewhere(
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
    rate: float,
) -> None:
    """1,200 exchanges at once, more than a batch: each ends scored or skipped with its reason, none vanishes."""
    exchanges = [new_exchange(answer=None if number % 10 == 0 else "yes") for number in range(1200)]
    store.add(exchanges)
    start(store, [PLAIN], settings=settings(rate=rate))

    until(lambda: store.counts().unsampled == 0 and store.counts().pending + store.counts().running == 0)

    drawn = sum(1 for exchange in exchanges if exchange.draw <= rate and exchange.answer is not None)
    counts = store.counts()
    assert counts.rows == counts.done == drawn
    assert counts.skipped_reasons.get(Reason.MISSING_INPUT) == 120
    assert counts.skipped_reasons.get(Reason.NOT_DRAWN, 0) == 1200 - 120 - drawn
    (coverage,) = store.coverage()
    assert coverage.seen == 1200 == coverage.scored + sum(coverage.skipped.values())


def test_a_span_that_waits_in_vain_is_released(
    store: Store,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    attached: Any,
    new_exchange: Any,
    until: Any,
) -> None:
    """An exchange that is drawn and that nobody can score is attached as skipped; one that was not drawn is not."""
    in_vain, passed_over = new_exchange(answer=None, draw=0.1), new_exchange(draw=0.9)
    store.add([in_vain, passed_over])
    start(store, [PLAIN], settings=settings(rate=0.5))

    until(lambda: attached.calls)
    until(lambda: store.counts().unsampled == 0)

    ((exchange, (score,)),) = attached.calls
    assert (exchange.id, score.state, score.reason) == (in_vain.id, "skipped", Reason.MISSING_INPUT)


def test_without_a_scorer_nothing_is_decided(
    store: Store, start: Callable[..., Monitor], settings: Callable[..., Settings], new_exchange: Any, until: Any
) -> None:
    """A process that can only capture leaves exchanges undecided: a later start with a judge still scores them."""
    store.add([new_exchange()])
    monitor = start(store, [], settings=settings(rules=[{"threshold": 0.5}]))

    until(lambda: monitor.status().jobs["watch"].last_run)

    assert store.counts().unsampled == 1


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_an_office_has_one_holder(store: Store, url: str) -> None:
    """Of two processes one holds an office; the other gets it when the first resigns or its term is over."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    term = timedelta(seconds=30)
    shared = Store(url, clock=lambda: now[0])
    one, other = (Office(shared, "sampler", name, term=term, clock=lambda: now[0]) for name in ("one", "other"))

    assert (one.held(), other.held()) == (True, False)
    one.resign()
    now[0] += timedelta(seconds=11)
    assert (other.held(), one.held()) == (True, False)
    now[0] += timedelta(seconds=31)
    assert (one.held(), other.held()) == (True, False)
    shared.close()
