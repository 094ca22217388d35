"""Which exchanges are worth a judge's time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from germane.daemon_pool import Threads
from germane.exchange import Exchange
from germane.monitor.loop.leader import Office
from germane.monitor.sampling.candidate_pool import Pool
from germane.monitor.sampling.eligibility import Fit, Fitness
from germane.score import Reason, Score
from germane.scorers import Scorer
from germane.storage import Decision, Store

BATCH: Final = 500
"""Exchanges decided on in one transaction."""
Proxies = Callable[[Sequence[Exchange]], Mapping[str, tuple[float | None, float]]]
"""Makes the free local scores: returns by id the value, None outside the part that has one, and the probability of
being in that part."""


def decide(exchange: Exchange, *, rate: float | None, fit: Fit, scorers: Sequence[str]) -> Decision:
    """Say which scorers skip an exchange and why, and how probable it was that it is looked at.

    What cannot be scored is not left to the draw: an input that is missing, or an answer that was cut short, is counted
    whenever it comes. An exchange that no scorer can take was thus sure to be looked at if it was kept, as was one that
    a rule asks for. For any other the draw alone decides, whatever stands in it, so that weighting by the inverse of
    its probability is unbiased: it was drawn if its draw is under both the capture limit's part and the rate. Without
    a rate there is a budget: it waits as a candidate, until its interval ends.
    """
    kept = exchange.capture_probability
    if fit.always:
        return Decision(exchange_id=exchange.id, probability=kept, sampling_reason="always", skip=fit.unfit)
    if len(fit.unfit) == len(scorers):
        return Decision(exchange_id=exchange.id, probability=kept, sampling_reason="drawn", skip=fit.unfit)
    if rate is None:
        return Decision(exchange_id=exchange.id, probability=None, sampling_reason="candidate", skip=fit.unfit)
    probability = min(rate, kept) or None  # at a rate of 0 nothing is drawn
    if exchange.sampling_key <= rate:
        return Decision(exchange_id=exchange.id, probability=probability, sampling_reason="drawn", skip=fit.unfit)
    rest = dict.fromkeys(scorers, Reason.NOT_DRAWN) | dict(fit.unfit)
    return Decision(exchange_id=exchange.id, probability=probability, sampling_reason="not_drawn", skip=rest)


class Sampling:
    """Decides on every exchange once, in one elected process of all that share the database.

    Args:
        rate: None under a budget, where candidates wait in the pool.
    """

    def __init__(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        *,
        rate: float | None,
        fitness: Fitness,
        pool: Pool,
        proxies: Proxies | None = None,
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
        self._pool = pool
        self._proxies = proxies
        self._office = office
        self._threads = threads
        self._attach = attach
        self._clock = clock

    async def run(self) -> int:
        """Draw from the pool what is due, and decide on all exchanges that wait for it; return how many it was."""
        done = 0
        # First, and to its end: what comes into the pool meanwhile would be passed over with the rest.
        while not self.stopping and (some := await self._threads.run(self._in_office, self._pool.step)):
            done += some
        while not self.stopping:
            batch = await self._threads.run(self._in_office, self._decide_batch)
            done += batch
            if batch < BATCH:
                break
        return done

    def _in_office(self, work: Callable[[], int]) -> int:
        return work() if self._office.held() else 0

    def _decide_batch(self) -> int:
        exchanges = self._store.unsampled(BATCH)
        decisions = self._decisions(exchanges)
        holder = self._pool.holder if self._rate is None else None
        if not decisions or not self._store.assign(decisions, self._fingerprints, holder=holder):
            return 0
        for exchange, decision in zip(exchanges, decisions, strict=False):
            held = self._rate is not None and exchange.sampling_key <= self._rate
            if held and decision.skip.keys() == self._fingerprints.keys():
                self._attach(exchange, self._skipped(decision))
        return len(decisions)

    def _decisions(self, exchanges: Sequence[Exchange]) -> list[Decision]:
        """Decide on exchanges, one after the other; on all of them, unless it is to stop."""
        proxies = self._proxies(exchanges) if self._proxies else {}
        found: list[Decision] = []
        for exchange in exchanges:
            if self.stopping:
                break
            self._office.held()  # renewed on the way: predicates may take their time, and others would begin anew
            fit = self._fitness.of(exchange)
            decision = decide(exchange, rate=self._rate, fit=fit, scorers=list(self._fingerprints))
            value, probability = proxies.get(exchange.id, (None, None))
            found.append(replace(decision, proxy=value, proxy_probability=probability))
        return found

    def _skipped(self, decision: Decision) -> list[Score]:
        """Return the scores that release a span which waits for them in vain."""
        now = self._clock()
        return [
            Score(scorer=name, fingerprint=self._fingerprints[name], reason=reason, scored_at=now)
            for name, reason in decision.skip.items()
        ]
