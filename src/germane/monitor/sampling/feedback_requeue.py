"""Requeueing by feedback: exchanges with a low label are scored even if sampling had skipped them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.loop.leader import LeaderLease
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.storage import TrackingStore

LABELS_PER_TRANSACTION: Final = 100


class FeedbackRequeue:
    """Processes each label once, in the process that samples. Without a feedback rule it does nothing.

    Args:
        fingerprints: The fingerprints of the running scorers, by name.
        lease_holder: Under a budget, the lease and its holder: requeued exchanges then count as selected.
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
        """Process all pending labels; return the number of tasks that became ready."""
        total, labels = 0, LABELS_PER_TRANSACTION if self._rules else 0
        while labels == LABELS_PER_TRANSACTION and not self.stopping:
            labels, ready = await self._thread_pool.run(self._process_batch)
            total += ready
        return total

    def _process_batch(self) -> tuple[int, int]:
        """Return the number of processed labels and of tasks that became ready."""
        labels = self._store.sampling.list_pending_feedback(LABELS_PER_TRANSACTION) if self._leader.acquire() else []
        if not labels:
            return 0, 0
        requeued = [
            label.exchange.id
            for label in labels
            if any(label.feedback.score < below and rule.matches(label.exchange) for below, rule in self._rules)
        ]
        processed = [label.feedback.id for label in labels]
        ready = self._store.sampling.apply_feedback(processed, requeued, self._fingerprints, holder=self._lease_holder)
        return (0, 0) if ready is None else (len(labels), ready)
