"""The synthetic streams of the detector benchmarks and their documented properties."""

from __future__ import annotations

import numpy as np
import pytest
from streams import rivals
from streams.recipe import ROUTES, START, Change, Stream, day_effects, rates, stream


def made(change: Change | None = None, *, lasts: float = np.inf, seed: int = 5, wander: float = 0.0) -> Stream:
    """Return a stream of 200 days with a thousand scores each."""
    return stream(np.random.default_rng(seed), 1000, wander, days=200, change=change, lasts=lasts)


def of_route(found: Stream, name: str, *, after: bool) -> np.ndarray:
    """Return a route's values before or after the onset."""
    which = found.routes == found.names.index(name)
    return found.values[which & ((found.hours >= found.onset) == after)]


def test_simulated_score_rates_follow_the_hour_and_the_weekday() -> None:
    """The first week averages 1,000 scores a day. The rate is highest at 14:00, lowest at 2:00, and 0.6 at weekends."""
    by_day = rates(1000, 14).reshape(14, 24)

    assert by_day[:7].sum() == pytest.approx(7000)
    assert by_day[7:].sum() == pytest.approx(7000)
    assert (by_day[0].argmax(), by_day[0].argmin()) == (14, 2)
    assert by_day[0].max() / by_day[0].min() == pytest.approx(1.8 / 0.2)
    assert (by_day.sum(axis=1) / by_day[0].sum()) == pytest.approx([1, 1, 1, 1, 1, 0.6, 0.6] * 2)
    assert START % (7 * 86400) == 4 * 86400  # a Monday, as 1970 began on a Thursday
    assert rates(20, 3) == pytest.approx(rates(20, 7)[:72])


def test_simulated_scores_arrive_in_order_at_the_configured_rate() -> None:
    """The number of scores in 200 days is within four standard errors of the rate, and each hour's is within 10%."""
    found = made()

    assert (np.diff(found.hours) >= 0).all()
    assert 0 <= found.hours[0] < 1
    assert found.hours[-1] < 24 * 200
    assert abs(len(found.values) - rates(1000, 200).sum()) < 4 * np.sqrt(200_000)
    by_hour = np.bincount((found.hours % 24).astype(int)) / rates(1000, 200).reshape(200, 24).sum(axis=0)
    assert by_hour == pytest.approx(np.ones(24), abs=0.1)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_simulated_routes_have_the_configured_share_mean_spread_and_zeros(route) -> None:
    """Each route is a mixture of a beta distribution and zeros."""
    found = made()
    values = found.values[found.routes == found.names.index(route.name)]
    committed = values[values > 0]

    assert len(values) / len(found.values) == pytest.approx(route.share, abs=0.005)
    assert (values == 0).mean() == pytest.approx(route.zeros, abs=0.006)
    assert committed.mean() == pytest.approx(
        route.mean + 0.0035, abs=0.004
    )  # scores are higher and more frequent by day
    spread = np.sqrt(route.mean * (1 - route.mean) / (route.concentration + 1) + 0.02**2 / 2)
    assert committed.std() == pytest.approx(spread, rel=0.03)
    assert found.zeros.sum() == (found.values == 0).sum()


def test_simulated_daily_effects_are_autocorrelated() -> None:
    """They are standard normal with an autocorrelation of one half."""
    effects = day_effects(np.random.default_rng(3), 20_000)

    assert effects.mean() == pytest.approx(0, abs=0.05)
    assert effects.std() == pytest.approx(1, abs=0.03)
    for apart, expected in ((1, 0.5), (2, 0.25), (5, 0.03)):
        assert np.corrcoef(effects[:-apart], effects[apart:])[0, 1] == pytest.approx(expected, abs=0.03)


def test_a_daily_effect_is_shared_by_all_routes() -> None:
    """The daily means of two routes move together, and their standard deviation is the wander."""
    found, means = made(wander=0.02), []
    for name in ("faq", "docs"):
        which = (found.routes == found.names.index(name)) & ~found.zeros
        days = found.hours[which].astype(int) // 24
        means.append(np.bincount(days, found.values[which]) / np.bincount(days))
    assert np.corrcoef(means)[0, 1] > 0.9
    assert np.std(means[0]) == pytest.approx(0.02, rel=0.25)


def test_simulated_changes_have_the_given_size_and_affect_only_the_given_routes() -> None:
    """Lower scores and additional refusals each lower an affected route's mean by 0.10. Other routes do not change."""
    for change in (Change(shift=0.1), Change(refusal=0.1)):
        found = made(change)
        for route in ROUTES:
            fall = made().values[made().routes == found.names.index(route.name)].mean()
            fall -= of_route(found, route.name, after=True).mean()
            assert fall == pytest.approx(0.1, abs=0.006)
        zeros = (of_route(found, "faq", after=True) == 0).mean()
        assert zeros == pytest.approx(0.02 + change.refusal / 0.88, abs=0.005)
    only = made(Change(shift=0.2, only="support"))
    assert of_route(only, "faq", after=True).mean() == pytest.approx(
        of_route(made(), "faq", after=True).mean(), abs=0.002
    )
    assert of_route(only, "support", after=True).mean() == pytest.approx(0.72 * 0.85 - 0.2 + 0.003, abs=0.006)


def test_a_simulated_change_begins_on_day_16_and_grows_and_ends() -> None:
    """A change begins at a random time of this day.

    A ramp reaches half its size after half its duration. After its end, no effect remains.
    """
    onsets = [stream(np.random.default_rng(seed), 1, 0, days=17).onset for seed in range(200)]
    assert 24 * 16 <= min(onsets) < 24 * 16.1
    assert 24 * 16.9 < max(onsets) < 24 * 17

    found, usual = made(Change(shift=0.2, ramp_days=80), lasts=160), made()
    assert found.end - found.onset == pytest.approx(24 * 160)
    for since, until, fall in ((39, 41, 0.1), (81, 159, 0.2), (161, 183, 0.0)):
        means = []
        for each in (found, usual):
            days = (each.hours - found.onset) / 24
            means.append(each.values[(days >= since) & (days < until)].mean())
        assert means[1] - means[0] == pytest.approx(fall, abs=0.02)


def test_a_mix_shift_changes_only_the_shares_of_routes() -> None:
    """The mean falls by 0.038, although no route got worse."""
    found = made(Change(shares=(0.35, 0.35, 0.30)))
    before, after = found.hours < found.onset, found.hours >= found.onset

    shares = np.bincount(found.routes[after]) / after.sum()
    assert shares == pytest.approx([0.35, 0.35, 0.30], abs=0.005)
    assert found.values[before].mean() - found.values[after].mean() == pytest.approx(0.038, abs=0.006)
    for route in ROUTES:
        usual = of_route(made(), route.name, after=True).mean()
        assert of_route(found, route.name, after=True).mean() == pytest.approx(usual, abs=0.006)


def test_an_alert_of_another_rule_within_a_day_of_its_last_one_is_not_counted() -> None:
    """Hours without scores do not fire. The tuned threshold is the lowest one with at most one alert a year."""
    falls = np.array([0.0, 0.06, 0.07, np.nan, 0.01, *[0.0] * 19, 0.07, 0.06, 0.06, 0.0])
    at = 24 * 14 + 1

    assert rivals.alerts(falls, 0.05) == [at + 1, at + 25]
    assert rivals.tuned("tuned 24-hour mean", [falls, falls], 4) < 0.06
    assert rivals.tuned("tuned 24-hour mean", [falls, falls], 2) == pytest.approx(0.06, abs=0.0001)
    assert rivals.tuned("hourly mean", [falls], 0) == 0.05
