"""Tests of budgets in `germane doctor` and `germane score --estimate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from germane.settings import Budget
from germane.storage import RequestUsage, TrackingStore

Call = Callable[..., Any]


def budget_in(ended: Any) -> dict[str, Any] | None:
    """Return the doctor's findings about the budget."""
    found = [finding for finding in ended.content["findings"] if finding["subject"] == "budget"]
    return found[0] if found else None


def test_doctor_shows_the_usage_of_each_limit(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output shows today's usage by all processes. Without a budget, nothing is shown."""
    assert budget_in(call("doctor", "--offline", "--json")) is None
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_DAY", "300")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_DAY", "200000")
    store.quota.reserve_budget(Budget(requests_per_day=300), [RequestUsage(1, 1_000.0)] * 120)

    found = budget_in(call("doctor", "--offline", "--json"))

    assert found is not None
    assert (found["level"], found["fix"]) == ("ok", None)
    assert "120 of 300 requests used; 120,000 of 200,000 tokens used" in found["message"]
    assert "sampling by budget" in call("doctor", "--offline").out


def test_doctor_warns_about_an_exhausted_budget(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exhausted budget is not an error."""
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_DAY", "5")
    store.quota.reserve_budget(Budget(requests_per_day=5), [RequestUsage(1)] * 9)

    found = budget_in(call("doctor", "--offline", "--json"))

    assert found is not None
    assert found["level"] == "warning"
    assert "5 of 5 requests used; exhausted until " in found["message"]
    assert "00:00 UTC" in found["message"]


def test_doctor_reports_a_cost_limit_without_a_price(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With such a budget, background work does not start."""
    for name, value in {"BUDGET__USD_PER_DAY": "5", "JUDGE": "mine", "BASE_URL": "http://127.0.0.1:9/v1"}.items():
        monkeypatch.setenv(f"GERMANE_{name}", value)
    store.check()

    findings = call("doctor", "--offline", "--json").content["findings"]

    (fault,) = [one for one in findings if one["subject"] == "budget" and one["level"] == "error"]
    assert 'prices."mine"' in fault["message"]


def test_estimate_shows_the_share_that_the_budget_covers(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget, the sample rate has no effect. The 50 anchors of a day count, too."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.5")
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_HOUR", "100")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_DAY", "1000000000")

    result = call("score", "--estimate", "--per-day", "9600", "--scorer", "answer_relevancy", "--json").content

    assert (result["sample_rate"], result["total"]["requests"]) == (1.0, pytest.approx(2 * (9600 + 50), abs=1e-9))
    (note,) = [note for note in result["notes"] if "budget" in note]
    assert note.startswith("the budget of 2,400 requests per day covers 12.4% of the forecast of 19,300")
