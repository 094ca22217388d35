"""Which exchanges are worth a judge's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from germane.exchange import Exchange
from germane.monitor.office import Office
from germane.score import Reason, Score
from germane.scorers import Scorer, lacks_input
from germane.storage import Decision, Store
from germane.threads import Threads

BATCH: Final = 500
"""Exchanges decided on in one transaction."""


def decide(exchange: Exchange, *, rate: float, scorers: Sequence[Scorer]) -> Decision:
    """Say which scorers skip an exchange and why, and how probable it was that it is looked at.

    What cannot be scored is not left to the draw: an input that is missing, or an answer that was cut short, is counted
    whenever it comes. An exchange that no scorer can take was thus sure to be looked at, and has probability 1. For any
    other the draw alone decides, whatever stands in it, so that its probability is the rate, and weighting by its
    inverse is unbiased.
    """
    unfit = {scorer.name: reason for scorer in scorers if (reason := _unfit(exchange, scorer)) is not None}
    if len(unfit) == len(scorers):
        return Decision(exchange_id=exchange.id, probability=1.0, sampling_reason="drawn", skip=unfit)
    if exchange.draw <= rate:
        return Decision(exchange_id=exchange.id, probability=rate, sampling_reason="drawn", skip=unfit)
    rest = {scorer.name: Reason.NOT_DRAWN for scorer in scorers}
    return Decision(exchange_id=exchange.id, probability=rate, sampling_reason="not_drawn", skip=rest | unfit)


def _unfit(exchange: Exchange, scorer: Scorer) -> Reason | None:
    if lacks_input(scorer, exchange):
        return Reason.MISSING_INPUT
    # Half an answer, left by a caller who hung up or by an error on the way, would count as a bad one.
    return None if exchange.status == "ok" else Reason.FILTERED


class Sampling:
    """Decides on every exchange once, in one elected process of all that share the database."""

    def __init__(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        *,
        rate: float,
        office: Office,
        threads: Threads,
        attach: Callable[[Exchange, Sequence[Score]], object],
        clock: Callable[[], datetime],
    ) -> None:
        self.stopping = False
        self._store = store
        self._scorers = scorers
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in scorers}
        self._rate = rate
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
        decisions = [decide(exchange, rate=self._rate, scorers=self._scorers) for exchange in exchanges]
        if decisions:
            self._store.assign(decisions, self._fingerprints)
        for exchange, decision in zip(exchanges, decisions, strict=True):
            if exchange.draw <= self._rate and decision.skip.keys() == self._fingerprints.keys():
                self._attach(exchange, self._skipped(decision))
        return len(exchanges)

    def _skipped(self, decision: Decision) -> list[Score]:
        """Return the scores that release a span which waits for them in vain."""
        now = self._clock()
        return [
            Score(scorer=name, fingerprint=self._fingerprints[name], reason=reason, scored_at=now)
            for name, reason in decision.skip.items()
        ]
