"""Merged buckets and samples of single scores for charts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, update

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.answers import store_answers
from germane.storage.db.tables import exchange, score
from germane.storage.trends.query import Group
from germane.storage.trends.summaries import Runs
from germane.testing import engine_of, transaction

HOUR = timedelta(hours=1)
SINCE = datetime(2026, 3, 1, 8, tzinfo=UTC)
WINDOW: dict[str, Any] = {"since": SINCE, "until": SINCE + 24 * HOUR}
Write = Callable[..., None]


@pytest.fixture
def write(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Write exchanges, the given number of minutes after eleven, and their scores."""

    def write(minutes: list[float], values: list[float], *, scorer: str = "r", label: str = "", **given: Any) -> None:
        exchanges = [make(minute, **given) for minute in minutes]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {scorer: "f1"})
        values_by_id = {one.id: value for one, value in zip(exchanges, values, strict=True)}
        claims = store.queue.claim_tasks("me", {scorer: "f1"}, limit=1000, lease=HOUR)
        results = [
            (task, Score(scorer=scorer, fingerprint="f1", value=values_by_id[task.exchange_id], label=label or None))
            for claim in claims
            for task in claim.tasks
        ]
        store.queue.complete_tasks("me", results)

    return write


def spread(count: int, *, hours: float = 4) -> list[float]:
    """Return that many minutes, evenly spread."""
    return [60 * hours * one / count for one in range(count)]


def test_merged_buckets_have_at_least_20_scores(store: TrackingStore, write: Write) -> None:
    """Hours are merged until there are 20 scores; the means are those of the scores, and the last one stays open."""
    minutes = spread(66, hours=6)
    values = [0.9 if one < 200 else 0.5 for one in minutes]
    write(minutes, values)
    write([5], [0.1], route="other")
    steps = store.trends.over_time(scorer="r", route="ask", service="shop", bucket=HOUR, min_samples=20, **WINDOW)

    assert [one.n for one in steps] == [22, 22, 22]
    assert [one.start.hour for one in steps] == [11, 13, 15]
    assert [one.end and one.end.hour for one in steps] == [13, 15, 17]
    for number, step in enumerate(steps):
        assert step.mean == pytest.approx(math.fsum(values[number * 22 :][:22]) / 22)
        assert step.coverage is not None
        assert step.coverage.seen == step.coverage.scored == 22


def test_scores_that_are_left_over_stay_open_or_join_the_step_before(store: TrackingStore, write: Write) -> None:
    """Open steps may have few scores. The ends of steps are inside the window, which need not be whole hours."""
    write(spread(50, hours=5), [0.5] * 50)
    window = {"since": SINCE + 3.5 * HOUR, "until": SINCE + 7.5 * HOUR}
    of: dict[str, Any] = {"scorer": "r", "bucket": HOUR, "min_samples": 20, **window}
    opened, closed = (store.trends.over_time(**of, is_open=is_open) for is_open in (True, False))

    assert [one.n for one in opened] == [25, 15]
    assert [one.n for one in closed] == [40]
    assert (closed[0].start, closed[0].end) == (window["since"], window["until"])
    assert store.trends.over_time(**{**of, "scorer": "none"}) == []


def test_versions_have_steps_of_their_own(store: TrackingStore, write: Write) -> None:
    """Steps by prompt version are labeled, and the versions are not mixed."""
    write(spread(30), [0.9] * 30, prompt_version="6")
    write(spread(25), [0.5] * 25, prompt_version="7")
    steps = store.trends.over_time(scorer="r", bucket=HOUR, by="prompt_version", min_samples=20, **WINDOW)
    totals: dict[str | None, int] = {}
    for step in steps:
        totals[step.group] = totals.get(step.group, 0) + step.n
        assert step.mean == pytest.approx({"6": 0.9, "7": 0.5}[str(step.group)])
    assert totals == {"6": 30, "7": 25}


@pytest.mark.parametrize("is_open", [True, False])
def test_steps_of_all_scorers_are_those_of_each_and_cost_no_more_queries(
    store: TrackingStore, write: Write, *, is_open: bool
) -> None:
    """Scorers do not affect each other, whether they have proxy scores or not. Sums of these values are exact."""
    write(spread(66, hours=6), [0.875, 0.5, 0.625] * 22)
    with transaction(store) as connection:
        connection.execute(update(score).values(proxy=score.c.value / 2, sampling_probability=0.5))
        connection.execute(update(exchange).values(proxy=0.25, proxy_probability=1.0))
    write(spread(31, hours=3), [0.125] * 31, scorer="s")
    write([7], [0.3], scorer="t", route="other")
    window = {"since": SINCE + 2.5 * HOUR, "until": SINCE + 8.5 * HOUR, "bucket": HOUR, "route": "ask"}
    chosen = {"is_open": is_open, **window}
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))

    alone = {
        scorer: store.trends.over_time(scorer=scorer, histograms=False, min_samples=20, **chosen) for scorer in "rs"
    }
    count = len(statements)
    together = store.trends.steps_by_scorer(min_samples=lambda _: 20, **chosen)

    assert together == alone
    assert any("AS sum_vx" in statement for statement in statements[count:])
    assert 2 * (len(statements) - count) <= count + 1


def group(n: int) -> Group:
    """Return the sums over n scores."""
    return Group({"n": n}, SINCE)


@given(
    sizes=st.dictionaries(st.tuples(st.integers(0, 40), st.sampled_from("ab")), st.integers(1, 30), max_size=40),
    is_open=st.booleans(),
)
def test_runs_divide_the_buckets_in_order(sizes: dict[tuple[int, str], int], *, is_open: bool) -> None:
    """All but the last run of a fingerprint have enough scores; no bucket is lost, and runs do not overlap."""
    runs = Runs({key: group(n) for key, n in sizes.items()}, 20, is_open=is_open)
    newest = max((number for number, _ in sizes), default=0)
    for fingerprint in {key[1] for key in sizes}:
        numbers = sorted(number for number, one in sizes if one == fingerprint)
        starts = [runs.key((number, fingerprint))[0] for number in numbers]
        assert starts == sorted(starts)
        totals = dict.fromkeys(starts, 0)
        for number, start in zip(numbers, starts, strict=True):
            totals[start] += sizes[number, fingerprint]
            assert start <= number <= runs.last[start, fingerprint]
        assert all(runs.last[start, fingerprint] in numbers for start in totals)
        *closed, last = totals.values()
        assert all(n >= 20 for n in closed)
        assert last >= 20 or not closed or (is_open and newest in numbers)


def test_counts_of_unscored_buckets_belong_to_the_run_before() -> None:
    """The counts of all buckets add up, also of those without a score."""
    runs = Runs({(1, "a"): group(25), (4, "a"): group(30)}, 20, is_open=True)
    assert runs.merge({(number,): {"seen": 10 + number} for number in range(6)}) == {
        (1,): {"seen": 10 + 11 + 12 + 13},
        (4,): {"seen": 14 + 15},
    }
    assert Runs({}, 20, is_open=True).merge({(1,): {"seen": 3}}) == {}


def test_a_small_window_has_all_its_scores(store: TrackingStore, write: Write) -> None:
    """The sample is complete, oldest first, and contains only the asked scorers and route."""
    write([5, 1, 3], [0.1, 0.5, 0.9], label="relevant")
    write([2], [0.4], scorer="s")
    write([4], [0.3], route="other")
    write([2], [0.2], service="other")
    place: dict[str, Any] = {"route": "ask", "service": "shop", **WINDOW}
    scores, is_complete = store.answers.sample_scores(["r", "s"], **place)

    assert is_complete
    found = [(one.answered_at.minute, one.scorer, one.value, one.label) for one in scores]
    assert found == [
        (1, "r", 0.5, "relevant"),
        (2, "s", 0.4, None),
        (3, "r", 0.9, "relevant"),
        (5, "r", 0.1, "relevant"),
    ]
    assert len(store.answers.sample_scores(["r"], **WINDOW)[0]) == 5


def test_scores_that_differ_only_in_the_label_have_an_order(store: TrackingStore, write: Write) -> None:
    """A scorer may give two answers of one moment the same value, but only one of them a label."""
    write([1], [0.5], label="relevant")
    write([1], [0.5])

    assert {one.label for one in store.answers.sample_scores(["r"], **WINDOW)[0]} == {"relevant", None}


def test_a_large_window_has_an_even_sample_and_its_lowest_scores(
    store: TrackingStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of scores is limited, each part of the window has some, and the lowest are all there."""
    chance = random.Random(3)
    minutes = [chance.uniform(0, 20 * 60) for _ in range(400)]
    values = [chance.uniform(0.5, 1) for _ in minutes]
    values[::20] = low = [chance.uniform(0.01, 0.4) for _ in range(20)]
    values[1::20] = [0.0] * 20
    write(minutes, values)
    write([600], [0.6], label="irrelevant")
    limits = {"MAX_ROWS_READ": 100, "MAX_SCORES": 50, "MAX_SAMPLED": 40, "MAX_LOWEST": 25, "SLICES": 10}
    for name, value in limits.items():
        monkeypatch.setattr(store_answers, name, value)
    window: dict[str, Any] = {"since": SINCE + 3 * HOUR, "until": SINCE + 23 * HOUR}
    scores, is_complete = store.answers.sample_scores(["r"], **window)

    assert not is_complete
    assert {*low, 0.6} <= {one.value for one in scores}
    assert len({one for one in scores if one.value}) == sum(one.value > 0 for one in scores)
    assert 40 <= len(scores) <= 61
    assert {(one.answered_at - window["since"]) // (2 * HOUR) for one in scores} == set(range(10))
    assert scores == store.answers.sample_scores(["r"], **window)[0] == sorted(scores)
    monkeypatch.setattr(store_answers, "FEW_LOW", 5)  # many low scores are searched for in another index
    assert scores == store.answers.sample_scores(["r"], **window)[0]
    monkeypatch.setattr(store_answers, "MAX_ROWS_READ", 10_000)
    assert not store.answers.sample_scores(["r"], **window)[1]


def test_each_part_of_a_large_window_is_read_as_if_alone(
    store: TrackingStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has the scores of the asked scorers, route and service among its first rows, which include all others."""
    chance = random.Random(5)
    rows = []
    for route, service, scorer in (
        ("ask", "shop", "r"),
        ("ask", "shop", "s"),
        ("ask", "desk", "r"),
        ("faq", "shop", "r"),
    ):
        minutes = [chance.uniform(0, 20 * 60) for _ in range(60)]
        values = [chance.uniform(0.5, 1) for _ in minutes]
        write(minutes, values, route=route, service=service, scorer=scorer)
        rows += [(minute, value, scorer, route, service) for minute, value in zip(minutes, values, strict=True)]
    for name, limit in {"MAX_ROWS_READ": 100, "MAX_SCORES": 20, "MAX_SAMPLED": 10_000, "SLICES": 10}.items():
        monkeypatch.setattr(store_answers, name, limit)
    window: dict[str, Any] = {"since": SINCE + 3 * HOUR, "until": SINCE + 23 * HOUR}
    for scorers, equal in ((["r"], {}), (["r", "s"], {"route": "ask", "service": "shop"}), (["s"], {"route": "faq"})):
        parts = [sorted(row for row in rows if row[0] // 120 == number)[:10] for number in range(10)]
        expected = [
            (value, scorer)
            for _, value, scorer, route, service in chain.from_iterable(parts)
            if scorer in scorers and (equal or {"route": route}).items() <= {"route": route, "service": service}.items()
        ]
        found, is_complete = store.answers.sample_scores(scorers, **window, **equal)
        assert [(one.value, one.scorer) for one in found] == expected
        assert not is_complete
