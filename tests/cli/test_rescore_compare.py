"""Tests of `germane rescore --compare`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.annotation import Feedback
from germane.exchange import Exchange, new_exchange_id
from germane.storage import TrackingStore
from germane.testing import FakeJudge, JudgeRequest

Call = Callable[..., Any]
Scored = Callable[..., list[Exchange]]
COMPARE = ("rescore", "--compare", "--judge", "strict", "--scorer", "direct_relevancy", "--yes")


def rate(request: JudgeRequest) -> str:
    """Return the rating that the answer contains."""
    return request.answer.partition("rating ")[2][:1]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """A judge that rates each answer as the answer says."""
    with FakeJudge(replies=rate) as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", str(value))
        yield running


@pytest.fixture
def answers(store: TrackingStore, scored: Scored) -> list[Exchange]:
    """Answers of two routes, which the current judge scores 0.1 and 0.3 higher than the new one will."""
    made = random.Random(1)
    found = []
    for route, count, gap in (("ask", 60, 0.1), ("find", 25, 0.3)):
        for number in range(count):
            rating = made.choice((1, 2, 3, 4))
            at = datetime.now(UTC) - timedelta(minutes=number + 1)
            texts = {"question": f"Which one is it, number {number}?", "answer": f"It is the one with rating {rating}."}
            value = [(rating - 1) / 4 + gap]
            found += scored(store, value, scorer="direct_relevancy", route=route, started_at=at, **texts)
    return found


def label(store: TrackingStore, exchange: Exchange, score: float) -> None:
    """Write a person's label."""
    at = datetime.now(UTC)
    store.labels.add_feedback([Feedback(id=new_exchange_id(), exchange_id=exchange.id, score=score, created_at=at)])


def test_the_shift_of_each_route_and_of_the_trend_is_shown_with_its_interval(
    call: Call, judge: FakeJudge, store: TrackingStore, answers: list[Exchange]
) -> None:
    """Every answer is scored once by the other judge, and nothing is stored."""
    before = store.answers.get_scores([one.id for one in answers])

    found = call(*COMPARE, "--json").content

    assert (found["answers"], found["failed"], found["judge"]) == (85, 0, "strict")
    assert {one["route"]: (one["n"], one["shift"]["size"]) for one in found["routes"]} == {
        "ask": (60, pytest.approx(-0.1)), "find": (25, pytest.approx(-0.3)),
    }  # fmt: skip
    assert found["shift"]["size"] == pytest.approx((60 * -0.1 + 25 * -0.3) / 85)
    low, high = found["shift"]["interval"]
    assert low < found["shift"]["size"] < high
    assert 0.6 < found["rank_correlation"]["value"] < 1
    assert found["agreement"] == []
    assert {request.body["model"] for request in judge.chat_requests} == {"strict"}
    assert store.answers.get_scores([one.id for one in answers]) == before


def test_the_text_says_by_how_much_the_trend_would_move(call: Call, judge: FakeJudge, answers: list[Exchange]) -> None:
    ended = call(*COMPARE)

    assert "Switching would move the trend by -0.16 (95% interval -0.1" in ended.out
    assert "no labels yet. Draw answers to label with: germane labels draw" in ended.out
    assert [line.split()[:2] for line in ended.out.splitlines() if line.startswith(("ask", "find"))] == [
        ["ask", "60"], ["find", "25"],
    ]  # fmt: skip


def test_both_judges_are_compared_with_labels_on_the_same_answers(
    call: Call, judge: FakeJudge, store: TrackingStore, answers: list[Exchange]
) -> None:
    """Labeled answers are scored even if they are not in the sample."""
    for exchange in answers[::2]:
        rating = int((exchange.answer or "").partition("rating ")[2][0])
        label(store, exchange, (rating - 1) / 4)

    found = call(*COMPARE, "--limit", "10", "--json").content

    now, new = found["agreement"]
    assert found["answers"] == 10
    assert [one["n"] for one in (now, new)] == [10, 10]
    everything = call(*COMPARE, "--json").content["agreement"]
    assert [one["n"] for one in everything] == [43, 43]
    assert everything[0]["spearman"]["value"] < everything[1]["spearman"]["value"] == pytest.approx(1.0)


def test_with_few_answers_there_is_no_shift(
    call: Call, judge: FakeJudge, store: TrackingStore, answers: list[Exchange]
) -> None:
    ended = call(*COMPARE, "--limit", "19")
    assert "Not enough data (n=19, need 20)." in ended.out


def test_a_judge_that_always_gives_the_same_score_has_no_rank_correlation(
    call: Call, judge: FakeJudge, store: TrackingStore, answers: list[Exchange]
) -> None:
    for exchange in answers[::2]:
        label(store, exchange, 1.0)
    judge.replies = lambda _: "3"

    assert call(*COMPARE, "--json").content["rank_correlation"] is None
    ended = call(*COMPARE)
    assert "Rank correlation of both" not in ended.out
    assert "Agreement of the new judge with people on 43 answers: too few labels, or equal labels" in ended.out


@pytest.mark.parametrize(
    "given", [("--compare",), ("--judge", "strict"), ("--compare", "--judge", "strict", "--below", "0.5")], ids=" ".join
)
def test_options_that_do_not_fit_a_comparison_are_refused(call: Call, given: tuple[str, ...]) -> None:
    """A sample of low scores would show a shift by chance."""
    assert call("rescore", *given).code == 2


def test_a_window_without_scores_is_an_error(call: Call, judge: FakeJudge, store: TrackingStore) -> None:
    ended = call(*COMPARE)
    assert ended.code == 1
    assert "choose a longer one with --since" in ended.err


def test_an_exhausted_budget_ends_the_comparison_with_the_answers_scored_so_far(
    call: Call, judge: FakeJudge, answers: list[Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their scores were paid for, and they are a random part of the sample: of both routes, not the newest answers."""
    monkeypatch.setenv("GERMANE_BUDGET", '{"requests_per_day": 40}')
    ended = call(*COMPARE)
    assert "Stopped early: the budget is exhausted until" in ended.out
    counts = {
        line.split()[0]: int(line.split()[1]) for line in ended.out.splitlines() if line.startswith(("ask", "find"))
    }
    assert counts.keys() == {"ask", "find"}
    assert len(judge.chat_requests) == 40 <= sum(counts.values())  # equal texts share a request
    assert "Switching would move the trend by -0.1" in ended.out

    again = call(*COMPARE)
    assert (again.code, again.out.count("Switching")) == (1, 0)
    assert "the budget is exhausted" in again.err
