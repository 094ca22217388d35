"""Moving days to the archive, and what the archive then contains."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select
from tests.docs.blocks import of
from tests.storage.archiving import DAYS, FIRST_DAY, SINCE, UNTIL, Make, archive, fill

from germane.annotation import Feedback
from germane.errors import ArchiveError
from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.storage.archive.files import open_writer
from germane.storage.archive.rows import arrow_schema
from germane.storage.db.tables import exchange, feedback, score, scoring_task, tally
from germane.storage.retention import archiving
from germane.storage.stats.histogram import Histogram

TABLES = (exchange, scoring_task, score, feedback, tally)
WINDOW = {"since": SINCE, "until": UNTIL}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def counts(store: TrackingStore) -> dict[str, int]:
    with store._database.read() as connection:
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
    for hours in (1, 6, 24, 168):
        for name, window in (("whole", WINDOW), ("ragged", ragged)):
            for by in (None, "route", "model", "attributes.tenant"):
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
def test_archived_days_leave_the_database_and_stay_in_trends(store: TrackingStore, make: Make, folder: Path) -> None:
    """All rows move, none is lost, and every trend is as before."""
    fill(store, make)
    before, rows = trends(store), counts(store)

    results = archive(store, str(folder))

    assert [result.day for result in results] == [FIRST_DAY + timedelta(days=number) for number in range(DAYS)]
    assert not any(counts(store).values())
    assert archived_counts(store) == rows
    assert {day.state for day in store.archive.list_days()} == {"removed"}
    assert_same_trends(before, trends(store))
    store.rollups.update()
    assert_same_trends(before, trends(store))
    assert store.integrity.check_integrity().wrong_hours == []


def test_the_documented_query_reads_the_files(store: TrackingStore, make: Make, folder: Path) -> None:
    """DuckDB reads the archive without germane."""
    fill(store, make)
    archive(store, str(folder))
    (block,) = of("sql duckdb")

    rows = duckdb.connect().execute(block.text.replace("'archive/", f"'{folder}/")).fetchall()

    assert len(rows) == DAYS


def test_archiving_again_changes_nothing(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    archive(store, str(folder))
    files = sorted(folder.rglob("*"))
    store.rollups.update()

    assert archive(store, str(folder)) == []
    assert sorted(folder.rglob("*")) == files


def test_files_contain_no_text_by_default(store: TrackingStore, make: Make, folder: Path) -> None:
    """Questions, answers, contexts, explanations, quotes and comments are left out; numbers are kept."""
    fill(store, make)
    archive(store, str(folder))

    assert not any(word in path.read_bytes() for path in folder.rglob("*.parquet") for word in (b"card", b"right"))
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/exchange-*.parquet")
    table = pq.read_table(path)
    assert table["question"].null_count == len(table)
    assert table["erased_at"].null_count == 0
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/score-*.parquet")
    assert {json.dumps({"questions": 3})} == {
        json.dumps(json.loads(text)) for text in pq.read_table(path)["details"].to_pylist()
    }


def test_files_contain_text_if_configured(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    archive(store, str(folder), has_text=True)

    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/exchange-*.parquet")
    assert set(pq.read_table(path)["question"].to_pylist()) == {"How do I pay?"}


def test_days_with_unfinished_work_are_not_archived(store: TrackingStore, make: Make, folder: Path) -> None:
    """A day with undecided exchanges, open tasks or changed hours is not archived."""
    fill(store, make)
    late = make(started_at=FIRST_DAY + timedelta(hours=3))
    store.exchanges.add([late])
    results = archive(store, str(folder))

    assert results[0].waiting_for == "1 exchange without a sampling decision"
    assert [result.waiting_for for result in results[1:]] == [None, None]
    assert FIRST_DAY not in {day.day for day in store.archive.list_days()}


def test_a_dry_run_changes_nothing(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    rows = counts(store)

    results = archive(store, str(folder), dry_run=True)

    assert len(results) == DAYS
    assert counts(store) == rows
    assert not folder.exists()


def test_recent_days_stay_in_the_database(store: TrackingStore, make: Make, folder: Path) -> None:
    """A day is archived only if all of it is old enough."""
    fill(store, make)

    results = store.archive.archive_days(str(folder), before=FIRST_DAY + timedelta(days=1, hours=23))

    assert [result.day for result in results] == [FIRST_DAY]


@pytest.mark.slow
def test_late_rows_are_added_to_an_archived_day(store: TrackingStore, make: Make, folder: Path) -> None:
    """They count at once, and the next run moves them to the archive."""
    fill(store, make)
    archive(store, str(folder))
    fill(store, make, count=20, seed=2)
    before, rows = trends(store), Counter(counts(store)) + Counter(archived_counts(store))
    assert sum(summary.n for summary in store.trends.summary()) == 80

    archive(store, str(folder))

    assert not any(counts(store).values())
    moved = archived_counts(store)
    assert {name: moved[name] for name in ("exchange", "score", "scoring_task", "feedback")} == {
        name: rows[name] for name in ("exchange", "score", "scoring_task", "feedback")
    }
    assert_same_trends(before, trends(store))
    assert store.archive.verify() == {}


def test_a_changed_day_is_written_again(store: TrackingStore, make: Make, folder: Path) -> None:
    """A label that arrives between writing and removal is archived too."""
    exchanges = fill(store, make)
    run_until(store, folder, "written")
    label = Feedback(id="late", exchange_id=exchanges[0].id, score=0.0, created_at=UNTIL)
    store.labels.add_feedback([label])
    rows = counts(store)

    archive(store, str(folder))

    assert archived_counts(store) == rows
    assert not any(counts(store).values())


def run_until(store: TrackingStore, folder: Path, state: str) -> None:
    """Stop archiving as soon as a day is in a state."""
    archive(store, str(folder), stopping=lambda: any(day.state == state for day in store.archive.list_days()))


def test_verification_finds_a_truncated_file(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    archive(store, str(folder))
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/score-*.parquet")
    path.write_bytes(path.read_bytes()[:-1])

    problems = store.archive.verify()

    assert list(problems) == [FIRST_DAY]
    assert f"{path.name} has " in problems[FIRST_DAY]
    with pytest.raises(ArchiveError, match=r"1 day of the archive could not be read: 2026-02-01: score-.* has"):
        trends(store)


def test_verification_finds_a_swapped_file(store: TrackingStore, make: Make, folder: Path) -> None:
    """A file with another day's content is found, even if it is valid."""
    fill(store, make)
    archive(store, str(folder))
    first, second = (next(folder.glob(f"day={FIRST_DAY + timedelta(days=n):%Y-%m-%d}/score-*.parquet")) for n in (0, 1))
    shutil.copy(second, first)

    assert list(store.archive.verify()) == [FIRST_DAY]


def test_verification_finds_a_missing_file_and_a_flipped_bit(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    archive(store, str(folder))
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/exchange-*.parquet")
    path.unlink()
    (path,) = folder.glob(f"day={FIRST_DAY + timedelta(days=1):%Y-%m-%d}/score-*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    problems = store.archive.verify()

    assert [problem.rpartition(" ")[0].partition("parquet ")[2] for problem in problems.values()] == [
        "is",
        "has changed since it was",
    ]
    with pytest.raises(ArchiveError, match=r"could not be read: 2026-02-01: exchange-.* is missing"):
        trends(store)


def test_damaged_days_do_not_affect_windows_that_do_not_reach_them(
    store: TrackingStore, make: Make, folder: Path
) -> None:
    fill(store, make)
    archive(store, str(folder))
    shutil.rmtree(folder)

    assert store.trends.summary(since=FIRST_DAY + timedelta(days=DAYS)) == []


@pytest.mark.parametrize("state", ["written", "verified"])
def test_files_that_are_damaged_before_the_removal_begins_are_written_again(
    store: TrackingStore, make: Make, folder: Path, state: str
) -> None:
    """The database still has all of their rows."""
    fill(store, make, days=1)
    rows = counts(store)
    run_until(store, folder, state)
    shutil.rmtree(folder)

    archive(store, str(folder))

    assert archived_counts(store) == rows
    assert store.archive.verify() == {}


def test_rows_are_removed_only_if_the_files_contain_them(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is damaged after the removal has begun stops the removal."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 5)
    fill(store, make, days=1)
    archive(store, str(folder), stopping=lambda: any(day.removed_before > day.day for day in store.archive.list_days()))
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/score-*.parquet")
    path.write_bytes(b"")
    rows = counts(store)
    assert rows["exchange"]

    with pytest.raises(ArchiveError, match="has 0 bytes"):
        archive(store, str(folder))

    assert counts(store) == rows


def test_a_used_archive_that_is_empty_is_not_used(store: TrackingStore, make: Make, folder: Path) -> None:
    """Its file system may not be mounted. Rows that were moved to the folder below would be missing later."""
    fill(store, make)
    archive(store, str(folder), stopping=lambda: any(day.state == "removed" for day in store.archive.list_days()))
    shutil.rmtree(folder)
    folder.mkdir()
    rows = counts(store)

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


def test_a_user_who_is_forgotten_while_late_rows_are_archived_does_not_come_back(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, make, days=1)
    archive(store, str(folder))
    late = fill(store, lambda **values: make(**values | {"user": "late"}), count=4, days=1, seed=2)
    before_switching(monkeypatch, lambda: store.retention.forget(user="late"))

    archive(store, str(folder))

    assert not store.answers.get_exchanges([one.id for one in late])
    assert not any("late" in pq.read_table(path)["user"].to_pylist() for path in folder.rglob("exchange-*.parquet"))
    assert sum(summary.n for summary in store.trends.summary()) == 60


def test_rows_that_keep_arriving_for_an_archived_day_delay_it(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later days are still archived, and forgetting a user asks for another run."""
    fill(store, make, days=1)
    archive(store, str(folder))
    seeds = iter(range(2, 100))
    fill(store, make, days=2, seed=next(seeds))
    before_switching(monkeypatch, lambda: fill(store, make, count=1, days=1, seed=next(seeds)))

    first, second = archive(store, str(folder))

    assert (first.waiting_for, second.waiting_for) == ("its rows keep changing", None)
    with pytest.raises(ArchiveError, match="because its rows keep changing: run the command again"):
        store.retention.forget(user="u1")


def test_a_stop_ends_the_rewriting_of_a_day_whose_rows_keep_changing(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run continues with the rows that are left, and loses none."""
    fill(store, make, days=1)
    archive(store, str(folder))
    seeds = iter(range(2, 100))
    fill(store, make, days=1, seed=next(seeds))
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


@pytest.mark.parametrize("hours", [1, 24])
def test_scores_count_once_while_a_day_is_removed(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Days in another timezone, and hours, are read from hourly rollups. The removal may stop within an hour."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 30)
    fill(store, make, count=700, days=7)

    def count() -> tuple[int, int]:
        chosen: dict[str, Any] = {**WINDOW, "bucket": timedelta(hours=hours), "timezone": ZoneInfo("Europe/Berlin")}
        scores = store.trends.over_time(scorer="relevancy", **chosen)
        coverage = store.trends.coverage_over_time(scorer="relevancy", **chosen)
        return sum(one.n for one in scores), sum(one.seen for one in coverage)

    def is_inside() -> bool:
        last = store.archive.list_days()[-1:]
        return any(day.day == FIRST_DAY + timedelta(days=6) and day.removed_before > day.day for day in last)

    assert count() == (700, 700)
    archive(store, str(folder), stopping=is_inside)

    assert store.archive.list_days()[-1].removed_before.minute
    assert count() == (700, 700)


def test_files_of_an_interrupted_write_are_deleted(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    day = folder / f"day={FIRST_DAY:%Y-%m-%d}"
    day.mkdir(parents=True)
    (day / "score-00000000.parquet").write_bytes(b"half")
    (day / ".tmp-exchange-00000000.parquet").write_bytes(b"half")

    archive(store, str(folder))

    assert not list(day.glob("*00000000.parquet"))


def test_forgetting_a_user_reaches_the_archive(store: TrackingStore, make: Make, folder: Path) -> None:
    """The user's rows and the old files are deleted, and the other users' scores are kept."""
    exchanges = fill(store, make)
    archive(store, str(folder))
    mine = {one.id for one in exchanges if one.user == "u1"}

    preview = store.retention.forget(user="u1", dry_run=True)
    removed = store.retention.forget(user="u1")

    assert preview == removed
    assert (removed.exchanges, removed.scores) == (len(mine), len(mine))
    stored = {id_ for path in folder.rglob("exchange-*.parquet") for id_ in pq.read_table(path)["id"].to_pylist()}
    assert stored == {one.id for one in exchanges} - mine
    assert sum(summary.n for summary in store.trends.summary()) == len(stored)
    assert store.archive.verify() == {}
    assert not store.retention.forget(user="u1")


@pytest.mark.slow
@pytest.mark.parametrize("attribute", [("tenant", "t1"), ("seats", "2"), ("trial", "true")])
def test_forgetting_an_attribute_reaches_the_archive(
    store: TrackingStore, make: Make, folder: Path, attribute: tuple[str, str]
) -> None:
    fill(store, make)
    expected = store.retention.forget(attribute=attribute, dry_run=True)
    archive(store, str(folder))

    assert store.retention.forget(attribute=attribute) == expected
    assert expected.exchanges


def test_forgetting_an_attribute_compares_whole_numbers_exactly(store: TrackingStore, make: Make, folder: Path) -> None:
    """A number of 18 digits is not rounded, and a fraction is the same number however it is written."""
    accounts = iter([202600000000000001, 202600000000000002, 2.5])

    def make_account(**values: Any) -> Exchange:
        return make(**values | {"attributes": {"account": next(accounts)}})

    exchanges = fill(store, make_account, count=3, days=1)
    archive(store, str(folder))

    assert store.retention.forget(attribute=("account", "202600000000000002")).exchanges == 1
    assert store.retention.forget(attribute=("account", "2.50")).exchanges == 1
    assert list(store.answers.get_exchanges([one.id for one in exchanges])) == [exchanges[0].id]


@pytest.mark.slow
def test_forgetting_a_user_deletes_labels_from_the_archive(store: TrackingStore, make: Make, folder: Path) -> None:
    fill(store, make)
    archive(store, str(folder))
    labels = archived_counts(store)["feedback"]

    assert store.retention.forget(user="u9").feedback == labels
    assert archived_counts(store)["feedback"] == 0


def test_retention_does_not_delete_days_that_are_not_archived(
    migrated_url: str, make: Make, folder: Path, clock: Any
) -> None:
    """With an archive, neither age nor size deletes exchanges from the database."""
    store = TrackingStore(migrated_url, clock=clock, archive=str(folder))
    fill(store, make)
    rows = counts(store)

    store.retention.prune(before=clock.now, max_size=1)

    assert counts(store) == rows
    store.close()


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
