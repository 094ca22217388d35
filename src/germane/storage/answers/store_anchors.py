"""Anchors: answers that are scored again in every round, so that a change of the judge shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from math import sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import ColumnElement, Connection, Subquery, and_, func, insert, select, update

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.exchange import Exchange
from germane.score import Score
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import EXCHANGES
from germane.storage.db.tables import anchor, anchor_score, exchange, score

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BASELINE_SCORES: Final = 5
"""Number of scores whose mean is an anchor's baseline."""
REPLACEMENT_TIME: Final = timedelta(weeks=10)
"""Shortest time in which all anchors are replaced, one by one. New ones hide a change that has happened."""
MAX_SCORES_READ: Final = 20_000
"""Number of newest scores, of any scorer, among which anchors are drawn."""
MAX_CANDIDATES: Final = 2_000
RECENT_SCORES: Final = 20
"""Number of a scorer's newest scores whose most common fingerprint is the current one."""
MIN_AGREEMENT: Final = 0.8
"""Smallest share of a round's scores by another judge that starts new baselines. A gateway may use several models."""
RoundCause = Literal["daily", "judge_changed", "drop"]
_SPACING: Final = (sqrt(5) - 1) / 2
"""Successive multiples of this number, modulo 1, are evenly spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorStatus:
    """The anchors of one scorer and their newest round."""

    active: int
    """Number of anchors that are scored."""
    ready: int
    """Number of those with a complete baseline."""
    fingerprint: str | None
    """The most common fingerprint of their baselines."""
    round: int = 0
    """Number of the newest round; 0 before the first one."""
    started_at: datetime | None = None
    """Start of the newest round, UTC."""
    pending: int = 0
    """Number of scores that the newest round still lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorRounds:
    """The finished rounds by one judge, as differences from the baselines."""

    fingerprint: str
    judge: str | None
    """Model name that the judge reported."""
    started_at: Sequence[datetime]
    """Start of each round, oldest first; UTC."""
    differences: npt.NDArray[np.float64]
    """Score minus baseline, by round and anchor; NaN if it is missing."""
    baseline_counts: npt.NDArray[np.float64]
    """Number of scores in each anchor's baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChange:
    """The newest change of the fingerprint with which anchors are scored."""

    fingerprints: tuple[str, str]
    """The old and the new one."""
    judges: tuple[str | None, str | None]
    """The old and the new model name that the judge reported."""
    at: datetime
    """Start of the first round by the new judge; UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorPairs:
    """The anchors that two judges have scored, one entry each."""

    old: npt.NDArray[np.float64]
    """Baselines by the old judge."""
    new: npt.NDArray[np.float64]
    """Means of the scores by the new judge."""
    baseline_counts: npt.NDArray[np.float64]
    """Number of scores in each baseline."""


@dataclass(frozen=True, slots=True)
class PendingAnchor:
    """An anchor that the newest round has not scored yet."""

    id: int
    round: int
    exchange: Exchange


class AnchorStore(StoreComponent):
    """Draws, replaces and scores anchors."""

    def list_scorers(self) -> list[str]:
        """Return the names of the scorers that have anchors."""
        query = select(anchor.c.scorer).where(anchor.c.retired_at.is_(None)).distinct().order_by(anchor.c.scorer)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def load_status(self, scorer: str) -> AnchorStatus:
        """Return the number of anchors and the newest round."""
        with self._database.read() as connection:
            return _load_status(connection, scorer)

    def refill(self, scorer: str, size: int, *, text_lifetime: timedelta) -> AnchorStatus:
        """Retire anchors whose text is gone, and draw others in their place.

        All anchors are drawn at once if there are none, and as soon as there are enough answers. Later, they are
        replaced one by one, a tenth within a week; the oldest ones before their text is erased. They are evenly spread
        over the sorted scores of recent answers.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            has_text = and_(exchange.c.id == anchor.c.exchange_id, exchange.c.erased_at.is_(None))
            times = select(anchor.c.id, exchange.c.started_at).outerjoin(exchange, has_text)
            rows = connection.execute(times.where(*_active(scorer))).all()
            kept = sorted((row for row in rows if row.started_at is not None), key=lambda row: row.started_at)
            retired = [row.id for row in rows if row.started_at is None]
            missing = size - len(kept)
            if kept:
                recent = select(anchor.c.id).where(anchor.c.scorer == scorer)
                recent = recent.where(anchor.c.created_at > now - REPLACEMENT_TIME / size)
                is_due = missing > 0 or text_lifetime < REPLACEMENT_TIME
                missing = int(is_due and connection.execute(recent).first() is None)
            drawn = _draw(connection, scorer, missing, now, is_replacing=bool(kept)) if missing > 0 else 0
            retired += [row.id for row in kept[: max(0, len(kept) + drawn - size)]]
            if retired:
                connection.execute(update(anchor).where(anchor.c.id.in_(retired)).values(retired_at=now))
            return _load_status(connection, scorer)

    def has_new_judge(self, scorer: str, known: str) -> bool:
        """Return whether most recent answers were scored by another judge than ``known``, a fingerprint."""
        with self._database.read() as connection:
            return _current_fingerprint(connection, scorer) not in {None, known}

    def count_rounds(self, scorer: str, cause: RoundCause, *, since: datetime) -> int:
        """Return the number of rounds that started for this cause since a time."""
        rounds = _JOINED.where(anchor.c.scorer == scorer, anchor_score.c.started_at >= since)
        rounds = rounds.where(anchor_score.c.cause == cause)
        with self._database.read() as connection:
            return len(set(connection.execute(rounds.with_only_columns(anchor_score.c.round)).scalars()))

    def start_round(self, scorer: str, cause: RoundCause) -> None:
        """Start a round in which all anchors are scored. Scores that the last round still lacks stay missing."""
        with self._database.write() as connection:
            now = self._context.now(connection)
            last = _load_status(connection, scorer).round
            _close_round(connection, scorer, "expired", now)
            new = {"round": last + 1, "started_at": now, "cause": cause, "is_baseline": False}
            ids = connection.execute(select(anchor.c.id).where(*_active(scorer))).scalars()
            connection.execute(insert(anchor_score), [{"anchor_id": id_, **new} for id_ in ids])

    def next_pending(self, scorer: str) -> PendingAnchor | None:
        """Return an anchor that the newest round has not scored; None if the round is complete."""
        query = select(anchor_score.c.anchor_id, anchor_score.c.round, exchange)
        query = query.join_from(anchor_score, anchor, anchor.c.id == anchor_score.c.anchor_id)
        query = query.outerjoin(exchange, exchange.c.id == anchor.c.exchange_id)
        query = query.where(anchor.c.scorer == scorer, anchor_score.c.scored_at.is_(None))
        query = query.order_by(anchor.c.id).limit(1)
        with self._database.write() as connection:
            while (row := connection.execute(query).mappings().first()) is not None:
                if row["id"] is not None and row["erased_at"] is None:
                    return PendingAnchor(row["anchor_id"], row["round"], EXCHANGES.decode(row))
                now = self._context.now(connection)
                _save(connection, row["anchor_id"], row["round"], {"reason": "erased", "scored_at": now})
                _end_round(connection, scorer, row["round"], now)
        return None

    def save_score(self, scorer: str, pending: PendingAnchor, scored: Score) -> None:
        """Save a score, or the reason why it is missing, and include it in an incomplete baseline."""
        with self._database.write() as connection:
            now = self._context.now(connection)
            row = connection.execute(select(anchor).where(anchor.c.id == pending.id).with_for_update()).one()
            count, value = row.baseline_count, scored.value
            is_baseline = False
            if value is not None and count < BASELINE_SCORES and row.fingerprint in {None, scored.fingerprint}:
                is_baseline = True
                mean = ((row.baseline or 0.0) * count + value) / (count + 1)
                changes = {"fingerprint": scored.fingerprint, "baseline": mean, "baseline_count": count + 1}
                connection.execute(update(anchor).where(anchor.c.id == pending.id).values(changes))
            values = {name: getattr(scored, name) for name in ("fingerprint", "judge", "value", "reason")}
            _save(connection, pending.id, pending.round, values | {"is_baseline": is_baseline, "scored_at": now})
            _end_round(connection, scorer, pending.round, now)

    def close_round(self, scorer: str, reason: str) -> None:
        """Give up the scores that the newest round still lacks."""
        with self._database.write() as connection:
            _close_round(connection, scorer, reason, self._context.now(connection))

    def restart(self, scorer: str) -> None:
        """Retire all anchors, so that others are drawn, with new baselines."""
        with self._database.write() as connection:
            now = self._context.now(connection)
            _close_round(connection, scorer, "expired", now)
            connection.execute(update(anchor).where(*_active(scorer)).values(retired_at=now))

    def load_change(self, scorer: str) -> ReportedChange | None:
        """Return the newest change between rounds with nearly all scores by one judge; None if there was no change."""
        names = (anchor_score.c.round, anchor_score.c.fingerprint)
        first, judge = func.min(anchor_score.c.started_at), func.max(anchor_score.c.judge)
        query = _JOINED.with_only_columns(*names, first.label("at"), judge.label("judge"), func.count().label("n"))
        query = query.where(anchor.c.scorer == scorer, anchor_score.c.value.is_not(None)).group_by(*names)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(names[0].desc())).all()
        new = None
        for _, of_round in groupby(rows, key=attrgetter("round")):
            *_, main = found = sorted(of_round, key=attrgetter("n"))
            if main.n < MIN_AGREEMENT * sum(row.n for row in found):
                continue
            if new is not None and main.fingerprint != new.fingerprint:
                fingerprints, judges = (main.fingerprint, new.fingerprint), (main.judge, new.judge)
                return ReportedChange(fingerprints=fingerprints, judges=judges, at=new.at)
            new = main
        return None

    def load_pairs(self, scorer: str, old: str, new: str) -> AnchorPairs | None:
        """Return the anchors with a baseline by ``old`` and scores by ``new``; None during a round."""
        import numpy as np

        scored = func.avg(anchor_score.c.value).label("value")
        means = select(anchor.c.exchange_id, scored).join(anchor, anchor.c.id == anchor_score.c.anchor_id)
        means = means.where(anchor.c.scorer == scorer, anchor_score.c.fingerprint == new).group_by(anchor.c.exchange_id)
        new_means = means.having(scored.is_not(None)).subquery()
        query = select(anchor.c.baseline, anchor.c.baseline_count, new_means.c.value)
        query = query.join(new_means, new_means.c.exchange_id == anchor.c.exchange_id)
        query = query.where(anchor.c.scorer == scorer, anchor.c.fingerprint == old).order_by(anchor.c.id)
        with self._database.read(snapshot=True) as connection:
            rows = connection.execute(query).all()
            if not rows or _load_status(connection, scorer).pending:
                return None
        columns = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
        baselines, counts, values = columns
        return AnchorPairs(old=baselines, new=values, baseline_counts=counts)

    def load_rounds(self, scorer: str) -> AnchorRounds | None:
        """Return the finished rounds by the current judge; None before the first one with a complete baseline."""
        import numpy as np

        with self._database.read(snapshot=True) as connection:
            status = _load_status(connection, scorer)
            first = select(func.min(anchor.c.id)).where(*_active(scorer)).scalar_subquery()
            rows = connection.execute(
                _JOINED.where(
                    anchor.c.scorer == scorer,
                    anchor.c.id >= first,  # without the anchors from before all got a new baseline
                    anchor.c.fingerprint == status.fingerprint,
                    anchor.c.baseline_count >= BASELINE_SCORES,
                    anchor_score.c.fingerprint == anchor.c.fingerprint,
                    ~anchor_score.c.is_baseline,
                    anchor_score.c.value.is_not(None),
                    anchor_score.c.round <= status.round - (status.pending > 0),
                ).order_by(anchor_score.c.round, anchor.c.id)
            ).all()
        if not rows:
            return None
        rounds = {row.round: row.started_at for row in rows}
        counts = {row.anchor_id: row.baseline_count for row in rows}
        at, of = ({key: index for index, key in enumerate(keys)} for keys in (rounds, counts))
        differences = np.full((len(rounds), len(counts)), np.nan)
        for row in rows:
            differences[at[row.round], of[row.anchor_id]] = row.value - row.baseline
        return AnchorRounds(
            fingerprint=rows[-1].fingerprint,
            judge=rows[-1].judge,
            started_at=list(rounds.values()),
            differences=differences,
            baseline_counts=np.array(list(counts.values()), dtype=float),
        )


_JOINED: Final = select(
    anchor_score,
    anchor.c.fingerprint.label("baseline_fingerprint"),
    *(anchor.c[name] for name in ("baseline", "baseline_count", "exchange_id", "created_at", "retired_at")),
).join_from(anchor_score, anchor, anchor.c.id == anchor_score.c.anchor_id)


def _active(scorer: str) -> tuple[ColumnElement[bool], ...]:
    return anchor.c.scorer == scorer, anchor.c.retired_at.is_(None)


def _load_status(connection: Connection, scorer: str) -> AnchorStatus:
    rows = connection.execute(select(anchor.c.fingerprint, anchor.c.baseline_count).where(*_active(scorer))).all()
    fingerprints = Counter(row.fingerprint for row in rows if row.fingerprint is not None)
    newest = select(func.max(anchor_score.c.round)).join(anchor, anchor.c.id == anchor_score.c.anchor_id)
    number = connection.execute(newest.where(anchor.c.scorer == scorer)).scalar_one() or 0
    of_round = connection.execute(_JOINED.where(anchor.c.scorer == scorer, anchor_score.c.round == number)).all()
    return AnchorStatus(
        active=len(rows),
        ready=sum(row.baseline_count >= BASELINE_SCORES for row in rows),
        fingerprint=fingerprints.most_common(1)[0][0] if fingerprints else None,
        round=number,
        started_at=of_round[0].started_at if of_round else None,
        pending=sum(row.scored_at is None for row in of_round),
    )


def _newest_scores() -> Subquery:
    names = ("exchange_id", "scorer", "fingerprint", "value", "started_at")
    columns = [score.c[name] for name in names]
    return select(*columns).order_by(score.c.started_at.desc()).limit(MAX_SCORES_READ).subquery("newest")


def _current_fingerprint(connection: Connection, scorer: str) -> str | None:
    """Return the most common fingerprint of recent scores. Incomplete composite scores have other fingerprints."""
    recent = _newest_scores()
    query = select(recent.c.fingerprint).where(recent.c.scorer == scorer, recent.c.fingerprint != EXTERNAL_FINGERPRINT)
    query = query.order_by(recent.c.started_at.desc()).limit(RECENT_SCORES)
    found = Counter(connection.execute(query).scalars())
    return found.most_common(1)[0][0] if found else None


def _draw(connection: Connection, scorer: str, count: int, now: datetime, *, is_replacing: bool) -> int:
    """Add anchors, evenly spread over the scores of recent answers with text. Return their number: all or none."""
    recent = _newest_scores()
    query = select(recent.c.exchange_id, recent.c.value).join(exchange, exchange.c.id == recent.c.exchange_id)
    query = query.where(
        recent.c.scorer == scorer,
        recent.c.fingerprint == _current_fingerprint(connection, scorer),
        exchange.c.erased_at.is_(None),
    )
    query = query.order_by(recent.c.started_at.desc()).limit(MAX_CANDIDATES)
    used = set(connection.execute(select(anchor.c.exchange_id).where(anchor.c.scorer == scorer)).scalars())
    found = sorted((row.value, row.exchange_id) for row in connection.execute(query))
    ids = [id_ for _, id_ in found if not (is_replacing and id_ in used)]
    if len(ids) < count:
        return 0
    positions = [int((number + len(used) * _SPACING % 1) * len(ids) / count) for number in range(count)]
    new = {"scorer": scorer, "baseline_count": 0, "created_at": now}
    connection.execute(insert(anchor), [{**new, "exchange_id": ids[position]} for position in positions])
    return count


def _save(connection: Connection, anchor_id: int, number: int, values: dict[str, object]) -> None:
    of_round = (anchor_score.c.anchor_id == anchor_id, anchor_score.c.round == number)
    connection.execute(update(anchor_score).where(*of_round).values(values))


def _close_round(connection: Connection, scorer: str, reason: str, now: datetime) -> None:
    ids = select(anchor.c.id).where(anchor.c.scorer == scorer)
    is_open = (anchor_score.c.anchor_id.in_(ids), anchor_score.c.scored_at.is_(None))
    connection.execute(update(anchor_score).where(*is_open).values(reason=reason, scored_at=now))


def _end_round(connection: Connection, scorer: str, number: int, now: datetime) -> None:
    """Start new baselines after the last score of a round if nearly all of its scores are by another judge.

    The retired rows keep the baselines by the old judge, and their scores in this round are by the new one.
    """
    of_round = _JOINED.where(anchor.c.scorer == scorer, anchor_score.c.round == number)
    if connection.execute(of_round.where(anchor_score.c.scored_at.is_(None)).limit(1)).first() is not None:
        return
    scored = connection.execute(of_round.where(anchor_score.c.value.is_not(None))).all()
    if not scored:
        return
    newest, count = Counter(row.fingerprint for row in scored).most_common(1)[0]
    changed = {
        row.anchor_id: {"exchange_id": row.exchange_id, "baseline": row.value, "created_at": row.created_at}
        for row in scored
        if row.fingerprint == newest and row.baseline_fingerprint != newest and row.retired_at is None
    }
    if count < MIN_AGREEMENT * len(scored) or not changed:
        return
    new = {"scorer": scorer, "fingerprint": newest, "baseline_count": 1}
    connection.execute(update(anchor).where(anchor.c.id.in_(changed)).values(retired_at=now))
    connection.execute(insert(anchor), [new | values for values in changed.values()])
