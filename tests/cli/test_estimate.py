"""What `germane estimate` forecasts, and what it goes by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.cli.commands.estimate.forecast import TYPICAL
from germane.exchange import Exchange
from germane.score import Score
from germane.scorers import NAMES
from germane.storage import Decision, Store

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    """A key that nobody takes: nothing is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")


def exchanges(store: Store, count: int, *, hours: float = 30, **given: Any) -> list[Exchange]:
    """Write exchanges spread evenly over the last hours."""
    now, step = datetime.now(UTC), timedelta(hours=hours) / count
    found = [
        replace(
            TYPICAL, id=f"{number:032x}", draw=(number % 97 + 1) / 100, started_at=now - step * (number + 0.5), **given
        )
        for number in range(count)
    ]
    store.add(found)
    return found


def scorer(ended: Any, name: str = "answer_relevancy") -> dict[str, Any]:
    (found,) = [each for each in ended.content["scorers"] if each["scorer"] == name]
    return dict(found)


def test_todays_traffic(call: Call, store: Store) -> None:
    """Those of the last 24 hours, all drawn: one request for each, with its tokens and their list price."""
    exchanges(store, 300, hours=30)

    ended = call("estimate", "--json")

    assert (ended.code, ended.content["per_day"], ended.content["sample"]["exchanges"]) == (0, 240, 50)
    found = scorer(ended)
    assert found["calls"] == pytest.approx(240, abs=1e-9)
    assert found["dollars"] == pytest.approx(
        (0.15 * found["input_tokens"] + 0.6 * found["output_tokens"] + 0.02 * found["embedded_tokens"]) / 1e6, abs=1e-9
    )
    assert found["output_from"] == "assumed"
    assert ended.content["judge"] == {"model": "gpt-4o-mini", "price": {"input": 0.15, "output": 0.6}}


def test_a_database_that_is_young(call: Call, store: Store) -> None:
    """What came in its few hours comes all day; what came in its first minutes is taken for an hour's."""
    exchanges(store, 30, hours=3)
    found = call("estimate", "--json").content
    assert found["per_day"] == pytest.approx(240, rel=0.05)
    assert "since the first" in found["traffic"]


def test_the_first_minutes_count_as_an_hour(call: Call, store: Store) -> None:
    """A burst of tests is not multiplied by hundreds."""
    exchanges(store, 30, hours=0.05)

    assert call("estimate", "--json").content["per_day"] == 30 * 24


def test_the_rate_is_what_is_scored(call: Call, store: Store) -> None:
    """A tenth of the exchanges costs a tenth."""
    exchanges(store, 300)
    whole, tenth = call("estimate", "--json"), call("estimate", "--json", "--rate", "0.1")

    assert scorer(tenth)["dollars"] == pytest.approx(scorer(whole)["dollars"] / 10, abs=1e-9)
    assert tenth.content["scored_per_day"] == pytest.approx(24, abs=1e-9)


def test_earlier_scores_tell_what_a_judge_writes(call: Call, store: Store) -> None:
    """Measured beats assumed, and it is said which it was."""
    found = exchanges(store, 24, hours=24)
    store.assign([Decision(one.id, 1.0, "drawn") for one in found], {"answer_relevancy": "f1"})
    claims = store.claim("me", {"answer_relevancy": "f1"}, limit=99, lease=timedelta(minutes=1))
    score = Score(scorer="answer_relevancy", fingerprint="f1", value=0.5, input_tokens=100, output_tokens=1_000)
    store.complete("me", [(claim.tasks[0], score) for claim in claims])

    ended = call("estimate", "--json", "--per-day", "10")

    assert (scorer(ended)["output_from"], scorer(ended)["output_tokens"]) == (
        "measured",
        pytest.approx(10_000, abs=1e-6),
    )
    assert "the mean of 24 scores of the last week" in call("estimate").out


def test_what_cannot_be_scored_costs_nothing(call: Call, store: Store) -> None:
    """An answer that failed, or whose text was not kept, is traffic and no request."""
    exchanges(store, 10, hours=10, answer=None)
    exchanges_failed = [
        replace(one, id=f"f{one.id[1:]}", status="error", answer="Half an") for one in store.exchanges()
    ]
    store.add(exchanges_failed)

    assert call("estimate", "--json").content["total"]["calls"] == 0


def test_without_any_exchange_a_typical_one_is_taken(call: Call, store: Store) -> None:
    """It needs to be told how many there will be, and says what it goes by."""
    ended = call("estimate")
    assert (ended.code, "--per-day 10000" in ended.err) == (5, True)

    ended = call("estimate", "--per-day", "10000")
    assert (ended.code, "one typical exchange, built in" in ended.out) == (0, True)
    assert "10,000" in ended.out


def test_where_all_text_is_erased_a_typical_one_is_taken(call: Call, store: Store) -> None:
    """The traffic is known; what it would cost is not 0 because nothing is left to read."""
    exchanges(store, 3, hours=1)
    store.prune(texts_before=datetime.now(UTC) + timedelta(minutes=1))

    ended = call("estimate", "--json")

    assert (ended.code, ended.content["sample"]["from"]) == (0, "typical")
    assert ended.content["total"]["calls"] == ended.content["per_day"] > 0


def test_under_a_budget_a_rate_is_said_not_to_count(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left to wonder why it changes nothing."""
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_DAY", "50")

    out = call("estimate", "--per-day", "100", "--rate", "0.1").out

    assert "note: with a budget a rate does not count\n" in out
    assert "it pays for 50.0% of these 100" in out


def test_without_a_database_too(call: Call, tmp_path: Path) -> None:
    """Before anything is turned on there is none; and none comes into being."""
    ended = call("estimate", "--json", "--per-day", "100", "--database", f"sqlite:///{tmp_path}/none.db")

    assert (ended.code, ended.content["sample"]["from"]) == (0, "typical")
    assert not (tmp_path / "none.db").exists()
    assert call("estimate", "--database", f"sqlite:///{tmp_path}/none.db").code == 5


def test_a_database_that_is_away(call: Call) -> None:
    """It is an error where the traffic should be read from it, and none where it need not be."""
    away = ("--database", "postgresql://app:hunter2@127.0.0.1:9/app")

    assert call("estimate", *away).code == 1
    assert call("estimate", *away, "--per-day", "100").code == 0


def test_a_file_is_a_sample(call: Call, tmp_path: Path) -> None:
    """Scored once a day, unless it is said how many a day there will be."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"q": f"Why {n}?", "answer": "Because of it."}) + "\n" for n in range(120)))

    ended = call("estimate", "--json", "--file", str(path), "--columns", "question=q")
    assert (ended.content["per_day"], ended.content["sample"]) == (120, {"from": "file", "exchanges": 40, "most": 50})
    more = call("estimate", "--json", "--file", str(path), "--columns", "question=q", "--per-day", "1200")
    assert scorer(more)["calls"] == pytest.approx(10 * scorer(ended)["calls"], abs=1e-6)


def test_a_price_that_is_not_known_is_not_made_up(call: Call) -> None:
    """It says how to set it; what needs no judge still has its price."""
    options = ("--per-day", "100", "--judge", "house-model", "--scorer", "intent_match", "--scorer", "context_coverage")
    ended = call("estimate", "--json", *options)

    assert (scorer(ended, "intent_match")["dollars"], scorer(ended, "context_coverage")["dollars"]) == (None, 0.0)
    assert ended.content["total"]["dollars"] is None
    assert '[prices."house-model"]' in ended.content["notes"][0]
    assert "unknown" in call("estimate", *options).out


def test_your_own_price_is_used(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """And comes first."""
    monkeypatch.setenv("GERMANE_PRICES", '{"house-model": {"input": 1000000, "output": 0}}')
    ended = call("estimate", "--json", "--per-day", "10", "--judge", "house-model", "--scorer", "intent_match")

    found = scorer(ended, "intent_match")
    assert found["dollars"] == pytest.approx(found["input_tokens"], abs=1e-6)


def test_embedded_models_cost_nothing(call: Call) -> None:
    """They run on this machine."""
    ended = call("estimate", "--json", "--per-day", "100", "--judge", "local")

    assert ended.content["total"]["dollars"] == 0.0
    assert scorer(ended)["calls"] == 100


def test_a_limit_that_is_too_low_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lets through in a day, and what would come."""
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "2")
    (note,) = call("estimate", "--json", "--per-day", "10000").content["notes"]

    assert note.startswith("requests_per_minute = 2 lets through 2,880 a day: of 10,000 the rest would wait")


def test_every_scorer_can_be_estimated(call: Call) -> None:
    """Each of germane's own runs to its end with a judge that only counts."""
    options = [option for name in NAMES for option in ("--scorer", name)]
    ended = call("estimate", "--json", "--per-day", "1", *options)

    assert {each["scorer"] for each in ended.content["scorers"]} == set(NAMES)
    calls = {each["scorer"]: each["calls"] for each in ended.content["scorers"]}
    assert (calls["answer_relevancy"], calls["faithfulness"], calls["context_relevance"]) == (1, 1, 1)
    assert calls["combined_relevancy"] == 4
    assert ended.content["total"]["calls"] == pytest.approx(sum(calls.values()), abs=1e-9)


@pytest.mark.parametrize("count", ["nan", "inf", "-1"])
def test_a_count_is_a_number(call: Call, count: str) -> None:
    """NaN exchanges would cost NaN dollars."""
    ended = call("estimate", "--per-day", count)

    assert (ended.code, ended.out) == (2, "")


def test_a_scorer_that_is_not_there_is_told(call: Call) -> None:
    """A slip of the pen is no scorer of your own."""
    ended = call("estimate", "--per-day", "10", "--scorer", "faithfullness")

    assert (ended.code, ended.out) == (1, "")
    assert "there is no scorer 'faithfullness'; there are " in ended.err


def test_scorers_of_your_own_are_named(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may do anything, so nobody knows what they take."""
    (bare / "estimated_scorers.py").write_text("import germane\n\n\n@germane.scorer\ndef half(exchange): return 0.5\n")
    monkeypatch.setenv("GERMANE_IMPORTS", "estimated_scorers")

    ended = call("estimate", "--per-day", "10", "--scorer", "half", "--scorer", "intent_match")

    assert ended.code == 0
    assert "note: scorers of your own are not part of this: half" in ended.out
