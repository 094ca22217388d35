"""Calibration: the scale of each embedder's cosines, measured on the exchanges that were scored."""

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
from germane.storage import Answer, AnswerFilter, CalibrationCache, TrackingStore

CHECK_INTERVAL: Final = timedelta(minutes=10)
"""The time between two checks, and before the first. Every process reads the calibrations again at each check."""
MAX_AGE: Final = timedelta(days=7)
"""The age at which a calibration is measured again."""
WINDOW: Final = timedelta(days=30)
MAX_EXCHANGES: Final = 200
"""The number of exchanges that are embedded for one measurement."""
_LOADED_PER_EXCHANGE: Final = 4
"""More exchanges are loaded than embedded, because questions repeat."""
logger = logging.getLogger("germane.monitor")


class CalibrationJob:
    """Calibrates the embedders of this process's scorers, and follows calibrations of other processes.

    One process measures, as soon as there are 50 scored exchanges with different questions, and once a week. Only
    exchanges that were scored are embedded, so that filters and sampling rates also limit what embedders receive.
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
        """A scorer and its embedder, by the embedder's model."""

    async def run(self) -> None:
        """Measure what is missing or older than a week, if a check is due.

        Raises:
            ScoringError: the embedder failed.
            StorageError: the database call failed.
        """
        now = self._clock()
        if self.stopping or not self._embedders or self._next_check - CHECK_INTERVAL <= now < self._next_check:
            return
        self._next_check = now + CHECK_INTERVAL
        for model, (scorer, embedder) in self._embedders.items():
            exchanges = await self._thread_pool.run(partial(self._load_exchanges, model, scorer, now))
            if exchanges and not self.stopping:
                await self._measure(exchanges, embedder, now)
        await self._thread_pool.run(self._calibrations.reload)

    def _load_exchanges(self, model: str, scorer: str, now: datetime) -> list[Exchange]:
        """Return the exchanges to measure; none if there are too few, or if the embedder's calibration is recent."""
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
        scored = [answer.exchange for answer in page.answers if not _is_recorded(answer)]
        exchanges = distinct_exchanges(scored)[:MAX_EXCHANGES]
        return exchanges if len(exchanges) >= MIN_CALIBRATION_EXCHANGES else []

    async def _measure(self, exchanges: Sequence[Exchange], embedder: Embedder, now: datetime) -> None:
        measured = await measure_cosine_pairs(exchanges, embedder)
        try:
            calibrations = [pairs.to_calibration(now) for pairs in measured]
        except ValueError as error:
            logger.warning("%s cannot be calibrated, because it finds all texts equally similar: %s", embedder, error)
            return
        await self._thread_pool.run(partial(self._store.labels.add_calibrations, calibrations))
        for calibration in calibrations:
            logger.info("labels of %s with %s are now %s", calibration.scorer, calibration.embedder, calibration)


def _is_recorded(answer: Answer) -> bool:
    """Return whether the score was computed outside germane, so that the embedder has not received the texts."""
    return answer.score is not None and answer.score.fingerprint == EXTERNAL_FINGERPRINT
