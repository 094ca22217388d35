"""Data for the tests of the archive: three days of scored exchanges."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from germane.annotation import Feedback
from germane.exchange import Context, Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.archive.days import load_day, update_day
from germane.storage.archive.files import day_folder, write_manifest
from germane.storage.archive.rows import from_batch, hash_rows, sum_hashes
from germane.testing import transaction

FIRST_DAY = datetime(2026, 2, 1, tzinfo=UTC)
DAYS = 3
SINCE, UNTIL = FIRST_DAY - timedelta(days=1), FIRST_DAY + timedelta(days=30)
OLD = FIRST_DAY + timedelta(days=10)
"""Later than all data."""
SCORERS = {"relevancy": "f1"}
Make = Callable[..., Exchange]


def exchange_id(moment: datetime, number: int) -> str:
    """Return an id that starts with the time, as germane's own ids do."""
    return f"{int(moment.timestamp() * 1000):012x}{number:020x}"


def fill(store: TrackingStore, make: Make, *, count: int = 60, days: int = DAYS, seed: int = 1) -> list[Exchange]:
    """Write exchanges that are spread over whole days, score them, and label some."""
    chance = random.Random(seed)
    moments = [FIRST_DAY + timedelta(seconds=chance.uniform(0, days * 86_400)) for _ in range(count)]
    exchanges = [
        make(
            id=exchange_id(moment, 1000 * seed + number),
            started_at=moment,
            route=("ask", "find")[number % 2],
            model=("m1", "m2", None)[number % 3],
            user=f"u{number % 4}",
            session=f"s{number % 5}",
            contexts=[Context("Cards are accepted.")],
            attributes={"tenant": f"t{number % 2}", "seats": number % 3, "trial": bool(number % 2)},
            duration=chance.random(),
        )
        for number, moment in enumerate(sorted(moments))
    ]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [
            SamplingDecision(one.id, chance.choice([0.5, 1.0]), "uniform", proxy=0.5, proxy_probability=0.8)
            for one in exchanges
        ],
        SCORERS,
    )
    complete(store, chance)
    given = [
        Feedback(id=f"{seed}-{one.id}", exchange_id=one.id, score=1.0, comment="right", user="u9", created_at=UNTIL)
        for one in exchanges[::7]
    ]
    store.labels.add_feedback(given)
    store.rollups.update(breakdowns=("model",))
    return exchanges


def complete(store: TrackingStore, chance: random.Random) -> None:
    """Score all open tasks."""
    while claims := store.queue.claim_tasks("me", SCORERS, limit=100, lease=timedelta(minutes=1)):
        results = [(task, _score(chance)) for claim in claims for task in claim.tasks]
        store.queue.complete_tasks("me", results)


def _score(chance: random.Random) -> Score:
    value = chance.choice([0.0, round(chance.random(), 3)])
    return Score(
        scorer="relevancy",
        fingerprint="f1",
        value=value,
        label="noncommittal" if value == 0.0 else None,
        explanation="The answer names cards.",
        details={"questions": 3, "quote": "By card."},
        cost=0.001,
    )


def archive(store: TrackingStore, location: str, **options: Any) -> list[Any]:
    """Archive all closed days."""
    return store.archive.archive_days(location, before=OLD, **options)


def write_as_older_revision(store: TrackingStore, day: datetime, added: Mapping[str, Sequence[str]]) -> None:
    """Replace a day's files with those that an older revision of the tables would have written.

    Args:
        store: The database.
        day: Start of the day.
        added: Columns that later migrations have added, by table. They have also dropped a column.
    """
    with transaction(store) as connection:
        record = load_day(connection, day, lock=True)
        assert record is not None
        folder, files = day_folder(record.manifest.day), dict(record.manifest.files)
        for table, names in added.items():
            rows = pq.read_table(record.files.read(folder, files[table].name)).drop_columns(list(names))
            rows = rows.append_column("dropped", pa.array(range(len(rows))))
            stored = BytesIO()
            pq.write_table(rows, stored)
            content = stored.getvalue()
            name = f"{table}-older.parquet"
            with record.files.writing(folder, name) as file:
                file.write(content)
            record.files.delete(folder, [files[table].name])
            checksum = sum_hashes(hash_rows(row for batch in rows.to_batches() for row in from_batch(batch)))
            files[table] = replace(
                files[table], name=name, size=len(content), sha256=sha256(content).hexdigest(), content=checksum
            )
        manifest = replace(record.manifest, revision="0.0.9", files=files)
        update_day(connection, day, manifest=manifest.to_json())
    write_manifest(record.files, manifest)
