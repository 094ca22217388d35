"""Writing of a partition's scores: score rows, closed tasks and the tally, in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, select

from germane.score import Score
from germane.storage.counts.dirty_hours import mark_dirty
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import (
    SCORE_COLUMNS,
    SHARED_COLUMNS,
    TimestampEncoder,
    batched,
    bulk_insert,
    score_key,
    score_values,
    timestamp_encoder,
)
from germane.storage.db.tables import exchange, score, scoring_task
from germane.storage.history.partitions import ScoreCounts
from germane.storage.queue.erase_text import OPEN_STATES
from germane.storage.queue.feedback import CHANGE_WEIGHT
from germane.storage.queue.rescore import lock_answer_tasks
from germane.storage.queue.tasks import DELETE_REPLACED, TaskEnd, close_tasks
from germane.storage.sink_items import mark_for_sinks

Result = tuple[str, Score]
"""An exchange id and a score. The score's ``scorer`` is the name in the run."""
_TASK_COLUMNS = (
    "exchange_id", "scorer", "fingerprint", "state", "reason", "error", "claims", "first_pending_at", "scored_as",
    "retries",
)  # fmt: skip


def score_checksum(exchange_id: str, scorer: str, fingerprint: str, value: float) -> int:
    """Return the hash of a score, from 0 to 2**64 - 1.

    The sum of the hashes of a run's scores, modulo 2**64, does not depend on their order. A score that is missing or
    was written twice changes it.
    """
    text = f"{exchange_id}\0{scorer}\0{fingerprint}\0{value!r}"
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def write_scores(
    connection: Connection,
    process: str,
    results: Sequence[Result],
    fingerprints: Mapping[str, str],
    now: datetime,
    *,
    census: bool,
) -> ScoreCounts:
    """Write the results of rescoring.

    A score with the same fingerprint is replaced if there is a new value; scores with other fingerprints are kept.
    Nothing is written for exchanges that have been erased or deleted, and for tasks that a worker is scoring. The
    detectors do not process these scores, because they were not chosen at random. The fingerprint in a score may differ
    from that of the run. In a ``census``, all exchanges of a window are scored: their probability of being scored is
    that of being captured, and each of them counts once in the coverage, so that failures and skips with other
    fingerprints are replaced.
    """
    by_id: dict[str, list[Score]] = {}
    for exchange_id, result in results:
        by_id.setdefault(exchange_id, []).append(result)
    counts = ScoreCounts()
    for ids in batched(sorted(by_id)):
        # Erased exchanges are left out. The others are locked, so that no other process erases or deletes them.
        names = (*SHARED_COLUMNS, "capture_probability")
        columns = (exchange.c.id.label("exchange_id"), *(exchange.c[name] for name in names))
        has_id = is_one_of(exchange.c.id, ids, connection.dialect.name)
        query = select(*columns).where(has_id, exchange.c.erased_at.is_(None)).order_by(exchange.c.id)
        rows = connection.execute(query.with_for_update(key_share=True)).mappings()
        exchanges = {row["exchange_id"]: row for row in rows}
        tasks, locked = lock_answer_tasks(connection, list(exchanges))
        batch = _Batch(fingerprints, now, timestamp_encoder(connection.dialect.name), census=census)
        for exchange_id in ids:
            row = exchanges.get(exchange_id)
            for result in by_id[exchange_id]:
                pair = (exchange_id, result.scorer)
                if row is None or pair in locked:
                    batch.waiting += 1
                else:
                    batch.add(row, tasks.get(pair, ()), result)
        counts += batch.write(connection, process)
    return counts


class _Batch:
    """The rows to write for a batch of locked exchanges."""

    def __init__(
        self, fingerprints: Mapping[str, str], now: datetime, encode: TimestampEncoder, *, census: bool
    ) -> None:
        self.waiting = 0
        self._fingerprints, self._now, self._encode, self._census = fingerprints, now, encode, census
        self._tally_changes = TallyChanges()
        self._new_tasks: list[tuple[Any, ...]] = []
        self._changed_tasks: list[tuple[int, TaskEnd]] = []
        self._replaced: list[dict[str, str]] = []
        self._superseded: list[dict[str, int]] = []
        self._kept: list[dict[str, Any]] = []
        self._kept_at: set[datetime] = set()
        self._scores: list[tuple[Any, ...]] = []
        self._scored_ids: set[str] = set()
        self._states: Counter[str] = Counter()
        self._costs: list[float] = []
        self._checksum = 0

    def add(self, row: RowMapping, tasks: Sequence[RowMapping], result: Score) -> None:
        """Add the result of one scorer for one exchange, whose locked tasks of this scorer are given."""
        fingerprint = self._fingerprints[result.scorer]
        own = next((task for task in tasks if task["fingerprint"] == fingerprint), None)
        old_state = None if own is None else own["state"]
        if old_state in OPEN_STATES:  # workers or the sampler deal with it
            self.waiting += 1
            return
        self._states[result.state] += 1
        if result.cost is not None:
            self._costs.append(result.cost)
        names = (row["service"], row["route"], result.scorer)
        end = TaskEnd.of(result)
        if own is not None and old_state == "done" and result.value is None:  # the existing score stays in place
            self._changed_tasks.append((own["id"], end.keep(own["scored_as"])))
            if self._census:
                self._kept.append({**_key(own), "probability": row["capture_probability"]})
                self._kept_at.add(row["started_at"])
            return
        if own is None:
            key = (row["exchange_id"], result.scorer, fingerprint)
            at = self._encode(self._now)
            self._new_tasks.append((*key, end.state, end.reason, end.error, 0, at, end.scored_as, 0))
            self._tally_changes.add(row["started_at"], names, "seen")
        else:
            self._changed_tasks.append((own["id"], end))
            if old_state == "done":
                self._tally_changes.add(row["started_at"], names, "scored", by=-1)
                self._replaced.append(_key(own))
            else:
                self._tally_changes.add(row["started_at"], names, own["state"], own["reason"], by=-1)
        self._tally_changes.add(row["started_at"], names, result.state, end.reason or "")
        if self._census:
            is_new_score = result.value is not None and old_state != "done"
            self._count_once(row, names, [task for task in tasks if task is not own], is_new_score=is_new_score)
        if result.value is not None:
            self._add_score(row, result, result.value)

    def _add_score(self, row: RowMapping, result: Score, value: float) -> None:
        # In a census, sampling did not decide which exchanges are scored.
        probability = row["capture_probability"] if self._census else row["sampling_probability"]
        values = {**row, "sampling_probability": probability}
        self._scores.append(score_values(values, result, self._now, self._encode))
        self._scored_ids.add(row["exchange_id"])
        self._checksum += score_checksum(row["exchange_id"], result.scorer, result.fingerprint, value)

    def _count_once(
        self, row: RowMapping, names: tuple[str, str, str], others: Sequence[RowMapping], *, is_new_score: bool
    ) -> None:
        """Stop counting what tasks with other fingerprints count for the same exchange and scorer: unscored ones are
        deleted, and scores all count once.
        """
        at = row["started_at"]
        for task in others:
            if task["state"] in {"failed", "skipped"}:
                self._superseded.append({"task_id": task["id"]})
                self._tally_changes.add(at, names, "seen", by=-1)
                self._tally_changes.add(at, names, task["state"], task["reason"], by=-1)
        if is_new_score and any(task["state"] == "done" for task in others):
            self._tally_changes.add(at, names, "seen", by=-1)
            self._tally_changes.add(at, names, "scored", by=-1)

    def write(self, connection: Connection, process: str) -> ScoreCounts:
        """Write the collected rows, and return their numbers."""
        if self._superseded:
            connection.execute(_DELETE_TASK, self._superseded)
        close_tasks(connection, self._changed_tasks)
        if self._replaced:
            connection.execute(DELETE_REPLACED, self._replaced)
        if self._kept:
            # In a census, all scores of a window have the same weight.
            connection.execute(CHANGE_WEIGHT, self._kept)
            mark_dirty(connection, self._kept_at)
        bulk_insert(connection, scoring_task, _TASK_COLUMNS, self._new_tasks)
        bulk_insert(connection, score, SCORE_COLUMNS, self._scores)
        mark_for_sinks(connection, self._scored_ids)
        self._tally_changes.apply(connection, process)
        return ScoreCounts(
            scored=self._states["scored"],
            failed=self._states["failed"],
            skipped=self._states["skipped"],
            waiting=self.waiting,
            cost=sum(self._costs) if self._costs else None,
            checksum=self._checksum % 2**64,
        )


def _key(task: RowMapping) -> dict[str, str]:
    """Return the key of a task's score."""
    return {"of": task["exchange_id"], "by": task["scorer"], "made": score_key(dict(task))[1]}


_DELETE_TASK = delete(scoring_task).where(scoring_task.c.id == bindparam("task_id"))
