"""Tests of `germane score --estimate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.cli.core.forecast import TYPICAL_EXCHANGE
from germane.exchange import Exchange
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    """An API key that is never used, because no request is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GERMANE_ANCHORS", "0")


def exchanges(store: TrackingStore, count: int, *, hours: float = 30, **given: Any) -> list[Exchange]:
    """Write exchanges spread evenly over the last hours."""
    now, step = datetime.now(UTC), timedelta(hours=hours) / count
    found = [
        replace(
            TYPICAL_EXCHANGE,
            id=f"{number:032x}",
            sampling_key=(number % 97 + 1) / 100,
            started_at=now - step * (number + 0.5),
            **given,
        )
        for number in range(count)
    ]
    store.exchanges.add(found)
    return found


def scorer(ended: Any, name: str = "answer_relevancy") -> dict[str, Any]:
    (found,) = [each for each in ended.content["scorers"] if each["scorer"] == name]
    return dict(found)


def test_an_estimate_is_based_on_the_last_24_hours(call: Call, store: TrackingStore) -> None:
    """Each exchange takes two requests, for questions and a rating, with tokens at the list price."""
    exchanges(store, 300, hours=30)

    ended = call("score", "--estimate", "--json")

    assert (ended.code, ended.content["exchanges"], ended.content["sample"]["exchanges"]) == (0, 240, 50)
    found = scorer(ended)
    assert found["requests"] == pytest.approx(2 * 240, abs=1e-9)
    assert found["cost_usd"] == pytest.approx(
        (0.15 * found["input_tokens"] + 0.6 * found["output_tokens"] + 0.02 * found["embedded_tokens"]) / 1e6, abs=1e-9
    )
    assert found["output_tokens_source"] == "assumed"
    assert ended.content["judge"] == {"model": "gpt-4o-mini", "price": {"input": 0.15, "output": 0.6}}


def test_an_estimate_includes_the_anchors_of_scorers_with_a_judge(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are scored again every day, regardless of the sample rate, but not when a file is scored once."""
    monkeypatch.setenv("GERMANE_ANCHORS", "50")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.5")
    names = ("--scorer", "faithfulness", "--scorer", "question_answer_similarity")
    ended = call("score", "--estimate", "--json", "--per-day", "100", *names)
    assert (ended.content["scored"], ended.content["anchors"]) == (50, 50)
    assert scorer(ended, "faithfulness")["requests"] == pytest.approx(100, abs=1e-9)
    embedded = scorer(ended, "question_answer_similarity")["embedded_tokens"]
    monkeypatch.setenv("GERMANE_ANCHORS", "0")
    without = call("score", "--estimate", "--json", "--per-day", "100", *names)
    assert scorer(without, "question_answer_similarity")["embedded_tokens"] == embedded > 0
    monkeypatch.setenv("GERMANE_ANCHORS", "50")
    out = call("score", "--estimate", "--per-day", "100", *names).out
    assert "Included: 50 answers that each scorer with a judge scores again every day" in out

    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "Why?", "answer": "Because the lamp is broken."}\n')
    assert call("score", str(path), "--estimate", "--json").content["anchors"] == 0
    monkeypatch.setenv("GERMANE_ERASE_AFTER_SCORING", "true")
    assert call("score", "--estimate", "--json", "--per-day", "100").content["anchors"] == 0


def test_traffic_of_less_than_a_day_is_extrapolated(call: Call, store: TrackingStore) -> None:
    """Traffic from a few hours is extrapolated to a day."""
    exchanges(store, 30, hours=3)
    found = call("score", "--estimate", "--json").content
    assert found["exchanges"] == pytest.approx(240, rel=0.05)
    assert "since the first" in found["traffic_source"]


def test_traffic_of_less_than_an_hour_is_extrapolated_from_a_full_hour(call: Call, store: TrackingStore) -> None:
    """A short burst of test requests is not multiplied by hundreds."""
    exchanges(store, 30, hours=0.05)

    assert call("score", "--estimate", "--json").content["exchanges"] == 30 * 24


def test_the_estimated_cost_is_proportional_to_the_sample_rate(
    call: Call, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the exchanges costs a tenth."""
    exchanges(store, 300)
    whole = call("score", "--estimate", "--json")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.1")
    tenth = call("score", "--estimate", "--json")

    assert scorer(tenth)["cost_usd"] == pytest.approx(scorer(whole)["cost_usd"] / 10, abs=1e-9)
    assert tenth.content["scored"] == pytest.approx(24, abs=1e-9)


def test_output_tokens_are_measured_from_earlier_scores(call: Call, store: TrackingStore) -> None:
    """Measured values replace assumptions, and the output states which of the two was used."""
    found = exchanges(store, 24, hours=24)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in found], {"answer_relevancy": "f1"})
    claims = store.queue.claim_tasks("me", {"answer_relevancy": "f1"}, limit=99, lease=timedelta(minutes=1))
    score = Score(scorer="answer_relevancy", fingerprint="f1", value=0.5, input_tokens=100, output_tokens=1_000)
    store.queue.complete_tasks("me", [(claim.tasks[0], score) for claim in claims])

    ended = call("score", "--estimate", "--json", "--per-day", "10")

    assert (scorer(ended)["output_tokens_source"], scorer(ended)["output_tokens"]) == (
        "measured",
        pytest.approx(10_000, abs=1e-6),
    )
    assert "the mean of 24 scores from the last week" in call("score", "--estimate").out


def test_exchanges_that_cannot_be_scored_cost_nothing(call: Call, store: TrackingStore) -> None:
    """Failed answers and erased texts are traffic without requests."""
    exchanges(store, 10, hours=10, answer=None)
    exchanges_failed = [
        replace(one, id=f"f{one.id[1:]}", status="error", answer="Half an") for one in store.answers.list_exchanges()
    ]
    store.exchanges.add(exchanges_failed)

    assert call("score", "--estimate", "--json").content["total"]["requests"] == 0


def test_a_typical_exchange_is_assumed_if_none_are_stored(call: Call, store: TrackingStore) -> None:
    """The estimate requires --per-day, and the output states what the estimate is based on."""
    ended = call("score", "--estimate")
    assert (ended.code, "--per-day 10000" in ended.err) == (5, True)

    ended = call("score", "--estimate", "--per-day", "10000")
    assert (ended.code, "one built-in typical exchange" in ended.out) == (0, True)
    assert "10,000" in ended.out


def test_a_typical_exchange_is_assumed_if_texts_are_erased(call: Call, store: TrackingStore) -> None:
    """The traffic is known, and the cost is not 0."""
    exchanges(store, 3, hours=1)
    store.retention.prune(texts_before=datetime.now(UTC) + timedelta(minutes=1))

    ended = call("score", "--estimate", "--json")

    assert (ended.code, ended.content["sample"]["source"]) == (0, "typical")
    assert ended.content["total"]["requests"] == 2 * ended.content["exchanges"] > 0


def test_a_budget_that_does_not_cover_the_forecast_is_reported(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget, the sample rate has no effect."""
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_DAY", "50")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.1")

    out = call("score", "--estimate", "--per-day", "100").out

    assert "covers 25.0% of the forecast of 200" in out


def test_an_estimate_needs_no_database(call: Call, tmp_path: Path) -> None:
    """The command does not create a database either."""
    ended = call("score", "--estimate", "--json", "--per-day", "100", "--database", f"sqlite:///{tmp_path}/none.db")

    assert (ended.code, ended.content["sample"]["source"]) == (0, "typical")
    assert not (tmp_path / "none.db").exists()
    assert call("score", "--estimate", "--database", f"sqlite:///{tmp_path}/none.db").code == 5


def test_an_unreachable_database_is_reported_without_its_password(call: Call) -> None:
    """Nothing listens on its port."""
    away = ("--database", "postgresql://app:hunter2@127.0.0.1:9/app")

    assert call("score", "--estimate", *away).code == 1
    assert call("score", "--estimate", *away, "--per-day", "100").code == 0


def test_a_file_is_estimated_whole_or_as_the_sample_of_a_day(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows of a file are scored once. With --per-day, they are a sample of the traffic, which is sampled."""
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.5")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"q": f"Why {n}?", "answer": "Because of it."}) + "\n" for n in range(120)))
    estimate = ("score", str(path), "--estimate", "--columns", "question=q")

    whole = call(*estimate, "--json")

    assert (whole.content["exchanges"], whole.content["is_daily"], whole.content["scored"]) == (120, False, 120)
    assert whole.content["sample"] == {"source": "file", "exchanges": 40, "max_exchanges": 50}
    assert call(*estimate).out.startswith("120 rows of rows.jsonl.\nBased on a sample of 40 exchanges from the file.")
    assert call(*estimate, "--limit", "30", "--json").content["exchanges"] == 30
    daily = call(*estimate, "--json", "--per-day", "1200")
    assert (daily.content["is_daily"], daily.content["scored"]) == (True, 600)
    assert scorer(daily)["requests"] == pytest.approx(5 * scorer(whole)["requests"], abs=1e-6)


@each(
    ("arguments", "message"),
    [((), "pass the FILE to score"), (("--per-day", "9"), "--per-day and --database require --estimate")],
)
def test_scoring_needs_a_file(call: Call, arguments: tuple[str, ...], message: str) -> None:
    """Without a file, only an estimate is possible."""
    ended = call("score", *arguments)

    assert (ended.code, ended.out, message in ended.err) == (2, "", True)


def test_an_unknown_model_price_is_not_guessed(call: Call) -> None:
    """The note explains how to set the price. Models without requests keep their price."""
    options = ("--per-day", "100", "--judge", "house-model", "--scorer", "intent_match", "--scorer", "context_coverage")
    ended = call("score", "--estimate", "--json", *options)

    assert (scorer(ended, "intent_match")["cost_usd"], scorer(ended, "context_coverage")["cost_usd"]) == (None, 0.0)
    assert ended.content["total"]["cost_usd"] is None
    assert '[prices."house-model"]' in ended.content["notes"][0]
    assert "unknown" in call("score", "--estimate", *options).out


def test_a_configured_price_overrides_the_price_list(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices in the settings take precedence."""
    monkeypatch.setenv("GERMANE_PRICES", '{"house-model": {"input": 1000000, "output": 0}}')
    ended = call(
        "score", "--estimate", "--json", "--per-day", "10", "--judge", "house-model", "--scorer", "intent_match"
    )

    found = scorer(ended, "intent_match")
    assert found["cost_usd"] == pytest.approx(found["input_tokens"], abs=1e-6)


def test_local_models_cost_nothing(call: Call) -> None:
    """Local models run on this machine."""
    ended = call("score", "--estimate", "--json", "--per-day", "100", "--judge", "local")

    assert ended.content["total"]["cost_usd"] == 0.0
    assert scorer(ended)["requests"] == 100


def test_a_rate_limit_that_is_too_low_is_reported(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note states how many requests the limit allows per day, and the forecast."""
    monkeypatch.setenv("GERMANE_REQUESTS_PER_MINUTE", "2")
    (note,) = call("score", "--estimate", "--json", "--per-day", "10000").content["notes"]

    assert note.startswith("requests_per_minute = 2 allows 2,880 per day, but the forecast is 20,000")


def test_every_builtin_scorer_can_be_estimated(call: Call) -> None:
    """Each scorer completes with the counting judge."""
    options = [option for name in BUILTIN_SCORER_NAMES for option in ("--scorer", name)]
    ended = call("score", "--estimate", "--json", "--per-day", "1", *options)

    assert {each["scorer"] for each in ended.content["scorers"]} == set(BUILTIN_SCORER_NAMES)
    calls = {each["scorer"]: each["requests"] for each in ended.content["scorers"]}
    assert (calls["answer_relevancy"], calls["faithfulness"], calls["context_relevance"]) == (2, 1, 1)
    assert calls["combined_relevancy"] == 5
    assert ended.content["total"]["requests"] == pytest.approx(sum(calls.values()), abs=1e-9)


@each("count", ["nan", "inf", "-1"])
def test_exchanges_per_day_must_be_finite(call: Call, count: str) -> None:
    """NaN exchanges would cost NaN dollars."""
    ended = call("score", "--estimate", "--per-day", count)

    assert (ended.code, ended.out) == (2, "")


def test_estimating_an_unknown_scorer_is_an_error(call: Call) -> None:
    """A misspelled name is not a custom scorer."""
    ended = call("score", "--estimate", "--per-day", "10", "--scorer", "faithfullness")

    assert (ended.code, ended.out) == (2, "")
    assert "unknown scorer 'faithfullness'; did you mean 'faithfulness'? Known scorers: " in ended.err


def test_the_estimate_excludes_custom_scorers(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usage of custom scorers is unknown."""
    (bare / "estimated_scorers.py").write_text("import germane\n\n\n@germane.scorer\ndef half(exchange): return 0.5\n")
    monkeypatch.setenv("GERMANE_IMPORTS", "estimated_scorers")

    ended = call("score", "--estimate", "--per-day", "10", "--scorer", "half", "--scorer", "intent_match")

    assert ended.code == 0
    assert "note: custom scorers are not included: half" in ended.out
