"""Size and speed of a large archive: python benchmarks/archive.py [--days N] [--scores N] [--folder PATH].

Two days are filled in with synthetic data (benchmarks/history.py). The older day is archived by germane itself; its
files are then copied, with other ids and times, to fill up the other days of the archive. Goals: overviews and trends
over windows in the archive within 500 ms at p95, and within 100 ms over the database. Windows begin and end at random
times. The exit code is 1 if a goal is missed. If the folder has a part of the archive, the rest is added.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from common import Goals, percentile, repeated
from history import History, fill
from sqlalchemy import insert, select

from germane.insights import InsightContext, ViewParams, load_overview
from germane.settings import Settings
from germane.storage import AnswerFilter, TrackingStore
from germane.storage.answers.archived_lowest import ENTRY
from germane.storage.archive.days import ArchivedDay
from germane.storage.archive.files import ROW_GROUP_ROWS, day_folder, open_writer
from germane.storage.archive.manifest import NAME
from germane.storage.archive.rows import arrow_schema
from germane.storage.db.tables import archived_day, archived_lowest, rollup, rollup_count, rollup_proxy
from germane.storage.trends.time_ranges import ARCHIVED_DAY

LAST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
"""The newest archived day. The database has the day after it."""
ARCHIVE_GOAL, DATABASE_GOAL = 0.5, 0.1
"""Goals in seconds."""
ONE_DAY = timedelta(days=1)
TIMES = {
    "exchange": ("started_at", "erased_at"),
    "score": ("started_at", "scored_at"),
    "scoring_task": ("first_pending_at",),
    "feedback": ("created_at",),
    "tally": ("minute",),
    "rollup": ("start", "latest"),
    "rollup_count": ("start",),
    "rollup_proxy": ("start",),
}
IDS = {"exchange": ("id", "trace_id"), "score": ("exchange_id",), "scoring_task": ("exchange_id",)}


def build(store: TrackingStore, folder: Path, days: int, scores: int) -> None:
    """Add missing days to the archive, newest first."""
    if not store.archive.list_days():
        started = time.perf_counter()
        fill(store, History(2 * scores // days, 2, LAST_DAY + 2 * ONE_DAY))
        store.rollups.update()
        results = store.archive.archive_days(str(folder), before=LAST_DAY + ONE_DAY)
        print(f"archived {[result.day for result in results]} in {time.perf_counter() - started:.0f} s", flush=True)
    template = next(day for day in store.archive.list_days() if day.day == LAST_DAY)
    rows = load_summary(store)
    existing = {day.day for day in store.archive.list_days()}
    with closing(duckdb.connect(config={"threads": 1})) as database:
        for number in range(1, days):
            day = LAST_DAY - number * ONE_DAY
            if day not in existing:
                copy_day(store, database, template, day, rows)


def load_summary(store: TrackingStore) -> dict[Any, list[dict[str, Any]]]:
    """Return the newest archived day's rollups and lowest scores in the database."""
    queries = {
        table: select(table).where(table.c.span == ARCHIVED_DAY, table.c.start == LAST_DAY)
        for table in (rollup, rollup_count, rollup_proxy)
    }
    queries[archived_lowest] = select(archived_lowest).where(archived_lowest.c.day == LAST_DAY)
    with store.context.database.read() as connection:
        return {table: [dict(row) for row in connection.execute(query).mappings()] for table, query in queries.items()}


def copy_day(
    store: TrackingStore,
    database: Any,
    template: ArchivedDay,
    day: datetime,
    summary: dict[Any, list[dict[str, Any]]],
) -> None:
    """Write the files of another day, with the template's rows at other times and with other ids."""
    shift = (LAST_DAY - day).days
    source = Path(template.location, day_folder(template.manifest.day))
    target = Path(template.location, day_folder(f"{day:%Y-%m-%d}"))
    target.mkdir(exist_ok=True)
    files = {}
    for table, file in template.manifest.files.items():
        changes = [f"{name} - INTERVAL {shift} DAY AS {name}" for name in TIMES[table]]
        # Real ids start with 0, and therefore differ from these.
        changes += [f"printf('%03x', 256 + {shift}) || substr({name}, 4) AS {name}" for name in IDS.get(table, ())]
        rows = f"read_parquet('{source / file.name}', hive_partitioning = false)"
        query = f"SELECT * REPLACE ({', '.join(changes)}) FROM {rows}"
        with open_writer(str(target / file.name), table) as writer:
            copied = database.sql(query).to_arrow_table().cast(arrow_schema(table))
            writer.write_table(copied, row_group_size=ROW_GROUP_ROWS)
        content = (target / file.name).read_bytes()
        files[table] = replace(file, size=len(content), sha256=sha256(content).hexdigest())
    manifest = replace(template.manifest, day=f"{day:%Y-%m-%d}", files=files)
    (target / NAME).write_bytes(manifest.dump())
    moved = timedelta(days=shift)
    with store.context.database.write() as connection:
        values = {"day": day, "location": template.location, "state": "removed", "removed_before": day + ONE_DAY}
        more = {"dimensions": list(template.dimensions), "has_stale_files": False, "written_at": LAST_DAY}
        more |= {"has_lowest": True, "labels": template.manifest.rows("feedback")}
        connection.execute(insert(archived_day).values(**values, **more, manifest=manifest.to_json()))
        for table, rows in summary.items():
            shifted = [{name: shift_value(name, value, moved) for name, value in row.items()} for row in rows]
            if shifted:
                connection.execute(insert(table), shifted)


def shift_value(name: str, value: Any, moved: timedelta) -> Any:
    """Return a column's value for a day that is earlier."""
    if name == "entries":
        entries = np.frombuffer(value, ENTRY).copy()
        entries["started_at"] -= moved // timedelta(microseconds=1)
        return entries.tobytes()
    return value - moved if name in {"start", "day", "latest"} else value


def measure(store: TrackingStore, days: int, runs: int, goals: Goals) -> None:
    """Measure overviews, trends and lists over random windows."""
    chance = random.Random(1)
    first, until = LAST_DAY - (days - 1) * ONE_DAY, LAST_DAY + 2 * ONE_DAY
    context = InsightContext(store=store, settings=Settings(), now=lambda: until)

    def window(length: timedelta) -> tuple[datetime, datetime]:
        latest = LAST_DAY + ONE_DAY - length - ONE_DAY
        since = first + (latest - first) * chance.random() if latest > first else first + timedelta(minutes=61)
        return since, since + length

    def overview(since: datetime, end: datetime) -> object:
        return load_overview(context, ViewParams(window="", since=since, until=end, zone=UTC))

    def trend(since: datetime, end: datetime) -> object:
        view = ViewParams(window="", since=since, until=end)
        return store.trends.over_time(scorer="answer_relevancy", bucket=view.bucket, since=since, until=end)

    recent = (until - timedelta(hours=23, minutes=17), until)
    for name, call in (("overview", overview), ("trend", trend)):
        for length in (each for each in (7, 30, 90, 365, days - 1) if each < days):
            windows = iter([window(timedelta(days=length)) for _ in range(runs)])
            seconds = repeated(runs, lambda call=call, windows=windows: call(*next(windows)))  # type: ignore[misc]
            title = f"{name}, {length} days of the archive, p95"
            goals.line(title, percentile(seconds, 0.95), "s", most=ARCHIVE_GOAL)
        seconds = repeated(runs, lambda call=call: call(*recent))  # type: ignore[misc]
        goals.line(f"{name}, 23 hours of the database, p95", percentile(seconds, 0.95), "s", most=DATABASE_GOAL)
    month = AnswerFilter(since=LAST_DAY - 30 * ONE_DAY, until=LAST_DAY)
    answer_id = store.answers.list_exchanges(until=LAST_DAY, limit=1)[0].id
    for name, search in {
        "30 lowest answers of 30 archived days": lambda: store.answers.worst(
            since=month.since, until=month.until, limit=30
        ),
        "newest answers of 30 archived days": lambda: store.answers.search(month, sort="newest"),
        "one archived answer by id": lambda: store.answers.load_detail(answer_id),
    }.items():
        goals.line(f"{name}, p95", percentile(repeated(max(3, runs // 5), search), 0.95), "s")


def main() -> int:
    """Run the benchmark; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--days", type=int, default=730)
    parser.add_argument("--scores", type=int, default=100_000_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="keep the database and the archive in this folder")
    given = parser.parse_args()
    goals = Goals()
    with tempfile.TemporaryDirectory(prefix="germane-archive-") as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        with closing(TrackingStore(f"sqlite:///{folder / 'germane.db'}")) as store:
            store.migrate()
            started = time.perf_counter()
            build(store, folder / "archive", given.days, given.scores)
            print(f"{given.days} days after {time.perf_counter() - started:.0f} s", flush=True)
            summary = store.archive.summarize()
            goals.line("scores in the archive", summary.scores)
            goals.line("size of the archive", summary.size / 1e9, "GB")
            goals.line("bytes per score", summary.size / summary.scores)
            for table in summary.days[0].manifest.files:
                size = sum(day.manifest.files[table].size for day in summary.days)
                goals.line(f"  of these, {table}", size / summary.scores)
            goals.line("size of the database", store.retention.measure_size() / 1e6, "MB")
            measure(store, given.days, given.runs, goals)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
