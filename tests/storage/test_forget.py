"""Deletion of the data belonging to one user, session or attribute value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, text

from germane.annotation import Feedback
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import PruneResult, SamplingDecision, TrackingStore
from germane.storage.retention import forget
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)


def drawn(store: TrackingStore, *exchanges: Exchange) -> None:
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"a": "f1"})


def claimed(store: TrackingStore) -> list[tuple[Any, Score]]:
    claims = store.queue.claim_tasks("me", {"a": "f1"}, limit=99, lease=LEASE)
    return [
        (task, Score(scorer="a", fingerprint="f1", value=0.5, explanation="x")) for one in claims for task in one.tasks
    ]


def owners(store: TrackingStore, table: str) -> list[str]:
    with transaction(store, read_only=True) as connection:
        return sorted(connection.execute(text(f"SELECT exchange_id FROM {table}")).scalars())


def test_forgetting_a_user_deletes_all_of_their_data(store: TrackingStore, make: Make, clock: Any) -> None:
    """Exchanges are deleted with their tasks, scores and labels, as are labels from the user. Counts are kept."""
    deleted, other, waiting = make(0, user="u1"), make(1, user="u2"), make(2, user="u1")
    drawn(store, deleted, other)
    store.queue.complete_tasks("me", claimed(store))
    drawn(store, waiting)
    labels = {"1": (deleted.id, "u2"), "2": (other.id, "u1"), "3": (other.id, "u2"), "4": ("nowhere", "u1")}
    store.labels.add_feedback(
        [
            Feedback(id=name, exchange_id=of, user=by, score=1.0, created_at=clock.now)
            for name, (of, by) in labels.items()
        ]
    )
    expected = PruneResult(exchanges=2, scores=1, expired=1, feedback=3)

    assert store.retention.forget(user="u1", dry_run=True) == expected
    assert store.answers.counts().captured == 3
    assert store.retention.forget(user="u1") == expected

    assert store.answers.list_exchanges() == [other]
    for table in ("scoring_task", "score", "feedback"):
        assert owners(store, table) == [other.id]
    [counts] = store.trends.coverage()
    assert (counts.seen, counts.scored, counts.pending, counts.skipped) == (3, 2, 0, {"expired": 1})
    assert store.retention.forget(user="u1") == PruneResult()


def test_forgetting_a_session_deletes_only_that_session(store: TrackingStore, make: Make) -> None:
    """Other sessions of the same user are kept."""
    kept = make(0, user="u1", session="s2")
    store.exchanges.add([kept, make(1, user="u1", session="s1"), make(2, user=None, session="s1")])

    assert store.retention.forget(session="s1") == PruneResult(exchanges=2)
    assert store.answers.list_exchanges() == [kept]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("acme", "acme"),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (2**53 + 1, "9007199254740993"),
        (0.5, "0.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-07, "1e-07"),
        (1e300, "1e+300"),
        ("1e3", "1e3"),
        ('o\'brien "x" \u00fc%_', None),
    ],
)
def test_forgetting_an_attribute_value_deletes_all_exchanges_with_it(
    store: TrackingStore, make: Make, value: Any, named: str | None
) -> None:
    """Values may have any type, and names may contain any characters."""
    name = "ten.ant \"a\"['b'] $"
    others = [{name: "other"}, {"tenant": value}, {}, {name: f"{value} "}]
    kept = [make(place, attributes=attributes) for place, attributes in enumerate(others)]
    store.exchanges.add([*kept, make(9, attributes={name: value, "more": 1})])

    assert store.retention.forget(attribute=(name, named or str(value))) == PruneResult(exchanges=1)
    assert {one.id for one in store.answers.list_exchanges()} == {one.id for one in kept}


def test_exchanges_that_are_being_scored_are_deleted_too(store: TrackingStore, make: Make) -> None:
    """Their scores arrive too late and are not written."""
    drawn(store, make(user="u1"))
    late = claimed(store)

    assert store.retention.forget(user="u1") == PruneResult(exchanges=1, expired=1)
    assert store.queue.complete_tasks("me", late) == []
    assert store.answers.counts().scores == 0
    [counts] = store.trends.coverage()
    assert (counts.seen, counts.pending, counts.skipped) == (1, 0, {"expired": 1})


def test_deletion_continues_beyond_the_first_batch(store: TrackingStore, make: Make, clock: Any) -> None:
    """The rows include many exchanges with the same time, and all labels from one user."""
    store.exchanges.add([make(number // 300, user="u1") for number in range(650)])
    labels = [
        Feedback(id=str(number), exchange_id="nowhere", user="u1", score=1.0, created_at=clock.now)
        for number in range(450)
    ]
    store.labels.add_feedback(labels)

    assert store.retention.forget(user="u1") == PruneResult(exchanges=650, feedback=450)


def test_nobody_waits_for_the_search(sqlite_store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads all exchanges, a few per transaction, and SQLite's write lock is held only to delete those found."""
    monkeypatch.setattr(forget, "SEARCHED", 3)
    store, statements = sqlite_store, list[str]()
    store.exchanges.add([make(number // 2, user=f"u{number % 5}") for number in range(20)])

    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(engine_of(store), "before_cursor_execute", record)
    expected = PruneResult(exchanges=4)
    assert (store.retention.forget(user="u1", dry_run=True), store.retention.forget(user="u1")) == (expected, expected)

    begun = [statement for statement in statements if statement.startswith("BEGIN") or "exchange.user =" in statement]
    searches = [before for before, then in pairwise(begun) if "exchange.user =" in then]
    assert searches == ["BEGIN"] * 6 * 4  # 4 exchanges per transaction, as two have the same time; twice for traces


@pytest.mark.parametrize(
    "given_",
    [{}, {"user": "a", "session": "b"}, {"user": ""}, {"session": ""}, {"attribute": ("", "x")}],
)
def test_forget_requires_exactly_one_user_session_or_attribute(
    sqlite_store: TrackingStore, given_: dict[str, Any]
) -> None:
    """An empty value would match exchanges without a user or session."""
    with pytest.raises(UsageError, match="exactly one of user, session and attribute"):
        sqlite_store.retention.forget(**given_)


users = st.lists(st.sampled_from(["u1", "u2", "u3", None]), max_size=12)


@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(users, st.integers(0, 12))
def test_data_of_other_users_is_unchanged(store: TrackingStore, make: Make, of: list[str | None], scored: int) -> None:
    """For any mix of users, only the given user's data is deleted, and the counts are consistent."""
    exchanges = [make(number, user=user) for number, user in enumerate(of)]
    drawn(store, *exchanges)
    store.queue.complete_tasks("me", claimed(store)[:scored])
    store.queue.release_tasks("me")
    before = {one.id for one in store.answers.list_exchanges(limit=1000) if one.user != "u1"}

    removed = store.retention.forget(user="u1")

    assert removed.exchanges == of.count("u1")
    assert {one.id for one in store.answers.list_exchanges(limit=1000)} == before
    for one in store.trends.coverage():
        assert one.seen == one.scored + one.pending + sum(one.skipped.values())
