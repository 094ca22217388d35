"""Scores for the drop detectors, and the detector states.

New scores go through a queue table instead of being read with a cursor over ids, because PostgreSQL transactions can
commit in a different order than their ids. Processed scores are deleted in the transaction that writes the detector
states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Select, func, or_, select, tuple_, update

from germane.sanitize import clean_text
from germane.score import NONCOMMITTAL, Score
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import TimestampEncoder, batched, bulk_insert
from germane.storage.db.tables import detector, detector_input, exchange, score
from germane.storage.db.upsert import insert_into

UNBIASED_REASONS: Final = ("sampled", "uniform", "route_floor")
"""Sampling reasons that do not depend on how good an answer looked. Other reasons would bias the detectors."""
MAX_SCORING_DELAY: Final = timedelta(days=2)
"""Maximum time from answer to score for past scores, which are looked up by answer time."""
FETCH_SIZE: Final = 5000
"""Number of rows per fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorScore:
    """A score with the values that the detectors process."""

    id: int
    """Id of the queue entry, or of the score itself for past scores."""
    service: str
    route: str
    scorer: str
    fingerprint: str
    exchange_id: str
    value: float
    is_zero: bool
    """Whether the answer is noncommittal or the score is at most 0."""
    arrived_at: datetime
    """UTC."""
    answered_at: datetime
    """Time of the answer; UTC. With a backlog or a budget, scores arrive long after their answers."""
    user: str | None = None
    """Id of the user who asked, or of the session if the user is unknown."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """The exchange's attributes, if requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorScoreQuery:
    """Selects the scores for one service, scorer and fingerprint that arrived in ``since <= arrived_at < until``."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    until: datetime
    by_answer: bool = False
    """Whether the window applies to the times of the answers instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorState:
    """The state of one detector, which covers one rule, service and scorer.

    The state is written in the same transaction as the alerts that result from it; see :meth:`AlertStore.commit`.
    """

    rule: str
    service: str
    scorer: str
    parameters: str
    """Hash of the rule's settings. If they change, the detector starts over."""
    baseline_id: int
    """Id of the baseline version in use."""
    state: Mapping[str, Any]
    """The state as JSON. Floats are stored without loss of precision."""
    log_evidence: float | None = None
    """None before the first score."""
    seen_at: datetime | None = None
    """Time of the newest answer whose score has been processed; UTC."""
    row_version: int = 0
    """Number of writes when the state was read; 0 for a new state."""

    def write(self, connection: Connection, now: datetime) -> bool:  # noqa: ARG002 - interface of ConditionalWrite
        """Write the state. Return False if another process has changed it since it was read."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "row_version": self.row_version + 1
        }
        if not self.row_version:
            statement = (
                insert_into(detector, connection.dialect.name)
                .values(values)
                .on_conflict_do_nothing()
                .returning(detector.c.rule)
            )
            return connection.execute(statement).first() is not None
        key = (detector.c.rule == self.rule, detector.c.service == self.service, detector.c.scorer == self.scorer)
        moved = update(detector).where(*key, detector.c.row_version == self.row_version).values(values)
        return connection.execute(moved).rowcount == 1


_COLUMNS: Final = ("service", "route", "scorer", "fingerprint", "exchange_id", "value", "is_zero", "arrived_at")
_ANSWERED: Final = func.coalesce(exchange.c.started_at, detector_input.c.arrived_at).label("answered_at")
_USER: Final = func.coalesce(exchange.c.user, exchange.c.session).label("user")
_STATE_KEY: Final = (detector.c.rule, detector.c.service, detector.c.scorer)


class DetectorStore(StoreComponent):
    """Reads scores for the detectors, and the detector states."""

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:
        """Return up to ``limit`` scores that the detectors have not processed yet, in order of arrival."""
        columns = [detector_input.c.id, *(detector_input.c[name] for name in _COLUMNS), _ANSWERED, _USER]
        query = select(*columns, *([exchange.c.attributes] if attributes else []))
        query = query.outerjoin_from(detector_input, exchange, exchange.c.id == detector_input.c.exchange_id)
        query = query.where(detector_input.c.id > 0).order_by(detector_input.c.id).limit(limit)
        with self._database.read() as connection:
            result = connection.execute(query)
            names = tuple(result.keys())
            return [
                DetectorScore(**{name: value for name, value in zip(names, row, strict=True) if value is not None})
                for row in result
            ]

    def list_past_scores(
        self, sought: DetectorScoreQuery, chosen: Callable[[str], bool] = lambda _: True, *, attributes: bool = False
    ) -> list[DetectorScore]:
        """Return past scores in order of arrival.

        As in :meth:`list_new_scores`, scores are excluded if their sampling depended on how good the answer looked.
        ``chosen`` decides by exchange id whether to include a score.
        """
        columns = [
            score.c.id,
            score.c.exchange_id,
            score.c.route,
            score.c.value,
            score.c.label,
            score.c.started_at,
            score.c.scored_at,
            _USER,
        ]
        query = _select_past(sought, *columns, *([exchange.c.attributes] if attributes else []))
        with self._database.read() as connection:
            rows = connection.execute(query, execution_options={"yield_per": FETCH_SIZE})
            scores = [
                DetectorScore(
                    id=row.id,
                    service=sought.service,
                    route=row.route,
                    scorer=sought.scorer,
                    fingerprint=sought.fingerprint,
                    exchange_id=row.exchange_id,
                    value=row.value,
                    is_zero=row.value <= 0 or row.label == NONCOMMITTAL,
                    arrived_at=row.scored_at,
                    answered_at=row.started_at,
                    user=row.user,
                    attributes=row.attributes if attributes else {},
                )
                for row in rows
                if chosen(row.exchange_id)
            ]
        return sorted(scores, key=lambda score: (score.arrived_at, score.id))

    def count_past_scores(self, sought: DetectorScoreQuery) -> int:
        """Return the number of scores that :meth:`list_past_scores` would return."""
        with self._database.read() as connection:
            return int(connection.execute(_select_past(sought, func.count())).scalar_one())

    def first_score_times(self, sought: DetectorScoreQuery) -> tuple[datetime, datetime] | None:
        """Return the earliest answer time and the earliest arrival time of past scores, or None without scores."""
        query = _select_past(sought, func.min(score.c.started_at), func.min(score.c.scored_at))
        with self._database.read() as connection:
            answered, arrived = connection.execute(query).one()
        return None if arrived is None else (answered, arrived)

    def most_common_release(self, sought: DetectorScoreQuery) -> tuple[str | None, str | None]:
        """Return the application's most common (model, prompt version) pair in the window."""
        columns = (exchange.c.model, exchange.c.prompt_version)
        query = _select_past(sought, *columns).group_by(*columns).order_by(func.count().desc(), *columns).limit(1)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return (None, None) if row is None else (row.model, row.prompt_version)

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:
        """Return the states of all detectors. :meth:`AlertStore.commit` writes changed states.

        ``known`` is the result of an earlier call; unchanged states are not fetched again.
        """
        before = {(state.rule, state.service, state.scorer, state.row_version): state for state in known}
        versions = select(*_STATE_KEY, detector.c.row_version).order_by(*_STATE_KEY)
        with self._database.read() as connection:
            current = [tuple(row) for row in connection.execute(versions)]
            states = {row[:3]: before[row] for row in current if row in before}
            for keys in batched([row[:3] for row in current if row not in before]):
                rows = connection.execute(select(detector).where(tuple_(*_STATE_KEY).in_(keys))).mappings()
                states |= {(row["rule"], row["service"], row["scorer"]): DetectorState(**row) for row in rows}
        return [states[row[:3]] for row in current if row[:3] in states]


def insert_scores(
    connection: Connection, results: Iterable[tuple[RowMapping, Score]], now: datetime, stamp: TimestampEncoder
) -> None:
    """Queue new scores for the detectors, except those whose sampling would bias the detectors, and those of answers
    that are too old to say anything about the present, such as pulled or imported ones.

    Each score comes with the row of its task. Those without ``scored_at`` arrive at ``now``.
    """
    rows = [
        (
            row["service"],
            row["route"],
            clean_text(result.scorer),
            clean_text(result.fingerprint),
            row["exchange_id"],
            value := float(result.value or 0.0),
            value <= 0 or result.label == NONCOMMITTAL,
            stamp(result.scored_at or now),
        )
        for row, result in results
        if row["sampling_reason"] in UNBIASED_REASONS and row["started_at"] > now - MAX_SCORING_DELAY
    ]
    bulk_insert(connection, detector_input, _COLUMNS, rows)


def _select_past(sought: DetectorScoreQuery, *columns: Any) -> Select[Any]:
    if sought.by_answer:
        window = within(score.c.started_at, sought.since, sought.until)
    else:
        # The index is on the answer time, which always precedes the time of the score.
        window = [
            *within(score.c.started_at, sought.since - MAX_SCORING_DELAY, sought.until + timedelta(minutes=5)),
            *within(score.c.scored_at, sought.since, sought.until),
        ]
    return (
        select(*columns)
        .select_from(score.join(exchange, exchange.c.id == score.c.exchange_id))
        .where(
            *window,
            *matching(score, scorer=sought.scorer, service=sought.service, fingerprint=sought.fingerprint),
            or_(*(exchange.c.sampling_reason == reason for reason in UNBIASED_REASONS)),
        )
    )
