"""Where text goes as soon as it is scored, nothing of it is left in any table once nobody needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from germane.annotation import Feedback
from germane.exchange import Context, Exchange, Turn
from germane.score import Reason, Score
from germane.storage import Decision, Removed, Step, Store

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SECRET = "zanzibar"
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}


@pytest.fixture
def erasing(migrated_url: str, clock: Any) -> Iterator[Callable[[], Store]]:
    """Opens stores that erase what is scored."""
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(Store(migrated_url, clock=clock, erase_after_scoring=True))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def secret(make: Make) -> Callable[..., Exchange]:
    """Makes exchanges that speak of one word everywhere."""

    def full(minutes: float = 0, **given: Any) -> Exchange:
        said = {"question": SECRET, "answer": SECRET, "error": SECRET}
        return make(minutes, contexts=(Context(SECRET),), history=(Turn("user", SECRET),), **said | given)

    return full


def results(store: Store, owner: str = "me", **scorers: str) -> list[tuple[Any, Score]]:
    claims = store.claim(owner, scorers or SCORERS, limit=99, lease=LEASE)
    return [
        (
            task,
            Score(
                scorer=task.scorer, fingerprint="f", value=0.5, explanation=SECRET, details={"text": SECRET, "words": 3}
            ),
        )
        for claim in claims
        for task in claim.tasks
    ]


def drawn(store: Store, *exchanges: Exchange) -> None:
    store.add(exchanges)
    store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], SCORERS)


def places_of_secret(store: Store) -> list[str]:
    found = []
    for table in ("exchange", "scoring_task", "score", "feedback"):
        with store._database.read() as connection:
            rows = connection.execute(text(f"SELECT * FROM {table}")).mappings()
            found += [f"{table}.{name}" for row in rows for name, value in row.items() if SECRET in str(value)]
    return found


def test_text_goes_with_the_last_score(erasing: Callable[[], Store], secret: Make, clock: Any) -> None:
    """Not before: the other scorer still needs it. What was returned, for spans, has its text."""
    store = erasing()
    exchange = secret()
    drawn(store, exchange)
    store.add_feedback([Feedback(id="1", exchange_id=exchange.id, score=0.0, comment=SECRET, created_at=clock.now)])
    first, last = results(store)

    assert store.complete("me", [first]) == [first]
    assert store.exchanges() == [exchange]

    assert store.complete("me", [last]) == [last]
    assert places_of_secret(store) == []
    assert [one.value for one in store.scores_of([exchange.id])[exchange.id]] == [0.5, 0.5]
    assert store.scores_of([exchange.id])[exchange.id][0].details == {"words": 3}


def test_what_a_score_says_is_not_written_at_all(erasing: Callable[[], Store], secret: Make) -> None:
    """Also while the exchange waits for another scorer."""
    store = erasing()
    drawn(store, secret())
    first, _ = results(store)
    store.complete("me", [first])

    assert not any(place.startswith(("score", "scoring_task")) for place in places_of_secret(store))


def test_a_failure_closes_as_well(erasing: Callable[[], Store], secret: Make) -> None:
    """Its error may quote the answer, and goes too."""
    store = erasing()
    drawn(store, secret())
    failed = [
        (task, Score(scorer=task.scorer, fingerprint="f", reason=Reason.UNPARSABLE, explanation=SECRET))
        for task, _ in results(store)
    ]

    store.complete("me", failed)

    assert places_of_secret(store) == []


def test_what_the_sampler_skips_goes_at_once(erasing: Callable[[], Store], secret: Make) -> None:
    """Nobody will read it; what one scorer still takes stays."""
    store = erasing()
    skipped, drawn_ = secret(0), secret(1)
    store.add([skipped, drawn_])
    skip = dict.fromkeys(SCORERS, Reason.NOT_DRAWN)
    one = {"relevancy": Reason.FILTERED}
    store.assign([Decision(skipped.id, 0.5, "not_drawn", skip), Decision(drawn_.id, 0.5, "drawn", one)], SCORERS)

    assert [found.question for found in store.exchanges()] == [SECRET, None]


def test_what_a_budget_passes_over_goes_too(erasing: Callable[[], Store], secret: Make) -> None:
    """Not while it is a candidate."""
    store = erasing()
    exchange = secret()
    store.add([exchange])
    store.elect("sampler", "me", ttl=LEASE)
    store.assign([Decision(exchange.id, 1.0, "candidate")], SCORERS)
    assert store.exchanges() == [exchange]

    assert store.pass_over(Step("sampler", "me", "here"), {exchange.id: 0.5}, Reason.NOT_DRAWN)

    assert places_of_secret(store) == []


def test_feedback_does_not_change_what_a_pick_stands_for(erasing: Callable[[], Store], secret: Make) -> None:
    """Those that were not picked have lost their text, and it goes on standing for them; a candidate is scored."""
    store = erasing()
    picked, candidate = secret(0), secret(1)
    store.add([picked, candidate])
    store.assign([Decision(picked.id, 0.25, "drawn"), Decision(candidate.id, None, "candidate")], SCORERS)

    assert store.consider([], [picked.id, candidate.id], SCORERS) == 2

    store.complete("me", results(store))
    with store._database.read() as connection:
        rows = connection.execute(text("SELECT DISTINCT exchange_id, sampling_probability FROM score")).all()
    assert {tuple(row) for row in rows} == {(picked.id, 0.25), (candidate.id, 1.0)}


def test_of_two_processes_that_end_at_once_one_erases(erasing: Callable[[], Store], secret: Make) -> None:
    """Whichever commits later sees that nothing is left."""
    first, second = erasing(), erasing()
    drawn(first, *(secret(place) for place in range(20)))
    done = [(first, "a", results(first, "a", relevancy="f1")), (second, "b", results(second, "b", faithfulness="f2"))]
    barrier = threading.Barrier(2)

    def complete(store: Store, owner: str, found: list[tuple[Any, Score]]) -> None:
        for one in found:
            barrier.wait(30)
            store.complete(owner, [one])

    threads = [threading.Thread(target=complete, args=each) for each in done]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert first.counts().done == 40
    assert places_of_secret(first) == []


def test_housekeeping_finds_what_was_scored_before_the_setting(
    erasing: Callable[[], Store], store: Store, secret: Make, clock: Any
) -> None:
    """What waits, and what nobody has decided on, keeps its text."""
    scored, waiting, undecided = secret(0), secret(1), secret(2)
    drawn(store, scored)
    store.complete("me", results(store))
    drawn(store, waiting)
    store.add([undecided])

    assert erasing().prune() == Removed(texts=1)
    assert [found.question for found in store.exchanges()] == [SECRET, SECRET, None]


def test_without_the_setting_everything_stays(store: Store, secret: Make) -> None:
    """Text is kept for as long as the retention says."""
    drawn(store, secret())
    store.complete("me", results(store))

    assert "exchange.answer" in places_of_secret(store)
    assert "score.explanation" in places_of_secret(store)
