"""Which exchanges are worth a judge's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from germane.exchange import Exchange
from germane.monitor.fitness import Fit, Fitness
from germane.monitor.office import Office
from germane.score import Reason, Score
from germane.scorers import Scorer
from germane.storage import Decision, Store
from germane.threads import Threads

BATCH: Final = 500
"""Exchanges decided on in one transaction."""


def decide(exchange: Exchange, *, rate: float, fit: Fit, scorers: Sequence[str]) -> Decision:
    """Say which scorers skip an exchange and why, and how probable it was that it is looked at.

    What cannot be scored is not left to the draw: an input that is missing, or an answer that was cut short, is counted
    whenever it comes. An exchange that no scorer can take was thus sure to be looked at if it was kept, as was one that
    a rule asks for. For any other the draw alone decides, whatever stands in it, so that weighting by the inverse of
    its probability is unbiased: it was drawn if its draw is under both the capture limit's part and the rate.
    """
    kept = exchange.capture_probability
    if fit.always:
        return Decision(exchange_id=exchange.id, probability=kept, sampling_reason="always", skip=fit.unfit)
    if len(fit.unfit) == len(scorers):
        return Decision(exchange_id=exchange.id, probability=kept, sampling_reason="drawn", skip=fit.unfit)
    probability = min(rate, kept)
    if exchange.draw <= rate:
        return Decision(exchange_id=exchange.id, probability=probability, sampling_reason="drawn", skip=fit.unfit)
    rest = dict.fromkeys(scorers, Reason.NOT_DRAWN) | dict(fit.unfit)
    return Decision(exchange_id=exchange.id, probability=probability, sampling_reason="not_drawn", skip=rest)


class Sampling:
    """Decides on every exchange once, in one elected process of all that share the database."""

    def __init__(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        *,
        rate: float,
        fitness: Fitness,
        office: Office,
        threads: Threads,
        attach: Callable[[Exchange, Sequence[Score]], object],
        clock: Callable[[], datetime],
    ) -> None:
        self.stopping = False
        self._store = store
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in scorers}
        self._rate = rate
        self._fitness = fitness
        self._office = office
        self._threads = threads
        self._attach = attach
        self._clock = clock

    async def run(self) -> int:
        """Decide on all exchanges that wait for it; return how many."""
        decided = 0
        while True:
            batch = await self._threads.run(self._decide_batch)
            decided += batch
            if batch < BATCH or self.stopping:
                return decided

    def _decide_batch(self) -> int:
        if not self._office.held():
            return 0
        exchanges = self._store.unsampled(BATCH)
        decisions = [self._decide(exchange) for exchange in exchanges]
        if decisions:
            self._store.assign(decisions, self._fingerprints)
        for exchange, decision in zip(exchanges, decisions, strict=True):
            if exchange.draw <= self._rate and decision.skip.keys() == self._fingerprints.keys():
                self._attach(exchange, self._skipped(decision))
        return len(exchanges)

    def _decide(self, exchange: Exchange) -> Decision:
        fit = self._fitness.of(exchange)
        return decide(exchange, rate=self._rate, fit=fit, scorers=list(self._fingerprints))

    def _skipped(self, decision: Decision) -> list[Score]:
        """Return the scores that release a span which waits for them in vain."""
        now = self._clock()
        return [
            Score(scorer=name, fingerprint=self._fingerprints[name], reason=reason, scored_at=now)
            for name, reason in decision.skip.items()
        ]
