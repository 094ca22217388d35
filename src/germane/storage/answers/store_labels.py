"""Human labels, and calibrations for cosine scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, update

from germane.annotation import Feedback, mean_label
from germane.calibration import Calibration
from germane.sanitize import clean_text
from germane.score import Score
from germane.storage.answers.lowest_scores import ScoreFilter
from germane.storage.archive.reader import open_exchanges, open_labeled
from germane.storage.counts.dirty_hours import mark_dirty
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import HAS_SCORE_KEY, RecordMapper, batched
from germane.storage.db.tables import calibration, exchange, feedback, score
from germane.storage.queue.feedback import LABELS, LabeledExchange, select_labels
from germane.storage.sink_items import mark_for_sinks

NEUTRAL_LABEL: Final = 0.5
"""Labels above this value mark an answer as good, labels below it as bad. Labels equal to it are ignored."""
MAX_LABELS_COMPARED: Final = 20_000
"""Maximum number of labels to compare, newest first."""
CALIBRATIONS: Final = RecordMapper(calibration, Calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """How often labels disagree with scores, for one fingerprint.

    An answer's label is the mean of each person's latest label. Answers whose label is exactly 0.5 are ignored.
    """

    scorer: str
    fingerprint: str
    labeled: int
    """Number of scored answers with a label other than 0.5."""
    too_low: int
    """Number of answers labeled good whose score is low."""
    too_high: int
    """Number of answers labeled bad whose score is not low."""

    @property
    def count(self) -> int:
        """Total number of disagreements."""
        return self.too_low + self.too_high


class LabelReader(StoreComponent):
    """Reads human labels and calibrations: ``germane.Store(url).labels``."""

    def list_feedback(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[LabeledExchange]:
        """Return labels with their exchanges, newest first, for ``since <= created_at < until``.

        Labels whose exchange is not in the database are omitted.
        """
        created_at = feedback.c.created_at
        conditions = [*within(created_at, since, until), *matching(exchange, route=route)]
        with self._database.read() as connection:
            return select_labels(connection, *conditions, order=(created_at.desc(), feedback.c.id.desc()), limit=limit)

    def list_calibrations(self) -> list[Calibration]:
        """Return the newest calibration for each embedder and scorer."""
        query = select(calibration).order_by(calibration.c.made_at, calibration.c.id)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        newest = {(row["embedder"], row["scorer"]): CALIBRATIONS.decode(row) for row in rows}
        return [entry for _, entry in sorted(newest.items(), key=itemgetter(0))]


class LabelStore(LabelReader):
    """Extends :class:`LabelReader` with writes, and with comparisons of labels and scores."""

    def add_feedback(self, labels: Sequence[Feedback]) -> None:
        """Store labels. Their exchanges do not have to be stored yet. Labels with an existing id are ignored."""
        with self._write_values() as connection:
            LABELS.insert(connection, labels)
            mark_for_sinks(connection, [clean_text(label.exchange_id) for label in labels])

    def add_calibrations(self, calibrations: Sequence[Calibration]) -> None:
        """Store calibrations. Older ones are kept; the newest for each embedder and scorer is in effect."""
        with self._write_values() as connection:
            CALIBRATIONS.insert(connection, calibrations)

    def update_labels(self, scores: Sequence[tuple[str, Score]]) -> int:
        """Store the label, explanation and details of existing scores, given with the ids of their exchanges.

        Scores that have been replaced in the meantime, and scores of exchanges whose text has been erased, do not
        change. Returns the number of updated scores.
        """
        by_exchange: dict[str, list[Score]] = {}
        for exchange_id, scored in scores:
            by_exchange.setdefault(exchange_id, []).append(scored)
        updated = 0
        for ids in batched(sorted(by_exchange)):
            with self._write_values() as connection:
                # Erasure locks the exchanges in the same order, so that no erased text is stored again.
                kept = select(exchange.c.id, exchange.c.started_at).order_by(exchange.c.id).with_for_update()
                kept = kept.where(exchange.c.id.in_(ids), exchange.c.erased_at.is_(None))
                for row in connection.execute(kept).all():
                    for scored in by_exchange[row.id]:
                        updated += connection.execute(
                            _UPDATE_LABEL,
                            {
                                "of": row.id,
                                "by": scored.scorer,
                                "made": scored.fingerprint,
                                "measured": scored.value,
                                "new_label": clean_text(scored.label),
                                "new_explanation": clean_text(scored.explanation),
                                "new_details": dict(scored.details),
                            },
                        ).rowcount
                    mark_dirty(connection, [row.started_at])
                    mark_for_sinks(connection, [row.id])
        return updated

    def count_disagreements(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        scorer: str | None = None,
        route: str | None = None,
        service: str | None = None,
        fingerprint: str | None = None,
        newest: int = MAX_LABELS_COMPARED,
    ) -> list[Disagreement]:
        """Count disagreements between labels and scores, one entry per scorer and fingerprint.

        The window applies to the answers, not to the labels. At most the ``newest`` labels are compared. Of archived
        answers, those of the newest days are compared.
        """
        chosen = ScoreFilter(
            since=since, until=until, scorer=scorer, service=service, route=route, fingerprint=fingerprint
        )
        columns = (score.c.exchange_id, score.c.scorer, score.c.fingerprint, score.c.value, score.c.label)
        labeled, too_low, too_high = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        with self._database.read(snapshot=True) as connection:
            labels = _load_mean_labels(connection, since, until, newest)
            decided = dict.fromkeys(sorted(id_ for id_, label in labels.items() if label != NEUTRAL_LABEL))
            with open_exchanges(connection, decided, since=since, until=until) as sources:
                for source, ids in [(source, batch) for source, found in sources for batch in batched(found)]:
                    scores = select(*columns).where(score.c.exchange_id.in_(ids), *chosen.conditions())
                    for row in source.execute(scores):
                        scored = Score(scorer=row.scorer, fingerprint=row.fingerprint, value=row.value, label=row.label)
                        is_good = labels[row.exchange_id] > NEUTRAL_LABEL
                        key = (row.scorer, row.fingerprint)
                        labeled[key] += 1
                        too_low[key] += is_good and scored.is_low
                        too_high[key] += not is_good and not scored.is_low
        return [
            Disagreement(scorer=key[0], fingerprint=key[1], labeled=n, too_low=too_low[key], too_high=too_high[key])
            for key, n in sorted(labeled.items())
        ]


def _load_mean_labels(
    connection: Connection, since: datetime | None, until: datetime | None, newest: int
) -> dict[str, float]:
    """Return the mean of each person's latest label by exchange id, for the ``newest`` labels."""
    query = select(feedback.c.id, feedback.c.exchange_id, feedback.c.user, feedback.c.score)
    query = query.order_by(feedback.c.created_at.desc(), feedback.c.id.desc()).limit(newest)
    rows = list(connection.execute(query))
    with open_labeled(connection, since, until, count=newest) as archive:
        rows += [] if archive is None else archive.execute(query)
    labels: dict[str, list[Any]] = {}
    for row in reversed(rows):
        labels.setdefault(row.exchange_id, []).append(row)
    return {exchange_id: mean_label(oldest_first) for exchange_id, oldest_first in labels.items()}


_UPDATE_LABEL: Final = (
    update(score)
    .where(HAS_SCORE_KEY, score.c.value == bindparam("measured"))
    .values(
        label=bindparam("new_label"),
        explanation=bindparam("new_explanation"),
        details=bindparam("new_details", type_=score.c.details.type),
    )
)
