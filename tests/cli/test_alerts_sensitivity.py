"""What `germane alerts power` says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.baseline import Baseline, RouteBaseline
from germane.storage import Key, Store

Call = Callable[..., Any]
Scored = Callable[..., Any]
QUICK = ("alerts", "power", "--runs", "10")
SCORES = [round(random.Random(3).betavariate(16, 4), 3) for _ in range(40)]


def test_it_says_in_plain_words_what_would_be_noticed(call: Call, store: Store, scored: Scored) -> None:
    """Within a day and a week, today and with twice the budget; that it is a simulation, and how sure."""
    scored(store, SCORES)

    ended = call(*QUICK)

    assert ended.code == 0
    first, rate, source, noticed, tolerance, alarms, doubled, *_ = ended.out.splitlines()
    assert first == "answer_relevancy of shop"
    assert rate == "  960 scores a day reach the detector, as in the last 7 days."
    assert source.startswith("  Nobody has begun to learn a baseline: by what is stored, 40 scores from ")
    assert noticed.startswith("  Noticed with a probability of 0.8 or more: within a day a drop by 0.0")
    assert "; within a week a drop by 0.0" in noticed
    assert tolerance.startswith(
        "  Tolerance in force, on average of the routes: a fall of the mean by 0.020, and 2.0% "
    )
    assert alarms == "  False alarms while all is well: at most 1 a year on average."
    assert "beyond a thousand scores a day" in doubled
    assert "10 runs for each drop, always with the same seed" in ended.out
    assert "near 0.8 is 0.13" in ended.out


def test_routes_whose_days_differ_much_are_named(call: Call, store: Store) -> None:
    """There alone a drop of the size that is asked for is nothing unusual."""
    calm = RouteBaseline(
        n=100, mean=0.8, deviation=0.1, committed=100, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.005,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=10.0, committed_per_day=10.0,
    )  # fmt: skip
    until = store.now() - timedelta(days=1)
    routes = {"docs": calm, "support": replace(calm, committed_wander=0.1)}
    found = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f", since=until - timedelta(days=14), until=until,
        n=200, mean=0.8, deviation=0.1, scores_per_day=20.0, committed_per_day=20.0, routes=routes,
    )  # fmt: skip
    store.supersede(Key("shop", "answer_relevancy", "f"), "imported", found, (None, None))

    ended = call(*QUICK, "--per-day", "20")

    assert "  Unsteady: support. Days differed so much there that a drop by 0.05 is not unusual.\n" in ended.out
    assert "on average of the routes: a fall of the mean by 0.110" in ended.out


def test_another_rate_may_be_asked_for(call: Call, store: Store, scored: Scored) -> None:
    """With the probabilities by drop, and what twice as many would bring."""
    scored(store, SCORES)

    content = call(*QUICK, "--per-day", "50", "--days", "3", "--json").content

    assert (content["sure"], content["runs"], content["not_enough_data"]) == (0.8, 10, [])
    assert content["standard_error"] == pytest.approx(0.126, abs=0.001)
    (one,) = content["streams"]
    assert (one["service"], one["scorer"], one["source"], one["n"]) == ("shop", "answer_relevancy", "stored", 40)
    assert (one["asked_for"], one["today"]["per_day"], one["doubled"]["per_day"]) == (True, 50, 100)
    chances = one["today"]["probabilities"]
    assert [chance["drop"] for chance in chances] == [0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3]
    assert all(list(chance["within"]) == ["3.0"] for chance in chances)
    assert chances[-1]["within"]["3.0"] == 1.0
    assert one["today"]["noticed"][0]["drop"] >= one["doubled"]["noticed"][0]["drop"]


def test_too_few_scores_end_with_5(call: Call, store: Store, scored: Scored) -> None:
    """It is said of which, and of none at all."""
    assert call(*QUICK).out == "There are no scores to go by.\n"
    scored(store, SCORES[:7])

    ended = call(*QUICK)

    assert ended.code == 5
    assert ended.out.startswith("answer_relevancy of shop: not enough data. No route has 30 scores yet")
    content = call(*QUICK, "--json")
    assert (content.code, content.content["streams"]) == (5, [])
    assert content.content["not_enough_data"][0]["scorer"] == "answer_relevancy"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "floor"), "no rule of the kind drop is called 'floor'; known: drop"),
        (("--per-day", "0"), "'--per-day'"),
        (("--days", "nan"), "not finite"),
        (("--runs", "3"), "'--runs'"),
    ],
)
def test_what_cannot_be_asked_is_wrong_usage(call: Call, store: Store, arguments: tuple[str, ...], said: str) -> None:
    """With what could be."""
    ended = call("alerts", "power", *arguments)

    assert ended.code == 2
    assert said in ended.err


def test_without_a_rule_that_watches_for_drops_there_is_no_power(call: Call, store: Store, bare: Path) -> None:
    """It names the setting."""
    (bare / "germane.toml").write_text('[[rules]]\nkind = "drop"\nenabled = false\n')

    ended = call(*QUICK)

    assert ended.code == 2
    assert "no rule of the kind drop is in force" in ended.err
