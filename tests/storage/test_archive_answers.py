"""Answers, exports and usage read the database and the archive as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select
from tests.storage.archiving import FIRST_DAY, OLD, SINCE, UNTIL, Make, fill
from tests.storage.test_archive import assert_same_trends

from germane.annotation import Feedback
from germane.storage import AnswerFilter, ExchangeRecord, ExportSelection, TrackingStore, dump_stored, parse_line
from germane.storage.db.tables import feedback

WINDOW = {"since": SINCE, "until": UNTIL}
FILTERS = {
    "all": AnswerFilter(),
    "window": AnswerFilter(since=FIRST_DAY + timedelta(hours=9), until=FIRST_DAY + timedelta(days=2, hours=3)),
    "route": AnswerFilter(route="find", low=True),
    "exchanges": AnswerFilter(model="m1", attributes=(("tenant", "t0"),)),
    "labeled": AnswerFilter(labeled=True),
    "any": AnswerFilter(state="any"),
    "skipped": AnswerFilter(state="skipped"),
}


@pytest.fixture
def half_archived(store: TrackingStore, make: Make, tmp_path: Path) -> Callable[[], None]:
    """Two of three days are archived by calling the fixture."""
    fill(store, make)

    def move() -> None:
        store.archive.archive_days(str(tmp_path / "archive"), before=FIRST_DAY + timedelta(days=2), has_text=True)
        assert len(store.archive.list_days()) == 2

    return move


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
def test_archiving_does_not_change_the_results_of_searches(
    store: TrackingStore, half_archived: Callable[[], None], sort: Any
) -> None:
    """Pages follow each other across the database and the archive."""
    before = {name: pages(store, chosen, sort) for name, chosen in FILTERS.items()}
    counted = {name: store.answers.count_matches(chosen) for name, chosen in FILTERS.items()}

    half_archived()

    for name, chosen in FILTERS.items():
        assert pages(store, chosen, sort) == before[name], name
        assert store.answers.count_matches(chosen) == counted[name], name


@pytest.mark.slow
def test_other_lists_are_unchanged_by_archiving(store: TrackingStore, half_archived: Callable[[], None]) -> None:
    def look() -> dict[str, Any]:
        newest = store.answers.list_exchanges(limit=50)
        ids = [one.id for one in newest]
        chosen = AnswerFilter(**WINDOW)
        grid = {"bucket": timedelta(hours=6), **WINDOW}
        return {
            "newest": newest,
            "route": store.answers.list_exchanges(route="ask", limit=5, until=FIRST_DAY + timedelta(days=1)),
            "exchanges": store.answers.get_exchanges([*ids, "unknown"]),
            "scores": store.answers.get_scores(ids),
            "worst": store.answers.worst(limit=20, **WINDOW),
            "worst on route": store.answers.worst(limit=5, route="find", refusals=False),
            "details": [store.answers.load_detail(id_) for id_ in ids],
            "unknown": store.answers.load_detail("unknown"),
            "summary": store.answers.summarize_matches(chosen),
            "questions": store.answers.group_by_question(chosen),
            "by question": store.answers.search(replace(chosen, question="How do I pay?"), limit=40).answers,
            "question scores": store.answers.load_question_scores(chosen),
            "neighbors": store.answers.find_neighbors(chosen, ids[30]),
            "durations": store.trends.durations_over_time(**grid),
            "attributes": store.trends.means_with_attributes({"tenant": "t*"}, scorer="relevancy", since=None),
            "disagreements": store.labels.count_disagreements(**WINDOW),
        }

    before = look()
    half_archived()
    after = look()

    assert_same_trends(before, after)


def test_exports_are_unchanged_by_archiving(store: TrackingStore, half_archived: Callable[[], None]) -> None:
    """Exchanges are sorted by time across the database and the archive."""

    def export(chosen: ExportSelection) -> list[Any]:
        records, page = [], store.transfer.load_stored(chosen, limit=7)
        while page:
            records += page
            page = store.transfer.load_stored(chosen, after=page[-1], limit=7)
        return [json.loads(dump_stored(record)) for record in records]

    selections = [ExportSelection(), ExportSelection(route="find", since=FIRST_DAY + timedelta(hours=30))]
    before = [export(chosen) for chosen in selections]

    half_archived()

    assert [export(chosen) for chosen in selections] == before


def test_importing_archived_exchanges_changes_nothing(
    store: TrackingStore, make: Make, half_archived: Callable[[], None]
) -> None:
    """They exist, although the database no longer has them."""
    records = store.transfer.load_records(ExportSelection(), limit=100)
    half_archived()
    summary = store.trends.summary()

    store.transfer.restore_records(records)

    assert [one.n for one in store.trends.summary()] == [one.n for one in summary]


def test_importing_restores_exchanges_that_an_archived_day_lacks(
    store: TrackingStore, half_archived: Callable[[], None]
) -> None:
    """Only exchanges that the archive really has are left out."""
    records = store.transfer.load_records(ExportSelection(), limit=100)
    lacking = sum(record.exchange["user"] == "u1" for record in records)
    store.retention.forget(user="u1")
    store.rollups.update()
    half_archived()
    summary = store.trends.summary()

    result = store.transfer.restore_records(records)

    assert (result.exchanges, result.tasks) == (lacking, lacking)
    assert sum(one.n for one in store.trends.summary()) == sum(one.n for one in summary) + lacking > lacking


def test_labels_given_after_archiving_are_exported_and_restored(
    store: TrackingStore, half_archived: Callable[[], None]
) -> None:
    """Labels of archived answers are complete and in order, whether the archive or the database has them."""
    exchange = store.answers.list_exchanges(limit=100)[-1]  # the first one, which has a label

    def export() -> list[dict[str, Any]]:
        records = [json.loads(dump_stored(one)) for one in store.transfer.load_stored(ExportSelection(), limit=100)]
        return [label for record in records if record["exchange"]["id"] == exchange.id for label in record["feedback"]]

    half_archived()
    (archived,) = export()
    late = [
        Feedback(id="late", exchange_id=exchange.id, score=0.0, comment="wrong", created_at=UNTIL + timedelta(hours=2)),
        Feedback(id="early", exchange_id=exchange.id, score=0.5, created_at=FIRST_DAY + timedelta(days=1)),
    ]
    store.labels.add_feedback(late)
    lines = [dump_stored(one) for one in store.transfer.load_stored(ExportSelection(), limit=100)]
    exported = export()
    with store._database.write() as connection:
        connection.execute(delete(feedback))
    lost = export()

    records = [item for line in lines if isinstance(item := parse_line(line), ExchangeRecord)]
    store.transfer.restore_records(records)

    assert [label["id"] for label in exported] == ["early", archived["id"], "late"]
    assert lost == [archived]
    assert export() == exported
    with store._database.read() as connection:
        assert archived["id"] not in connection.execute(select(feedback.c.id)).scalars().all()


def test_labels_given_after_archiving_are_shown(store: TrackingStore, half_archived: Callable[[], None]) -> None:
    exchange = store.answers.list_exchanges(limit=100)[-1]
    half_archived()
    store.labels.add_feedback([Feedback(id="late", exchange_id=exchange.id, score=0.0, created_at=OLD)])

    detail = store.answers.load_detail(exchange.id)

    assert detail is not None
    assert detail.feedback[-1].id == "late"


def test_answers_of_windows_that_do_not_reach_the_archive_do_not_read_it(
    store: TrackingStore, make: Make, half_archived: Callable[[], None], tmp_path: Path
) -> None:
    half_archived()
    (tmp_path / "archive").rename(tmp_path / "away")
    chosen = AnswerFilter(since=FIRST_DAY + timedelta(days=2))

    page = store.answers.search(chosen, sort="newest", limit=100)

    assert page.answers
    assert store.answers.load_detail(page.answers[0].exchange.id) is not None
    assert store.answers.worst(since=FIRST_DAY + timedelta(days=2))
