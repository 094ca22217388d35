"""Calibration of each embedder's cosine similarities, measured on scored exchanges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange
from germane.monitor.loop.leases import LeaderLease
from germane.scorers import (
    CALIBRATED_SCORERS,
    MIN_CALIBRATION_EXCHANGES,
    Embedder,
    Scorer,
    distinct_exchanges,
    is_current_calibration,
    measure_cosine_pairs,
)
from germane.storage import AnswerFilter, CalibrationCache, TrackingStore

CHECK_INTERVAL: Final = timedelta(minutes=10)
"""The interval between checks, and the delay before the first check. Each check reloads the stored calibrations."""
MAX_AGE: Final = timedelta(days=7)
"""The age at which a calibration is replaced."""
WINDOW: Final = timedelta(days=30)
MAX_EXCHANGES: Final = 200
"""The maximum number of exchanges to embed per calibration."""
_LOADED_PER_EXCHANGE: Final = 4
"""The number of exchanges to load for each exchange to embed. Exchanges with repeated questions are dropped."""
logger = logging.getLogger("germane.monitor")


class CalibrationJob:
    """Calibrates the embedders of this process's scorers, and loads calibrations made by other processes.

    One process calibrates an embedder as soon as there are 50 scored exchanges with distinct questions, and then once a
    week. Only scored exchanges are embedded, so filters and sample rates also limit the text that embedders receive.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorers: Sequence[Scorer],
        calibrations: CalibrationCache,
        *,
        leader: LeaderLease,
        thread_pool: DaemonThreadPool,
        clock: Callable[[], datetime],
    ) -> None:
        self.stopping = False
        self._store = store
        self._calibrations = calibrations
        self._leader = leader
        self._thread_pool = thread_pool
        self._clock = clock
        self._next_check = clock() + CHECK_INTERVAL
        found: dict[str, tuple[str, Embedder]] = {}
        for scorer in scorers:
            embedder: Embedder | None = getattr(scorer, "embedder", None)
            if scorer.name in CALIBRATED_SCORERS and embedder is not None:
                found.setdefault(embedder.model, (scorer.name, embedder))
        self._embedders: Mapping[str, tuple[str, Embedder]] = found
        """A scorer's name and its embedder, by embedding model."""

    async def run(self) -> None:
        """Run a check if it is due: create missing calibrations, replace old ones, and reload all of them."""
        now = self._clock()
        if self.stopping or not self._embedders or self._next_check - CHECK_INTERVAL <= now < self._next_check:
            return
        self._next_check = now + CHECK_INTERVAL
        for model, (scorer, embedder) in self._embedders.items():
            exchanges = await self._thread_pool.run(partial(self._load_exchanges, model, scorer, now))
            if not exchanges or self.stopping:
                continue
            measured = await measure_cosine_pairs(exchanges, embedder)
            try:
                calibrations = [pairs.to_calibration(now) for pairs in measured]
            except ValueError as error:
                logger.warning(
                    "%s cannot be calibrated, because its similarity is the same for all texts: %s", embedder, error
                )
                continue
            await self._thread_pool.run(partial(self._store.labels.add_calibrations, calibrations))
            for made in calibrations:
                logger.info("labels of %s with the embedder %s are now %s", made.scorer, made.embedder, made)
        await self._thread_pool.run(self._calibrations.reload)

    def _load_exchanges(self, model: str, scorer: str, now: datetime) -> list[Exchange]:
        """Return the exchanges to embed. There are none unless this process is the leader and a calibration is due."""
        if not self._leader.acquire():
            return []
        stored = self._store.labels.list_calibrations()
        if any(
            entry.embedder == model and now - entry.made_at < MAX_AGE and is_current_calibration(entry)
            for entry in stored
        ):
            return []
        chosen = AnswerFilter(scorer=scorer, since=now - WINDOW)
        page = self._store.answers.search(chosen, sort="newest", limit=_LOADED_PER_EXCHANGE * MAX_EXCHANGES)
        # The embedder has never received the texts of scores that were computed outside germane.
        scored = [
            answer.exchange
            for answer in page.answers
            if answer.score is None or answer.score.fingerprint != EXTERNAL_FINGERPRINT
        ]
        exchanges = distinct_exchanges(scored)[:MAX_EXCHANGES]
        return exchanges if len(exchanges) >= MIN_CALIBRATION_EXCHANGES else []
