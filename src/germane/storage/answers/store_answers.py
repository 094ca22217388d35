"""Read access to exchanges and their scores, and samples of single scores for charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, CompoundSelect, Connection, bindparam, func, select, union_all

from germane.exchange import Exchange
from germane.score import Score, is_low_value
from germane.storage.answers.archived_lowest import find_archived
from germane.storage.answers.detail import AnswerDetail, load_all_labels, load_exchanges, load_scores, load_tasks
from germane.storage.answers.filter import (
    AnswerCursor,
    AnswerFilter,
    AnswerNeighbors,
    AnswerPage,
    AnswerSort,
    MatchCount,
    MatchSummary,
)
from germane.storage.answers.lowest_scores import (
    FEW_LOW,
    IS_LOW,
    UNINDEXED_LOW,
    VALUE,
    ScoreFilter,
    find_lowest,
    has_more_low,
    has_more_scores,
    lowest_first,
)
from germane.storage.answers.search import (
    BEGINNING,
    BRIEF_COLUMNS,
    KEY_COLUMNS,
    SORT_KEYS,
    Columns,
    Row,
    build_answers,
    estimate_rows,
    find_newest,
    find_rows,
)
from germane.storage.archive.reader import open_exchanges, open_newest
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.functions import Unindexed
from germane.storage.db.mappers import EXCHANGES, SCORES
from germane.storage.db.tables import exchange, score, scoring_task

MAX_ANSWERS_COUNTED: Final = 1_000
"""Number of matches at which counting stops."""
MAX_NEIGHBORS_SCANNED: Final = 500
"""Number of matches to search for an answer's neighbors."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScoredExchange:
    """An exchange with one of its scores."""

    exchange: Exchange
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Numbers of stored exchanges, tasks and scores."""

    captured: int = 0
    """Number of exchanges."""
    undecided: int = 0
    """Number of exchanges without a sampling decision."""
    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    failed_reasons: Mapping[str, int] = field(default_factory=dict)
    skipped_reasons: Mapping[str, int] = field(default_factory=dict)
    scores: int = 0
    """Number of scores."""
    oldest_pending_at: datetime | None = None
    """Time at which the oldest pending or running task became ready; UTC."""


class AnswerReader(StoreComponent):
    """Reads exchanges and scores: ``germane.Store(url).answers``. Windows are ``since <= started_at < until``.

    Methods read the archive too if their window reaches into it, or if the database does not contain an exchange. They
    raise :class:`~germane.errors.ArchiveError` if it cannot be read.
    """

    def list_exchanges(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[Exchange]:
        """Return up to ``limit`` exchanges in the window, newest first."""
        query = select(exchange).order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
        query = query.where(*within(exchange.c.started_at, since, until), *matching(exchange, route=route))
        with self._database.read(snapshot=True) as connection:
            rows = list(connection.execute(query).mappings())
            since = max(rows[-1]["started_at"], since or BEGINNING) if len(rows) >= limit else since
            # How many answers of a day are on a route is unknown, so with a route, all days of the window are searched.
            with open_newest(connection, since, until, count=limit if route is None else None) as (archive, _):
                rows += [] if archive is None else archive.execute(query).mappings()
        rows.sort(key=lambda row: (row["started_at"], row["id"]), reverse=True)
        return [EXCHANGES.decode(row) for row in rows[:limit]]

    def get_exchanges(self, ids: Sequence[str]) -> dict[str, Exchange]:
        """Return a dict of ids to exchanges. Unknown ids are omitted."""
        with self._database.read(snapshot=True) as connection:
            return self._load(connection, ids, load_exchanges)

    def get_scores(self, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
        """Return a dict of exchange ids to lists of scores. Exchanges without a score are omitted."""
        with self._database.read(snapshot=True) as connection:
            return self._load(connection, exchange_ids, load_scores)

    @staticmethod
    def _load(
        connection: Connection, ids: Sequence[str], load: Callable[[Connection, Sequence[str]], dict[str, Item]]
    ) -> dict[str, Item]:
        """Load items by exchange id from the database and the archive."""
        with open_exchanges(connection, dict.fromkeys(ids)) as sources:
            return {id_: item for source, some in sources for id_, item in load(source, some).items()}

    def worst(
        self,
        *,
        scorer: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        fingerprint: str | None = None,
        service: str | None = None,
        label: str | None = None,
        low: bool = False,
        refusals: bool | None = None,
        limit: int = 10,
    ) -> list[ScoredExchange]:
        """Return the lowest scores with their exchanges, lowest first; equal scores are sorted newest first.

        Args:
            scorer: Only scores from this scorer.
            since: Start of the window.
            until: End of the window.
            route: Only answers on this route.
            fingerprint: Only scores with this fingerprint.
            service: Only answers from this service.
            label: Only scores with this label, such as ``noncommittal``.
            low: Only scores in the lowest band.
            refusals: Only refusals, or only other answers.
            limit: Maximum number of scores to return.
        """
        chosen = ScoreFilter(
            since=since, until=until, scorer=scorer, service=service, route=route, fingerprint=fingerprint, label=label,
            low=low, refusals=refusals,
        )  # fmt: skip
        with self._database.read(snapshot=True) as connection:
            rows = find_lowest(connection, chosen, limit)
            rows = lowest_first([*rows, *find_archived(connection, chosen, limit)], limit)
            exchanges = load_exchanges(connection, [row["exchange_id"] for row in rows])
            missing = {row["exchange_id"]: row["started_at"] for row in rows if row["exchange_id"] not in exchanges}
            with open_exchanges(connection, missing) as sources:
                for source, ids in sources:
                    exchanges |= load_exchanges(source, ids, missing)
        return [
            ScoredExchange(exchanges[row["exchange_id"]], SCORES.decode(row))
            for row in rows
            if row["exchange_id"] in exchanges
        ]

    def counts(self, *, at_most: int | None = None) -> RowCounts:
        """Return the numbers of exchanges, tasks by state, and scores.

        Args:
            at_most: Stop counting exchanges, scores and closed tasks at this number, because counting ten million rows
                takes seconds. Open tasks are always counted in full.
        """
        names = (scoring_task.c.state, scoring_task.c.reason)
        waiting = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.due_at.is_not(None))
        undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
        reasons: dict[str, dict[str | None, int]] = {}
        with self._database.read() as connection:
            for state in ("pending", "running", "done", "failed", "skipped"):
                if at_most is None or state in {"pending", "running"}:
                    grouped = select(names[1], func.count()).where(names[0] == state).group_by(names[1])
                else:
                    first = select(*names).where(names[0] == state).order_by(*names).limit(at_most).subquery("first")
                    grouped = select(first.c.reason, func.count()).group_by(first.c.reason)
                reasons[state] = {reason: int(count) for reason, count in connection.execute(grouped)}
            rows = {}
            for table in (exchange, score):
                first = select(table.c.started_at).order_by(table.c.started_at).limit(at_most).subquery("first")
                count = select(func.count()).select_from(table if at_most is None else first)
                rows[table.name] = int(connection.execute(count).scalar_one())
            return RowCounts(
                captured=rows["exchange"],
                undecided=int(connection.execute(undecided).scalar_one()),
                **{state: sum(counts.values()) for state, counts in reasons.items()},
                failed_reasons={reason: count for reason, count in reasons["failed"].items() if reason is not None},
                skipped_reasons={reason: count for reason, count in reasons["skipped"].items() if reason is not None},
                scores=rows["score"],
                oldest_pending_at=connection.execute(waiting).scalar_one(),
            )


class AnswerStore(AnswerReader):
    """Extends :class:`AnswerReader` with the searches that the dashboard and the command line use."""

    def search(
        self, chosen: AnswerFilter, *, sort: AnswerSort = "lowest", after: AnswerCursor | None = None, limit: int = 50
    ) -> AnswerPage:
        """Return one page of answers. Answers without a score are always sorted by time.

        Args:
            chosen: The filter.
            sort: With ``lowest``, the whole window is searched unless few scores match the filter. With such a filter
                or another order, only the newest answers are searched; the page reports how far back.
            after: ``next_cursor`` of the previous page; None for the first page.
            limit: Maximum number of answers per page.
        """
        with self._database.read(snapshot=True) as connection:
            rows, cursor, searched_back_to = _find_page(connection, chosen, sort, after, limit)
            answers = build_answers(connection, chosen, rows)
        return AnswerPage(answers=answers, next_cursor=cursor, searched_back_to=searched_back_to)

    def find_ids(
        self, chosen: AnswerFilter, *, after: AnswerCursor | None = None, limit: int = 10_000
    ) -> tuple[list[str], AnswerCursor | None]:
        """Return the exchange ids of one page of answers, newest first, and the cursor of the next page, if any."""
        with self._database.read(snapshot=True) as connection:
            rows, cursor, _ = _find_page(connection, chosen, "newest", after, limit, BRIEF_COLUMNS)
        return [row["exchange_id"] for row in rows], cursor

    def count_matches(self, chosen: AnswerFilter) -> MatchCount:
        """Count the answers that match a filter, up to 1,000."""
        with self._database.read(snapshot=True) as connection:
            rows, floor = find_rows(connection, chosen, "newest", None, MAX_ANSWERS_COUNTED + 1, KEY_COLUMNS)
        is_capped = len(rows) > MAX_ANSWERS_COUNTED or floor is not None
        return MatchCount(count=min(len(rows), MAX_ANSWERS_COUNTED), is_capped=is_capped)

    def summarize_matches(self, chosen: AnswerFilter) -> MatchSummary:
        """Count the scored answers that match a filter, and estimate their mean, up to the newest 3,000."""
        with self._database.read(snapshot=True) as connection:
            rows, floor = find_newest(connection, replace(chosen, state="scored"))
        return MatchSummary(count=len(rows), estimate=estimate_rows(rows) if rows else None, searched_back_to=floor)

    def find_neighbors(self, chosen: AnswerFilter, exchange_id: str, *, sort: AnswerSort = "lowest") -> AnswerNeighbors:
        """Find the ids before and after an exchange in the first 500 matches."""
        with self._database.read(snapshot=True) as connection:
            rows, _ = find_rows(connection, chosen, sort, None, MAX_NEIGHBORS_SCANNED)
        ids = list(dict.fromkeys(row["exchange_id"] for row in rows))
        if exchange_id not in ids:
            return AnswerNeighbors(next=ids[0] if ids else None)
        index = ids.index(exchange_id)
        return AnswerNeighbors(
            previous=ids[index - 1] if index else None,
            next=ids[index + 1] if index + 1 < len(ids) else None,
            position=index + 1,
        )

    def load_detail(self, exchange_id: str) -> AnswerDetail | None:
        """Return one exchange with its scores, tasks and labels, or None if the id is unknown."""
        with (
            self._database.read(snapshot=True) as connection,
            open_exchanges(connection, {exchange_id: None}) as sources,
        ):
            source = next((source for source, ids in sources if ids), connection)
            row = source.execute(select(exchange).where(exchange.c.id == exchange_id)).mappings().first()
            if row is None:
                return None
            scores = load_scores(source, [exchange_id]).get(exchange_id, [])
            names = ("sampling_reason", "sampling_probability", "proxy", "erased_at")
            return AnswerDetail(
                exchange=EXCHANGES.decode(row),
                scores=sorted(scores, key=lambda score: (score.scorer, str(score.scored_at))),
                tasks=load_tasks(source, [exchange_id]).get(exchange_id, []),
                feedback=load_all_labels(connection, source, [exchange_id]).get(exchange_id, []),
                **{name: row[name] for name in names},
            )

    def sample_exchanges(self, *, since: datetime, limit: int) -> list[Exchange]:
        """Return a uniform sample of the exchanges since a given time, oldest first.

        Repeated calls return the same sample. Exchanges with erased text are excluded, because the sample is used to
        measure text lengths.
        """
        query = select(exchange.c.id).where(exchange.c.started_at >= since, exchange.c.erased_at.is_(None))
        query = query.order_by(exchange.c.sampling_key).limit(limit)
        with self._database.read() as connection:
            ids = list(connection.execute(query).scalars())
            rows = connection.execute(select(exchange).where(exchange.c.id.in_(ids))).mappings()
            return sorted(map(EXCHANGES.decode, rows), key=lambda sampled: (sampled.started_at, sampled.id))

    def sample_scores(
        self, scorers: Sequence[str], since: datetime, until: datetime, **equal: str | None
    ) -> tuple[list[SampledScore], bool]:
        """Return single scores, oldest first, and whether these are all scores of the window; see ``load_sample``."""
        with self._database.read(snapshot=True) as connection:
            return load_sample(connection, (since, until), scorers, equal)


def _find_page(
    connection: Connection,
    chosen: AnswerFilter,
    sort: AnswerSort,
    after: AnswerCursor | None,
    limit: int,
    columns: Columns | None = None,
) -> tuple[Sequence[Row], AnswerCursor | None, datetime | None]:
    """Return the rows of a page, the cursor of the next page, and how far back was searched; see ``find_rows``."""
    sort = sort if chosen.state == "scored" else "newest"
    rows, searched_back_to = find_rows(connection, chosen, sort, after, limit + 1, columns)
    cursor = None
    if len(rows) > limit:
        last = rows[limit - 1]
        cursor = AnswerCursor(SORT_KEYS[sort](last), last["started_at"], str(last["id"]))
    elif searched_back_to is not None and sort == "newest" and not (chosen.labeled and chosen.state == "scored"):
        # When sorted by time, the next page continues where the search stopped. A label search always scans the same
        # labels, so it cannot continue.
        cursor = AnswerCursor(0.0, searched_back_to, "")
    return rows[:limit], cursor, searched_back_to


MAX_SCORES: Final = 4_000
"""Maximum number of scores that are all returned."""
MAX_SAMPLED: Final = 1_500
"""Maximum number of sampled scores if there are more."""
MAX_ROWS_READ: Final = 20_000
"""Maximum number of rows of all routes that are read to find them."""
MAX_LOWEST: Final = 300
"""Maximum number of scores of the first scorer that are added because they are low."""
SLICES: Final = 25
"""Number of equal parts of a window from which a sample is drawn."""
_MOMENT = score.c.started_at
_BY_TIME: Final = itemgetter(0, 1, 2)  # not the label, which may be missing and is then not comparable


class SampledScore(NamedTuple):
    """A score on a chart."""

    answered_at: datetime
    """UTC."""
    value: float
    scorer: str
    label: str | None


def load_sample(
    connection: Connection, window: tuple[datetime, datetime], scorers: Sequence[str], equal: Mapping[str, str | None]
) -> tuple[list[SampledScore], bool]:
    """Return scores of some scorers, oldest first, and whether these are all. ``equal`` has the service and route.

    A large window is divided into equal parts, and the same number of rows is read from the time index in each. The
    lowest of the first scorer's low scores are added. Archived scores are not read.
    """
    if not has_more_scores(connection, window, MAX_ROWS_READ):
        found = _read(connection, [window], scorers, equal, MAX_ROWS_READ, MAX_SCORES + 1)
        if len(found) <= MAX_SCORES:
            return sorted(found, key=_BY_TIME), True
    # Scores of exactly 0, such as refusals, are at one height, so the sample has enough of them.
    lowest: set[SampledScore] = set()
    columns: tuple[ColumnElement[Any], ...] = (VALUE, _MOMENT, IS_LOW)
    if has_more_low(connection, scorers[0], *window, FEW_LOW):
        columns = (score.c.value, Unindexed(_MOMENT), UNINDEXED_LOW)
    value, moment, is_low = columns
    for part in (value < 0, value > 0):
        query = select(_MOMENT, score.c.value, score.c.scorer, score.c.label).where(is_low, part)
        query = query.where(*matching(score, scorer=scorers[0], **equal), *within(moment, *window))
        lowest.update(map(SampledScore._make, connection.execute(query.order_by(value).limit(MAX_LOWEST)).all()))
    since, length = window[0], (window[1] - window[0]) / SLICES
    starts = [since + number * length for number in range(SLICES)]
    parts = [(start, start + length) for start in starts]
    found = _read(connection, parts, scorers, equal, MAX_ROWS_READ // SLICES, MAX_SAMPLED // SLICES)
    # Hashing a time takes a while.
    others = (one for one in found if not is_low_value(one.value, one.label) or one not in lowest)
    return sorted((*lowest, *others), key=_BY_TIME), False


def _read(
    connection: Connection,
    windows: Sequence[tuple[datetime, datetime]],
    scorers: Sequence[str],
    equal: Mapping[str, str | None],
    rows: int,
    limit: int,
) -> list[SampledScore]:
    """Return up to ``limit`` scores among the first rows of each window, which are read from the index alone."""
    known = {name: value for name, value in equal.items() if value is not None}
    given: dict[str, Any] = {**known, **{f"scorer_{number}": scorer for number, scorer in enumerate(scorers)}}
    for number, (since, until) in enumerate(windows):
        given |= {f"since_{number}": since, f"until_{number}": until}
    query = _select_windows(len(windows), len(scorers), tuple(known), rows, limit)
    return list(map(SampledScore._make, connection.execute(query, given).all()))


@lru_cache(maxsize=16)  # building it takes longer than executing it
def _select_windows(windows: int, scorers: int, names: tuple[str, ...], rows: int, limit: int) -> CompoundSelect[Any]:
    columns = [score.c[name] for name in ("started_at", "value", "scorer", "label", "service", "route")]
    parts = []
    for number in range(windows):
        inside = (bindparam(f"since_{number}") <= _MOMENT, bindparam(f"until_{number}") > _MOMENT)
        first = select(*columns).where(*inside).order_by(_MOMENT).limit(rows).subquery()
        some = [first.c[name] == bindparam(name) for name in names]
        some.append(first.c.scorer.in_([bindparam(f"scorer_{each}") for each in range(scorers)]))
        part = select(first.c.started_at, first.c.value, first.c.scorer, first.c.label).where(*some).limit(limit)
        parts.append(select(part.subquery()))
    return union_all(*parts)
