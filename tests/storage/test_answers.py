"""Answer search, sorting and pagination; answer details; agreement between feedback and the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason, band_of
from germane.statistics import Histogram
from germane.storage import AnswerCursor, AnswerFilter, AnswerPage, AnswerSort, SamplingDecision, TrackingStore
from germane.storage.answers import lowest_scores, search, store_answers
from germane.storage.answers.filter import SORTS
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1"}
MAX_PAGES = 100


def write(
    store: TrackingStore, make: Make, values: Sequence[float | UnscoredReason | None], **given: Callable[[int], Any]
) -> list[Exchange]:
    """Write one exchange per minute with the given scores or unscored reasons; None leaves the task pending."""
    exchanges = [
        make(place, id=f"{place:032x}", **{name: of(place) for name, of in given.items()})
        for place in range(len(values))
    ]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "sampled") for exchange in exchanges], SCORERS)
    by_id = {exchange.id: value for exchange, value in zip(exchanges, values, strict=True)}
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


def pages(
    store: TrackingStore, answer_filter: AnswerFilter, sort: AnswerSort = "lowest", size: int = 3
) -> list[AnswerPage]:
    """Return all pages of a search."""
    found = [store.answers.search(answer_filter, sort=sort, limit=size)]
    while found[-1].next_cursor is not None and len(found) < MAX_PAGES:
        after = AnswerCursor.parse(str(found[-1].next_cursor))
        found.append(store.answers.search(answer_filter, sort=sort, after=after, limit=size))
    return found


def positions_of(found: Sequence[AnswerPage]) -> list[int]:
    """Return the numbers of the exchanges, in the order of the pages."""
    return [int(answer.exchange.id, 16) for page in found for answer in page.answers]


VALUES = [0.4, 0.9, 0.0, 0.4, 0.7, 0.0, 0.2, 0.4]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("lowest", [5, 2, 6, 7, 3, 0, 4, 1]),
        ("highest", [1, 4, 7, 3, 0, 6, 5, 2]),
        ("newest", [7, 6, 5, 4, 3, 2, 1, 0]),
        ("highest_cost", [5, 2, 6, 7, 3, 0, 4, 1]),
        ("slowest", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_pagination_has_no_gaps_in_any_sort_order(
    store: TrackingStore, make: Make, sort: AnswerSort, order: list[int]
) -> None:
    """Ties are sorted newest first; no answer is repeated or skipped."""
    write(store, make, VALUES, duration=lambda place: 10.0 - place)

    found = pages(store, AnswerFilter(), sort)

    assert positions_of(found) == order
    assert [len(page.answers) for page in found] == [3, 3, 2]
    assert all(page.searched_back_to is None for page in found)


@given(
    values=st.lists(st.sampled_from([0.0, 0.1, 0.1, 0.5, 0.9]), max_size=12),
    size=st.integers(1, 5),
    sort=st.sampled_from(SORTS),
    at_least=st.sampled_from([None, 0.0, 0.1]),
    below=st.sampled_from([None, 0.5, 0.9]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_contain_each_matching_answer_exactly_once(
    sqlite_store: TrackingStore,
    make: Make,
    values: list[float],
    size: int,
    sort: AnswerSort,
    at_least: float | None,
    below: float | None,
) -> None:
    """The pages are complete for any page size, sort order and score range."""
    route = f"route-{len(sqlite_store.answers.list_exchanges(limit=1000))}"
    made = [make(place, route=route) for place in range(len(values))]
    sqlite_store.exchanges.add(made)
    sqlite_store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled") for exchange in made], SCORERS)
    by_id = {exchange.id: value for exchange, value in zip(made, values, strict=True)}
    tasks = [
        task for claim in sqlite_store.queue.claim_tasks("me", SCORERS, limit=99, lease=LEASE) for task in claim.tasks
    ]
    sqlite_store.queue.complete_tasks("me", [(task, _score(by_id[task.exchange_id])) for task in tasks])
    fits = {id_ for id_, one in by_id.items() if (at_least or -1.0) <= one < (2.0 if below is None else below)}

    found = pages(sqlite_store, AnswerFilter(route=route, at_least=at_least, below=below), sort, size)

    assert sorted(answer.exchange.id for page in found for answer in page.answers) == sorted(fits)
    assert sqlite_store.answers.count_matches(AnswerFilter(route=route, at_least=at_least, below=below)).count == len(
        fits
    )


@pytest.mark.parametrize(
    ("answer_filter", "places"),
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
def test_each_filter_returns_only_matching_answers(
    store: TrackingStore, make: Make, answer_filter: AnswerFilter, places: set[int]
) -> None:
    """Filters work alone and combined, for sort orders with and without an index."""
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

    assert set(positions_of(pages(store, answer_filter))) == places
    assert set(positions_of(pages(store, answer_filter, "newest"))) == places
    assert store.answers.count_matches(answer_filter).count == len(places)


def test_window_includes_its_start_and_excludes_its_end(store: TrackingStore, make: Make) -> None:
    """The window applies to the start times of the exchanges."""
    made = write(store, make, VALUES)

    answer_filter = AnswerFilter(since=made[2].started_at, until=made[5].started_at)

    assert sorted(positions_of(pages(store, answer_filter))) == [2, 3, 4]


def test_unscored_answers_are_found_by_state_and_reason(store: TrackingStore, make: Make) -> None:
    """Such answers are listed newest first with their errors, and are excluded from the default search."""
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

    assert positions_of(failed) == [5, 4, 1]
    assert [answer.task.error for page in failed for answer in page.answers if answer.task] == [
        "because unparsable", "because judge_timeout", "because judge_timeout",
    ]  # fmt: skip
    assert all(answer.score is None for page in failed for answer in page.answers)
    assert positions_of(pages(store, AnswerFilter(state="failed", reason="judge_timeout"))) == [4, 1]
    assert positions_of(pages(store, AnswerFilter(state="skipped", scorer="relevancy"))) == [2]
    assert positions_of(pages(store, AnswerFilter(state="failed", scorer="other"))) == []
    assert positions_of(pages(store, AnswerFilter(state="waiting"))) == [3]
    assert positions_of(pages(store, AnswerFilter(state="any"))) == [9, 5, 4, 3, 2, 1, 0]
    assert positions_of(pages(store, AnswerFilter())) == [0]
    assert store.answers.count_matches(AnswerFilter(state="failed")).count == 3


def test_large_search_is_limited_to_the_newest_exchanges(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page reports how far back it searched. A search by time can continue from there; other orders cannot."""
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 3)
    monkeypatch.setattr(search, "MAX_SCORES_SCANNED", 3)
    made = write(store, make, VALUES, question=lambda place: "rare" if place in {1, 6} else "common")

    (page, *more) = pages(store, AnswerFilter(text="rare"), "newest")
    highest = store.answers.search(AnswerFilter(), sort="highest")
    failed = pages(store, AnswerFilter(state="any", text="rare"))

    assert positions_of([page]) == [6]
    assert page.searched_back_to == made[4].started_at
    assert positions_of([page, *more]) == [6, 1]
    assert more[-1].next_cursor is None
    assert more[-1].searched_back_to is None
    assert positions_of([highest]) == [4, 7, 6, 5]
    assert highest.searched_back_to == made[4].started_at
    assert positions_of(failed) == [6, 1]
    assert store.answers.count_matches(AnswerFilter(text="rare")).is_capped
    assert positions_of(pages(store, AnswerFilter())) == [5, 2, 6, 7, 3, 0, 4, 1]  # sorting by lowest is not limited


@pytest.mark.parametrize("chosen", [AnswerFilter(below=0.6), AnswerFilter(state="failed"), AnswerFilter(text="rare")])
def test_a_search_for_ids_reads_no_texts(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch, chosen: AnswerFilter
) -> None:
    """It finds the answers of the search for answers, newest first, page by page."""
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 3)
    monkeypatch.setattr(search, "MAX_SCORES_SCANNED", 3)
    results = [*VALUES, *[UnscoredReason.UNPARSABLE] * 5]
    write(store, make, results, question=lambda place: "rare" if place in {1, 6} else "common")
    expected = [answer.exchange.id for page in pages(store, chosen, "newest") for answer in page.answers]
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))

    ids, after = store.answers.find_ids(chosen, limit=2)
    while after is not None:
        page, after = store.answers.find_ids(chosen, after=after, limit=2)
        ids += page

    assert ids == expected != []
    read = [statement.partition("FROM")[0] for statement in statements if statement.startswith("SELECT")]
    assert [columns for columns in read if "answer" in columns or "explanation" in columns] == []


def test_the_number_of_matches_is_counted_up_to_a_limit(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting stops at the limit and reports that the count is capped."""
    monkeypatch.setattr(store_answers, "MAX_ANSWERS_COUNTED", 5)
    write(store, make, VALUES)

    total = store.answers.count_matches(AnswerFilter())

    assert (total.count, total.is_capped) == (5, True)


OUT_OF_RANGE_CURSORS = ("0~0001-01-01T00:00:00+14:00~1", "0~9999-12-31T23:59:59-14:00~1", "0~2026-03-01T11:00:00Z~a\0b")
"""Times that overflow in UTC, and an ID that no database accepts."""


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "1~2", "0.5~2026-03-01T11:00:00~1", "0~2026~" + "9" * 99, "inf~x~1", *OUT_OF_RANGE_CURSORS]
)
def test_invalid_cursor_parses_to_none(text: str) -> None:
    """Malformed text, times without a time zone, and out-of-range times do not raise."""
    assert AnswerCursor.parse(text) is None


def test_neighbors_follow_the_filtered_list_order(store: TrackingStore, make: Make) -> None:
    """An answer's previous and next answers and its position are those of the filtered search."""
    write(store, make, VALUES)

    neighbors = store.answers.find_neighbors(AnswerFilter(), f"{6:032x}")
    first = store.answers.find_neighbors(AnswerFilter(), f"{5:032x}")
    elsewhere = store.answers.find_neighbors(AnswerFilter(below=0.1), f"{1:032x}")

    assert (neighbors.previous, neighbors.next, neighbors.position) == (f"{2:032x}", f"{7:032x}", 3)
    assert (first.previous, first.position) == (None, 1)
    assert (elsewhere.position, elsewhere.next) == (None, f"{5:032x}")


def test_answer_detail_includes_scores_tasks_and_feedback(store: TrackingStore, make: Make, clock: Any) -> None:
    """The detail also reports how the exchange was sampled; an unknown ID returns None."""
    (made, failed) = write(store, make, [0.25, UnscoredReason.JUDGE_TIMEOUT])
    label = Feedback(id="l1", exchange_id=made.id, score=1.0, comment="fine", user="ann", created_at=clock.now)
    store.labels.add_feedback([label])

    sheet, other = store.answers.load_detail(made.id), store.answers.load_detail(failed.id)

    assert sheet is not None
    assert other is not None
    assert (sheet.exchange, sheet.exchange.sampling_probability) == (made, 0.5)
    assert [score.value for score in sheet.scores] == [0.25]
    assert list(sheet.feedback) == [label]
    assert (sheet.sampling_reason, sheet.sampling_probability, sheet.erased_at) == ("sampled", 0.5, None)
    assert [(task.state, task.reason, task.error) for task in other.tasks] == [
        ("failed", UnscoredReason.JUDGE_TIMEOUT, "because judge_timeout")
    ]
    assert store.answers.load_detail("nobody") is None


def test_disagreements_compare_feedback_with_the_judge(store: TrackingStore, make: Make, clock: Any) -> None:
    """Only each person's latest label counts; a mean label of 0.5 counts as neither too low nor too high."""
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
    assert [
        (disagreement.labeled, disagreement.count) for disagreement in store.labels.count_disagreements(newest=1)
    ] == [(1, 0)]


@pytest.mark.parametrize(
    ("value", "shares"), [(0.005, (0.0, 0.75)), (0.255, (0.25, 0.5)), (1.0, (0.75, 0.0)), (-0.5, (0.0, 0.75))]
)
def test_shares_of_lower_and_higher_scores_exclude_the_bin_of_the_value(
    value: float, shares: tuple[float, float]
) -> None:
    """Scores in the same bin count neither as lower nor as higher."""
    weights = [0.0] * 100
    for place in (0, 25, 60, 99):
        weights[place] = 2.0

    assert Histogram(weights).shares_around(value) == pytest.approx(shares, abs=1e-9)
    assert Histogram([0.0] * 100).shares_around(value) is None


def test_every_query_strategy_resumes_at_the_same_cursor(store: TrackingStore, make: Make) -> None:
    """All strategies for the lowest scores return the same page after a cursor."""
    made = write(store, make, VALUES)
    whole = [
        row["exchange_id"] for row in _lowest(store, lowest_scores.scan_window, lowest_scores.ScoreFilter(route="ask"))
    ]
    with transaction(store, read_only=True) as connection:
        row = lowest_scores.scan_window(connection, lowest_scores.ScoreFilter(), 3)[-1]
    answer_filter = lowest_scores.ScoreFilter(route="ask", after=(row["value"], row["started_at"], row["id"]))

    for way in (
        lowest_scores.scan_small_window,
        lowest_scores.scan_route,
        lowest_scores.scan_by_value,
        lowest_scores.scan_window,
        _in_steps,
    ):
        assert [row["exchange_id"] for row in _lowest(store, way, answer_filter)] == whole[3:], way
    assert len(whole) == len(made)


def _in_steps(connection: Any, answer_filter: lowest_scores.ScoreFilter, limit: int) -> Any:
    return lowest_scores.scan_by_value(connection, answer_filter, limit, steps=(1, 1, 2, None))


def _lowest(store: TrackingStore, way: Any, answer_filter: lowest_scores.ScoreFilter) -> Any:
    with transaction(store, read_only=True) as connection:
        return way(connection, answer_filter, 20)


def test_cursor_is_unchanged_by_serialization() -> None:
    """A cursor survives any exchange ID, including long ones with separators."""
    place = AnswerCursor(-0.1, datetime(2026, 3, 1, tzinfo=UTC), "a~b" + "c" * 490)

    assert AnswerCursor.parse(str(place)) == place
