"""Floors of cosines, as the scorers of one process know them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from germane.calibration import Calibration
from germane.errors import StorageError
from germane.storage.store import Store

logger = logging.getLogger("germane.storage")


class Floors(Mapping[tuple[str, str], Calibration]):
    """Floors of cosines by embedder and scorer: read for the first score, since then the database is there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], Calibration] | None = None
        self._told = False

    def __getitem__(self, key: tuple[str, str]) -> Calibration:
        return self._read()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[tuple[str, str], Calibration]:
        if self._known is None:
            try:
                self._known = {(one.embedder, one.scorer): one for one in self._store.calibrations()}
            except StorageError as error:
                if not self._told:
                    self._told = True
                    logger.warning("labels are not calibrated until the database can be read: %s", error)
                return {}
        return self._known
