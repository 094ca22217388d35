"""Old text is erased, old exchanges are deleted, what is young stays, and every count stays right."""

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

from germane.annotation import Feedback, Recorded
from germane.errors import UsageError
from germane.exchange import Context, Exchange, Turn
from germane.score import Reason, Score
from germane.storage import Claim, Coverage, Decision, Removed, Store
from germane.storage.db import tables

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
    """Makes exchanges of so many days ago, full of text."""

    def aged(days: float, **given: Any) -> Exchange:
        full: dict[str, Any] = {
            "contexts": (Context("A page.", "p1", 0.5),),
            "history": (Turn("user", "Hello"),),
            "error": "ValueError: By card.",
            "attributes": {"tenant": "acme"},
            "user": "u1",
            "session": "s1",
        }
        return make(started_at=clock.now - days * DAY, **full | given)

    return aged


def a_score(claim: Claim, place: int = 0, **given: Any) -> tuple[Any, Score]:
    task = claim.tasks[place]
    values: dict[str, Any] = {"value": 0.5, "label": "partly", "explanation": "It says: By card.", "details": DETAILS}
    return task, Score(scorer=task.scorer, fingerprint=task.fingerprint, **values | given)


def drawn(store: Store, *exchanges: Exchange, scorers: dict[str, str] | None = None) -> None:
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], scorers or {"relevancy": "f1"})


def scored(store: Store, *exchanges: Exchange) -> None:
    drawn(store, *exchanges)
    claims = store.claim("me", {"relevancy": "f1"}, limit=99, lease=LEASE)
    store.complete("me", [a_score(claim) for claim in claims])


def column(store: Store, query: str) -> list[Any]:
    with store._database.read() as connection:
        return list(connection.execute(text(query)).scalars())


def identity_holds(store: Store) -> bool:
    return all(
        one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
        for one in store.coverage()
    )


def test_old_text_is_erased_and_all_else_stays(store: Store, old: Make, clock: Any) -> None:
    """Question, answer, contexts, history and error go; names, numbers and the moment stay."""
    exchange, young = old(31), old(29)
    scored(store, exchange, young)

    assert store.prune(texts_before=clock.now - 30 * DAY) == Removed(texts=1)

    found = store.exchanges_of([exchange.id, young.id])
    assert found[exchange.id] == replace(exchange, question=None, answer=None, contexts=(), history=(), error=None)
    assert found[young.id] == young
    assert len(column(store, "SELECT erased_at FROM exchange WHERE erased_at IS NOT NULL")) == 1
    assert store.prune(texts_before=clock.now - 30 * DAY) == Removed()


def test_what_quotes_the_text_goes_with_it(store: Store, old: Make, clock: Any) -> None:
    """Explanations, strings in details, errors of tasks and comments of labels; values, labels and numbers stay."""
    exchange, failed, young = old(31), old(31, route="search"), old(29)
    scored(store, exchange, young)
    drawn(store, failed)
    [claim] = store.claim("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    store.complete("me", [a_score(claim, value=None, reason=Reason.UNPARSABLE, explanation="the judge said: By card.")])
    said = {"score": 0.0, "comment": "He said: By card.", "created_at": clock.now}
    store.add_feedback(
        [Feedback(id=str(place), exchange_id=one.id, **said) for place, one in enumerate((exchange, young))]
    )

    store.prune(texts_before=clock.now - 30 * DAY)

    scores = store.scores_of([exchange.id, young.id])
    [erased], [kept] = scores[exchange.id], scores[young.id]
    assert (erased.explanation, erased.details) == (None, BARE)
    assert (erased.value, erased.label) == (0.5, "partly")
    assert (kept.explanation, kept.details) == ("It says: By card.", DETAILS)
    assert column(store, "SELECT error FROM scoring_task WHERE error IS NOT NULL") == []
    assert column(store, "SELECT comment FROM feedback ORDER BY id") == [None, "He said: By card."]


def test_comments_go_for_their_own_age_too(store: Store, old: Make, clock: Any) -> None:
    """Where an exchange never came, or its text went before the comment was given."""
    old_one = Feedback(id="1", exchange_id="nowhere", score=1.0, comment="By card.", created_at=clock.now - 31 * DAY)
    store.add_feedback([old_one, replace(old_one, id="2", created_at=clock.now)])

    assert store.prune(texts_before=clock.now - 30 * DAY) == Removed(comments=1)
    assert column(store, "SELECT comment FROM feedback ORDER BY id") == [None, "By card."]


def test_a_score_recorded_after_the_text_went_brings_none_back(store: Store, old: Make, clock: Any) -> None:
    """Its explanation would quote what was erased."""
    exchange = old(31)
    scored(store, exchange)
    store.prune(texts_before=clock.now - 30 * DAY)

    late = Recorded(
        exchange_id=exchange.id, name="mine", value=0.5, explanation="It says", details=DETAILS, recorded_at=clock.now
    )
    store.record([late])

    [found] = [one for one in store.scores_of([exchange.id])[exchange.id] if one.scorer == "mine"]
    assert (found.value, found.explanation, found.details) == (0.5, None, BARE)


def test_old_exchanges_go_with_all_that_is_said_of_them(store: Store, old: Make, clock: Any) -> None:
    """Tasks, scores and labels; their counts stay until these are as old themselves."""
    exchange, young = old(399.9), old(1)
    scored(store, exchange, young)
    label = Feedback(id="1", exchange_id=exchange.id, score=1.0, created_at=clock.now)
    store.add_feedback([label, replace(label, id="2", exchange_id=young.id)])
    counts = store.coverage()
    clock.advance(hours=4)

    assert store.prune(before=clock.now - 400 * DAY) == Removed(exchanges=1, scores=1, feedback=1, counts=3)

    assert list(store.exchanges_of([exchange.id, young.id])) == [young.id]
    for table in ("scoring_task", "score", "feedback"):
        assert column(store, f"SELECT exchange_id FROM {table}") == [young.id]
    assert [one.seen for one in counts] == [2]
    assert [one.seen for one in store.coverage()] == [1]


def test_counts_outlive_what_they_count(store: Store, old: Make, clock: Any) -> None:
    """An exchange that had to go for its size is still counted."""
    drawn(store, old(2), old(2))
    counts = store.coverage()

    removed = store.prune(max_size=1)

    assert (removed.texts, removed.exchanges, removed.expired) == (2, 2, 2)
    assert counts == [Coverage(service="shop", route="ask", scorer="relevancy", seen=2, pending=2)]
    assert store.coverage() == [
        Coverage(service="shop", route="ask", scorer="relevancy", seen=2, skipped={"expired": 2})
    ]


def test_what_waits_is_skipped_and_what_runs_is_left(store: Store, old: Make, clock: Any) -> None:
    """No score of text that is gone, and none lost that is being made; an ended lease keeps nothing."""
    running, waiting = old(31, id="1" * 32), old(30.5, id="2" * 32)
    drawn(store, running, waiting, scorers=SCORERS)
    [claim] = store.claim("me", SCORERS, limit=1, lease=LEASE)
    assert claim.exchange.id == running.id

    assert store.prune(texts_before=clock.now - 30 * DAY) == Removed(texts=1, expired=2)
    assert [one.pending for one in store.coverage()] == [1, 1]
    assert store.exchanges_of([running.id])[running.id] == running

    store.complete("me", [a_score(claim)])
    clock.advance(seconds=61)

    assert store.prune(texts_before=clock.now - 30 * DAY) == Removed(texts=1, expired=1)
    assert store.complete("me", [a_score(claim, 1)]) == []
    assert store.claim("me", SCORERS, limit=9, lease=LEASE) == []
    assert identity_holds(store)
    assert sum(one.skipped["expired"] for one in store.coverage()) == 3


def test_more_than_one_transaction_can_hold_is_done_too(store: Store, old: Make, clock: Any) -> None:
    """In batches, past those that are left for the next time, and it ends when it is told to."""
    store.add([old(31 + place / 1000) for place in range(450)])
    asked: list[bool] = []

    def after_the_first() -> bool:
        asked.append(True)
        return len(asked) > 1

    cut = store.prune(texts_before=clock.now - 30 * DAY, stopping=after_the_first)
    rest = store.prune(texts_before=clock.now - 30 * DAY)

    assert (cut.texts, rest.texts) == (200, 250)
    assert store.prune(before=clock.now - 30 * DAY) == Removed(exchanges=450)


def test_a_rehearsal_says_what_would_go_and_changes_nothing(store: Store, old: Make, clock: Any) -> None:
    """The same counts as the real thing, when nothing is being scored."""
    scored(store, old(401), old(31))
    drawn(store, old(402), old(32), old(1))
    store.add_feedback([Feedback(id="1", exchange_id="nowhere", score=1.0, created_at=clock.now - 401 * DAY)])
    times = {"texts_before": clock.now - 30 * DAY, "before": clock.now - 400 * DAY}

    foreseen = store.prune(**times, dry_run=True)

    assert store.counts().captured == 5
    assert foreseen == Removed(texts=2, exchanges=2, scores=1, expired=2, feedback=1, counts=5)
    assert store.prune(**times) == replace(foreseen, counts=6)  # one more for what expired


def test_whole_minutes_of_counts_go_and_declared_routes_stay(store: Store, old: Make, clock: Any) -> None:
    """Of a minute in which an exchange is still there all counts stay, so that none stands below 0."""
    running = old(401)
    drawn(store, running)
    store.claim("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    store.count_dropped({("shop", "ask"): 3}, ["relevancy"], at=running.started_at)
    store.count_dropped({("shop", "ask"): 5}, ["relevancy"], at=running.started_at - DAY)
    store.declare("shop", ["search"])

    assert store.prune(before=clock.now - 400 * DAY) == Removed(counts=2)
    assert [(one.route, one.seen) for one in store.coverage()] == [("ask", 4), ("search", 0)]


def test_by_size_the_oldest_text_goes_first_and_the_youngest_stays(store: Store, old: Make, clock: Any) -> None:
    """Text before exchanges, only as much as needed, and nothing of the last hour."""
    store.add([old(100 - place / 100, answer=os.urandom(1000).hex()) for place in range(420)])
    young = old(0.01)
    store.add([young])
    size = store.size(1)

    removed = store.prune(max_size=size * 4 // 5)

    assert removed.exchanges == 0
    assert 200 <= removed.texts < 421
    assert store.size(size * 4 // 5) <= size * 4 // 5
    erased = column(store, "SELECT count(*) FROM exchange WHERE erased_at IS NULL")
    assert erased == [421 - removed.texts]
    newest = column(store, "SELECT max(started_at) FROM exchange WHERE erased_at IS NOT NULL")
    oldest = column(store, "SELECT min(started_at) FROM exchange WHERE erased_at IS NULL")
    assert newest < oldest

    gone = store.prune(max_size=1)

    assert gone.exchanges == 420
    assert store.exchanges() == [young]


def test_room_of_erased_text_is_used_again(store: Store, old: Make, clock: Any) -> None:
    """Also where rows are so short that each page of the file holds a few: nothing has to be packed first."""
    store.add([old(31, question=os.urandom(500).hex()) for _ in range(400)])
    full = store.size(1)

    store.prune(texts_before=clock.now - 30 * DAY)

    assert store.size(1) < full / 2
    assert sorted(column(store, "SELECT count(*) FROM exchange")) == [400]


def test_rows_of_processes_that_are_gone_go(store: Store, clock: Any) -> None:
    """A day after they were last seen."""
    with store._database.write() as connection:
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

    assert store.prune() == Removed(workers=1)
    assert column(store, "SELECT id FROM worker") == ["alive"]


def test_packing_gives_room_back(store: Store, old: Make, clock: Any) -> None:
    """SQLite's file shrinks; on PostgreSQL it is allowed at least, and the rows are there."""
    kept = old(1)
    store.add([kept, *(old(9, answer="x" * 50_000) for _ in range(50))])
    store.prune(before=clock.now - 5 * DAY)
    before = store.size()

    store.vacuum()

    assert store.size() <= before
    assert store.exchanges() == [kept]


AGES = st.floats(0, 500)
STATES = ("scored", "failed", "half", "running", "ended", "unsampled", "skipped", "pending")
"""In an order in which none is claimed for another."""


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(AGES, st.sampled_from(STATES)), max_size=8), st.floats(0.1, 450), st.floats(0.1, 450))
def test_pruning_keeps_every_count_right_and_touches_nothing_young(
    store: Store, make: Make, clock: Any, given_: list[tuple[float, str]], texts: float, all_: float
) -> None:
    """Whatever the ages and states: seen = scored + skipped + failed + pending, before and after."""
    clock.advance(days=1000)  # beyond what earlier examples left
    given_ = sorted(given_, key=lambda one: STATES.index(one[1]))
    exchanges = [make(started_at=clock.now - age * DAY, service=str(clock.now)) for age, _ in given_]
    for exchange, (_, state) in zip(exchanges, given_, strict=True):
        bring(store, exchange, state)
    before = {one.id: one for one in store.exchanges(limit=1000)}
    running = {one.id for one, (_, state) in zip(exchanges, given_, strict=True) if state in {"running", "half"}}

    store.prune(texts_before=clock.now - texts * DAY, before=clock.now - all_ * DAY)

    after = {one.id: one for one in store.exchanges(limit=1000)}
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
    with store._database.read() as connection:
        orphans = select(tables.score.c.id).where(tables.score.c.exchange_id.not_in(list(after)))
        assert connection.execute(orphans).all() == []


def bring(store: Store, exchange: Exchange, state: str) -> None:
    """Bring one exchange into a state; a lease that has ended began long ago."""
    store.add([exchange])
    if state == "unsampled":
        return
    skip = {"relevancy": Reason.NOT_DRAWN, "faithfulness": Reason.NOT_DRAWN} if state == "skipped" else {}
    store.assign([Decision(exchange.id, 1.0, "drawn", skip)], SCORERS)
    if state in {"skipped", "pending"}:
        return
    lease = timedelta(0) if state == "ended" else LEASE
    claims = [one for one in store.claim("me", SCORERS, limit=99, lease=lease) if one.exchange.id == exchange.id]
    results = {"scored": (0, 1), "failed": (0, 1), "half": (0,)}.get(state, ())
    reason = {"value": None, "reason": Reason.UNPARSABLE} if state == "failed" else {}
    store.complete("me", [a_score(claim, place, **reason) for claim in claims for place in results])


def test_moments_need_no_zone_of_ours(store: Store, old: Make) -> None:
    """UTC or not, a moment is a moment."""
    store.add([old(31)])

    assert store.prune(texts_before=datetime(2026, 2, 20, tzinfo=UTC).astimezone()).texts == 1


@pytest.mark.parametrize("before", [datetime(2999, 1, 1, tzinfo=UTC), NOON.astimezone(timezone(timedelta(hours=14)))])
def test_what_was_spent_today_is_never_old(store: Store, before: datetime) -> None:
    """Whatever moment is named, and in whatever zone: else a budget would be spent twice."""
    days = [NOON - DAY, NOON]
    with store._database.write() as connection:
        rows = [{"day": f"{day:%Y-%m-%d}", "calls": 7, "tokens": 0, "usd": 0, "picked": 1} for day in days]
        connection.execute(tables.budget.insert(), rows)

    store.prune(before=before)

    assert column(store, "SELECT day FROM budget") == [f"{NOON:%Y-%m-%d}"]


def test_a_moment_without_a_zone_is_refused(store: Store) -> None:
    """Nobody can say when it was."""
    with pytest.raises(UsageError, match="has no time zone"):
        store.prune(before=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_erased_text_stays_in_no_file(tmp_path: Path, old: Make, clock: Any) -> None:
    """On SQLite, once it is packed: not in a free page, and not in the log, while others have the file open."""
    url = f"sqlite:///{tmp_path / 'germane.db'}"
    with closing(Store(url, clock=clock)) as store, closing(Store(url)) as other:
        store.migrate()
        store.add([old(31, question=f"Where is my parcel {number}? " * 40) for number in range(50)])
        assert other.counts().captured == 50
        store.prune(texts_before=clock.now)
        store.vacuum()
        files = {one.name: one.read_bytes() for one in tmp_path.glob("germane.db*")}

        assert "germane.db-wal" in files
        assert not any(b"my parcel" in content for content in files.values())
        with store._database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA secure_delete").scalar_one() == 1
