"""Reading and writing people's labels, and the calibrations made from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from germane.annotation import Feedback
from germane.calibration import Calibration
from germane.storage.answers import calibrations, detail
from germane.storage.answers.detail import Disagreement
from germane.storage.db.component import StoreComponent
from germane.storage.queue import feedback
from germane.storage.queue.feedback import LabeledExchange


class LabelReader(StoreComponent):
    """People's labels and calibrations. ``germane.Store(url).labels``."""

    def list_feedback(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[LabeledExchange]:
        """Return labels given since <= created_at < until with their exchanges, newest first.

        Labels whose exchange is not in the database are omitted.
        """
        with self._database.read() as connection:
            return feedback.list_labels(connection, since, until, route, limit)

    def list_calibrations(self) -> list[Calibration]:
        """Return the newest calibration of each embedder and scorer."""
        with self._database.read() as connection:
            return calibrations.list_newest_calibrations(connection)


class LabelStore(LabelReader):
    """Adds writing labels and calibrations, and comparing labels with scores."""

    def add_feedback(self, labels: Sequence[Feedback]) -> None:
        """Write labels, also of exchanges that are not stored yet. Labels whose id exists already are ignored."""
        with self._write_values() as connection:
            feedback.insert_labels(connection, labels)

    def add_calibrations(self, found: Sequence[Calibration]) -> None:
        """Write calibrations. The newest of each embedder and scorer is in effect."""
        with self._write_values() as connection:
            calibrations.insert_calibrations(connection, found)

    def count_disagreements(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        scorer: str | None = None,
        route: str | None = None,
        service: str | None = None,
        fingerprint: str | None = None,
        newest: int = detail.MAX_LABELS_COMPARED,
    ) -> list[Disagreement]:
        """Return how often labels disagree with scores, by scorer and fingerprint.

        The window applies to the answers, not to the labels.

        Args:
            since: Start of the window.
            until: End of the window.
            scorer: Only scores of this scorer.
            route: Only answers of this route.
            service: Only answers of this service.
            fingerprint: Only scores with this fingerprint.
            newest: Maximum number of labels to compare, the newest first.
        """
        equal = {"scorer": scorer, "route": route, "service": service, "fingerprint": fingerprint}
        with self._database.read(snapshot=True) as connection:
            return detail.count_disagreements(connection, since, until, equal, newest)
