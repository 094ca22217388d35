"""Lists, searches and deletions that reach far into the archive are complete, or report how far they went."""

from __future__ import annotations

import os
import random
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select
from tests.storage.archive_templates import POSTGRESQL_IS_SLOW, Copy
from tests.storage.archiving import FIRST_DAY, OLD, SCORERS, SINCE, UNTIL, Make, archive, complete, exchange_id, fill

from germane.annotation import Feedback
from germane.score import UnscoredReason
from germane.storage import AnswerFilter, ExportSelection, SamplingDecision, TrackingStore
from germane.storage.answers import search, store_answers
from germane.storage.archive.reader import archived_extent
from germane.storage.db.tables import archived_day, feedback
from germane.storage.retention import archiving
from germane.storage.trends import usage
from germane.testing import transaction


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "archive")


def add_rare(store: TrackingStore, make: Make, moments: list[datetime], number: int = 70_000) -> list[str]:
    """Write and score exchanges on the route "rare". Return their ids."""
    ids = [exchange_id(moment, number + index) for index, moment in enumerate(moments)]
    store.exchanges.add([make(id=id_, started_at=at, route="rare") for id_, at in zip(ids, moments, strict=True)])
    store.sampling.assign_tasks([SamplingDecision(id_, 1.0, "uniform") for id_ in ids], SCORERS)
    complete(store, random.Random(number))
    store.rollups.update()
    return ids


@pytest.mark.slow
def test_filtered_lists_and_exports_contain_rare_archived_answers(
    store: TrackingStore, make: Make, location: str
) -> None:
    """A day with enough exchanges for a page may contain few that match."""
    fill(store, make)
    rare = add_rare(store, make, [FIRST_DAY + timedelta(days=day, hours=12) for day in range(3)])
    store.archive.archive_days(location, before=FIRST_DAY + timedelta(days=2))

    exported, page = [], store.transfer.load_stored(ExportSelection(route="rare"), limit=2)
    while page:
        exported += [record.id for record in page]
        page = store.transfer.load_stored(ExportSelection(route="rare"), after=page[-1], limit=2)

    assert exported == rare
    assert [one.id for one in store.answers.list_exchanges(route="rare", limit=10)] == rare[::-1]


def test_archived_scores_do_not_thin_out_the_others_in_a_chart(
    sqlite_archived: Copy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charts show the scores that are in the database. Its rollups also count the archived ones."""
    monkeypatch.setattr(store_answers, "MAX_ROWS_READ", 40)
    rare = add_rare(sqlite_archived.store, make, [UNTIL + timedelta(minutes=n) for n in range(5)])
    scores, is_complete = sqlite_archived.store.answers.sample_scores(
        ["relevancy"], since=SINCE, until=UNTIL + timedelta(hours=1), route="rare"
    )

    assert is_complete
    assert len(scores) == len(rare)


def test_the_extent_of_the_archive_covers_the_removed_parts_of_days(sqlite_archived: Copy) -> None:
    """A window that begins after the removed part of a day, or ends with its beginning, does not overlap it."""
    second, half = FIRST_DAY + timedelta(days=1), timedelta(hours=12)
    with transaction(sqlite_archived.store) as connection:
        last = archived_day.update().where(archived_day.c.day == second)
        connection.execute(last.values(removed_before=second + half))

        assert archived_extent(connection, FIRST_DAY, second + half) == (FIRST_DAY, second, set())
        assert archived_extent(connection, FIRST_DAY, second) == (FIRST_DAY, FIRST_DAY, set())
        assert archived_extent(connection, second, second + 2 * half) == (second, second, set())
        assert archived_extent(connection, second + half, second + 9 * half) is None


def read_pages(store: TrackingStore, chosen: AnswerFilter, limit: int) -> list[str]:
    """Return the ids of all matching exchanges, newest first, read in pages."""
    ids, after = [], None
    while True:
        page = store.answers.search(chosen, sort="newest", after=after, limit=limit)
        ids += [one.exchange.id for one in page.answers]
        after = page.next_cursor
        if after is None:
            return ids


@pytest.fixture
def short_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches read as few rows as if the database and the archive had many more."""
    monkeypatch.setattr(search, "MAX_SCORES_SCANNED", 25)
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 25)
    monkeypatch.setattr(usage, "MAX_EXCHANGES_READ", 25)


@pytest.mark.slow
@pytest.mark.usefixtures("short_scans")
def test_searches_that_leave_out_archived_days_report_it_and_continue_on_the_next_page(
    store: TrackingStore, make: Make, location: str
) -> None:
    fill(store, make, count=90)
    moments = [FIRST_DAY + timedelta(hours=1, minutes=number) for number in range(3)]
    skipped = [make(id=exchange_id(at, 9_000 + at.minute), started_at=at, route="rare") for at in moments]
    store.exchanges.add(skipped)
    reasons = {"relevancy": UnscoredReason.NOT_SAMPLED}
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform", reasons) for one in skipped], SCORERS)
    store.rollups.update()
    labeled = read_pages(store, AnswerFilter(labeled=True), 100)
    archive(store, location)

    chosen = AnswerFilter(state="skipped")
    page = store.answers.search(chosen, limit=10)

    assert not page.answers
    assert page.searched_back_to == FIRST_DAY + timedelta(days=1)
    assert store.answers.count_matches(chosen).is_capped
    assert read_pages(store, chosen, 10) == [one.id for one in skipped[::-1]]
    assert read_pages(store, AnswerFilter(labeled=True), 100) == labeled, "label searches cover the whole archive"


@pytest.mark.slow
@pytest.mark.usefixtures("short_scans")
def test_durations_that_leave_out_archived_days_report_it(store: TrackingStore, make: Make, location: str) -> None:
    fill(store, make, count=90)
    add_rare(store, make, [FIRST_DAY + timedelta(hours=hours) for hours in (1, 49)])
    archive(store, location)

    found = store.trends.durations_over_time(since=SINCE, until=UNTIL, bucket=timedelta(days=1), route="rare")

    assert [bucket.n for bucket in found.buckets] == [1]
    assert found.searched_back_to == FIRST_DAY + timedelta(days=1)


@pytest.mark.slow
@pytest.mark.usefixtures("short_scans")
def test_pages_contain_a_late_answer_to_an_archived_day_once(filled: Copy, make: Make) -> None:
    """The late answer is in the database, and older than many in the archive."""
    store = filled.store
    rare = add_rare(store, make, [FIRST_DAY + timedelta(hours=3.5 * number + 2) for number in range(12)])
    archive(store, str(filled.folder))
    rare += add_rare(store, make, [FIRST_DAY + timedelta(hours=3)], 80_000)

    for limit in (2, 5, 50):
        assert read_pages(store, AnswerFilter(route="rare"), limit) == sorted(rare, reverse=True), limit


@pytest.mark.usefixtures("short_scans")
def test_pages_contain_archived_days_that_are_newer_than_a_waiting_day(
    store: TrackingStore, make: Make, location: str
) -> None:
    exchanges = fill(store, make)
    at = FIRST_DAY + timedelta(hours=1)
    store.exchanges.add([make(id=exchange_id(at, 9_000), started_at=at)])  # without a sampling decision
    store.archive.archive_days(location, before=FIRST_DAY + timedelta(days=2))
    assert [record.day for record in store.archive.list_days()] == [FIRST_DAY + timedelta(days=1)]

    assert read_pages(store, AnswerFilter(), 50) == [one.id for one in exchanges[::-1]]
    durations = store.trends.durations_over_time(since=SINCE, until=UNTIL, bucket=timedelta(days=1))
    second = [one for one in exchanges if one.started_at.day == 2]
    assert next((one.start.day, one.n) for one in durations.buckets) == (2, len(second))


@POSTGRESQL_IS_SLOW
def test_forgetting_a_user_during_an_interrupted_removal_deletes_all_rows(
    filled: Copy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the day contain them, and would otherwise be read when the removal continues."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 5)
    store, location = filled.store, str(filled.folder)
    evening = FIRST_DAY + timedelta(hours=20)
    store.exchanges.add([make(id=exchange_id(evening, 9_000), started_at=evening, user="evening", model="m1")])
    store.sampling.assign_tasks([SamplingDecision(exchange_id(evening, 9_000), 1.0, "uniform")], SCORERS)
    complete(store, random.Random(1))
    store.rollups.update()
    archive(store, location, stopping=lambda: bool(removed_until(store)))
    assert removed_until(store)[0] < evening
    chosen = AnswerFilter(user="evening", state="any")
    assert len(read_pages(store, chosen, 50)) == 1

    assert store.retention.forget(user="evening").exchanges == 1
    archive(store, location)

    assert store.archive.list_days()[0].state == "removed"
    assert not read_pages(store, chosen, 50)


def removed_until(store: TrackingStore) -> list[datetime]:
    """Return how far the removal of days that are partly removed has come."""
    return [record.removed_before for record in store.archive.list_days() if record.removed_before > record.day]


def test_forgetting_deletes_late_labels_of_archived_answers(archived: Copy) -> None:
    """They are in the database, although their exchange is in the archive."""
    store, one = archived.store, archived.exchanges[3]
    store.labels.add_feedback([Feedback(id="late", exchange_id=one.id, score=0.0, comment="Ann", created_at=OLD)])

    planned = store.retention.forget(user=one.user, dry_run=True)
    assert store.retention.forget(user=one.user) == planned

    with transaction(store, read_only=True) as connection:
        assert not connection.execute(select(feedback.c.id).where(feedback.c.exchange_id == one.id)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_reads_an_archive_that_its_parent_has_read(sqlite_archived: Copy) -> None:
    store = sqlite_archived.store
    assert store.answers.worst(limit=5)

    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if store.answers.worst(limit=5) else 1)
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0


def test_an_id_that_starts_with_the_last_representable_day_is_unknown(sqlite_archived: Copy) -> None:
    assert sqlite_archived.store.answers.load_detail(f"{253_402_214_400_000:012x}" + 20 * "0") is None


def test_a_day_that_was_deleted_from_the_archive_is_not_counted(sqlite_archived: Copy) -> None:
    """Its folder and its row in archived_day are deleted, as documented."""
    store = sqlite_archived.store
    shutil.rmtree(sqlite_archived.folder / "day=2026-02-01")
    with transaction(store) as connection:
        connection.execute(delete(archived_day).where(archived_day.c.day == FIRST_DAY))

    summary = store.trends.summary(since=SINCE, until=UNTIL)

    assert sum(one.n for one in summary) == sum(one.started_at.day > 1 for one in sqlite_archived.exchanges)
    assert not store.trends.summary(since=SINCE, until=FIRST_DAY + timedelta(days=1))
