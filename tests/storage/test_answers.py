"""Answers by filter, in order, page by page; one answer with all that is known of it; people beside the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason, band_of
from germane.storage import (
    AnswerCursor,
    AnswerFilter,
    AnswerPage,
    AnswerSort,
    Histogram,
    SamplingDecision,
    TrackingStore,
)
from germane.storage.answers import lowest_scores, search
from germane.storage.answers.filter import SORTS

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1"}
PAGES = 100


def write(
    store: TrackingStore, make: Make, values: Sequence[float | UnscoredReason | None], **given: Callable[[int], Any]
) -> list[Exchange]:
    """Write an exchange a minute with these scores, or with why there is none; None leaves it waiting."""
    exchanges = [
        make(place, id=f"{place:032x}", **{name: of(place) for name, of in given.items()})
        for place in range(len(values))
    ]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 0.5, "sampled") for one in exchanges], SCORERS)
    by_id = {one.id: value for one, value in zip(exchanges, values, strict=True)}
    claims = store.queue.claim_tasks("me", SCORERS, limit=1000, lease=LEASE)
    tasks = [task for claim in claims for task in claim.tasks if by_id[task.exchange_id] is not None]
    store.queue.complete_tasks("me", [(task, _score(by_id[task.exchange_id])) for task in tasks])
    store.queue.release_tasks("me")
    return exchanges


def _score(value: float | UnscoredReason | None) -> Score:
    if isinstance(value, UnscoredReason):
        return Score(scorer="relevancy", fingerprint="f1", reason=value, explanation=f"because {value}")
    number = value or 0.0
    return Score(scorer="relevancy", fingerprint="f1", value=number, label=band_of(number), cost=1 - number)


def pages(store: TrackingStore, chosen: AnswerFilter, sort: AnswerSort = "lowest", size: int = 3) -> list[AnswerPage]:
    """Return all pages, one after another."""
    found = [store.answers.search(chosen, sort=sort, limit=size)]
    while found[-1].next_cursor is not None and len(found) < PAGES:
        after = AnswerCursor.parse(str(found[-1].next_cursor))
        found.append(store.answers.search(chosen, sort=sort, after=after, limit=size))
    return found


def numbers(found: Sequence[AnswerPage]) -> list[int]:
    """Return the places of the exchanges in the order in which they were written."""
    return [int(one.exchange.id, 16) for page in found for one in page.answers]


VALUES = [0.4, 0.9, 0.0, 0.4, 0.7, 0.0, 0.2, 0.4]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("lowest", [5, 2, 6, 7, 3, 0, 4, 1]),
        ("highest", [1, 4, 7, 3, 0, 6, 5, 2]),
        ("newest", [7, 6, 5, 4, 3, 2, 1, 0]),
        ("dearest", [5, 2, 6, 7, 3, 0, 4, 1]),
        ("slowest", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_pages_follow_one_another_in_each_order(
    store: TrackingStore, make: Make, sort: AnswerSort, order: list[int]
) -> None:
    """Of equal ones the newest comes first; nothing comes twice, and nothing is left out."""
    write(store, make, VALUES, duration=lambda place: 10.0 - place)

    found = pages(store, AnswerFilter(), sort)

    assert numbers(found) == order
    assert [len(page.answers) for page in found] == [3, 3, 2]
    assert all(page.searched_back_to is None for page in found)


@given(
    values=st.lists(st.sampled_from([0.0, 0.1, 0.1, 0.5, 0.9]), max_size=12),
    size=st.integers(1, 5),
    sort=st.sampled_from(SORTS),
    at_least=st.sampled_from([None, 0.0, 0.1]),
    below=st.sampled_from([None, 0.5, 0.9]),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_pages_together_are_the_whole(
    sqlite_store: TrackingStore,
    make: Make,
    values: list[float],
    size: int,
    sort: AnswerSort,
    at_least: float | None,
    below: float | None,
) -> None:
    """Whatever the size of a page and the range of the scores."""
    route = f"route-{len(sqlite_store.answers.list_exchanges(limit=1000))}"
    made = [make(place, route=route) for place in range(len(values))]
    sqlite_store.exchanges.add(made)
    sqlite_store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in made], SCORERS)
    by_id = {one.id: value for one, value in zip(made, values, strict=True)}
    tasks = [
        one for claim in sqlite_store.queue.claim_tasks("me", SCORERS, limit=99, lease=LEASE) for one in claim.tasks
    ]
    sqlite_store.queue.complete_tasks("me", [(task, _score(by_id[task.exchange_id])) for task in tasks])
    fits = {id_ for id_, one in by_id.items() if (at_least or -1.0) <= one < (2.0 if below is None else below)}

    found = pages(sqlite_store, AnswerFilter(route=route, at_least=at_least, below=below), sort, size)

    assert sorted(one.exchange.id for page in found for one in page.answers) == sorted(fits)
    assert sqlite_store.answers.count_matches(AnswerFilter(route=route, at_least=at_least, below=below)).count == len(
        fits
    )


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        (AnswerFilter(route="route-1"), {1, 4, 7}),
        (AnswerFilter(route="route-1", service="other"), set()),
        (AnswerFilter(scorer="other"), set()),
        (AnswerFilter(fingerprint="f2"), set()),
        (AnswerFilter(below=0.4), {2, 5, 6}),
        (AnswerFilter(at_least=0.4, below=0.7), {0, 3, 7}),
        (AnswerFilter(low=True), {0, 2, 3, 5, 6, 7}),
        (AnswerFilter(label="mostly_relevant"), {4}),
        (AnswerFilter(model="m1"), {1, 3, 5, 7}),
        (AnswerFilter(prompt_version="2"), {2}),
        (AnswerFilter(text="NUMBER 6"), {6}),
        (AnswerFilter(text="100 %_\\"), {3}),
        (AnswerFilter(text="%"), {3}),
        (AnswerFilter(labeled=True), {4, 5}),
        (AnswerFilter(labeled=True, below=0.5), {5}),
        (AnswerFilter(labeled=False, low=False), {0, 1, 2, 3, 6, 7}),
    ],
)
def test_a_filter_takes_what_fits(store: TrackingStore, make: Make, chosen: AnswerFilter, places: set[int]) -> None:
    """Each part of it, alone and with others, in an order that the index knows and in one that it does not."""
    made = write(
        store,
        make,
        VALUES,
        route=lambda place: f"route-{place % 3}",
        model=lambda place: f"m{place % 2}",
        prompt_version=str,
        question=lambda place: f"Question number {place}?",
        answer=lambda place: "It is 100 %_\\ sure." if place == 3 else "Yes.",
    )
    store.labels.add_feedback(
        [
            Feedback(id=f"l{place}", exchange_id=made[place].id, score=0.0, created_at=made[0].started_at)
            for place in (4, 5)
        ]
    )

    assert set(numbers(pages(store, chosen))) == places
    assert set(numbers(pages(store, chosen, "newest"))) == places
    assert store.answers.count_matches(chosen).count == len(places)


def test_a_window_is_that_of_the_answers(store: TrackingStore, make: Make) -> None:
    """From its beginning on, and up to its end."""
    made = write(store, make, VALUES)

    chosen = AnswerFilter(since=made[2].started_at, until=made[5].started_at)

    assert sorted(numbers(pages(store, chosen))) == [2, 3, 4]


def test_what_has_no_score_is_listed_apart(store: TrackingStore, make: Make) -> None:
    """By its state and reason, the newest first, with what was said; among scores it is never found."""
    values: list[float | UnscoredReason | None] = [
        0.0,
        UnscoredReason.JUDGE_TIMEOUT,
        UnscoredReason.MISSING_INPUT,
        None,
        UnscoredReason.JUDGE_TIMEOUT,
        UnscoredReason.UNPARSABLE,
    ]
    write(store, make, values)
    fresh = make(9, id=f"{9:032x}")
    store.exchanges.add([fresh])

    failed = pages(store, AnswerFilter(state="failed"), size=2)

    assert numbers(failed) == [5, 4, 1]
    assert [one.task.error for page in failed for one in page.answers if one.task] == [
        "because unparsable", "because judge_timeout", "because judge_timeout",
    ]  # fmt: skip
    assert all(one.score is None for page in failed for one in page.answers)
    assert numbers(pages(store, AnswerFilter(state="failed", reason="judge_timeout"))) == [4, 1]
    assert numbers(pages(store, AnswerFilter(state="skipped", scorer="relevancy"))) == [2]
    assert numbers(pages(store, AnswerFilter(state="failed", scorer="other"))) == []
    assert numbers(pages(store, AnswerFilter(state="waiting"))) == [3]
    assert numbers(pages(store, AnswerFilter(state="any"))) == [9, 5, 4, 3, 2, 1, 0]
    assert numbers(pages(store, AnswerFilter())) == [0]
    assert store.answers.count_matches(AnswerFilter(state="failed")).count == 3


def test_a_search_among_many_looks_at_the_newest_and_says_so(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time it can be gone on with, and then misses nothing; by another order it stays with the newest."""
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 3)
    monkeypatch.setattr(search, "MAX_SCORES_SCANNED", 3)
    made = write(store, make, VALUES, question=lambda place: "rare" if place in {1, 6} else "common")

    (page, *more) = pages(store, AnswerFilter(text="rare"), "newest")
    highest = store.answers.search(AnswerFilter(), sort="highest")
    failed = pages(store, AnswerFilter(state="any", text="rare"))

    assert numbers([page]) == [6]
    assert page.searched_back_to == made[4].started_at
    assert numbers([page, *more]) == [6, 1]
    assert more[-1].next_cursor is None
    assert more[-1].searched_back_to is None
    assert numbers([highest]) == [4, 7, 6, 5]
    assert highest.searched_back_to == made[4].started_at
    assert numbers(failed) == [6, 1]
    assert store.answers.count_matches(AnswerFilter(text="rare")).is_capped
    assert numbers(pages(store, AnswerFilter())) == [5, 2, 6, 7, 3, 0, 4, 1]  # the lowest are found among all


def test_counting_ends_somewhere(store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there are more than that."""
    monkeypatch.setattr(search, "MAX_ANSWERS_COUNTED", 5)
    write(store, make, VALUES)

    total = store.answers.count_matches(AnswerFilter())

    assert (total.count, total.is_capped) == (5, True)


FAR = ("0~0001-01-01T00:00:00+14:00~1", "0~9999-12-31T23:59:59-14:00~1", "0~2026-03-01T11:00:00Z~a\0b")
"""Moments that no zone can tell, and an id that no database takes."""


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "1~2", "0.5~2026-03-01T11:00:00~1", "0~2026~" + "9" * 99, "inf~x~1", *FAR]
)
def test_a_place_that_cannot_be_read_is_none(text: str) -> None:
    """An address may hold anything; a moment without a zone is nowhere."""
    assert AnswerCursor.parse(text) is None


def test_who_stands_beside_an_answer(store: TrackingStore, make: Make) -> None:
    """The one before and the one behind it, in the order of the filter."""
    write(store, make, VALUES)

    beside = store.answers.find_neighbors(AnswerFilter(), f"{6:032x}")
    first = store.answers.find_neighbors(AnswerFilter(), f"{5:032x}")
    elsewhere = store.answers.find_neighbors(AnswerFilter(below=0.1), f"{1:032x}")

    assert (beside.previous, beside.next, beside.position) == (f"{2:032x}", f"{7:032x}", 3)
    assert (first.previous, first.position) == (None, 1)
    assert (elsewhere.position, elsewhere.next) == (None, f"{5:032x}")


def test_a_sheet_holds_all_that_is_known(store: TrackingStore, make: Make, clock: Any) -> None:
    """Scores, tasks, labels, and how it was sampled."""
    (made, failed) = write(store, make, [0.25, UnscoredReason.JUDGE_TIMEOUT])
    label = Feedback(id="l1", exchange_id=made.id, score=1.0, comment="fine", user="ann", created_at=clock.now)
    store.labels.add_feedback([label])

    sheet, other = store.answers.load_detail(made.id), store.answers.load_detail(failed.id)

    assert sheet is not None
    assert other is not None
    assert sheet.exchange == made
    assert [one.value for one in sheet.scores] == [0.25]
    assert list(sheet.feedback) == [label]
    assert (sheet.sampling_reason, sheet.sampling_probability, sheet.erased_at) == ("sampled", 0.5, None)
    assert [(one.state, one.reason, one.error) for one in other.tasks] == [
        ("failed", UnscoredReason.JUDGE_TIMEOUT, "because judge_timeout")
    ]
    assert store.answers.load_detail("nobody") is None


def test_people_and_the_judge_take_sides(store: TrackingStore, make: Make, clock: Any) -> None:
    """A label counts once for each person, the latest; people's mean takes a side, and one of just .5 none."""
    made = write(store, make, [0.2, 0.2, 0.9, 0.9, 0.2])
    given = [(0, "ann", 1.0), (1, "ann", 0.0), (1, "bob", 1.0), (2, "ann", 1.0), (2, "ann", 0.0), (3, "bob", 1.0)]
    store.labels.add_feedback(
        [
            Feedback(
                id=f"l{place}",
                exchange_id=made[number].id,
                score=score,
                user=user,
                created_at=clock.now + timedelta(minutes=place),
            )
            for place, (number, user, score) in enumerate(given)
        ]
    )

    (found,) = store.labels.count_disagreements()

    assert (found.scorer, found.fingerprint, found.labeled) == ("relevancy", "f1", 3)
    assert (found.too_low, found.too_high, found.count) == (1, 1, 2)
    assert store.labels.count_disagreements(route="elsewhere") == []
    assert [(one.labeled, one.count) for one in store.labels.count_disagreements(newest=1)] == [(1, 0)]


@pytest.mark.parametrize(
    ("value", "shares"), [(0.005, (0.0, 0.75)), (0.255, (0.25, 0.5)), (1.0, (0.75, 0.0)), (-0.5, (0.0, 0.75))]
)
def test_shares_beside_a_value_are_what_is_sure(value: float, shares: tuple[float, float]) -> None:
    """What lies in its own bin counts for neither."""
    weights = [0.0] * 100
    for place in (0, 25, 60, 99):
        weights[place] = 2.0

    assert Histogram(weights).beside(value) == pytest.approx(shares, abs=1e-9)
    assert Histogram([0.0] * 100).beside(value) is None


def test_the_lowest_are_found_in_every_way_behind_a_place(store: TrackingStore, make: Make) -> None:
    """Whichever way is short: each gives the same page."""
    made = write(store, make, VALUES)
    whole = [
        row["exchange_id"] for row in _lowest(store, lowest_scores.scan_window, lowest_scores.ScoreFilter(route="ask"))
    ]
    with store._database.read() as connection:
        row = lowest_scores.scan_window(connection, lowest_scores.ScoreFilter(), 3)[-1]
    chosen = lowest_scores.ScoreFilter(route="ask", after=(row["value"], row["started_at"], row["id"]))

    for way in (
        lowest_scores.scan_small_window,
        lowest_scores.scan_route,
        lowest_scores.scan_by_value,
        lowest_scores.scan_window,
        _in_steps,
    ):
        assert [row["exchange_id"] for row in _lowest(store, way, chosen)] == whole[3:], way
    assert len(whole) == len(made)


def _in_steps(connection: Any, chosen: lowest_scores.ScoreFilter, limit: int) -> Any:
    return lowest_scores.scan_by_value(connection, chosen, limit, steps=(1, 1, 2, None))


def _lowest(store: TrackingStore, way: Any, chosen: lowest_scores.ScoreFilter) -> Any:
    with store._database.read() as connection:
        return way(connection, chosen, 20)


def test_a_place_is_read_as_it_was_written() -> None:
    """Whatever id an imported answer has."""
    place = AnswerCursor(-0.1, datetime(2026, 3, 1, tzinfo=UTC), "a~b" + "c" * 490)

    assert AnswerCursor.parse(str(place)) == place
