"""Which scores of a busy service reach the detector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.detector import kept, seen
from germane.monitor.sampling.priority_sampling import second_ticket


@pytest.mark.parametrize(("per_day", "keep"), [(0, 1), (999, 1), (1000, 1), (4000, 0.25), (100_000, 0.01)])
def test_a_thousand_a_day_are_kept(per_day: float, keep: float) -> None:
    """All of them up to that."""
    assert seen(per_day) == keep


def test_the_share_that_is_kept_is_the_probability() -> None:
    """Of 20,000 ids, within four standard errors, and independent of the ticket that picked them."""
    ids = [f"exchange-{number}" for number in range(20_000)]
    found = [kept(one, 0.25) for one in ids]
    picked = [keep for one, keep in zip(ids, found, strict=True) if second_ticket(one) < 0.2]

    assert sum(found) / len(found) == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 20_000) ** 0.5)
    assert sum(picked) / len(picked) == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 4000) ** 0.5)


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_what_is_kept_at_one_probability_is_kept_at_a_higher(exchange_id: str, one: float, other: float) -> None:
    """Always the same answer for an id; none at 0, all at 1."""
    assert kept(exchange_id, min(one, other)) <= kept(exchange_id, max(one, other))
    assert kept(exchange_id, 1.0)
    assert not kept(exchange_id, 0.0)
