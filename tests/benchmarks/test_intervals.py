"""A slice of the benchmark of intervals: fewer repetitions, wider bands, a fixed seed."""

from __future__ import annotations

import pytest
from intervals import LEAST, SERVICES, Line, lines

REPETITIONS = 250


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str, str], float]:
    """How often intervals from 50 scores hold the mean, by design, service and way."""
    found = lines(7, REPETITIONS, (50,))
    return {(line.design, line.service, line.way): line.shares[0] or 0.0 for line in found}


@pytest.mark.parametrize("way", ["shipped", "corrected"])
@pytest.mark.parametrize("design", ["equal", "picked"])
def test_shipped_intervals_hold_the_mean(table: dict[tuple[str, str, str], float], design: str, way: str) -> None:
    """On each route by itself and mixed, by either way to pick what is scored; three errors below the goal at most."""
    error = (LEAST * (1 - LEAST) / REPETITIONS) ** 0.5

    assert all(table[design, service, way] > LEAST - 3 * error for service in SERVICES)


def test_a_plain_interval_would_not_do(table: dict[tuple[str, str, str], float]) -> None:
    """One refusal in fifty is missed too often: that is why there is another one."""
    assert table["equal", "faq", "plain t"] < 0.85 < table["equal", "faq", "shipped"]


def test_a_line_outside_the_goal_says_so() -> None:
    """Too seldom from 50 scores up, and too often from 500; nobody is held to the usual interval."""
    shares = (0.5, 0.5, 0.92, 0.94, 0.98, 0.98)
    missed = Line("equal", "faq", "shipped", shares).missed

    assert [one.partition("n=")[2] for one in missed] == ["50: 0.920", "500: 0.980"]
    assert Line("equal", "faq", "plain t", shares).missed == []
    assert str(Line("equal", "faq", "shipped", shares)).endswith("MISSED")
