"""What the command line says of a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from germane.settings import Budget
from germane.storage import Expense, Store

Call = Callable[..., Any]


def budget_in(ended: Any) -> dict[str, Any] | None:
    """Return what the doctor found about the budget."""
    found = [finding for finding in ended.content["findings"] if finding["about"] == "budget"]
    return found[0] if found else None


def test_the_doctor_tells_what_is_spent_of_each_limit(
    call: Call, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today's, of all processes; without a budget nothing."""
    assert budget_in(call("doctor", "--offline", "--json")) is None
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_DAY", "300")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_DAY", "200000")
    store.reserve_budget(Budget(calls_per_day=300), [Expense(1, 1_000.0)] * 120)

    found = budget_in(call("doctor", "--offline", "--json"))

    assert found is not None
    assert (found["status"], found["fix"]) == ("ok", None)
    assert "120 of 300 calls are spent; 120,000 of 200,000 tokens are spent" in found["message"]
    assert "picks by budget" in call("doctor", "--offline").out


def test_the_doctor_tells_that_it_is_spent_and_until_when(
    call: Call, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no fault: it is what a budget is for."""
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_DAY", "5")
    store.reserve_budget(Budget(calls_per_day=5), [Expense(1)] * 9)

    found = budget_in(call("doctor", "--offline", "--json"))

    assert found is not None
    assert found["status"] == "note"
    assert "5 of 5 calls are spent: it is spent until " in found["message"]
    assert "00:00 UTC" in found["message"]


def test_the_doctor_tells_of_money_without_a_price(call: Call, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the background does not start."""
    for name, value in {"BUDGET__USD_PER_DAY": "5", "JUDGE": "mine", "BASE_URL": "http://127.0.0.1:9/v1"}.items():
        monkeypatch.setenv(f"GERMANE_{name}", value)
    store.check()

    findings = call("doctor", "--offline", "--json").content["findings"]

    (fault,) = [one for one in findings if one["about"] == "budget" and one["status"] == "fault"]
    assert 'prices."mine"' in fault["message"]


def test_the_estimate_tells_how_much_a_budget_pays_for(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what would be scored without it; the rate does not count then."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("GERMANE_RATE", "0.5")
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_HOUR", "100")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_DAY", "1000000000")

    told = call("estimate", "--per-day", "9600", "--scorer", "answer_relevancy", "--json").content

    assert (told["rate"], told["total"]["calls"]) == (1.0, pytest.approx(9600, abs=1e-9))
    (note,) = [note for note in told["notes"] if "budget" in note]
    assert note.startswith("the budget is 2,400 calls a day: it pays for 25.0% of these 9,600.")
