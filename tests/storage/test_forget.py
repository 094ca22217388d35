"""Whoever asks to be forgotten is: every row that is theirs goes, and none that is another's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from germane.annotation import Feedback
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Decision, Removed, Store

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)


def drawn(store: Store, *exchanges: Exchange) -> None:
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], {"a": "f1"})


def claimed(store: Store) -> list[tuple[Any, Score]]:
    claims = store.claim("me", {"a": "f1"}, limit=99, lease=LEASE)
    return [
        (task, Score(scorer="a", fingerprint="f1", value=0.5, explanation="x")) for one in claims for task in one.tasks
    ]


def owners(store: Store, table: str) -> list[str]:
    with store._database.read() as connection:
        return sorted(connection.execute(text(f"SELECT exchange_id FROM {table}")).scalars())


def test_all_of_a_user_goes_and_nothing_of_others(store: Store, make: Make, clock: Any) -> None:
    """Exchanges, tasks, scores, labels of them and labels by them; what was counted stays counted."""
    theirs, other, waiting = make(0, user="u1"), make(1, user="u2"), make(2, user="u1")
    drawn(store, theirs, other)
    store.complete("me", claimed(store))
    drawn(store, waiting)
    labels = {"1": (theirs.id, "u2"), "2": (other.id, "u1"), "3": (other.id, "u2"), "4": ("nowhere", "u1")}
    store.add_feedback(
        [
            Feedback(id=name, exchange_id=of, user=by, score=1.0, created_at=clock.now)
            for name, (of, by) in labels.items()
        ]
    )
    expected = Removed(exchanges=2, scores=1, expired=1, feedback=3)

    assert store.forget(user="u1", dry_run=True) == expected
    assert store.counts().captured == 3
    assert store.forget(user="u1") == expected

    assert store.exchanges() == [other]
    for table in ("scoring_task", "score", "feedback"):
        assert owners(store, table) == [other.id]
    [counts] = store.coverage()
    assert (counts.seen, counts.scored, counts.pending, counts.skipped) == (3, 2, 0, {"expired": 1})
    assert store.forget(user="u1") == Removed()


def test_a_session_is_forgotten_alone(store: Store, make: Make) -> None:
    """Other conversations of the same user stay."""
    kept = make(0, user="u1", session="s2")
    store.add([kept, make(1, user="u1", session="s1"), make(2, user=None, session="s1")])

    assert store.forget(session="s1") == Removed(exchanges=2)
    assert store.exchanges() == [kept]


@pytest.mark.parametrize(
    ("value", "named"),
    [("acme", "acme"), (True, "true"), (False, "false"), (7, "7"), (0.5, "0.5"), ('o\'brien "x" \u00fc%_', None)],
)
def test_an_attribute_is_told_by_name_and_value(store: Store, make: Make, value: Any, named: str | None) -> None:
    """Whatever its type, and whatever characters its name has."""
    name = "ten.ant \"a\"['b'] $"
    others = [{name: "other"}, {"tenant": value}, {}, {name: f"{value} "}]
    kept = [make(place, attributes=attributes) for place, attributes in enumerate(others)]
    store.add([*kept, make(9, attributes={name: value, "more": 1})])

    assert store.forget(attribute=(name, named or str(value))) == Removed(exchanges=1)
    assert {one.id for one in store.exchanges()} == {one.id for one in kept}


def test_what_is_being_scored_is_forgotten_as_well(store: Store, make: Make) -> None:
    """Its score comes too late, and is not written."""
    drawn(store, make(user="u1"))
    late = claimed(store)

    assert store.forget(user="u1") == Removed(exchanges=1, expired=1)
    assert store.complete("me", late) == []
    assert store.counts().rows == 0
    [counts] = store.coverage()
    assert (counts.seen, counts.pending, counts.skipped) == (1, 0, {"expired": 1})


def test_more_than_one_transaction_can_hold_are_forgotten(store: Store, make: Make, clock: Any) -> None:
    """All of them, also where many began at one moment, and all labels of one person."""
    store.add([make(number // 300, user="u1") for number in range(650)])
    labels = [
        Feedback(id=str(number), exchange_id="nowhere", user="u1", score=1.0, created_at=clock.now)
        for number in range(450)
    ]
    store.add_feedback(labels)

    assert store.forget(user="u1") == Removed(exchanges=650, feedback=450)


@pytest.mark.parametrize(
    "given_",
    [{}, {"user": "a", "session": "b"}, {"user": ""}, {"session": ""}, {"attribute": ("", "x")}],
)
def test_exactly_one_is_named(sqlite_store: Store, given_: dict[str, Any]) -> None:
    """An empty name would be everybody's who has none."""
    with pytest.raises(UsageError, match="name one user, session or attribute"):
        sqlite_store.forget(**given_)


users = st.lists(st.sampled_from(["u1", "u2", "u3", None]), max_size=12)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(users, st.integers(0, 12))
def test_forgetting_touches_one_person_only(store: Store, make: Make, of: list[str | None], scored: int) -> None:
    """Of any mix, what is left is what the others had, and the counts are right."""
    exchanges = [make(number, user=user) for number, user in enumerate(of)]
    drawn(store, *exchanges)
    store.complete("me", claimed(store)[:scored])
    store.release("me")
    before = {one.id for one in store.exchanges(limit=1000) if one.user != "u1"}

    removed = store.forget(user="u1")

    assert removed.exchanges == of.count("u1")
    assert {one.id for one in store.exchanges(limit=1000)} == before
    for one in store.coverage():
        assert one.seen == one.scored + one.pending + sum(one.skipped.values())
