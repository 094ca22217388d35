"""The sampler's access to exchanges, candidates and feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.cluster import leases
from germane.storage.db.component import StoreComponent
from germane.storage.queue import assign, candidates, erase_text, feedback_requeue, health
from germane.storage.queue.assign import SamplingDecision
from germane.storage.queue.candidates import Candidate, SamplerStep, SelectedCandidate
from germane.storage.queue.feedback import LabeledExchange
from germane.storage.queue.health import SamplingSummary
from germane.storage.quota import budget_ledger


class SamplingStore(StoreComponent):
    """Sampling decisions and the candidate pool of a budget.

    Under a budget one process at a time samples: the holder of the sampler's lease. Methods that take a ``step`` or a
    ``holder`` write nothing if another process holds the lease by then.
    """

    def list_undecided(self, limit: int) -> list[Exchange]:
        """Return up to ``limit`` exchanges without a sampling decision, oldest first."""
        with self._database.read() as connection:
            return assign.list_undecided(connection, limit)

    def assign_tasks(
        self,
        decisions: Sequence[SamplingDecision],
        scorers: Mapping[str, str],
        *,
        holder: tuple[str, str] | None = None,
    ) -> bool:
        """Write sampling decisions and their tasks. Existing decisions and tasks are left alone.

        Args:
            decisions: One per exchange.
            scorers: Fingerprints by scorer name.
            holder: Under a budget, the lease and its required owner. Exchanges that a rule selects then count as
                selected.

        Returns:
            False if another process holds the lease; nothing is written then.
        """
        with self._database.write() as connection:
            if holder is not None and not leases.lock_lease(connection, *holder):
                return False
            now = self._context.now(connection)
            selected = assign.assign_tasks(connection, self._context.process, decisions, scorers, now)
            if self._context.erase_after_scoring:
                erase_text.erase_closed_exchanges(connection, [decision.exchange_id for decision in decisions], now)
            if holder is not None and selected:
                budget_ledger.count_selected(connection, selected, now)
        return True

    def load_cursor(self, lease: str) -> str | None:
        """Return the position that the holder of a lease has reached; None before its first step."""
        with self._database.read() as connection:
            return leases.load_cursor(connection, lease)

    def save_cursor(self, step: SamplerStep) -> bool:
        """Save the position that the holder of a lease has reached."""
        with self._database.write() as connection:
            return leases.save_cursor(connection, step.lease, step.owner, step.cursor)

    def list_candidates(self, limit: int, *, after: Candidate | None = None) -> list[Candidate]:
        """Return up to ``limit`` candidates after ``after``, oldest first, without their texts."""
        with self._database.read() as connection:
            return candidates.list_candidates(connection, limit, after)

    def select_candidates(self, step: SamplerStep, picks: Sequence[SelectedCandidate]) -> bool:
        """Make the tasks of selected candidates ready and count them. Exchanges that are no longer candidates stay."""
        with self._database.write() as connection:
            return candidates.select_candidates(connection, step, picks, self._context.now(connection))

    def skip_candidates(self, step: SamplerStep, passed: Mapping[str, float | None], reason: UnscoredReason) -> bool:
        """Skip candidates with one reason; ``passed`` maps exchange id to the probability of having been selected."""
        with self._database.write() as connection:
            closed = candidates.skip_candidates(connection, self._context.process, step, passed, reason)
            if closed and self._context.erase_after_scoring:
                erase_text.erase_closed_exchanges(connection, closed, self._context.now(connection))
        return closed is not None

    def count_in_progress(self) -> int:
        """Return the number of exchanges with ready, postponed or running tasks, without candidates."""
        with self._database.read() as connection:
            return candidates.count_in_progress(connection)

    def list_pending_feedback(self, limit: int) -> list[LabeledExchange]:
        """Return up to ``limit`` labels that :meth:`apply_feedback` has not processed, oldest first.

        A label is listed once its exchange is stored and has a sampling decision.
        """
        with self._database.read() as connection:
            return feedback_requeue.list_pending_feedback(connection, limit)

    def apply_feedback(
        self,
        feedback_ids: Sequence[str],
        scored: Sequence[str],
        scorers: Mapping[str, str],
        *,
        holder: tuple[str, str] | None = None,
    ) -> int | None:
        """Mark labels as processed and queue their exchanges that sampling or the budget had skipped.

        Two transactions. If the second one fails, the labels remain pending.

        Args:
            feedback_ids: The processed labels.
            scored: Exchanges to score whatever sampling decided. Erased exchanges are left alone. With
                ``erase_after_scoring``, so are exchanges with a final decision: their text may be gone.
            scorers: Fingerprints by scorer name. Tasks of other fingerprints are left alone.
            holder: Under a budget, the lease and its required owner. Newly ready tasks then count as selected.

        Returns:
            The number of tasks that became ready; None if another process holds the lease: nothing is processed then.
        """
        with self._database.write() as connection:
            if holder is not None and not leases.lock_lease(connection, *holder):
                return None
            feedback_requeue.force_sampling(connection, scored, drawn=not self._context.erase_after_scoring)
        with self._database.write() as connection:
            if holder is not None and not leases.lock_lease(connection, *holder):
                return None
            now = self._context.now(connection)
            ready = feedback_requeue.queue_skipped_tasks(connection, self._context.process, scored, scorers, now)
            feedback_requeue.mark_processed(connection, feedback_ids, now)
            if holder is not None and ready:
                budget_ledger.count_selected(connection, len(ready), now)
            return ready.total()

    def load_summary(self, *, newest: int = 1000) -> SamplingSummary:
        """Return how the newest exchanges were sampled and whether their text was kept."""
        with self._database.read() as connection:
            return health.summarize_sampling(connection, newest)
