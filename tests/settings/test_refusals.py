"""What a wrong setting is told."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from germane.errors import SettingsError
from germane.settings import Settings, load

WRONG: dict[str, Any] = {
    "database": "mysql://localhost/x",
    "service": "",
    "role": "everything",
    "scorers": 3,
    "judge": "",
    "embedder": "",
    "api_key": "env:NOT_THERE",
    "base_url": "localhost:8000",
    "local_llm": 3,
    "judge_timeout": float("inf"),
    "questions": 11,
    "noncommittal_votes": "perhaps",
    "scorer_options": 3,
    "imports": 3,
    "requests_per_minute": 0,
    "tokens_per_minute": -1,
    "prices": 3,
    "rate": 1.01,
    "budget": 3,
    "always": 3,
    "filters": 3,
    "proxy_cpu": 1.5,
    "tick": 0,
    "concurrency": 0,
    "lease": 0,
    "retry_for": -1,
    "capture": "everywhere",
    "queue": 0,
    "capture_limit": 0,
    "max_hold": float("nan"),
    "text_limit": 99,
    "retention": 3,
    "erase_after_scoring": "perhaps",
    "trend_by": 3,
    "rules": [{"threshold": 2}],
    "channels": {"oncall": {"kind": "webhook", "url": "https://example.com/hunter2"}},
    "alert_link": "ftp://example.com/{id}",
    "trace_link": "https://example.com/{question}",
    "token": "hunter2",
    "host_names": "https://germane.example.com",
}
pytestmark = pytest.mark.usefixtures("bare")
HIDDEN = {"database", "api_key", "base_url", "channels", "token"}


def refusal(**arguments: Any) -> str:
    """Return what is said of wrong settings, and prove that nothing more is said anywhere."""
    with pytest.raises(SettingsError) as raised:
        load(**arguments)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    return str(raised.value)


def test_every_setting_can_be_wrong() -> None:
    """The table of this test knows all settings."""
    assert WRONG.keys() == Settings.model_fields.keys()


@pytest.mark.parametrize("name", WRONG)
def test_a_refusal_names_setting_value_and_fix(name: str) -> None:
    """Who reads it knows what to change, to what, and where; what may be a secret is not quoted."""
    said = refusal(**{name: WRONG[name]})

    assert said.startswith(f"setting {name}")
    assert f"(set it by argument, GERMANE_{name.upper()}" in said
    value = WRONG[name][0]["threshold"] if name == "rules" else WRONG[name]
    assert (f"= {value!r}" in said) is (name not in HIDDEN)


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Nobody mends one setting after another."""
    assert [line.split()[1] for line in refusal(rate=2, tick=-1).splitlines()] == ["rate", "tick"]


@pytest.mark.parametrize("price", [-1, float("nan"), float("inf")])
def test_a_price_is_a_finite_number(price: float) -> None:
    """Or what was spent would not be one."""
    assert refusal(prices={"mine": {"input": price}}).startswith(f"setting prices.mine.input = {price}: ")


def test_the_value_of_a_file_is_told_too(bare: Path) -> None:
    """The value need not come from an argument to be named."""
    (bare / "germane.toml").write_text("rate = 7\n")

    assert refusal().startswith("setting rate = 7: ")


@pytest.mark.parametrize("source", ["argument", "germane.toml", "pyproject.toml"])
def test_an_unknown_setting_is_refused_with_a_suggestion(bare: Path, source: str) -> None:
    """A typing error does not pass for a setting."""
    if source == "germane.toml":
        (bare / source).write_text("concurency = 3\n")
    elif source == "pyproject.toml":
        (bare / source).write_text("[tool.germane]\nconcurency = 3\n")

    assert refusal(**({"concurency": 3} if source == "argument" else {})) == (
        "there is no setting 'concurency'; did you mean 'concurrency'? Correct or remove it"
    )


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("GERMANE_RATTE", "behind GERMANE_RATTE; did you mean 'rate'? Correct or unset it"),
        ("GERMANE_XYZZY", "behind GERMANE_XYZZY; unset it"),
        (
            "GERMANE_RATE__HIGH",
            "behind GERMANE_RATE__HIGH; did you mean 'rate'? Correct or unset it",
        ),
        (
            "GERMANE_BUDGET__CALLS",
            "'budget.calls'; did you mean 'calls_per_hour'? Correct or remove it",
        ),
        (
            "GERMANE_BUDGET__USD_DAY",
            "'budget.usd_day'; did you mean 'usd_per_day'? Correct or remove it",
        ),
        ("GERMANE_BUDGET_USD_PER_DAY", "BUDGET_USD_PER_DAY; did you mean 'budget__usd_per_day'? Correct or unset it"),
        (
            "GERMANE_RETENTION__DAYS",
            "'retention.days'; did you mean 'text_days'? Correct or remove it",
        ),
    ],
)
def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, said: str) -> None:
    """A variable that nobody reads would be believed in for months."""
    monkeypatch.setenv(variable, "1")

    assert said in refusal()


def test_a_part_of_a_rule_is_suggested_too() -> None:
    """Names inside a rule are looked up among the rule's."""
    assert "'rules.0.treshold'; did you mean 'threshold'?" in refusal(rules=[{"treshold": 0.7}])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[budget]\ncall_per_day = 5\n", "'budget.call_per_day'; did you mean 'calls_per_day'?"),
        ("[retention]\ntext_day = 5\n", "'retention.text_day'; did you mean 'text_days'?"),
        (
            "[filters.faithfulness]\nroute = 'docs'\n",
            "'filters.faithfulness.route'; did you mean 'routes'?",
        ),
        ("[[always]]\nfeedback_under = 0.5\n", "'always.0.feedback_under'; did you mean 'feedback_below'?"),
        ("[prices.mine]\ninput = 1\noutputs = 2\n", "'prices.mine.outputs'; did you mean 'output'?"),
    ],
)
def test_a_wrong_name_in_a_table_is_suggested_too(bare: Path, written: str, said: str) -> None:
    """A budget that nobody reads would be overspent, a retention not kept."""
    (bare / "germane.toml").write_text(written)

    assert refusal() == f"there is no setting {said} Correct or remove it"


@pytest.mark.parametrize("part", ["filters", "always"])
def test_how_a_handler_ended_is_one_of_four_words(part: str) -> None:
    """A filter for another would leave out everything, and a rule of always would take nothing."""
    match = {"status": ["errors"]}

    said = refusal(**{part: {"faithfulness": match} if part == "filters" else [match]})

    assert said.startswith(f"setting {part}.{'faithfulness' if part == 'filters' else 0}.status.0 = 'errors': ")
    assert "'ok', 'error', 'cancelled' or 'abandoned'" in said


@pytest.mark.parametrize("value", ["0", "-3", "2.5", "many"])
def test_a_limit_of_a_budget_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """The part, not the whole table."""
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_DAY", value)

    said = refusal()
    assert said.startswith(f"setting budget.calls_per_day = {value!r}: ")
    assert said.endswith("(set it by argument, GERMANE_BUDGET__CALLS_PER_DAY or germane.toml)")


def test_a_variable_that_should_be_json_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules in a variable are JSON; what stands there instead is not quoted."""
    monkeypatch.setenv("GERMANE_RULES", "{threshold: 0.7")

    assert refusal() == "setting rules: GERMANE_RULES is not JSON; correct or unset it"


def test_a_file_that_is_no_toml_is_told_so(bare: Path) -> None:
    """A broken file of settings is not passed over."""
    (bare / "germane.toml").write_text("rate = = 1\n")

    assert refusal().startswith("germane.toml or pyproject.toml cannot be read: ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"database": "mysql://root:hunter2@db/x"},
        {"api_key": ["hunter2"]},
        {"base_url": "hunter2.example"},
        {"channels": {"oncall": {"kind": "webhook", "url": "https://example.com/hunter2"}}},
        {"channels": {"oncall": {"kind": "webhook", "url": "env:X", "secret": "hunter2"}}},
        {"channels": {"oncall": {"kind": "webhook", "url": "env:X", "secret": ["hunter2"]}}},
        {"channels": {"oncall": {"kind": "webhook", "url": "env:X", "hunter3": "hunter2"}}},
        {"channels": {"oncall": {"kind": "hunter2", "url": "env:X"}}},
        {"channels": {"oncall": {"kind": "pagerduty", "routing_key": "hunter2"}}},
        {"channels": {"oncall": {"kind": "alertmanager", "url": "http://user:hunter2@alertmanager:9093"}}},
        {"channels": {"oncall": {"kind": "alertmanager", "url": "http://alertmanager:9093?token=hunter2"}}},
        {"channels": {"oncall": "hunter2"}},
        {"channels": "hunter2"},
    ],
)
def test_no_refusal_tells_a_secret(arguments: dict[str, Any]) -> None:
    """Neither the message nor the traceback holds what may be a secret."""
    with pytest.raises(SettingsError) as raised:
        load(**arguments)

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "address", ["http://", "http:///path", "https://user:s3cr3t/@host", "http://h:99999", "http://[::1"]
)
def test_an_address_without_a_host_or_with_a_port_that_is_none_is_refused(address: str) -> None:
    """At the start and without being quoted, rather than with the first alert."""
    channel = {"kind": "alertmanager", "url": address}
    for wrong in ({"channels": {"oncall": channel}}, {"base_url": address}):
        said = refusal(**wrong)

        assert "must start with http:// or https://, and name a host" in said
        assert "s3cr3t" not in said


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_limit_is_a_number_above_0(name: str, value: float) -> None:
    """Without a limit there is none; an infinite one leaves no time between two requests."""
    assert f"setting {name}" in refusal(**{name: value})


@pytest.mark.parametrize("name", ["temperature", "attributes.", "attributes.a'b", 'attributes.a"b', "attributes.a b"])
def test_trends_are_broken_down_by_what_there_is(name: str) -> None:
    """A name that no label can be found by is told, with those that may stand there."""
    assert "must be model, prompt_version or attributes.NAME" in refusal(trend_by=[name])
