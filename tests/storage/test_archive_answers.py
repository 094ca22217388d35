"""Answers, exports and usage read the database and the archive as one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select
from tests.exports import load_records
from tests.storage.archive_templates import POSTGRESQL_IS_SLOW, Copy, Templates
from tests.storage.archiving import FIRST_DAY, OLD, SINCE, UNTIL
from tests.storage.test_archive import assert_same_trends

from germane.annotation import Feedback
from germane.storage import AnswerFilter, ExportSelection, TrackingStore
from germane.storage.db.tables import feedback
from germane.storage.transfer.record import ExchangeRecord, parse_line
from germane.testing import Clock, transaction

WINDOW = {"since": SINCE, "until": UNTIL}
FILTERS = {
    "all": AnswerFilter(),
    "window": AnswerFilter(since=FIRST_DAY + timedelta(hours=9), until=FIRST_DAY + timedelta(days=1, hours=3)),
    "route": AnswerFilter(route="find", low=True),
    "exchanges": AnswerFilter(model="m1", attributes=(("tenant", "t0"),)),
    "labeled": AnswerFilter(labeled=True),
    "any": AnswerFilter(state="any"),
    "skipped": AnswerFilter(state="skipped"),
}


@pytest.fixture
def half_archived(templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database whose first of two days is archived, once on SQLite and once on PostgreSQL."""
    with templates.copy("half archived", tmp_path / "half", clock) as copy:
        assert len(copy.store.archive.list_days()) == 1
        yield copy


@pytest.fixture
def sqlite_half_archived(sqlite_templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database whose first of two days is archived, on SQLite."""
    with sqlite_templates.copy("half archived", tmp_path / "half", clock) as copy:
        yield copy


def test_stored_exchanges_are_found_by_their_span_in_database_and_archive(half_archived: Copy) -> None:
    """A pulled trace whose exchange another process captured has another id, but the same span."""
    known = [replace(one, id=f"{number:032x}") for number, one in enumerate(half_archived.exchanges)]
    other = [replace(one, trace_id="e" * 32) for one in known[:3]]

    expected = {(one.trace_id, one.span_id) for one in known}
    assert half_archived.store.received.find_stored([*known, *other]) == expected
    assert half_archived.store.received.find_stored(other) == set()


def pages(store: TrackingStore, chosen: AnswerFilter, sort: Any) -> list[Any]:
    """Return all answers, which are read in pages of seven."""
    answers, after = [], None
    while True:
        page = store.answers.search(chosen, sort=sort, after=after, limit=7)
        answers += [(one.exchange, one.score, one.task, list(one.feedback)) for one in page.answers]
        after = page.next_cursor
        if after is None:
            return answers


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["lowest", "highest", "newest", "highest_cost", "slowest"])
def test_archiving_does_not_change_the_results_of_searches(filled: Copy, half_archived: Copy, sort: Any) -> None:
    """Pages follow each other across the database and the archive."""
    for name, chosen in FILTERS.items():
        assert pages(half_archived.store, chosen, sort) == pages(filled.store, chosen, sort), name
        assert half_archived.store.answers.count_matches(chosen) == filled.store.answers.count_matches(chosen), name


@pytest.mark.slow
def test_other_lists_are_unchanged_by_archiving(filled: Copy, half_archived: Copy) -> None:
    ids = [one.id for one in filled.exchanges[-50:]][::-1]

    def look(store: TrackingStore) -> dict[str, Any]:
        chosen = AnswerFilter(**WINDOW)
        grid = {"bucket": timedelta(hours=6), **WINDOW}
        return {
            "newest": store.answers.list_exchanges(limit=50),
            "route": store.answers.list_exchanges(route="ask", limit=5, until=FIRST_DAY + timedelta(days=1)),
            "exchanges": store.answers.get_exchanges([*ids, "unknown"]),
            "scores": store.answers.get_scores(ids),
            "worst": store.answers.worst(limit=20, **WINDOW),
            "worst on route": store.answers.worst(limit=5, route="find", refusals=False),
            "details": [store.answers.load_detail(id_) for id_ in ids[::10]],
            "unknown": store.answers.load_detail("unknown"),
            "summary": store.answers.summarize_matches(chosen),
            "questions": store.questions.group_by_question(chosen),
            "by question": store.answers.search(replace(chosen, question="How do I pay?"), limit=40).answers,
            "question scores": store.questions.load_question_scores(chosen),
            "neighbors": store.answers.find_neighbors(chosen, ids[30]),
            "durations": store.trends.durations_over_time(**grid),
            "attributes": store.trends.means_with_attributes({"tenant": "t*"}, scorer="relevancy", since=None),
            "disagreements": store.labels.count_disagreements(**WINDOW),
        }

    before = look(filled.store)

    assert [one.id for one in before["newest"]] == ids
    assert_same_trends(before, look(half_archived.store))


@POSTGRESQL_IS_SLOW
def test_exports_are_unchanged_by_archiving(filled: Copy, half_archived: Copy) -> None:
    """Exchanges are sorted by time across the database and the archive."""

    def export(store: TrackingStore, chosen: ExportSelection) -> list[Any]:
        records, page = [], store.transfer.load_stored(chosen, limit=7)
        while page:
            records += page
            page = store.transfer.load_stored(chosen, after=page[-1], limit=7)
        return [json.loads(record.dump()) for record in records]

    for chosen in (ExportSelection(), ExportSelection(route="find", since=FIRST_DAY + timedelta(hours=20))):
        before = export(filled.store, chosen)

        assert before
        assert export(half_archived.store, chosen) == before


def test_importing_archived_exchanges_changes_nothing(sqlite_filled: Copy, sqlite_half_archived: Copy) -> None:
    """They exist, although the database no longer has them."""
    store = sqlite_half_archived.store
    records = load_records(sqlite_filled.store, limit=100)
    summary = store.trends.summary()

    store.transfer.restore_records(records)

    assert [one.n for one in store.trends.summary()] == [one.n for one in summary]


@POSTGRESQL_IS_SLOW
def test_importing_restores_exchanges_that_an_archived_day_lacks(filled: Copy) -> None:
    """Only exchanges that the archive really has are left out."""
    store = filled.store
    records = load_records(store, limit=100)
    lacking = sum(record.exchange["user"] == "u1" for record in records)
    store.retention.forget(user="u1")
    store.rollups.update()
    store.archive.archive_days(str(filled.folder), before=FIRST_DAY + timedelta(days=1), has_text=True)
    summary = store.trends.summary()

    result = store.transfer.restore_records(records)

    assert (result.exchanges, result.tasks) == (lacking, lacking)
    assert sum(one.n for one in store.trends.summary()) == sum(one.n for one in summary) + lacking > lacking


def test_labels_given_after_archiving_are_exported_and_restored(half_archived: Copy) -> None:
    """Labels of archived answers are complete and in order, whether the archive or the database has them."""
    store, exchange = half_archived.store, half_archived.exchanges[0]  # the first one, which has a label

    def export() -> list[dict[str, Any]]:
        records = [json.loads(one.dump()) for one in store.transfer.load_stored(ExportSelection(), limit=100)]
        return [label for record in records if record["exchange"]["id"] == exchange.id for label in record["feedback"]]

    (archived,) = export()
    late = [
        Feedback(id="late", exchange_id=exchange.id, score=0.0, comment="wrong", created_at=UNTIL + timedelta(hours=2)),
        Feedback(id="early", exchange_id=exchange.id, score=0.5, created_at=FIRST_DAY + timedelta(days=1)),
    ]
    store.labels.add_feedback(late)
    lines = [one.dump() for one in store.transfer.load_stored(ExportSelection(), limit=100)]
    exported = export()
    with transaction(store) as connection:
        connection.execute(delete(feedback))
    lost = export()

    records = [item for line in lines if isinstance(item := parse_line(line), ExchangeRecord)]
    store.transfer.restore_records(records)

    assert [label["id"] for label in exported] == ["early", archived["id"], "late"]
    assert lost == [archived]
    assert export() == exported
    with transaction(store, read_only=True) as connection:
        assert archived["id"] not in connection.execute(select(feedback.c.id)).scalars().all()


def test_labels_given_after_archiving_are_shown(sqlite_archived: Copy) -> None:
    exchange = sqlite_archived.exchanges[0]
    late = Feedback(id="late", exchange_id=exchange.id, score=0.0, created_at=OLD)
    sqlite_archived.store.labels.add_feedback([late])

    detail = sqlite_archived.store.answers.load_detail(exchange.id)

    assert detail is not None
    assert detail.feedback[-1].id == "late"


def test_answers_of_windows_that_do_not_reach_the_archive_do_not_read_it(sqlite_half_archived: Copy) -> None:
    sqlite_half_archived.folder.rename(sqlite_half_archived.folder.with_name("away"))
    answers = sqlite_half_archived.store.answers
    chosen = AnswerFilter(since=FIRST_DAY + timedelta(days=1))

    page = answers.search(chosen, sort="newest", limit=100)

    assert page.answers
    assert answers.load_detail(page.answers[0].exchange.id) is not None
    assert answers.worst(since=FIRST_DAY + timedelta(days=1))
