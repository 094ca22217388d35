"""Evidence that a group carries a drop: sentences name no other model, version, tenant or route."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from germane.alerting.contrasts import Groups, MeanPair, find_carriers
from germane.statistics import WeightedSums, estimate_mean
from germane.storage import RouteMean

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
GOOD, BAD = 0.8, 0.5


def mean_of(values: Any, route: str, label: str | None) -> RouteMean:
    """Return the mean of scores as the store returns it."""
    scores = np.asarray(values)
    sums = WeightedSums.of_equal_weights(
        n=len(scores), n_zero=int((scores == 0).sum()), total=scores.sum(), squares=(scores**2).sum()
    )
    estimate = estimate_mean(sums)
    fields = {name: getattr(estimate, name) for name in ("n", "mean", "deviation", "low_share", "interval")}
    return RouteMean(
        **fields, noncommittal_share=None, service="shop", route=route, scorer="s", fingerprint="f", newest=True,
        latest=NOON, label=label,
    )  # fmt: skip


def group(
    before: float, since: float, n: int = 50, n_before: int = 200, *, route: str = "ask", label: str = "a"
) -> Any:
    """Return a group with evenly scattered scores around two levels."""
    scatter = np.linspace(-0.2, 0.2, n), np.linspace(-0.2, 0.2, n_before)
    return [MeanPair(mean_of(before + scatter[1], route, label), mean_of(since + scatter[0], route, label))]


def test_the_group_that_fell_more_than_the_others_is_named() -> None:
    """The result has the dimension and the name of the group."""
    groups = {"model=a": group(GOOD, BAD), "model=b": group(GOOD, GOOD)}
    assert find_carriers({"model": groups}) == {"model": "model=a"}


@pytest.mark.parametrize(
    "groups",
    [
        {"a": group(GOOD, BAD), "b": group(GOOD, BAD)},
        {"a": group(GOOD, BAD), "b": group(GOOD, GOOD - 0.2, 400, 900)},
        {"a": group(GOOD, BAD, 19), "b": group(GOOD, GOOD)},
        {"a": group(GOOD, BAD, n_before=19), "b": group(GOOD, GOOD)},
        {"a": group(GOOD, BAD), "b": group(GOOD, GOOD, 19)},
        {"a": group(GOOD, BAD), "b": group(GOOD, GOOD, n_before=19)},
        {"a": group(BAD, BAD), "b": group(GOOD, GOOD)},
        {"a": group(GOOD, GOOD - 0.05, 900, 9000), "b": group(GOOD, GOOD, 900, 9000)},
        {"a": group(GOOD, BAD)},
        {"": group(GOOD, BAD, label=""), "b": group(GOOD, GOOD)},
    ],
    ids=[
        "same fall", "others fell by more than half", "19 since", "19 before", "19 others since", "19 others before",
        "bad all along", "within the wander between days", "only group", "no value",
    ],
)  # fmt: skip
def test_no_group_is_named_without_evidence(groups: Groups) -> None:
    """A difference needs 20 scores on each side, must exceed chance and wander, and must not be shared."""
    assert find_carriers({"model": groups}) == {}


def test_twenty_scores_on_each_side_are_enough() -> None:
    """A large difference is then significant."""
    assert find_carriers({"model": {"a": group(GOOD, 0.3, 20, 20), "b": group(GOOD, GOOD, 20, 20)}}) == {"model": "a"}


def test_a_drop_on_one_route_is_not_attributed_to_the_models_that_it_uses() -> None:
    """Models are compared on the same route. Routes are compared with each other."""
    models = {
        "a": [*group(GOOD, BAD, 90, route="support"), *group(GOOD, GOOD, 30, route="faq")],
        "b": [*group(GOOD, BAD, 30, route="support"), *group(GOOD, GOOD, 90, route="faq")],
    }
    routes = {"support": group(GOOD, BAD, 120, route="support"), "faq": group(GOOD, GOOD, 120, route="faq")}
    assert find_carriers({"route": routes, "model": models}) == {"route": "support"}


def test_only_the_clearest_group_of_several_dimensions_is_named() -> None:
    """The model fell less: it is only used by the tenant that fell."""
    tenants = {"x": group(GOOD, BAD), "y": group(GOOD, GOOD)}
    models = {"a": group(GOOD, BAD + 0.07, 60), "b": group(GOOD, GOOD)}
    assert find_carriers({"model": models, "attributes.tenant": tenants}) == {"attributes.tenant": "x"}


def test_the_mix_of_the_other_groups_does_not_matter() -> None:
    """A good group that becomes more frequent does not hide that the others fell, too."""
    groups = {
        "a": group(GOOD, BAD),
        "b": group(0.5, 0.2, 20, 400),
        "c": group(0.8, 0.5, 200, 20),
    }
    assert find_carriers({"model": groups}) == {}


def draw(random: np.random.Generator, kind: str, level: float, n: int) -> Any:
    """Draw scores around a level, some of which are refusals, or scores that are 0 or 1."""
    if kind == "0 or 1":
        return (random.random(n) < level).astype(float)
    return np.where(random.random(n) < 0.05, 0.0, np.clip(random.normal(level, 0.2, n), 0.01, 1))


@pytest.mark.parametrize("kind", ["continuous", "0 or 1"])
@pytest.mark.parametrize("size", [2, 5, 30])
def test_chance_names_a_group_in_few_of_many_drops_that_all_groups_share(kind: str, size: int) -> None:
    """At most 5% of the drops, whatever the number of groups and their levels."""
    random = np.random.default_rng([20261129, size, len(kind)])

    def shared_drop() -> dict[str, str]:
        levels, fall = random.uniform(0.5, 0.9, size), random.uniform(0.1, 0.4)
        return find_carriers(
            {"model": {f"m{number}": _pair(random, kind, level, level - fall) for number, level in enumerate(levels)}}
        )

    assert sum(bool(shared_drop()) for _ in range(200)) <= 10


@pytest.mark.parametrize("kind", ["continuous", "0 or 1"])
def test_a_group_with_fifty_scores_on_each_side_that_carries_a_drop_is_found(kind: str) -> None:
    """In at least 90% of the drops, and no other group."""
    random = np.random.default_rng([20261129, len(kind)])

    def carried_drop() -> dict[str, str]:
        groups = {f"m{number}": _pair(random, kind, 0.8, 0.8, 50) for number in range(4)}
        return find_carriers({"model": groups | {"m0": _pair(random, kind, 0.8, 0.45, 50)}})

    found = [carried_drop() for _ in range(100)]
    assert found.count({"model": "m0"}) >= 90
    assert sum(bool(one) for one in found) == found.count({"model": "m0"})


def _pair(random: np.random.Generator, kind: str, before: float, since: float, least: int = 5) -> list[MeanPair]:
    before_n, since_n = random.integers(least, 300, 2)
    means = (mean_of(draw(random, kind, level, n), "ask", "m") for level, n in ((before, before_n), (since, since_n)))
    return [MeanPair(*means)]
