"""The sampler, which selects the exchanges to score, and the requeueing of exchanges after feedback.

Exchanges with a low label are requeued and scored, even if sampling skipped them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.sampling.candidate_pool import CandidatePool
from germane.monitor.sampling.eligibility import Eligibility, EligibilityChecker
from germane.score import Score, UnscoredReason
from germane.scorers import Scorer
from germane.storage import SamplingDecision, TrackingStore

EXCHANGES_PER_TRANSACTION: Final = 500
ScoreProxies = Callable[[Sequence[Exchange]], Mapping[str, tuple[float | None, float]]]
"""A function that computes proxy scores. It returns a value (None if not sampled) and an inclusion probability for each
exchange id."""
LABELS_PER_TRANSACTION: Final = 100


class Sampler:
    """Decides, once per exchange, whether to score it. Runs in only one of the processes that share the database.

    If a budget is set, ``sample_rate`` is None, and exchanges enter the candidate pool. While a span is held until its
    scores arrive, at most for ``max_span_delay``, only the process that holds it scores the exchange.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorers: Sequence[Scorer],
        *,
        sample_rate: float | None,
        eligibility: EligibilityChecker,
        pool: CandidatePool,
        score_proxies: ScoreProxies | None = None,
        leader: LeaderLease,
        thread_pool: DaemonThreadPool,
        attach: Callable[[Exchange, Sequence[Score]], object],
        clock: Callable[[], datetime],
        max_span_delay: timedelta = timedelta(0),
    ) -> None:
        self.stopping = False
        self._store = store
        self._max_span_delay = max_span_delay
        self._fingerprints = {scorer.name: scorer.fingerprint for scorer in scorers}
        self._sample_rate = sample_rate
        self._eligibility = eligibility
        self._pool = pool
        self._score_proxies = score_proxies
        self._leader = leader
        self._thread_pool = thread_pool
        self._attach = attach
        self._clock = clock

    async def run(self, on_progress: Callable[[], object] = lambda: None) -> int:
        """Select candidates if an interval has ended, and then decide on all new exchanges.

        ``on_progress`` is called after each transaction, so that scoring can start before the last one.

        Returns:
            The number of exchanges processed.
        """
        total = 0
        # Finish the pool's interval first, because exchanges added before that would be skipped with the unselected
        # ones.
        while not self.stopping and (count := await self._thread_pool.run(self._as_leader, self._pool.run_step)):
            total += count
        while not self.stopping:
            count = await self._thread_pool.run(self._as_leader, self._decide_batch)
            total += count
            if count < EXCHANGES_PER_TRANSACTION:
                break
            on_progress()
        return total

    def _as_leader(self, work: Callable[[], int]) -> int:
        return work() if self._leader.acquire() else 0

    def _decide_batch(self) -> int:
        exchanges = self._store.sampling.list_undecided(EXCHANGES_PER_TRANSACTION)
        proxies = self._score_proxies(exchanges) if self._score_proxies else {}
        decisions: list[SamplingDecision] = []
        for exchange in exchanges:
            if self.stopping:
                break
            self._leader.acquire()  # renew the lease, because it could expire during slow predicates
            decision = decide_sampling(
                exchange,
                sample_rate=self._sample_rate,
                eligibility=self._eligibility.check(exchange),
                scorers=list(self._fingerprints),
            )
            if exchange.id in proxies:
                value, probability = proxies[exchange.id]
                decision = replace(decision, proxy=value, proxy_probability=probability)
            decisions.append(decision)
        holder = self._pool.lease_holder if self._sample_rate is None else None
        if not decisions or not self._store.sampling.assign_tasks(
            decisions, self._fingerprints, holder=holder, max_span_delay=self._max_span_delay
        ):
            return 0
        for exchange, decision in zip(exchanges, decisions, strict=False):
            # The span of a sampled exchange is held until its scores arrive. If there will be none, release it.
            is_held = self._sample_rate is not None and exchange.sampling_key <= self._sample_rate
            if is_held and decision.skip.keys() == self._fingerprints.keys():
                now = self._clock()
                skipped = [
                    Score(scorer=name, fingerprint=self._fingerprints[name], reason=reason, scored_at=now)
                    for name, reason in decision.skip.items()
                ]
                self._attach(exchange, skipped)
        return len(decisions)


def decide_sampling(
    exchange: Exchange, *, sample_rate: float | None, eligibility: Eligibility, scorers: Sequence[str]
) -> SamplingDecision:
    """Return the scorers that skip an exchange, and the exchange's probability of being considered for scoring.

    Exchanges that cannot be scored are not sampled, so missing inputs and incomplete answers are always counted. For an
    exchange that no scorer can score, or that a rule requires to be scored, the probability is the capture probability.
    All other exchanges are sampled by their sampling key, regardless of their content, so that estimates with
    inverse-probability weights are unbiased: an exchange is scored if its key is at most the capture probability and at
    most the sample rate. If there is no sample rate, there is a budget, and the exchange is a candidate until its
    interval ends.
    """

    def decision(reason: str, probability: float | None, skip: Mapping[str, UnscoredReason]) -> SamplingDecision:
        return SamplingDecision(exchange_id=exchange.id, probability=probability, sampling_reason=reason, skip=skip)

    captured, skip = exchange.capture_probability, eligibility.skip_reasons
    if eligibility.always_score:
        return decision("always", captured, skip)
    if len(skip) == len(scorers):
        return decision("sampled", captured, skip)
    if sample_rate is None:
        return decision("candidate", None, skip)
    probability = min(sample_rate, captured) or None  # at a rate of 0, nothing is sampled
    if exchange.sampling_key <= sample_rate:
        return decision("sampled", probability, skip)
    return decision("not_sampled", probability, dict.fromkeys(scorers, UnscoredReason.NOT_SAMPLED) | dict(skip))


class FeedbackRequeue:
    """Requeues exchanges with low labels. Each label is processed once, and only if there are feedback rules.

    With a ``lease_holder``, which a budget requires, requeued exchanges count as selected.
    """

    def __init__(
        self,
        store: TrackingStore,
        eligibility: EligibilityChecker,
        fingerprints: Mapping[str, str],
        *,
        leader: LeaderLease,
        thread_pool: DaemonThreadPool,
        lease_holder: tuple[str, str] | None = None,
    ) -> None:
        self.stopping = False
        self._store = store
        self._rules = eligibility.feedback_rules
        self._fingerprints = fingerprints
        self._leader = leader
        self._thread_pool = thread_pool
        self._lease_holder = lease_holder

    async def run(self) -> int:
        """Process all pending labels, and return the number of tasks that became ready."""
        total, has_more = 0, bool(self._rules)
        while has_more and not self.stopping:
            has_more, ready = await self._thread_pool.run(self._process_batch)
            total += ready
        return total

    def _process_batch(self) -> tuple[bool, int]:
        """Process a batch of labels. Return whether there were any, and the number of tasks that became ready."""
        labels = self._store.sampling.list_pending_feedback(LABELS_PER_TRANSACTION) if self._leader.acquire() else []
        if not labels:
            return False, 0
        requeued = [
            label.exchange.id
            for label in labels
            if any(label.feedback.score < below and rule.matches(label.exchange) for below, rule in self._rules)
        ]
        processed = [label.feedback.id for label in labels]
        ready = self._store.sampling.apply_feedback(processed, requeued, self._fingerprints, holder=self._lease_holder)
        return ready is not None, ready or 0
