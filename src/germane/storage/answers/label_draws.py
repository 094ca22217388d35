"""Answers drawn at random to be labeled, and the labels that people gave them.

A wave is a sample of the answers of one window, drawn at once. Only its labels are a random sample: other labels, such
as those from the list of answers, belong to no wave.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from sqlalchemy import Connection, and_, case, delete, func, insert, or_, select, text, update

from germane.annotation import EXTERNAL_FINGERPRINT, Feedback, mean_label
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.storage.answers.detail import load_all_labels
from germane.storage.archive.reader import open_exchanges
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import Conditions, count_rows, matching, within
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import EXCHANGES, MAX_IDS_PER_STATEMENT, batched
from germane.storage.db.tables import exchange, feedback, label_draw, score
from germane.storage.sink_items import mark_for_sinks

if TYPE_CHECKING:
    import numpy as np

Verdict = Literal["answers", "partly", "does_not", "cannot_tell", "skipped"]
VERDICT_SCORES: Final[Mapping[Verdict, float]] = {"answers": 1.0, "partly": 0.5, "does_not": 0.0}
"""The labels of verdicts. The other verdicts settle a drawn answer without a label."""
Stratum = tuple[str, str]
"""A service and a route."""
MAX_DRAWN: Final = MAX_IDS_PER_STATEMENT
"""Maximum number of answers in a wave."""
ROWS_READ: Final = 20_000
"""Number of scores that are in memory at once while the population is read."""
_LOCK: Final = 0x6765726D31
"""Key of the lock under which PostgreSQL writes a wave: "germ1". SQLite allows only one writer anyway."""
_STATES: Final = ("labeled", "cannot_tell", "skipped", "open", "erased")
_OPEN: Final = label_draw.c.state == "open"
_HAS_TEXT: Final = exchange.c.erased_at.is_(None)
_LABEL: Final = select(feedback.c.id).where(
    feedback.c.exchange_id == label_draw.c.exchange_id, feedback.c.wave == label_draw.c.wave
)
# Not EXISTS, for which PostgreSQL may read and hash all labels.
_HAS_LABEL: Final = _LABEL.limit(1).scalar_subquery().is_not(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPopulation:
    """The answers from which a wave is drawn: scored by one scorer, with ``since <= started_at < until``.

    All of them have the scorer's newest fingerprint, which is that of external scores only if there are no others.
    """

    since: datetime
    until: datetime
    scorer: str
    service: str | None = None
    route: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCounts:
    """Numbers of drawn answers by state, of a route or of a whole wave."""

    service: str = ""
    route: str = ""
    labeled: int = 0
    cannot_tell: int = 0
    skipped: int = 0
    open: int = 0
    """Number of answers that nobody has labeled or skipped yet."""
    erased: int = 0
    """Number of answers whose text was erased before that."""

    @property
    def settled(self) -> int:
        """Number of answers that people have labeled, could not judge or skipped."""
        return self.labeled + self.cannot_tell + self.skipped

    @property
    def size(self) -> int:
        """Number of drawn answers. Deleting answers makes it smaller; nothing makes it larger."""
        return self.settled + self.open + self.erased


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelWave:
    """A wave and its progress."""

    id: str
    scorer: str
    fingerprint: str
    since: datetime
    until: datetime
    drawn_at: datetime
    routes: Sequence[DrawnCounts]
    """Sorted by service and route."""

    @property
    def total(self) -> DrawnCounts:
        """The counts of all routes."""
        return DrawnCounts(**{name: sum(getattr(one, name) for one in self.routes) for name in _STATES})


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLabel:
    """The labels of a drawn answer."""

    wave: str
    exchange_id: str
    service: str
    route: str
    probability: float
    """Probability that this answer was scored and then drawn in this wave."""
    sampling_probability: float
    """Probability that it was scored."""
    value: float | None
    """The judge's score. None if it has been deleted, or replaced by a score with another fingerprint."""
    answered_at: datetime | None
    """Time of the answer, UTC; None without a score."""
    label: float
    """Mean of each person's latest label in this wave, in [0, 1]."""
    by_person: Mapping[str, float]
    """Each person's latest label in this wave."""
    created_at: datetime
    """Time of the latest label; UTC."""


class LabelDraws(StoreComponent):
    """Draws waves, and reads and writes the labels of their answers."""

    def draw(
        self,
        population: LabelPopulation,
        count: int,
        *,
        wave: str | None = None,
        generator: np.random.Generator | None = None,
    ) -> LabelWave:
        """Draw a wave of up to ``count`` answers whose text is stored.

        The wave's window begins with the first answer whose text is stored. Routes share the answers, see
        :func:`germane.statistics.allot`. Within a route, each answer of the window has the same chance, whatever its
        probability of being scored was. Answers of an earlier wave with the same window and fingerprint are not drawn
        again. Archived answers are not drawn.

        Args:
            population: The answers to draw from.
            count: The number of answers to draw.
            wave: The id of the new wave. A wave that already has this id is returned: a request may be repeated.
            generator: The source of randomness.

        Raises:
            UsageError: The count is out of range, or no answer can be drawn.
        """
        import numpy as np

        if not 0 < count <= MAX_DRAWN:
            raise UsageError(f"a wave has 1 to {MAX_DRAWN} answers, not {count}")
        random = np.random.default_rng() if generator is None else generator
        while True:  # until no other process changes the same answers in the meantime
            with self._database.read(snapshot=True) as connection:
                wave = wave or new_wave_id(self._context.now(connection))
                if _exists(connection, wave):
                    return self.get_wave(wave)
                frame = _SamplingFrame(connection, population)
                drawn = frame.sample(count, random)
            if not drawn:
                again = " that is not in a wave yet" if frame.earlier else ""
                raise UsageError(
                    f"no answer{again} from {population.since:%Y-%m-%d %H:%M} to {population.until:%Y-%m-%d %H:%M} UTC "
                    f"has both its text and a score of {population.scorer}"
                )
            with self._database.write() as connection:
                if frame.write_wave(connection, wave, drawn, random, self._context.now(connection)):
                    break
        return self.get_wave(wave)

    def sample(self, population: LabelPopulation, count: int) -> list[tuple[Exchange, float]]:
        """Return a random sample of the answers of which a wave could be drawn, without drawing one.

        Each answer comes with its probability of being scored and drawn.
        """
        import numpy as np

        with self._database.read(snapshot=True) as connection:
            drawn = _SamplingFrame(connection, population).sample(count, np.random.default_rng())
            query = select(exchange, score.c.id.label("score_id"))
            query = query.join(score, score.c.exchange_id == exchange.c.id)
            rows = [
                row
                for ids in batched(list(drawn))
                for row in connection.execute(query.where(score.c.id.in_(ids))).mappings()
            ]
        return [(EXCHANGES.decode(row), drawn[row["score_id"]]) for row in rows]

    def list_waves(self, *, scorer: str | None = None, limit: int = 20) -> list[LabelWave]:
        """Return the waves that were drawn last, newest first."""
        newest = select(label_draw.c.wave).where(*matching(label_draw, scorer=scorer)).group_by(label_draw.c.wave)
        newest = newest.order_by(func.max(label_draw.c.drawn_at).desc(), label_draw.c.wave).limit(limit)
        with self._database.read() as connection:
            ids = list(connection.execute(newest).scalars())
            waves = _load_waves(connection, ids)
        return [waves[id_] for id_ in ids]

    def get_wave(self, wave: str) -> LabelWave:
        """Return a wave.

        Raises:
            UsageError: There is no wave with this id, or all its answers have been deleted.
        """
        with self._database.read() as connection:
            waves = _load_waves(connection, [clean_text(wave)])
        if not waves:
            raise UsageError(f"there is no wave {wave!r:.60}")
        return waves[wave]

    def next_answer(self, wave: str) -> tuple[int, str] | None:
        """Return the position and the exchange's id of the first open answer of a wave that has its text, if any."""
        query = select(label_draw.c.position, label_draw.c.exchange_id).where(label_draw.c.wave == wave, _OPEN)
        query = query.outerjoin(exchange, exchange.c.id == label_draw.c.exchange_id)
        query = query.where(_HAS_TEXT).order_by(label_draw.c.position).limit(1)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.position, row.exchange_id)

    def settle(self, wave: str, exchange_id: str, verdict: Verdict, *, user: str | None = None) -> None:
        """Store what a person said about a drawn answer.

        If several people label an answer, all their labels are kept. A label of another person is not changed by
        ``cannot_tell`` or ``skipped``.

        Raises:
            UsageError: The answer is not in this wave.
        """
        of_draw = and_(label_draw.c.wave == wave, label_draw.c.exchange_id == exchange_id)
        with self._database.write() as connection:
            before = connection.execute(select(label_draw.c.state).where(of_draw).with_for_update()).scalar()
            if before is None:
                raise UsageError(f"exchange {exchange_id!r:.60} is not in the wave {wave!r:.60}")
            now = self._context.now(connection)
            person, value = clean_text(user), VERDICT_SCORES.get(verdict)
            if value is not None:
                # The sampler must not give labeled answers another weight than those that nobody was asked about.
                label = {"id": uuid4().hex, "exchange_id": exchange_id, "score": value, "user": person, "wave": wave}
                connection.execute(insert(feedback).values(**label, created_at=now, considered_at=now))
                mark_for_sinks(connection, [exchange_id])
            state = verdict if value is None and before != "labeled" else "labeled"
            settled = update(label_draw).where(of_draw).values(state=state, settled_at=now, settled_by=person)
            connection.execute(settled)

    def skip_rest(self, wave: str, *, user: str | None = None) -> None:
        """Skip all open answers of a wave, so that it is finished. Nothing replaces them."""
        with self._database.write() as connection:
            settled = {"state": "skipped", "settled_at": self._context.now(connection), "settled_by": clean_text(user)}
            connection.execute(update(label_draw).where(label_draw.c.wave == wave, _OPEN).values(settled))

    def undo(self, wave: str, *, user: str | None = None) -> str | None:
        """Take back what a person said last in a wave, and return the exchange's id; None if there is nothing."""
        draw, name = label_draw.c, clean_text(user)
        settled = and_(draw.settled_by.is_not_distinct_from(name), ~_OPEN)
        own = (feedback.c.wave == wave, feedback.c.user.is_not_distinct_from(name))
        labeled = and_(feedback.c.exchange_id == draw.exchange_id, *own)  # others may settle it later
        said = select(draw.exchange_id).outerjoin(feedback, labeled).where(draw.wave == wave)
        said = said.where(or_(settled, feedback.c.id.is_not(None)))
        at = case((settled, draw.settled_at), else_=feedback.c.created_at)
        last = said.order_by(at.desc(), draw.position.desc()).limit(1).with_for_update(of=label_draw)
        reopened = {"state": case((_HAS_LABEL, "labeled"), else_="open"), "settled_at": None, "settled_by": None}
        with self._database.write() as connection:
            exchange_id: str | None = connection.execute(last).scalar()
            connection.execute(delete(feedback).where(feedback.c.exchange_id == exchange_id, *own))
            of_draw = (draw.wave == wave, draw.exchange_id == exchange_id)
            connection.execute(update(label_draw).where(*of_draw).values(reopened))
            mark_for_sinks(connection, [exchange_id] if exchange_id else [])  # an earlier label of this person
        return exchange_id

    def list_labels(self, waves: Sequence[str]) -> list[DrawnLabel]:
        """Return the labels that were given in these waves, by wave and position. Other labels are ignored."""
        draw, keys = label_draw.c, (score.c.exchange_id, score.c.scorer, score.c.fingerprint)
        query = select(label_draw).where(draw.wave.in_(waves)).order_by(draw.wave, draw.position)
        labels, scores, found = dict[str, list[Feedback]](), dict[tuple[str, ...], Any](), list[DrawnLabel]()
        with self._database.read(snapshot=True) as connection:
            draws = connection.execute(query).mappings().all()
            with open_exchanges(connection, dict.fromkeys(row["exchange_id"] for row in draws)) as sources:
                for source, ids in sources:
                    labels |= load_all_labels(connection, source, ids)
                    wanted = select(*keys, score.c.value, score.c.started_at, score.c.sampling_probability)
                    wanted = wanted.where(is_one_of(keys[0], ids, source.dialect.name))
                    scores |= {(row[0], row[1], row[2]): row for row in source.execute(wanted)}
        for row in draws:
            scored = scores.get((row["exchange_id"], row["scorer"], row["fingerprint"]))
            own = [label for label in labels.get(row["exchange_id"], ()) if label.wave == row["wave"]]
            if own:
                drawn = {name: row[name] for name in ("wave", "exchange_id", "service", "route", "probability")}
                drawn |= {"value": scored and scored.value, "answered_at": scored and scored.started_at}
                drawn["sampling_probability"] = (scored and scored.sampling_probability) or 1.0
                people = {label.user or "": label.score for label in own}
                latest = own[-1].created_at
                found.append(DrawnLabel(**drawn, label=mean_label(own), by_person=people, created_at=latest))
        return found


class _SamplingFrame:
    """The scores of the answers that can be drawn, by service and route, in order of time."""

    def __init__(self, connection: Connection, population: LabelPopulation) -> None:
        names = {"scorer": population.scorer, "service": population.service, "route": population.route}
        chosen = [*matching(score, **names), *within(score.c.started_at, population.since, population.until)]
        newest = select(score.c.fingerprint).where(*chosen).order_by(score.c.started_at.desc()).limit(1)
        own = score.c.fingerprint != EXTERNAL_FINGERPRINT
        in_window = within(exchange.c.started_at, population.since, population.until)
        first = select(func.min(exchange.c.started_at)).where(*in_window, _HAS_TEXT)
        self._shared: dict[str, Any] = {
            "scorer": population.scorer,
            "fingerprint": connection.execute(newest.where(own)).scalar() or connection.execute(newest).scalar() or "",
            "since": connection.execute(first).scalar() or population.since,
            "until": population.until,
        }
        self.earlier = self._drawn_ids(connection)
        """Ids of the exchanges that were drawn in earlier waves with this window."""
        self._ids: dict[Stratum, array[int]] = {}
        self._weights: dict[Stratum, array[float]] = {}
        self._read(connection, [*chosen, score.c.fingerprint == self._shared["fingerprint"]])

    def _drawn_ids(self, connection: Connection) -> set[str]:
        of_window = matching(label_draw, **self._shared)
        return set(connection.execute(select(label_draw.c.exchange_id).where(*of_window)).scalars())

    def _read(self, connection: Connection, chosen: Conditions) -> None:
        """Read the scores from their index alone if no text in the window has been erased."""
        query = select(score.c.id, score.c.service, score.c.route, score.c.sampling_probability).where(*chosen)
        in_window = within(exchange.c.started_at, self._shared["since"], self._shared["until"])
        if count_rows(connection, exchange, *in_window) != count_rows(connection, exchange, *in_window, _HAS_TEXT):
            query = query.join(exchange, exchange.c.id == score.c.exchange_id).where(_HAS_TEXT)
        query = query.where(score.c.started_at >= self._shared["since"]).order_by(score.c.started_at)
        of_earlier = is_one_of(score.c.exchange_id, list(self.earlier), connection.dialect.name)
        drawn = set(connection.execute(select(score.c.id).where(of_earlier)).scalars())
        for id_, service, route, probability in connection.execute(query, execution_options={"yield_per": ROWS_READ}):
            if id_ not in drawn:
                self._ids.setdefault((service, route), array("q")).append(id_)
                self._weights.setdefault((service, route), array("d")).append(1 / (probability or 1))

    def sample(self, count: int, random: np.random.Generator) -> dict[int, float]:
        """Return the ids of drawn scores, and the probability of each answer of being scored and drawn."""
        import numpy as np

        from germane.statistics import allot, systematic_sample

        weights = {str(number): np.frombuffer(one) for number, one in enumerate(self._weights.values())}
        limits = {number: len(one) for number, one in weights.items()}
        allotted = allot({number: float(one.sum()) for number, one in weights.items()}, count, limits=limits)
        drawn: dict[int, float] = {}
        for (number, one), ids in zip(weights.items(), self._ids.values(), strict=True):
            if allotted[number]:
                indexes, chances = systematic_sample(one, allotted[number], random)
                drawn |= zip([ids[index] for index in indexes], (chances / one[indexes]).tolist(), strict=True)
        return drawn

    def write_wave(
        self, connection: Connection, wave: str, drawn: Mapping[int, float], random: np.random.Generator, now: datetime
    ) -> bool:
        """Write a wave. Return False if it exists, or if an answer has been drawn, erased or deleted meanwhile."""
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        query = select(score.c.id, score.c.exchange_id, score.c.service, score.c.route)
        query = query.join(exchange, exchange.c.id == score.c.exchange_id).where(_HAS_TEXT)
        query = query.where(score.c.id.in_(drawn)).order_by(exchange.c.id).with_for_update(of=exchange)
        rows = connection.execute(query).all()
        if _exists(connection, wave) or self._drawn_ids(connection) != self.earlier or len(rows) < len(drawn):
            return False
        shared = {**self._shared, "wave": wave, "drawn_at": now, "state": "open"}
        positions = (random.permutation(len(rows)) + 1).tolist()
        names = ("exchange_id", "service", "route", "probability", "position")
        values = ((*row[1:], drawn[row.id], place) for row, place in zip(rows, positions, strict=True))
        connection.execute(insert(label_draw), [shared | dict(zip(names, one, strict=True)) for one in values])
        return True


def new_wave_id(now: datetime) -> str:
    """Return an id for a wave that is drawn now."""
    return f"{now:%Y-%m-%d}-{uuid4().hex[:8]}"


def _exists(connection: Connection, wave: str) -> bool:
    return connection.execute(select(label_draw.c.wave).where(label_draw.c.wave == wave).limit(1)).first() is not None


def _load_waves(connection: Connection, ids: Sequence[str]) -> dict[str, LabelWave]:
    names = ("wave", "scorer", "fingerprint", "since", "until", "drawn_at", "service", "route")
    keys = [label_draw.c[name] for name in names]
    state = case((and_(_OPEN, ~_HAS_TEXT), "erased"), else_=label_draw.c.state)  # archived answers have no row
    counts = [func.count(case((state == name, 1))).label(name) for name in _STATES]
    query = select(*keys, *counts).outerjoin(exchange, exchange.c.id == label_draw.c.exchange_id).group_by(*keys)
    rows = connection.execute(query.where(label_draw.c.wave.in_(ids)).order_by(*keys)).mappings()
    waves: dict[str, LabelWave] = {}
    for id_, of_wave in groupby(rows, key=itemgetter("wave")):
        routes = [dict(row) for row in of_wave]
        counted = [DrawnCounts(**{name: row[name] for name in ("service", "route", *_STATES)}) for row in routes]
        waves[id_] = LabelWave(id=id_, routes=counted, **{name: routes[0][name] for name in names[1:6]})
    return waves


def forget_person(connection: Connection, user: str) -> None:
    """Delete a person's name from waves, and open answers that have no label left after the person's were deleted."""
    draw = label_draw.c
    connection.execute(update(label_draw).where(draw.settled_by == clean_text(user)).values(settled_by=None))
    unlabeled = update(label_draw).where(draw.state == "labeled", ~_HAS_LABEL)
    connection.execute(unlabeled.values(state="open", settled_at=None, settled_by=None))
