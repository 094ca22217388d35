"""Calibrations of a tracking database, cached for the scorers of one process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from germane.calibration import Calibration
from germane.errors import StorageError
from germane.storage.tracking_store import TrackingStore

logger = logging.getLogger("germane.storage")


class CalibrationCache(Mapping[tuple[str, str], Calibration]):
    """Calibrations by embedder and scorer. They are loaded once, for the first score; empty until that succeeds."""

    def __init__(self, store: TrackingStore) -> None:
        self._store = store
        self._calibrations: dict[tuple[str, str], Calibration] | None = None
        self._has_warned = False

    def __getitem__(self, key: tuple[str, str]) -> Calibration:
        return self._load()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def _load(self) -> dict[tuple[str, str], Calibration]:
        if self._calibrations is None:
            try:
                stored = self._store.labels.list_calibrations()
            except StorageError as error:
                if not self._has_warned:
                    self._has_warned = True
                    logger.warning("labels are not calibrated until the database is readable: %s", error)
                return {}
            self._calibrations = {(one.embedder, one.scorer): one for one in stored}
        return self._calibrations
