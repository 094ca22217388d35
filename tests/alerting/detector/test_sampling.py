"""The detector's sample of a busy service's scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.detector.score_batch import is_sampled, sampling_rate
from germane.monitor.sampling.priority_sampling import component_uniform


@pytest.mark.parametrize(("per_day", "rate"), [(0, 1), (999, 1), (1000, 1), (4000, 0.25), (100_000, 0.01)])
def test_the_detector_samples_about_a_thousand_scores_per_day(per_day: float, rate: float) -> None:
    """Below that rate, all scores are used."""
    assert sampling_rate(per_day) == rate


def test_the_share_of_sampled_scores_matches_the_rate() -> None:
    """The share is within four standard errors for 20,000 ids, and independent of the sampler's decision."""
    ids = [f"exchange-{number}" for number in range(20_000)]
    found = [is_sampled(one, 0.25) for one in ids]
    picked = [keep for one, keep in zip(ids, found, strict=True) if component_uniform(one) < 0.2]

    assert sum(found) / len(found) == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 20_000) ** 0.5)
    assert sum(picked) / len(picked) == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 4000) ** 0.5)


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_adds_scores_to_the_sample_and_removes_none(exchange_id: str, one: float, other: float) -> None:
    """The sample is deterministic per id, empty at rate 0 and complete at rate 1."""
    assert is_sampled(exchange_id, min(one, other)) <= is_sampled(exchange_id, max(one, other))
    assert is_sampled(exchange_id, 1.0)
    assert not is_sampled(exchange_id, 0.0)
