"""Runs over history: their partitions, the leases on them, and the exchanges in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    case,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from germane.exchange import Exchange
from germane.storage.db import leases
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import exchange, history_run, partition, score, scoring_task
from germane.storage.queue.rescore import ScoringPair

RESCORE: Final = "rescore"
"""The kind of runs that rescore stored answers."""
ANY_REASON: Final = "any"
"""Selects failures for any reason."""
MAX_ERROR_LENGTH: Final = 1000
KEPT_RUNS: Final = timedelta(days=90)
"""Time for which finished runs are kept."""
_PARTITION_COLUMNS: Final = (
    "run_id", "number", "first_at", "first_id", "last_at", "last_id", "exchanges", "due_at", "attempts", "scored",
    "failed", "skipped", "checksum",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySelection:
    """The answers that a run scores: by default, those with a score or a failure of one of the scorers.

    Conditions on results apply to results with any fingerprint.
    """

    since: datetime
    until: datetime
    scorers: Mapping[str, str]
    """Fingerprints by scorer name."""
    route: str | None = None
    below: float | None = None
    """Only answers with a score below this value."""
    failed: str | None = None
    """Only answers whose score failed with this reason, or for any reason if it is :data:`ANY_REASON`."""
    everything: bool = False
    """All answers, including those that sampling skipped. Their scores count with the weight of the captured exchange,
    because none of them was chosen at random."""
    requested_at: datetime | None = None
    """Start time of the command that computed the window; None if it is unknown."""

    def is_same_request(self, earlier: HistorySelection, elapsed: timedelta) -> bool:
        """Return whether a command repeats an earlier one: equal conditions, and a window with equal or equally old
        ends.

        ``elapsed`` is the time between the starts of the two commands.
        """
        tolerance = timedelta(seconds=2)
        same_window = all(
            new == old or abs(new - old - elapsed) <= tolerance
            for new, old in ((self.since, earlier.since), (self.until, earlier.until))
        )
        return same_window and self.conditions() == earlier.conditions()

    def conditions(self) -> dict[str, Any]:
        """Return all fields but the times, as plain JSON."""
        conditions = asdict(self) | {"scorers": dict(self.scorers)}
        return {name: value for name, value in conditions.items() if name not in {"since", "until", "requested_at"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun:
    """A run and its progress."""

    id: str
    selection: HistorySelection
    partition_size: int
    partitions: int
    exchanges: int
    """Number of exchanges in all partitions when the run was planned."""
    created_at: datetime
    finished_at: datetime | None
    done_partitions: int = 0
    done_exchanges: int = 0
    scored: int = 0
    """Number of scores with a value that the run has written."""
    failed: int = 0
    skipped: int = 0
    waiting: int = 0
    """Number of scores that were left to the workers since the run was last continued. It is not stored."""
    cost: float | None = None
    """Cost of the scores in US dollars; None if no price is known."""
    checksum: int = 0
    """Sum of the hashes of all written scores, modulo 2**64; see :func:`score_checksum`."""


class PartitionKey(NamedTuple):
    """Identifies a partition."""

    run_id: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClaim:
    """A partition that ``owner`` has claimed until the lease expires."""

    key: PartitionKey
    owner: str
    selection: HistorySelection
    first: tuple[datetime, str]
    """Start time and id of the first exchange."""
    last: tuple[datetime, str]
    """Start time and id of the last exchange, which belongs to the partition."""
    remaining: frozenset[ScoringPair] | None
    """The scores that earlier attempts have not written; None if they have written none."""
    written: ScoreCounts
    """What earlier attempts have written."""


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """An exchange to score, and the names of the scorers."""

    exchange: Exchange
    scorers: tuple[str, ...]
    waiting: tuple[str, ...] = ()
    """Names of the scorers that have an open task for the exchange. It is left to the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCounts:
    """Numbers of written scores."""

    scored: int = 0
    failed: int = 0
    skipped: int = 0
    waiting: int = 0
    """Answers that were not changed, because a worker is scoring them, or because they have been deleted or erased."""
    cost: float | None = None
    """US dollars; None if no price is known."""
    checksum: int = 0

    def __add__(self, other: Self) -> ScoreCounts:
        """Add each number."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return ScoreCounts(
            scored=self.scored + other.scored,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
            waiting=self.waiting + other.waiting,
            cost=sum(costs) if costs else None,
            checksum=(self.checksum + other.checksum) % 2**64,
        )


class PlannedPartition(NamedTuple):
    """A range of exchanges by (started_at, id)."""

    first: tuple[datetime, str]
    """Start time and id of the first exchange."""
    last: tuple[datetime, str]
    exchanges: int


def plan_partitions(connection: Connection, selection: HistorySelection, partition_size: int) -> list[PlannedPartition]:
    """Divide the exchanges of a selection into partitions. They are read once, in their order."""
    order = (exchange.c.started_at, exchange.c.id)
    numbered = (
        select(
            *order,
            func.row_number().over(order_by=order).label("position"),
            func.lead(exchange.c.id).over(order_by=order).label("following"),
        )
        .where(*in_window(selection))
        .subquery()
    )
    position = numbered.c.position
    is_edge = or_(position % partition_size <= 1, numbered.c.following.is_(None))
    edges = connection.execute(select(numbered).where(is_edge).order_by(position)).all()
    # The first and the last row of a partition are the same if it has one exchange.
    firsts = [edge for edge in edges if (edge.position - 1) % partition_size == 0]
    lasts = [edge for edge in edges if edge.position % partition_size == 0 or edge.following is None]
    return [
        PlannedPartition((first.started_at, first.id), (last.started_at, last.id), last.position - first.position + 1)
        for first, last in zip(firsts, lasts, strict=True)
    ]


def store_run(
    connection: Connection,
    run_id: str,
    selection: HistorySelection,
    planned: Sequence[PlannedPartition],
    partition_size: int,
    now: datetime,
) -> None:
    """Store a run and its partitions, and delete old finished runs."""
    old = select(history_run.c.id).where(history_run.c.finished_at < now - KEPT_RUNS)
    connection.execute(delete(partition).where(partition.c.run_id.in_(old)))
    connection.execute(delete(history_run).where(history_run.c.finished_at < now - KEPT_RUNS))
    requested_at = None if selection.requested_at is None else selection.requested_at.isoformat()
    values = {
        "id": run_id,
        "kind": RESCORE,
        "since": selection.since,
        "until": selection.until,
        "selection": {**selection.conditions(), "requested_at": requested_at},
        "partition_size": partition_size,
        "partitions": len(planned),
        "exchanges": sum(part.exchanges for part in planned),
        "created_at": now,
    }
    connection.execute(insert(history_run).values(values))
    encode = timestamp_encoder(connection.dialect.name)
    rows = [
        (run_id, number, encode(first_at), first_id, encode(last_at), last_id, exchanges, encode(now), 0, 0, 0, 0, "0")
        for number, ((first_at, first_id), (last_at, last_id), exchanges) in enumerate(planned)
    ]
    bulk_insert(connection, partition, _PARTITION_COLUMNS, rows)


def load_run(connection: Connection, run_id: str) -> HistoryRun | None:
    """Return a run with its progress, or None if it does not exist."""
    row = connection.execute(select(history_run).where(history_run.c.id == run_id)).mappings().one_or_none()
    return None if row is None else build_run(connection, row)


def build_run(connection: Connection, row: RowMapping) -> HistoryRun:
    """Return a run with the progress of its partitions."""
    of_run, is_done = partition.c.run_id == row["id"], partition.c.due_at.is_(None)
    sums = {
        "done_partitions": case((is_done, 1), else_=0),
        "done_exchanges": case((is_done, partition.c.exchanges), else_=0),
        **{name: partition.c[name] for name in ("scored", "failed", "skipped")},
    }
    query = select(
        *(func.coalesce(func.sum(amount), 0).label(name) for name, amount in sums.items()),
        func.sum(partition.c.cost).label("cost"),
    )
    progress = connection.execute(query.where(of_run)).mappings().one()
    checksums = select(partition.c.checksum).where(of_run, partition.c.checksum != "0")
    return HistoryRun(
        id=row["id"],
        selection=_selection(row),
        **{name: row[name] for name in ("partition_size", "partitions", "exchanges", "created_at", "finished_at")},
        **progress,
        checksum=sum(map(int, connection.execute(checksums).scalars())) % 2**64,
    )


def _selection(row: RowMapping) -> HistorySelection:
    fields = dict(row["selection"])
    requested_at = fields.pop("requested_at")
    at = None if requested_at is None else datetime.fromisoformat(requested_at)
    return HistorySelection(since=row["since"], until=row["until"], requested_at=at, **fields)


def claim(
    connection: Connection, key: PartitionKey, owner: str, lease: timedelta, now: datetime
) -> PartitionClaim | datetime | None:
    """Claim a partition. Return the end of another process's lease instead, or None if the partition is done."""
    claim = leases.claim(partition, owner=owner, until=now + lease).where(is_partition(key), partition.c.due_at <= now)
    claimed = connection.execute(claim.values(attempts=partition.c.attempts + 1)).rowcount
    query = select(partition, history_run.c.since, history_run.c.until, history_run.c.selection)
    query = query.join(history_run, history_run.c.id == partition.c.run_id).where(is_partition(key))
    row = connection.execute(query).mappings().one_or_none()
    if row is None or row["due_at"] is None:
        return None
    if not claimed:
        end: datetime = row["due_at"]
        return end
    return PartitionClaim(
        key=key,
        owner=owner,
        selection=_selection(row),
        first=(row["first_at"], row["first_id"]),
        last=(row["last_at"], row["last_id"]),
        remaining=None if row["remaining"] is None else frozenset((key, name) for key, name in row["remaining"]),
        written=ScoreCounts(
            **{name: row[name] for name in ("scored", "failed", "skipped", "cost")}, checksum=int(row["checksum"])
        ),
    )


def finish_partition(
    connection: Connection, claimed: PartitionClaim, remaining: Collection[ScoringPair], now: datetime
) -> bool:
    """Mark a partition as done, if its owner still holds it. Return whether it did.

    If scores remain, any process can claim the partition again, to compute only these.

    This is the first statement of the transaction that writes the partition's scores: it locks the partition, so that
    no other process can claim it, and a process that has lost its lease writes nothing.
    """
    rows, owner = is_partition(claimed.key), claimed.owner
    if remaining:
        pairs = sorted(map(list, remaining))
        return leases.postpone(connection, partition, rows, owner, now, error=None, remaining=pairs) == 1
    return leases.finish(connection, partition, rows, owner, error=None, remaining=null()) == 1


def store_counts(connection: Connection, claimed: PartitionClaim, counts: ScoreCounts) -> None:
    """Store what this attempt and earlier ones have written."""
    total = claimed.written + counts
    values = {name: getattr(total, name) for name in ("scored", "failed", "skipped", "cost")}
    connection.execute(
        update(partition).where(is_partition(claimed.key)).values(**values, checksum=str(total.checksum))
    )


def matching_results(selection: HistorySelection) -> tuple[Table, list[ColumnElement[bool]]]:
    """Return the table of the results that the selection is about, and the conditions on them."""
    if selection.below is not None:
        return score, [score.c.scorer.in_(list(selection.scorers)), score.c.value < selection.below]
    of_scorers = scoring_task.c.scorer.in_(list(selection.scorers))
    if selection.failed is None:
        return scoring_task, [of_scorers, scoring_task.c.state.in_(["done", "failed"])]
    has_failed = [of_scorers, scoring_task.c.state == "failed"]
    if selection.failed != ANY_REASON:
        has_failed.append(scoring_task.c.reason == selection.failed)
    return scoring_task, has_failed


def in_window(selection: HistorySelection) -> list[ColumnElement[bool]]:
    """Return the conditions that select the exchanges of a selection."""
    window = within(exchange.c.started_at, selection.since, selection.until)
    return [*window, *matching(exchange, route=selection.route)]


def in_partition(claimed: PartitionClaim) -> list[ColumnElement[bool]]:
    """Return the conditions that select the exchanges of a partition."""
    (first_at, first_id), (last_at, last_id), at = claimed.first, claimed.last, exchange.c.started_at
    return [
        at >= first_at,  # the first two conditions can use the index
        at <= last_at,
        or_(at > first_at, exchange.c.id >= first_id),
        or_(at < last_at, exchange.c.id <= last_id),
        *matching(exchange, route=claimed.selection.route),
    ]


def is_partition(key: PartitionKey) -> ColumnElement[bool]:
    """Return the condition that selects a partition."""
    return and_(partition.c.run_id == key.run_id, partition.c.number == key.number)
