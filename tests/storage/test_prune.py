"""Pruning: old text is erased, old exchanges are deleted, and counts stay consistent."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from tests.storage.conftest import NOON

from germane.annotation import Feedback, RecordedScore
from germane.errors import UsageError
from germane.exchange import Context, Exchange, Message
from germane.score import Score, UnscoredReason
from germane.storage import Coverage, PruneResult, SamplingDecision, TaskClaim, TrackingStore
from germane.storage.db import tables
from germane.storage.db.batches import BATCH_SIZE
from germane.testing import transaction

Make = Callable[..., Exchange]
DAY = timedelta(days=1)
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
DETAILS = {
    "supported": 1,
    "exact": True,
    "claims": [{"claim": "It is blue.", "supported": False, "evidence": None}, "It is red."],
    "parts": {"direct": {"value": 0.5, "explanation": "It quotes."}},
    "How do I pay?": 0.5,
    "cut": {"claim 2": {"kept": 9}},
}
BARE = {
    "supported": 1,
    "exact": True,
    "claims": [{"supported": False}],
    "parts": {"direct": {"value": 0.5}},
    "cut": {"claim 2": {"kept": 9}},
}


@pytest.fixture
def old(make: Make, clock: Any) -> Callable[..., Exchange]:
    """Create exchanges of the given age in days, with text in every field."""

    def aged(days: float, **given: Any) -> Exchange:
        full: dict[str, Any] = {
            "contexts": (Context("A page.", "p1", 0.5),),
            "history": (Message("user", "Hello"),),
            "error": "ValueError: By card.",
            "attributes": {"tenant": "acme"},
            "user": "u1",
            "session": "s1",
        }
        return make(started_at=clock.now - days * DAY, **full | given)

    return aged


def a_score(claim: TaskClaim, place: int = 0, **given: Any) -> tuple[Any, Score]:
    task = claim.tasks[place]
    values: dict[str, Any] = {
        "value": 0.5,
        "label": "partly_relevant",
        "explanation": "It says: By card.",
        "details": DETAILS,
    }
    return task, Score(scorer=task.scorer, fingerprint=task.fingerprint, **values | given)


def drawn(store: TrackingStore, *exchanges: Exchange, scorers: dict[str, str] | None = None) -> None:
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], scorers or {"relevancy": "f1"}
    )


def scored(store: TrackingStore, *exchanges: Exchange) -> None:
    drawn(store, *exchanges)
    claims = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=99, lease=LEASE)
    store.queue.complete_tasks("me", [a_score(claim) for claim in claims])


def column(store: TrackingStore, query: str) -> list[Any]:
    with transaction(store, read_only=True) as connection:
        return list(connection.execute(text(query)).scalars())


def identity_holds(store: TrackingStore) -> bool:
    return all(
        one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
        for one in store.trends.coverage()
    )


def test_text_older_than_the_limit_is_erased(store: TrackingStore, old: Make, clock: Any) -> None:
    """Question, answer, contexts, history and error are removed; names, numbers and times are kept."""
    exchange, young = old(31), old(29)
    scored(store, exchange, young)

    assert store.retention.prune(texts_before=clock.now - 30 * DAY) == PruneResult(texts=1)

    found = store.answers.get_exchanges([exchange.id, young.id])
    assert found[exchange.id] == replace(exchange, question=None, answer=None, contexts=(), history=(), error=None)
    assert found[young.id] == young
    assert len(column(store, "SELECT erased_at FROM exchange WHERE erased_at IS NOT NULL")) == 1
    assert store.retention.prune(texts_before=clock.now - 30 * DAY) == PruneResult()


def test_quotes_from_erased_text_are_erased(store: TrackingStore, old: Make, clock: Any) -> None:
    """Explanations, strings in details, task errors and comments are removed; values, labels and numbers are kept."""
    exchange, failed, young = old(31), old(31, route="search"), old(29)
    scored(store, exchange, young)
    drawn(store, failed)
    [claim] = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    store.queue.complete_tasks(
        "me", [a_score(claim, value=None, reason=UnscoredReason.UNPARSABLE, explanation="the judge said: By card.")]
    )
    said = {"score": 0.0, "comment": "He said: By card.", "created_at": clock.now}
    store.labels.add_feedback(
        [Feedback(id=str(place), exchange_id=one.id, **said) for place, one in enumerate((exchange, young))]
    )

    store.retention.prune(texts_before=clock.now - 30 * DAY)

    scores = store.answers.get_scores([exchange.id, young.id])
    [erased], [kept] = scores[exchange.id], scores[young.id]
    assert (erased.explanation, erased.details) == (None, BARE)
    assert (erased.value, erased.label) == (0.5, "partly_relevant")
    assert (kept.explanation, kept.details) == ("It says: By card.", DETAILS)
    assert column(store, "SELECT error FROM scoring_task WHERE error IS NOT NULL") == []
    assert column(store, "SELECT comment FROM feedback ORDER BY id") == [None, "He said: By card."]


def test_old_label_comments_are_erased_even_if_their_exchange_is_missing(
    store: TrackingStore, old: Make, clock: Any
) -> None:
    """The exchange may never have arrived, or its text may have been erased before the comment was given."""
    old_one = Feedback(id="1", exchange_id="nowhere", score=1.0, comment="By card.", created_at=clock.now - 31 * DAY)
    store.labels.add_feedback([old_one, replace(old_one, id="2", created_at=clock.now)])

    assert store.retention.prune(texts_before=clock.now - 30 * DAY) == PruneResult(comments=1)
    assert column(store, "SELECT comment FROM feedback ORDER BY id") == [None, "By card."]


def test_a_score_recorded_after_erasure_has_no_explanation(store: TrackingStore, old: Make, clock: Any) -> None:
    """An explanation would quote the erased text."""
    exchange = old(31)
    scored(store, exchange)
    store.retention.prune(texts_before=clock.now - 30 * DAY)

    late = RecordedScore(
        exchange_id=exchange.id, name="mine", value=0.5, explanation="It says", details=DETAILS, recorded_at=clock.now
    )
    store.exchanges.record_scores([late])

    [found] = [one for one in store.answers.get_scores([exchange.id])[exchange.id] if one.scorer == "mine"]
    assert (found.value, found.explanation, found.details) == (0.5, None, BARE)


def test_old_exchanges_are_deleted_with_their_tasks_scores_and_labels(
    store: TrackingStore, old: Make, clock: Any
) -> None:
    """Counts are kept until they reach the same age."""
    exchange, young = old(399.9), old(1)
    scored(store, exchange, young)
    label = Feedback(id="1", exchange_id=exchange.id, score=1.0, created_at=clock.now)
    store.labels.add_feedback([label, replace(label, id="2", exchange_id=young.id)])
    counts = store.trends.coverage()
    clock.advance(hours=4)

    assert store.retention.prune(before=clock.now - 400 * DAY) == PruneResult(
        exchanges=1, scores=1, feedback=1, counts=3
    )

    assert list(store.answers.get_exchanges([exchange.id, young.id])) == [young.id]
    for table in ("scoring_task", "score", "feedback"):
        assert column(store, f"SELECT exchange_id FROM {table}") == [young.id]
    assert [one.seen for one in counts] == [2]
    assert [one.seen for one in store.trends.coverage()] == [1]


def test_counts_are_kept_after_their_exchange_is_deleted(store: TrackingStore, old: Make, clock: Any) -> None:
    """An exchange that was deleted to reduce the size is still counted."""
    drawn(store, old(2), old(2))
    counts = store.trends.coverage()

    removed = store.retention.prune(max_size=1)

    assert (removed.texts, removed.exchanges, removed.expired) == (2, 2, 2)
    assert counts == [Coverage(service="shop", route="ask", scorer="relevancy", seen=2, pending=2)]
    assert store.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer="relevancy", seen=2, skipped={"expired": 2})
    ]


def test_pending_tasks_expire_and_running_tasks_are_kept(store: TrackingStore, old: Make, clock: Any) -> None:
    """Erased text is not scored, and no score in progress is lost. An expired lease does not protect a task."""
    running, waiting = old(31, id="1" * 32), old(30.5, id="2" * 32)
    drawn(store, running, waiting, scorers=SCORERS)
    [claim] = store.queue.claim_tasks("me", SCORERS, limit=1, lease=LEASE)
    assert claim.exchange.id == running.id

    assert store.retention.prune(texts_before=clock.now - 30 * DAY) == PruneResult(texts=1, expired=2)
    assert [one.pending for one in store.trends.coverage()] == [1, 1]
    assert store.answers.get_exchanges([running.id])[running.id] == running

    store.queue.complete_tasks("me", [a_score(claim)])
    clock.advance(seconds=61)

    assert store.retention.prune(texts_before=clock.now - 30 * DAY) == PruneResult(texts=1, expired=1)
    assert store.queue.complete_tasks("me", [a_score(claim, 1)]) == []
    assert store.queue.claim_tasks("me", SCORERS, limit=9, lease=LEASE) == []
    assert identity_holds(store)
    assert sum(one.skipped["expired"] for one in store.trends.coverage()) == 3


def test_pruning_continues_batch_by_batch_until_nothing_is_left(store: TrackingStore, old: Make, clock: Any) -> None:
    """Pruning continues past exchanges that are left for the next run, and stops on request."""
    store.exchanges.add([old(31 + place / 10_000) for place in range(BATCH_SIZE + 250)])
    asked: list[bool] = []

    def after_the_first() -> bool:
        asked.append(True)
        return len(asked) > 1

    cut = store.retention.prune(texts_before=clock.now - 30 * DAY, stopping=after_the_first)
    rest = store.retention.prune(texts_before=clock.now - 30 * DAY)

    assert (cut.texts, rest.texts) == (BATCH_SIZE, 250)
    assert store.retention.prune(before=clock.now - 30 * DAY) == PruneResult(exchanges=BATCH_SIZE + 250)


def test_a_dry_run_reports_counts_and_changes_nothing(store: TrackingStore, old: Make, clock: Any) -> None:
    """The dry run returns the counts that a real run would return if no tasks were running."""
    scored(store, old(401), old(31))
    drawn(store, old(402), old(32), old(1))
    store.labels.add_feedback([Feedback(id="1", exchange_id="nowhere", score=1.0, created_at=clock.now - 401 * DAY)])
    times = {"texts_before": clock.now - 30 * DAY, "before": clock.now - 400 * DAY}

    foreseen = store.retention.prune(**times, dry_run=True)

    assert store.answers.counts().captured == 5
    assert foreseen == PruneResult(texts=2, exchanges=2, scores=1, expired=2, feedback=1, counts=5)
    assert store.retention.prune(**times) == replace(foreseen, counts=6)  # one more for the expired task


def test_counts_are_deleted_by_whole_minutes(store: TrackingStore, old: Make, clock: Any) -> None:
    """Counts for a minute with a remaining exchange are kept, so that none becomes negative, as are declared routes."""
    running = old(401)
    drawn(store, running)
    store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    store.exchanges.count_dropped({("shop", "ask"): 3}, ["relevancy"], at=running.started_at)
    store.exchanges.count_dropped({("shop", "ask"): 5}, ["relevancy"], at=running.started_at - DAY)
    store.exchanges.declare_routes("shop", ["search"])

    assert store.retention.prune(before=clock.now - 400 * DAY) == PruneResult(counts=2)
    assert [(one.route, one.seen) for one in store.trends.coverage()] == [("ask", 4), ("search", 0)]


def test_pruning_by_size_erases_the_oldest_text_first(store: TrackingStore, old: Make, clock: Any) -> None:
    """Pruning then deletes only as many exchanges as needed, and none from the last hour."""
    store.exchanges.add([old(100 - place / 100, answer=os.urandom(1000).hex()) for place in range(420)])
    young = old(0.01)
    store.exchanges.add([young])
    size = store.retention.measure_size(1)

    removed = store.retention.prune(max_size=size * 4 // 5)

    assert removed.exchanges == 0
    assert 200 <= removed.texts < 421
    assert store.retention.measure_size(size * 4 // 5) <= size * 4 // 5
    erased = column(store, "SELECT count(*) FROM exchange WHERE erased_at IS NULL")
    assert erased == [421 - removed.texts]
    newest = column(store, "SELECT max(started_at) FROM exchange WHERE erased_at IS NOT NULL")
    oldest = column(store, "SELECT min(started_at) FROM exchange WHERE erased_at IS NULL")
    assert newest < oldest

    gone = store.retention.prune(max_size=1)

    assert gone.exchanges == 420
    assert store.answers.list_exchanges() == [young]


def test_space_freed_by_erasing_text_is_reused(store: TrackingStore, old: Make, clock: Any) -> None:
    """No vacuum is required, even for short rows that share a page."""
    store.exchanges.add([old(31, question=os.urandom(500).hex()) for _ in range(400)])
    full = store.retention.measure_size(1)

    store.retention.prune(texts_before=clock.now - 30 * DAY)

    # How many pages merge depends on the order of the random ids: the observed share of the size was 0.45 to 0.52.
    assert store.retention.measure_size(1) < full * 0.6
    assert sorted(column(store, "SELECT count(*) FROM exchange")) == [400]


def test_stopped_workers_are_deleted(store: TrackingStore, clock: Any) -> None:
    """A worker is deleted a day after its last heartbeat."""
    with transaction(store) as connection:
        for name, hours in (("gone", 25), ("alive", 1)):
            seen = clock.now - timedelta(hours=hours)
            row = {
                "host": "h",
                "pid": 1,
                "service": "s",
                "version": "1",
                "scorers": {},
                "concurrency": 1,
                "in_flight": 0,
            }
            connection.execute(tables.worker.insert().values(id=name, started_at=seen, seen_at=seen, **row))

    assert store.retention.prune() == PruneResult(workers=1)
    assert column(store, "SELECT id FROM worker") == ["alive"]


def test_vacuum_shrinks_the_sqlite_file(store: TrackingStore, old: Make, clock: Any) -> None:
    """SQLite's file shrinks. On PostgreSQL, the command runs, and the rows are unchanged."""
    kept = old(1)
    store.exchanges.add([kept, *(old(9, answer="x" * 50_000) for _ in range(50))])
    store.retention.prune(before=clock.now - 5 * DAY)
    before = sum(file.stat().st_size for file in store.files)

    store.retention.vacuum()

    assert not store.files or sum(file.stat().st_size for file in store.files) < before / 2
    assert store.answers.list_exchanges() == [kept]


AGES = st.floats(0, 500)
STATES = ("scored", "failed", "half", "running", "ended", "unsampled", "skipped", "pending")
"""The order prevents an exchange from being claimed in place of a later one."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(AGES, st.sampled_from(STATES)), max_size=8), st.floats(0.1, 450), st.floats(0.1, 450))
def test_pruning_keeps_counts_consistent_and_recent_rows_unchanged(
    store: TrackingStore, make: Make, clock: Any, given_: list[tuple[float, str]], texts: float, all_: float
) -> None:
    """For any ages and states: seen = scored + skipped + failed + pending, before and after."""
    clock.advance(days=1000)  # after all times used by earlier examples
    given_ = sorted(given_, key=lambda one: STATES.index(one[1]))
    exchanges = [make(started_at=clock.now - age * DAY, service=str(clock.now)) for age, _ in given_]
    for exchange, (_, state) in zip(exchanges, given_, strict=True):
        bring(store, exchange, state)
    before = {one.id: one for one in store.answers.list_exchanges(limit=1000)}
    running = {one.id for one, (_, state) in zip(exchanges, given_, strict=True) if state in {"running", "half"}}

    store.retention.prune(texts_before=clock.now - texts * DAY, before=clock.now - all_ * DAY)

    after = {one.id: one for one in store.answers.list_exchanges(limit=1000)}
    for exchange, (age, _) in zip(exchanges, given_, strict=True):
        found = after.get(exchange.id)
        if exchange.id in running or age < min(texts, all_) * 0.999:
            assert found == before[exchange.id]
        elif age > all_ * 1.001:
            assert found is None
        elif age > texts * 1.001:
            assert found is not None
            assert found.question is None
    assert identity_holds(store)
    with transaction(store, read_only=True) as connection:
        orphans = select(tables.score.c.id).where(tables.score.c.exchange_id.not_in(list(after)))
        assert connection.execute(orphans).all() == []


def bring(store: TrackingStore, exchange: Exchange, state: str) -> None:
    """Put one exchange into a given state; an expired lease began long ago."""
    store.exchanges.add([exchange])
    if state == "unsampled":
        return
    skip = (
        {"relevancy": UnscoredReason.NOT_SAMPLED, "faithfulness": UnscoredReason.NOT_SAMPLED}
        if state == "skipped"
        else {}
    )
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled", skip)], SCORERS)
    if state in {"skipped", "pending"}:
        return
    lease = timedelta(0) if state == "ended" else LEASE
    claims = [
        one for one in store.queue.claim_tasks("me", SCORERS, limit=99, lease=lease) if one.exchange.id == exchange.id
    ]
    results = {"scored": (0, 1), "failed": (0, 1), "half": (0,)}.get(state, ())
    reason = {"value": None, "reason": UnscoredReason.UNPARSABLE} if state == "failed" else {}
    store.queue.complete_tasks("me", [a_score(claim, place, **reason) for claim in claims for place in results])


def test_cutoff_times_in_any_time_zone_are_accepted(store: TrackingStore, old: Make) -> None:
    """Times are converted to UTC."""
    store.exchanges.add([old(31)])

    assert store.retention.prune(texts_before=datetime(2026, 2, 20, tzinfo=UTC).astimezone()).texts == 1


@pytest.mark.parametrize("before", [datetime(2999, 1, 1, tzinfo=UTC), NOON.astimezone(timezone(timedelta(hours=14)))])
def test_todays_budget_usage_is_never_deleted(store: TrackingStore, before: datetime) -> None:
    """Today's usage is kept for any ``before`` in any time zone. Otherwise, a budget could be used twice."""
    days = [NOON - DAY, NOON]
    with transaction(store) as connection:
        rows = [{"day": f"{day:%Y-%m-%d}", "requests": 7, "tokens": 0, "usd": 0, "selected": 1} for day in days]
        connection.execute(tables.budget.insert(), rows)

    store.retention.prune(before=before)

    assert column(store, "SELECT day FROM budget") == [f"{NOON:%Y-%m-%d}"]


def test_a_cutoff_time_without_a_time_zone_is_rejected(store: TrackingStore) -> None:
    """A time without a time zone is ambiguous."""
    with pytest.raises(UsageError, match="has no time zone"):
        store.retention.prune(before=datetime(2026, 1, 1))  # noqa: DTZ001 - a naive datetime is under test


def test_erased_text_does_not_remain_in_the_database_files(tmp_path: Path, old: Make, clock: Any) -> None:
    """On SQLite, after a vacuum, neither free pages nor the write-ahead log contain the text, even while another store
    has the file open."""
    url = f"sqlite:///{tmp_path / 'germane.db'}"
    with closing(TrackingStore(url, clock=clock)) as store, closing(TrackingStore(url)) as other:
        store.migrate()
        store.exchanges.add([old(31, question=f"Where is my parcel {number}? " * 40) for number in range(50)])
        assert other.answers.counts().captured == 50
        store.retention.prune(texts_before=clock.now)
        store.retention.vacuum()
        files = {one.name: one.read_bytes() for one in tmp_path.glob("germane.db*")}

        assert "germane.db-wal" in files
        assert not any(b"my parcel" in content for content in files.values())
        with transaction(store, read_only=True) as connection:
            assert connection.exec_driver_sql("PRAGMA secure_delete").scalar_one() == 1
