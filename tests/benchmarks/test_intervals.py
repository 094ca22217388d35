"""A part of the intervals benchmark, with fewer repetitions, wider limits and a fixed seed."""

from __future__ import annotations

import pytest
from intervals import MIN_COVERAGE, SERVICES, Line, lines

pytestmark = pytest.mark.slow

REPETITIONS = 250


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str, str], float]:
    """Return the coverage of intervals for 50 scores, by design, service and kind of interval."""
    found = lines(7, REPETITIONS, (50,))
    return {(line.design, line.service, line.way): line.shares[0] or 0.0 for line in found}


@pytest.mark.parametrize("way", ["germane", "corrected"])
@pytest.mark.parametrize("design", ["equal", "picked"])
def test_intervals_reach_their_nominal_coverage(
    table: dict[tuple[str, str, str], float], design: str, way: str
) -> None:
    """The coverage is at most three standard errors below the goal for each route, all routes and both designs."""
    error = (MIN_COVERAGE * (1 - MIN_COVERAGE) / REPETITIONS) ** 0.5

    assert all(table[design, service, way] > MIN_COVERAGE - 3 * error for service in SERVICES)


def test_a_plain_t_interval_misses_the_mean_too_often(table: dict[tuple[str, str, str], float]) -> None:
    """With one refusal in fifty, the coverage of the plain t-interval is below 0.85."""
    assert table["equal", "faq", "plain t"] < 0.85 < table["equal", "faq", "germane"]


def test_a_row_whose_coverage_misses_the_goal_is_marked() -> None:
    """The row names coverage that is too low at 50 scores or too high at 500. The plain interval has no goal."""
    shares = (0.5, 0.5, 0.92, 0.94, 0.98, 0.98)
    missed = Line("equal", "faq", "germane", shares).missed

    assert [one.partition("n=")[2] for one in missed] == ["50: 0.920", "500: 0.980"]
    assert Line("equal", "faq", "plain t", shares).missed == []
    assert str(Line("equal", "faq", "germane", shares)).endswith("MISSED")
