"""What drop would be noticed, of what is scored here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from germane.alerting.sensitivity import Asked, Prospect, Unknown, prospects
from germane.settings.rules import Drop

DAY = timedelta(days=1)
FEW = 6
"""Runs of the simulation: what is tested here is what it is asked."""


def asked(world: Any, *rules: Drop, **given: Any) -> tuple[list[Prospect], list[Unknown]]:
    """Return what would be noticed now."""
    return prospects(world.store, rules or (Drop(),), Asked(**{"runs": FEW, **given}), now=world.now)


def within_a_week(one: Prospect) -> list[float]:
    """Return the probabilities, the smallest drop first."""
    return [chance.within[1] for chance in one.power.chances]


def test_a_learned_baseline_says_what_would_be_noticed(small: Any) -> None:
    """By the version in force and the rate of the last week; large drops are noticed and tiny ones are not."""
    small.learned(small.watch(), per_day=40)

    (one,), unknown = asked(small)

    assert unknown == []
    assert (one.rule, one.service, one.scorer, one.fingerprint) == ("drop", "shop", "relevancy", "f1")
    assert (one.source, one.asked_for) == ("active", False)
    assert one.per_day == pytest.approx(40, rel=0.03)
    assert one.made_per_day == pytest.approx(40, rel=0.03)
    assert one.false_alarms_per_year == pytest.approx(1, rel=0.1)
    assert within_a_week(one)[-1] == 1.0
    assert within_a_week(one)[0] <= 0.5
    assert one.doubled_per_day == pytest.approx(2 * one.per_day)
    assert one.doubled is not None
    assert asked(small)[0] == [one]  # always the same seed


def test_more_scores_a_day_notice_more(small: Any) -> None:
    """At any rate that is asked for, whatever today's is; beyond a thousand a day nothing is gained."""
    small.learned(small.watch(), per_day=40)

    found = [asked(small, per_day=per_day)[0][0] for per_day in (10, 100, 1000, 5000)]

    in_a_day = [sum(chance.within[0] for chance in one.power.chances) for one in found]
    assert in_a_day[0] + 1 < in_a_day[1]  # sizes of drops that are noticed
    assert in_a_day[1] < in_a_day[2] == in_a_day[3]
    assert [one.per_day for one in found] == [10, 100, 1000, 1000]
    assert all(one.asked_for and one.false_alarms_per_year == pytest.approx(1) for one in found)
    assert found[2].doubled is None


def test_while_it_is_learned_what_is_known_so_far_counts(small: Any) -> None:
    """And is called so."""
    small.days(1, per_day=1)
    small.look(small.watch())
    small.days(4, per_day=40)
    small.look(small.watch())

    (one,), _ = asked(small)

    assert one.source == "learning"
    assert one.until == small.now
    assert one.n == pytest.approx(161, abs=2)
    assert one.per_day == pytest.approx(40, rel=0.05)


def test_where_nobody_watches_stored_scores_count(small: Any) -> None:
    """Those of the last two weeks, from the first of them on."""
    small.days(5, per_day=40)

    (one,), _ = asked(small)

    assert one.source == "stored"
    assert one.until - one.since == pytest.approx(5 * DAY, abs=timedelta(hours=1))
    assert one.per_day == pytest.approx(40, rel=0.05)


def test_too_few_scores_say_nothing(small: Any) -> None:
    """It is said which, and why."""
    small.score(small.values(29))

    assert asked(small) == (
        [],
        [
            Unknown(
                rule="drop",
                service="shop",
                scorer="relevancy",
                why="no route has 30 scores yet, and all together have not either",
            )
        ],
    )


def test_a_service_that_fell_silent_says_nothing_but_what_is_asked(small: Any) -> None:
    """Nothing is noticed of scores that do not come; of a rate that is asked for it can be said."""
    small.learned(small.watch(), per_day=40)
    small.now += 8 * DAY

    found, (silent,) = asked(small)

    assert found == []
    assert "no score has reached the detector in the last 7 days" in silent.why
    assert len(asked(small, per_day=50)[0]) == 1


def test_only_what_is_asked_for_is_told(small: Any) -> None:
    """By service, scorer and what the rules look at."""
    small.days(5, per_day=40, routes=("ask", "docs"))
    small.days(1, per_day=40, service="help")

    names = [one.service for one in asked(small)[0]]
    assert names == ["help", "shop"]
    assert [one.service for one in asked(small, service="help")[0]] == ["help"]
    assert asked(small, scorer="other") == ([], [])
    assert asked(small, Drop(scorer="other")) == ([], [])
    (docs,), _ = asked(small, Drop(routes=("docs",)), service="shop")
    assert docs.per_day == pytest.approx(40 * 5 / 6, rel=0.1)


def test_the_judge_that_scores_now_counts(small: Any) -> None:
    """What another one learned says nothing of today."""
    small.learned(small.watch(), per_day=40)
    small.days(3, per_day=40, fingerprint="f2")
    small.look(small.watch())

    (one,), _ = asked(small)

    assert (one.fingerprint, one.source) == ("f2", "learning")
