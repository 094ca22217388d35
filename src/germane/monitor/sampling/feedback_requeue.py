"""People's labels that ask for a score: what they find bad is scored whatever the draw said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.daemon_pool import Threads
from germane.monitor.loop.leader import Office
from germane.monitor.sampling.eligibility import Fitness
from germane.storage import Labelled, Store

BATCH: Final = 100
"""Labels that are considered in one transaction."""


class Objections:
    """Considers each label once, in the process that samples. Without a rule that asks for it nothing is done.

    Args:
        fingerprints: by name, of the scorers that run.
        holder: under a budget the office and its holder, as what is asked for is then counted as picked.
    """

    def __init__(
        self,
        store: Store,
        fitness: Fitness,
        fingerprints: Mapping[str, str],
        *,
        office: Office,
        threads: Threads,
        holder: tuple[str, str] | None = None,
    ) -> None:
        self.stopping = False
        self._store = store
        self._rules = fitness.on_feedback
        self._fingerprints = fingerprints
        self._office = office
        self._threads = threads
        self._holder = holder

    async def run(self) -> int:
        """Consider all labels that wait for it; return how many tasks became ready."""
        ready, batch = 0, BATCH if self._rules else 0
        while batch == BATCH and not self.stopping:
            batch, more = await self._threads.run(self._consider_batch)
            ready += more
        return ready

    def _consider_batch(self) -> tuple[int, int]:
        """Return how many labels were considered, and how many tasks became ready."""
        labels = self._store.unconsidered_feedback(BATCH) if self._office.held() else []
        if not labels:
            return 0, 0
        asked_for = [label.exchange.id for label in labels if self._asks(label)]
        considered = [one.feedback.id for one in labels]
        ready = self._store.consider(considered, asked_for, self._fingerprints, holder=self._holder)
        return (0, 0) if ready is None else (len(labels), ready)

    def _asks(self, label: Labelled) -> bool:
        return any(label.feedback.score < below and rule.fits(label.exchange) for below, rule in self._rules)
