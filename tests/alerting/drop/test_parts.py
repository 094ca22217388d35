"""What the watch is made of: votes, scopes, figures, and what a baseline becomes when routes go or join."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.detector import Carrier, Seen, learn
from germane.alerting.drop.adopting import Example, learned_from_examples
from germane.alerting.drop.figures import carried, fallen_by, level_of, usual
from germane.alerting.drop.scope import in_scope, joined, narrowed, scope_of
from germane.alerting.drop.session import ENOUGH, Lead
from germane.baseline import OTHER, Baseline
from germane.errors import UsageError
from germane.storage import Arrival, Key

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = Key("shop", "relevancy", "f1")


def arrival(value: float = 0.5, **changes: Any) -> Arrival:
    """Return a score."""
    names: dict[str, Any] = {"service": "shop", "route": "ask", "scorer": "relevancy", "fingerprint": "f1"}
    moment: dict[str, Any] = {"id": 1, "exchange_id": "e", "arrived_at": NOW, "zero": value <= 0}
    return Arrival(value=value, **names | moment | changes)


def baseline(counts: dict[str, int], days: int = 14, seed: int = 3) -> Baseline:
    """Return what was learned from so many scores by route."""
    chance = np.random.default_rng(seed)
    routes = [route for route, count in sorted(counts.items()) for _ in range(count)]
    values = np.where(chance.random(len(routes)) < 0.1, 0.0, chance.beta(8, 2, len(routes)))
    times = np.linspace(0, days * 86_400, len(routes), endpoint=False)
    seen = Seen(routes, values, values <= 0, times)
    return learn(seen, service="shop", scorer="relevancy", fingerprint="f1", since=0, until=days * 86_400)


@given(st.lists(st.sampled_from("abc"), max_size=120), st.lists(st.integers(1, 40), max_size=6))
def test_the_lead_does_not_depend_on_how_votes_are_cut(votes: list[str], cuts: list[int]) -> None:
    """One look or many: the same judge leads, and the same scores are its."""
    arrivals = [arrival(fingerprint=vote) for vote in votes]

    def followed(parts: list[list[Arrival]]) -> tuple[list[str], dict[str, Any]]:
        lead, leaders = Lead("a"), list[str]()
        for part in parts:
            while part:
                count = lead.follow(part)
                leaders += [lead.fingerprint] * count
                lead, part = Lead.read(lead.state()), part[count:]
        return leaders, lead.state()

    pieces, rest = list[list[Arrival]](), arrivals
    for cut in cuts:
        pieces, rest = [*pieces, rest[:cut]], rest[cut:]
    whole, cut_up = followed([[one] for one in arrivals]), followed([*pieces, rest])
    assert whole[1] == cut_up[1]


def test_another_judge_leads_after_twenty_in_a_row() -> None:
    """Not one earlier; and the usual judge has to be away for that."""
    lead = Lead("a")

    assert lead.follow([arrival(fingerprint="b")] * (ENOUGH - 1)) == ENOUGH - 1
    assert lead.fingerprint == "a"
    assert lead.follow([arrival(fingerprint="b")] * 3) == 1
    assert lead.fingerprint == "b"


@given(st.integers(1, 500))
def test_a_minority_never_leads(number: int) -> None:
    """One of three scores, for however long."""
    lead = Lead("a")
    for _ in range(number):
        lead.follow([arrival(fingerprint=vote) for vote in "aba"])

    assert lead.fingerprint == "a"


@pytest.mark.parametrize(
    ("patterns", "attributes", "fits"),
    [
        ({}, {}, True),
        ({"tenant": "ac*"}, {"tenant": "acme"}, True),
        ({"tenant": "ac*"}, {"tenant": "other"}, False),
        ({"tenant": "ac*"}, {}, False),
        ({"trial": "false", "seats": "4"}, {"trial": False, "seats": 4}, True),
        ({"trial": "false", "seats": "5"}, {"trial": False, "seats": 4}, False),
    ],
)
def test_all_patterns_must_fit(patterns: dict[str, str], attributes: dict[str, Any], fits: bool) -> None:
    """Numbers and flags as TOML and JSON write them."""
    assert in_scope(scope_of(patterns), attributes) == fits
    assert scope_of(dict(reversed(patterns.items()))) == scope_of(patterns)


@given(st.dictionaries(st.sampled_from(["ask", "buy", "help", "rare", "odd"]), st.integers(2, 90), min_size=1))
def test_a_narrowed_baseline_is_that_of_its_routes(counts: dict[str, int]) -> None:
    """Numbers of routes stay, and the whole is what they add up to."""
    found = baseline(counts)

    assert narrowed(found, lambda _: True) == found
    none = narrowed(found, lambda _: False)
    assert (dict(none.routes), none.scores_per_day) == ({}, 0)
    some = narrowed(found, lambda route: route in {"ask", "rare"})
    assert all(found.routes[name] == one for name, one in some.routes.items())
    assert some.scores_per_day == pytest.approx(sum(one.scores_per_day for one in some.routes.values()), abs=1e-9)
    assert some.pooled == found.pooled & {"ask", "rare"}
    assert (OTHER in some.routes) == bool(some.pooled)


def test_what_joins_leaves_its_neighbours_alone() -> None:
    """And the whole is what one would have learned of all of them, for what adds up."""
    apart = baseline({"ask": 80, "buy": 50})
    old, new = narrowed(apart, "ask".__eq__), narrowed(apart, "buy".__eq__)

    both = joined(old, new)
    assert dict(both.routes) == dict(apart.routes)
    assert both.n == 130
    assert both.mean == pytest.approx(apart.mean, abs=1e-9)
    assert both.deviation == pytest.approx(apart.deviation, abs=1e-9)
    assert both.scores_per_day == pytest.approx(apart.scores_per_day, abs=1e-9)
    assert joined(both, narrowed(baseline({"ask": 60}, seed=9), "ask".__eq__)) == both


def test_a_level_counts_values_within_0_and_1() -> None:
    """A refusal is worth nothing, whatever its value; without a score there is no level."""
    found = level_of([arrival(0.5), arrival(1.5), arrival(-0.5), arrival(0.9, zero=True)])

    assert found is not None
    assert (found.mean, found.n) == (pytest.approx(1.5 / 4, abs=1e-9), 4)
    assert level_of([]) is None


def test_carriers_are_told_before_and_since() -> None:
    """The committed half by its mean, the zero half by its rate: of the route, or of the whole service."""
    found = baseline({"ask": 80, "buy": 50})
    since = [arrival(value, route=route) for route in ("ask", "buy") for value in (0.25, 0.75, 0.0, 0.0)]

    committed = carried(Carrier("ask", "committed"), found, since)
    zero = carried(Carrier(None, "zero"), found, since)
    assert committed is not None
    assert zero is not None
    assert (committed.before.mean, committed.before.n) == (
        pytest.approx(found.routes["ask"].committed_mean, abs=1e-9),
        found.routes["ask"].committed,
    )
    assert (committed.since.mean, committed.since.n) == (pytest.approx(0.5, abs=1e-9), 2)
    zeros = sum(one.zero_rate * (one.n + 1) - 0.5 for one in found.routes.values())
    assert (zero.before.mean, zero.before.n) == (pytest.approx(zeros / 130, abs=1e-9), 130)
    assert (zero.since.mean, zero.since.n) == (0.5, 8)
    assert zero.as_dict()["since"]["mean"] == 0.5
    assert carried(Carrier("buy", "zero"), found, [arrival(route="ask")]) is None
    assert usual(found).mean == found.mean


def test_a_fall_is_measured_route_by_route() -> None:
    """As many bad questions as usual are no fall; twenty scores of a day are needed, and older ones do not count."""
    found = baseline({"ask": 80, "buy": 50})
    level = {route: one.mean for route, one in found.routes.items()}
    as_usual = [arrival(level["ask"], route="ask")] * 15 + [arrival(level["buy"], route="buy")] * 5

    assert fallen_by(found, as_usual, NOW) == pytest.approx(0, abs=1e-9)
    worse = [arrival(level["ask"] - 0.2, route="ask")] * 20
    assert fallen_by(found, worse, NOW) == pytest.approx(0.2, abs=1e-9)
    assert fallen_by(found, worse[1:], NOW) is None
    assert fallen_by(found, worse, NOW + timedelta(days=1)) is None


def test_examples_without_times_are_spread_at_the_given_rate() -> None:
    """Thinned if that is above a thousand a day, with the wander of a calm service."""
    examples = [Example(route="ask", value=0.5 + number / 200, zero=False) for number in range(60)]

    found = learned_from_examples(KEY, examples, per_day=3000, now=NOW)
    assert (found.n, found.keep, found.until) == (60, pytest.approx(1 / 3, abs=1e-9), NOW)
    assert found.scores_per_day == pytest.approx(1000, rel=1e-6)
    assert found.routes["ask"].scores_per_day == pytest.approx(1000, rel=1e-6)
    assert found.routes["ask"].zero_wander == 0.01
    with pytest.raises(UsageError, match="how many scores a day"):
        learned_from_examples(KEY, examples, per_day=None, now=NOW)


def test_examples_are_all_dated_or_none_is() -> None:
    """Half of the times would make up a rate; two days tell nothing of how days differ."""
    dated = [Example(route="ask", value=0.5, zero=False, at=NOW - timedelta(hours=number)) for number in range(60)]
    with pytest.raises(UsageError, match="59 of 60 rows"):
        learned_from_examples(KEY, [dated[0], *(Example(route="ask", value=0.5, zero=False),) * 59], per_day=9, now=NOW)
    with pytest.raises(UsageError, match="less than three days"):
        learned_from_examples(KEY, dated, per_day=None, now=NOW)
