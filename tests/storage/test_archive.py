"""Moving days to the archive, and what the archive then contains."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event, func, select
from tests.docs.blocks import of
from tests.storage.archive_templates import POSTGRESQL_IS_SLOW, Copy
from tests.storage.archiving import FIRST_DAY, SINCE, UNTIL, Make, archive, fill

from germane.annotation import Feedback
from germane.errors import ArchiveError
from germane.statistics.histogram import Histogram
from germane.storage import ExportSelection, TrackingStore
from germane.storage.archive import reader
from germane.storage.archive.days import ArchivedDay
from germane.storage.archive.files import open_writer
from germane.storage.archive.rows import arrow_schema
from germane.storage.db.tables import exchange, feedback, score, scoring_task, tally
from germane.storage.retention import archiving
from germane.testing import transaction

TABLES = (exchange, scoring_task, score, feedback, tally)
DAYS = [FIRST_DAY, FIRST_DAY + timedelta(days=1)]
WINDOW = {"since": SINCE, "until": UNTIL}


def counts(store: TrackingStore) -> dict[str, int]:
    with transaction(store, read_only=True) as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in TABLES
        }


def archived_counts(store: TrackingStore) -> dict[str, int]:
    total: Counter[str] = Counter()
    for day in store.archive.list_days():
        total.update({table.name: day.manifest.rows(table.name) for table in TABLES})
    return dict(total)


def trends(store: TrackingStore) -> dict[Any, Any]:
    """Return all kinds of trends, with whole and ragged windows."""
    ragged = {"since": FIRST_DAY + timedelta(hours=5, minutes=7), "until": FIRST_DAY + timedelta(days=1, minutes=3)}
    found: dict[Any, Any] = {
        "summary": store.trends.summary(**WINDOW),
        "coverage": store.trends.coverage(**WINDOW),
        "window": store.trends.window_summary(**ragged),
        "always": store.trends.summary(),
        "labels": store.trends.summary_by_label(by="model", scorer="relevancy", **WINDOW),
    }
    breakdowns = {1: (None, "model"), 6: (None,), 24: (None, "route", "model", "attributes.tenant"), 168: (None,)}
    for hours, names in breakdowns.items():
        for name, window in (("whole", WINDOW), ("ragged", ragged)):
            for by in names:
                bucket = timedelta(hours=hours)
                found[hours, name, by] = store.trends.over_time(scorer="relevancy", bucket=bucket, by=by, **window)
    return found


def plain(value: Any) -> Any:
    """Return values that pytest.approx can compare."""
    if isinstance(value, Histogram):
        return list(value.weights)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return {number: plain(item) for number, item in enumerate(value)}
    return value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {name: leaf for key, item in value.items() for name, leaf in flat(item, f"{path}.{key}").items()}
    return {path: value}


def assert_same_trends(before: dict[Any, Any], after: dict[Any, Any]) -> None:
    first, second = flat(plain(before)), flat(plain(after))
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert second[name] == (pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value), name


@pytest.mark.slow
def test_archived_days_leave_the_database_and_stay_in_trends(filled: Copy) -> None:
    """All rows move, none is lost, and every trend is as before."""
    store = filled.store
    before, rows = trends(store), counts(store)

    results = archive(store, str(filled.folder))

    assert [result.day for result in results] == DAYS
    assert not any(counts(store).values())
    assert archived_counts(store) == rows
    assert {day.state for day in store.archive.list_days()} == {"removed"}
    assert_same_trends(before, trends(store))
    store.rollups.update()
    assert_same_trends(before, trends(store))
    assert store.integrity.check_integrity().wrong_hours == []


def test_the_documented_query_reads_the_files(sqlite_archived: Copy) -> None:
    """DuckDB reads the archive without germane."""
    (block,) = of("sql duckdb")

    rows = duckdb.connect().execute(block.text.replace("'archive/", f"'{sqlite_archived.folder}/")).fetchall()

    assert len(rows) == len(DAYS)


def test_archiving_again_changes_nothing(sqlite_archived: Copy) -> None:
    store, folder = sqlite_archived.store, sqlite_archived.folder
    files = sorted(folder.rglob("*"))
    store.rollups.update()

    assert archive(store, str(folder)) == []
    assert sorted(folder.rglob("*")) == files


def test_files_contain_no_text_by_default(sqlite_archived: Copy) -> None:
    """Questions, answers, contexts, explanations, quotes and comments are left out; numbers are kept."""
    folder = sqlite_archived.folder

    assert not any(word in path.read_bytes() for path in folder.rglob("*.parquet") for word in (b"card", b"right"))
    table = pq.read_table(file_of(sqlite_archived, "exchange"))
    assert table["question"].null_count == len(table)
    assert table["erased_at"].null_count == 0
    assert {json.dumps({"questions": 3})} == {
        json.dumps(json.loads(text)) for text in pq.read_table(file_of(sqlite_archived, "score"))["details"].to_pylist()
    }


def test_files_contain_text_if_configured(sqlite_filled: Copy) -> None:
    archive_first_day(sqlite_filled, has_text=True)

    assert set(pq.read_table(file_of(sqlite_filled, "exchange"))["question"].to_pylist()) == {"How do I pay?"}


def test_days_with_unfinished_work_are_not_archived(sqlite_filled: Copy, make: Make) -> None:
    """A day with undecided exchanges, open tasks or changed hours is not archived."""
    sqlite_filled.store.exchanges.add([make(started_at=FIRST_DAY + timedelta(hours=3))])
    results = archive(sqlite_filled.store, str(sqlite_filled.folder))

    assert [result.waiting_for for result in results] == ["1 exchange without a sampling decision", None]
    assert [day.day for day in sqlite_filled.store.archive.list_days()] == DAYS[1:]


def test_a_dry_run_changes_nothing(sqlite_filled: Copy) -> None:
    rows = counts(sqlite_filled.store)

    results = archive(sqlite_filled.store, str(sqlite_filled.folder), dry_run=True)

    assert len(results) == len(DAYS)
    assert counts(sqlite_filled.store) == rows
    assert not sqlite_filled.folder.exists()


def test_recent_days_stay_in_the_database(sqlite_filled: Copy) -> None:
    """A day is archived only if all of it is old enough."""
    before = FIRST_DAY + timedelta(days=1, hours=23)
    results = sqlite_filled.store.archive.archive_days(str(sqlite_filled.folder), before=before)

    assert [result.day for result in results] == [FIRST_DAY]


@pytest.mark.slow
def test_late_rows_are_added_to_an_archived_day(archived: Copy, make: Make) -> None:
    """They count at once, and the next run moves them to the archive."""
    store = archived.store
    fill(store, make, count=20, days=2, seed=2)
    before, rows = trends(store), Counter(counts(store)) + Counter(archived_counts(store))
    assert sum(summary.n for summary in store.trends.summary()) == 80

    archive(store, str(archived.folder))

    assert not any(counts(store).values())
    moved = archived_counts(store)
    assert {name: moved[name] for name in ("exchange", "score", "scoring_task", "feedback")} == {
        name: rows[name] for name in ("exchange", "score", "scoring_task", "feedback")
    }
    assert_same_trends(before, trends(store))
    assert store.archive.verify() == {}


def test_a_changed_day_is_written_again(sqlite_filled: Copy) -> None:
    """A label that arrives between writing and removal is archived too."""
    store = sqlite_filled.store
    rows = Counter(counts(store))
    run_until(sqlite_filled, "written")
    label = Feedback(id="late", exchange_id=sqlite_filled.exchanges[0].id, score=0.0, created_at=UNTIL)
    store.labels.add_feedback([label])

    archive_first_day(sqlite_filled)

    assert Counter(archived_counts(store)) + Counter(counts(store)) == rows + Counter(feedback=1)
    detail = store.answers.load_detail(label.exchange_id)
    assert detail is not None
    assert label.id in {one.id for one in detail.feedback}
    with transaction(store, read_only=True) as connection:
        assert not connection.execute(select(feedback).where(feedback.c.id == label.id)).all()


def run_until(copy: Copy, state: str) -> None:
    """Stop archiving as soon as the first day is in a state."""
    archive_first_day(copy, stopping=lambda: any_day(copy, lambda day: day.state == state))


def any_day(copy: Copy, matches: Callable[[ArchivedDay], bool]) -> bool:
    return any(map(matches, copy.store.archive.list_days()))


def archive_first_day(copy: Copy, **options: Any) -> None:
    copy.store.archive.archive_days(str(copy.folder), before=DAYS[1], **options)


def file_of(copy: Copy, table: str, day: datetime = FIRST_DAY) -> Path:
    """Return the file of a day's rows of a table."""
    (path,) = copy.folder.glob(f"day={day:%Y-%m-%d}/{table}-*.parquet")
    return path


def test_verification_finds_a_truncated_file(sqlite_archived: Copy) -> None:
    path = file_of(sqlite_archived, "score")
    path.write_bytes(path.read_bytes()[:-1])

    problems = sqlite_archived.store.archive.verify()

    assert list(problems) == [FIRST_DAY]
    assert f"{path.name} has " in problems[FIRST_DAY]
    with pytest.raises(ArchiveError, match=r"1 day of the archive could not be read: 2026-02-01: score-.* has"):
        trends(sqlite_archived.store)


def test_verification_finds_a_swapped_file(sqlite_archived: Copy) -> None:
    """A file with another day's content is found, even if it is valid."""
    first, second = (file_of(sqlite_archived, "score", day) for day in DAYS)
    shutil.copy(second, first)

    assert list(sqlite_archived.store.archive.verify()) == [FIRST_DAY]


def test_verification_finds_a_missing_file_and_a_flipped_bit(sqlite_archived: Copy) -> None:
    file_of(sqlite_archived, "exchange").unlink()
    path = file_of(sqlite_archived, "score", DAYS[1])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    problems = sqlite_archived.store.archive.verify()

    assert [problem.rpartition(" ")[0].partition("parquet ")[2] for problem in problems.values()] == [
        "is",
        "has changed since it was",
    ]
    with pytest.raises(ArchiveError, match=r"could not be read: 2026-02-02: score-.* has changed since it was written"):
        trends(sqlite_archived.store)
    path.unlink()
    with pytest.raises(ArchiveError, match=r"could not be read: 2026-02-02: score-.* is missing"):
        trends(sqlite_archived.store)


def test_a_flipped_bit_in_any_file_never_changes_what_is_read(sqlite_archived: Copy) -> None:
    """Trends and exports either fail, or do not depend on the file. They are right again once the file is restored."""
    store = sqlite_archived.store

    def read() -> tuple[object, object]:
        stored = store.transfer.load_stored(ExportSelection(), limit=1000)
        return store.trends.coverage(), [(one.exchange, one.parts) for one in stored]

    before = read()
    chance = random.Random(0)
    named = set()
    for path in [path for path in sqlite_archived.folder.rglob("*") if path.is_file()]:
        content = bytearray(path.read_bytes())
        position, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
        content[position] ^= bit
        path.write_bytes(content)
        try:
            assert read() == before, path
        except ArchiveError as error:
            assert f"{path.name} has changed since it was written" in str(error)  # noqa: PT017 - may not be raised
            named.add(path.name.partition("-")[0])
        content[position] ^= bit
        path.write_bytes(content)

    assert read() == before
    assert named >= {"exchange", "score", "scoring_task", "feedback"}


def test_queries_of_a_page_read_rows_of_the_archive_once(sqlite_filled: Copy) -> None:
    """They share sums by day, from which each computes its own buckets and groups. Files are still checked."""
    statements: list[str] = []
    window: dict[str, Any] = {
        "since": FIRST_DAY + timedelta(hours=5, minutes=7),
        "until": FIRST_DAY + timedelta(hours=40),
    }
    days = [timedelta(days=days) for days in (1, 2, 7)]

    def read() -> dict[Any, Any]:
        trends = sqlite_filled.store.trends
        chosen = {"scorer": "relevancy", **window}
        found: dict[Any, Any] = {"window": trends.window_summary(**chosen)}
        for bucket in days:
            found[bucket, "all"] = trends.over_time(bucket=bucket, histograms=False, **chosen)
            found[bucket, "by route"] = trends.over_time(bucket=bucket, by="route", histograms=False, **chosen)
            found[bucket, "routes"] = trends.routes_over_time(bucket=bucket, routes=["ask"], **chosen)
        return found

    def count(*details: Any) -> None:
        statements.append(details[2])

    expected = read()
    archive(sqlite_filled.store, str(sqlite_filled.folder))
    event.listen(reader._engine(), "before_cursor_execute", count)
    try:
        assert_same_trends(expected, read())
        assert_same_trends(expected, read())
    finally:
        event.remove(reader._engine(), "before_cursor_execute", count)

    assert sorted(statement.split("FROM ")[1].split()[0] for statement in statements) == ["exchange", "score", "tally"]
    file_of(sqlite_filled, "score").unlink()
    with pytest.raises(ArchiveError, match="is missing"):
        read()


def test_kept_sums_are_bounded(sqlite_archived: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_KEPT_VALUES", 100)
    trends, before = sqlite_archived.store.trends, set(reader._idle)

    for minutes in range(20):
        trends.window_summary(since=FIRST_DAY + timedelta(minutes=minutes + 1), until=FIRST_DAY + timedelta(hours=30))

    kept = [one.kept for key, one in reader._idle.items() if key not in before]
    assert kept
    assert all(sum(1 + sum(map(len, rows)) for rows in one.values()) <= 100 for one in kept)


@pytest.mark.skipif(os.name != "posix", reason="needs file permissions")
def test_only_the_owner_may_read_archived_files(sqlite_archived: Copy) -> None:
    """They contain what the database's file contains, which only its owner may read."""
    modes = {stat.S_IMODE(path.stat().st_mode) for path in sqlite_archived.folder.rglob("*") if path.is_file()}

    assert modes == {0o600}


def test_damaged_days_do_not_affect_windows_that_do_not_reach_them(sqlite_archived: Copy) -> None:
    shutil.rmtree(sqlite_archived.folder)

    assert sqlite_archived.store.trends.summary(since=FIRST_DAY + timedelta(days=len(DAYS))) == []


@pytest.mark.parametrize("state", ["written", "verified"])
def test_files_that_are_damaged_before_the_removal_begins_are_written_again(sqlite_filled: Copy, state: str) -> None:
    """The database still has all of their rows."""
    store = sqlite_filled.store
    rows = Counter(counts(store))
    run_until(sqlite_filled, state)
    shutil.rmtree(sqlite_filled.folder)

    archive_first_day(sqlite_filled)

    assert [day.state for day in store.archive.list_days()] == ["removed"]
    assert Counter(archived_counts(store)) + Counter(counts(store)) == rows
    assert store.archive.verify() == {}


def test_rows_are_removed_only_if_the_files_contain_them(sqlite_filled: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is damaged after the removal has begun stops the removal."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 5)
    store = sqlite_filled.store
    archive_first_day(sqlite_filled, stopping=lambda: any_day(sqlite_filled, is_partly_removed))
    file_of(sqlite_filled, "score").write_bytes(b"")
    rows = counts(store)
    assert rows["exchange"] > len(sqlite_filled.exchanges) / 2

    with pytest.raises(ArchiveError, match="has 0 bytes"):
        archive_first_day(sqlite_filled)

    assert counts(store) == rows


def is_partly_removed(day: ArchivedDay) -> bool:
    return day.day < day.removed_before < day.day + timedelta(days=1)


def test_a_used_archive_that_is_empty_is_not_used(sqlite_filled: Copy) -> None:
    """Its file system may not be mounted. Rows that were moved to the folder below would be missing later."""
    store, folder = sqlite_filled.store, sqlite_filled.folder
    archive_first_day(sqlite_filled)
    shutil.rmtree(folder)
    folder.mkdir()
    rows = counts(store)
    assert rows["exchange"]

    with pytest.raises(ArchiveError, match=r"has no file germane-archive\.json, although days were moved to it: mount"):
        archive(store, str(folder))

    assert (counts(store), list(folder.iterdir())) == (rows, [])


def before_switching(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Call a function whenever a day's new files are written, before they are used."""
    write = archiving.DayArchiver._write

    def write_and_act(self: archiving.DayArchiver, *arguments: Any) -> Any:
        written = write(self, *arguments)
        action()
        return written

    monkeypatch.setattr(archiving.DayArchiver, "_write", write_and_act)


def test_rows_that_keep_arriving_for_an_archived_day_delay_it(
    sqlite_filled: Copy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later days are still archived, and forgetting a user asks for another run."""
    monkeypatch.setattr(archiving, "_MAX_STEPS", 2)
    store = sqlite_filled.store
    archive_first_day(sqlite_filled)
    seeds = iter(range(2, 100))
    fill(store, make, count=5, days=1, seed=next(seeds))
    before_switching(monkeypatch, lambda: fill(store, make, count=1, days=1, seed=next(seeds)))

    first, second = archive(store, str(sqlite_filled.folder))

    assert (first.waiting_for, second.waiting_for) == ("its rows keep changing", None)
    with pytest.raises(ArchiveError, match="because its rows keep changing: run the command again"):
        store.retention.forget(user="u1")


def test_a_stop_ends_the_rewriting_of_a_day_whose_rows_keep_changing(
    sqlite_archived: Copy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run continues with the rows that are left, and loses none."""
    store, folder = sqlite_archived.store, sqlite_archived.folder
    seeds = iter(range(2, 100))
    fill(store, make, count=5, days=1, seed=next(seeds))
    written: list[int] = []

    def interrupt() -> None:
        written.append(len(written))
        fill(store, make, count=1, days=1, seed=next(seeds))

    with monkeypatch.context() as patched:
        before_switching(patched, interrupt)
        archive(store, str(folder), stopping=lambda: bool(written))
    total = store.trends.coverage(**WINDOW)
    archive(store, str(folder))

    assert written == [0]
    assert counts(store)["exchange"] == 0
    assert store.trends.coverage(**WINDOW) == total


@POSTGRESQL_IS_SLOW
def test_scores_count_once_while_a_day_is_removed(filled: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days in another timezone, and hours, are read from hourly rollups. The removal may stop within an hour."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 8)
    store = filled.store

    def count() -> list[tuple[int, int]]:
        found = []
        for hours in (1, 24):
            chosen: dict[str, Any] = {**WINDOW, "bucket": timedelta(hours=hours), "timezone": ZoneInfo("Europe/Berlin")}
            scores = store.trends.over_time(scorer="relevancy", **chosen)
            coverage = store.trends.coverage_over_time(scorer="relevancy", **chosen)
            found.append((sum(one.n for one in scores), sum(one.seen for one in coverage)))
        return found

    assert count() == [(60, 60), (60, 60)]
    archive(
        store,
        str(filled.folder),
        stopping=lambda: any_day(filled, lambda day: day.day > FIRST_DAY and is_partly_removed(day)),
    )

    assert store.archive.list_days()[1].removed_before.minute
    assert count() == [(60, 60), (60, 60)]


def test_files_of_an_interrupted_write_are_deleted(sqlite_filled: Copy) -> None:
    day = sqlite_filled.folder / f"day={FIRST_DAY:%Y-%m-%d}"
    day.mkdir(parents=True)
    (day / "score-00000000.parquet").write_bytes(b"half")
    (day / ".tmp-exchange-00000000.parquet").write_bytes(b"half")

    archive_first_day(sqlite_filled)

    assert list(day.glob("score-*.parquet"))
    assert not list(day.glob("*00000000.parquet"))


def test_retention_does_not_delete_days_that_are_not_archived(filled: Copy, clock: Any) -> None:
    """With an archive, neither age nor size deletes exchanges from the database."""
    rows = counts(filled.store)

    with closing(TrackingStore(filled.url, clock=clock, archive=str(filled.folder))) as store:
        store.retention.prune(before=clock.now, max_size=1)

    assert counts(filled.store) == rows


def test_columns_whose_values_rarely_repeat_have_no_dictionary(tmp_path: Path) -> None:
    """A dictionary of ids, times and scores would make the files of scores a third larger."""
    schema, digits, count = arrow_schema("score"), random.Random(1), 20_000
    moments = [FIRST_DAY + timedelta(milliseconds=4 * number) for number in range(count)]
    values: dict[str, list[Any]] = {
        "id": list(range(count)),
        "exchange_id": [f"{round(at.timestamp() * 1000):012x}{digits.getrandbits(80):020x}" for at in moments],
        "route": [digits.choice(("/ask", "/search")) for _ in moments],
        "started_at": moments,
        "scored_at": moments,
        "value": [digits.random() for _ in moments],
    }
    rows = pa.table({name: values.get(name, [None] * count) for name in schema.names}, schema)
    with open_writer(str(tmp_path / "archived.parquet"), "score") as writer:
        writer.write_table(rows)
    pq.write_table(rows, tmp_path / "default.parquet", compression="zstd")

    encodings = {
        column.path_in_schema: column.encodings
        for column in map(pq.read_metadata(tmp_path / "archived.parquet").row_group(0).column, range(len(schema)))
    }

    assert pq.read_table(tmp_path / "archived.parquet").equals(rows)
    assert (tmp_path / "archived.parquet").stat().st_size < 0.8 * (tmp_path / "default.parquet").stat().st_size
    assert "RLE_DICTIONARY" in encodings["route"]
    assert not [name for name in ("id", "exchange_id", "started_at", "value") if "RLE_DICTIONARY" in encodings[name]]
