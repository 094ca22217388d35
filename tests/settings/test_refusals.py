"""Error messages for invalid settings."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.errors import SettingsError
from germane.settings import Settings, SettingsArguments, load_settings

WRONG: dict[str, Any] = {
    "database": "mysql://localhost/x",
    "service": "",
    "role": "everything",
    "scorers": 3,
    "auto_migrate": "perhaps",
    "judge": "",
    "embedder": "",
    "api_key": "env:NOT_THERE",
    "base_url": "localhost:8000",
    "local_judge_path": 3,
    "judge_timeout": float("inf"),
    "generated_questions": 11,
    "judge_detects_refusals": "perhaps",
    "scorer_options": 3,
    "imports": 3,
    "requests_per_minute": 0,
    "tokens_per_minute": -1,
    "prices": 3,
    "sample_rate": 1.01,
    "archive": 3,
    "budget": 3,
    "always_score": 3,
    "filters": 3,
    "proxy_cpu": 1.5,
    "poll_interval": 0,
    "concurrency": 0,
    "task_lease": 0,
    "anchors": -1,
    "retry_timeout": -1,
    "capture": "everywhere",
    "watch": "perhaps",
    "queue_size": 0,
    "max_exchanges_per_minute": 0,
    "max_span_delay": float("nan"),
    "max_text_length": 99,
    "retention": 3,
    "erase_after_scoring": "perhaps",
    "timezone": "Berlin",
    "breakdowns": 3,
    "rules": [{"threshold": 2}],
    "maintenance": [{"start": "02:00", "end": "25:00"}],
    "channels": {"oncall": {"type": "webhook", "url": "https://example.com/hunter2"}},
    "sinks": {"bridge": {"type": "webhook", "url": "https://example.com/hunter2"}},
    "alert_url": "ftp://example.com/{id}",
    "exchange_url": "https://example.com/{answer}",
    "trace_url": "https://example.com/{question}",
    "dashboard_token": "hunter2",
    "receiver_token": "hunter2",
    "allowed_hosts": "https://germane.example.com",
}
pytestmark = pytest.mark.usefixtures("bare")
HIDDEN = {"archive", "database", "api_key", "base_url", "channels", "dashboard_token", "receiver_token", "sinks"}


def error_for(**arguments: Any) -> str:
    """Return the error message for invalid settings, and check that no cause leaks more."""
    with pytest.raises(SettingsError) as raised:
        load_settings(**arguments)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    return str(raised.value)


def test_the_table_of_invalid_values_covers_every_setting() -> None:
    """A new setting needs an entry in the table."""
    assert WRONG.keys() == Settings.model_fields.keys()


@each("name", WRONG)
def test_an_error_names_the_setting_the_value_and_the_fix(name: str) -> None:
    """The message says what to change and where. It does not quote values that may be secret."""
    message = error_for(**{name: WRONG[name]})

    assert message.startswith(f"setting {name}")
    assert f"(set it by argument, GERMANE_{name.upper()}" in message
    value = {"rules": 2, "maintenance": "25:00"}.get(name, WRONG[name])
    assert (f"= {value!r}" in message) is (name not in HIDDEN)


def test_all_invalid_settings_are_reported_together() -> None:
    """A single start reports every mistake."""
    assert [line.split()[1] for line in error_for(sample_rate=2, poll_interval=-1).splitlines()] == [
        "sample_rate",
        "poll_interval",
    ]


@each("price", [-1, float("nan"), float("inf")])
def test_a_price_must_be_a_finite_number(price: float) -> None:
    """Costs are computed from prices."""
    assert error_for(prices={"mine": {"input": price}}).startswith(f"setting prices.mine.input = {price}: ")


def test_an_invalid_value_in_a_settings_file_is_reported(bare: Path) -> None:
    """The message quotes values from files in the same way as arguments."""
    (bare / "germane.toml").write_text("sample_rate = 7\n")

    assert error_for().startswith("setting sample_rate = 7: ")


@pytest.mark.parametrize("source", ["argument", "germane.toml", "pyproject.toml"])
def test_an_unknown_setting_gets_a_suggestion(bare: Path, source: str) -> None:
    """A misspelled setting is an error in every source."""
    if source == "germane.toml":
        (bare / source).write_text("concurency = 3\n")
    elif source == "pyproject.toml":
        (bare / source).write_text("[tool.germane]\nconcurency = 3\n")

    assert error_for(**({"concurency": 3} if source == "argument" else {})) == (
        "unknown setting 'concurency'; did you mean 'concurrency'? Correct or remove it"
    )


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("GERMANE_SAMPLERATE", "GERMANE_SAMPLERATE; did you mean GERMANE_SAMPLE_RATE? Correct or unset it"),
        ("GERMANE_XYZZY", "unknown environment variable GERMANE_XYZZY; unset it"),
        (
            "GERMANE_SAMPLE_RATE__HIGH",
            "GERMANE_SAMPLE_RATE__HIGH; did you mean GERMANE_SAMPLE_RATE? Correct or unset it",
        ),
        (
            "GERMANE_BUDGET__REQUESTS_DAY",
            "'budget.requests_day'; did you mean 'requests_per_day'? Correct or remove it",
        ),
        (
            "GERMANE_BUDGET__USD_DAY",
            "'budget.usd_day'; did you mean 'usd_per_day'? Correct or remove it",
        ),
        (
            "GERMANE_BUDGET_USD_PER_DAY",
            "BUDGET_USD_PER_DAY; did you mean GERMANE_BUDGET__USD_PER_DAY? Correct or unset it",
        ),
        (
            "GERMANE_RETENTION__DAYS",
            "'retention.days'; did you mean 'text_days'? Correct or remove it",
        ),
    ],
)
def test_an_unknown_environment_variable_gets_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, variable: str, message: str
) -> None:
    """A misspelled variable is an error instead of being ignored."""
    monkeypatch.setenv(variable, "1")

    assert message in error_for()


def test_an_unknown_rule_field_gets_a_suggestion() -> None:
    """The suggestion is a field of the rule's type."""
    assert "'rules.0.treshold'; did you mean 'threshold'?" in error_for(rules=[{"treshold": 0.7}])


@each(
    ("written", "message"),
    [
        ("[budget]\nrequest_per_day = 5\n", "'budget.request_per_day'; did you mean 'requests_per_day'?"),
        ("[retention]\ntext_day = 5\n", "'retention.text_day'; did you mean 'text_days'?"),
        (
            "[filters.faithfulness]\nroute = 'docs'\n",
            "'filters.faithfulness.route'; did you mean 'routes'?",
        ),
        ("[[always_score]]\nfeedback_under = 0.5\n", "'always_score.0.feedback_under'; did you mean 'feedback_below'?"),
        ("[prices.mine]\ninput = 1\noutputs = 2\n", "'prices.mine.outputs'; did you mean 'output'?"),
    ],
)
def test_an_unknown_field_in_a_table_gets_a_suggestion(bare: Path, written: str, message: str) -> None:
    """A misspelled limit is an error instead of being ignored."""
    (bare / "germane.toml").write_text(written)

    assert error_for() == f"unknown setting {message} Correct or remove it"


@each("part", ["filters", "always_score"])
def test_a_filter_on_status_accepts_the_four_statuses(part: str) -> None:
    """A filter on any other status would match nothing."""
    match = {"status": ["errors"]}

    message = error_for(**{part: {"faithfulness": match} if part == "filters" else [match]})

    assert message.startswith(f"setting {part}.{'faithfulness' if part == 'filters' else 0}.status.0 = 'errors': ")
    assert "'ok', 'error', 'cancelled' or 'abandoned'" in message


@pytest.mark.parametrize("value", ["0", "-3", "2.5", "many"])
def test_an_invalid_budget_limit_is_reported_with_its_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """The message names the field, not the whole table."""
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_DAY", value)

    message = error_for()
    assert message.startswith(f"setting budget.requests_per_day = {value!r}: ")
    assert message.endswith("(set it by argument, GERMANE_BUDGET__REQUESTS_PER_DAY or germane.toml)")


def test_an_environment_variable_with_invalid_json_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules in a variable are JSON. The message does not quote the invalid value."""
    monkeypatch.setenv("GERMANE_RULES", "{threshold: 0.7")

    assert error_for() == "setting rules: GERMANE_RULES is not valid JSON; correct or unset it"


def test_an_invalid_settings_file_is_reported(bare: Path) -> None:
    """A broken settings file is an error instead of being ignored."""
    (bare / "germane.toml").write_text("sample_rate = = 1\n")

    assert error_for().startswith("germane.toml cannot be read: ")


def test_the_error_for_an_invalid_default_names_the_variable_that_contains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has set only OPENAI_BASE_URL looks for the mistake there."""
    monkeypatch.setenv("OPENAI_BASE_URL", "127.0.0.1:8000/v1")
    assert "(set it by argument, OPENAI_BASE_URL or germane.toml)" in error_for()

    monkeypatch.setenv("GERMANE_BASE_URL", "127.0.0.1:8000/v1")
    assert "(set it by argument, GERMANE_BASE_URL or germane.toml)" in error_for()


@each(
    "arguments",
    [
        {"database": "mysql://root:hunter2@db/x"},
        {"api_key": ["hunter2"]},
        {"base_url": "hunter2.example"},
        {"channels": {"oncall": {"type": "webhook", "url": "https://example.com/hunter2"}}},
        {"channels": {"oncall": {"type": "webhook", "url": "env:X", "secret": "hunter2"}}},
        {"channels": {"oncall": {"type": "webhook", "url": "env:X", "secret": ["hunter2"]}}},
        {"channels": {"oncall": {"type": "webhook", "url": "env:X", "hunter3": "hunter2"}}},
        {"channels": {"oncall": {"type": "hunter2", "url": "env:X"}}},
        {"channels": {"oncall": {"type": "pagerduty", "routing_key": "hunter2"}}},
        {"channels": {"oncall": {"type": "alertmanager", "url": "http://user:hunter2@alertmanager:9093"}}},
        {"channels": {"oncall": {"type": "alertmanager", "url": "http://alertmanager:9093?token=hunter2"}}},
        {"channels": {"oncall": "hunter2"}},
        {"channels": "hunter2"},
    ],
)
def test_no_settings_error_contains_a_secret(arguments: dict[str, Any]) -> None:
    """Neither the message nor the traceback contains a value that may be secret."""
    with pytest.raises(SettingsError) as raised:
        load_settings(**arguments)

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@each("address", ["http://", "http:///path", "https://user:s3cr3t/@host", "http://h:99999", "http://[::1"])
def test_a_url_without_a_host_or_with_an_invalid_port_is_rejected(address: str) -> None:
    """The error is raised at startup instead of with the first alert, and does not quote the URL."""
    channel = {"type": "alertmanager", "url": address}
    for wrong in ({"channels": {"oncall": channel}}, {"base_url": address}):
        message = error_for(**wrong)

        assert "must start with http:// or https:// and contain a host" in message
        assert "s3cr3t" not in message


@each("name", ["requests_per_minute", "tokens_per_minute"])
@each("value", [0, -1, float("inf"), float("nan")])
def test_a_rate_limit_must_be_a_positive_finite_number(name: str, value: float) -> None:
    """To remove a rate limit, omit the setting."""
    assert f"setting {name}" in error_for(**{name: value})


@each("name", ["temperature", "attributes.", "attributes.a'b", 'attributes.a"b', "attributes.a b"])
def test_breakdowns_accept_only_known_dimensions(name: str) -> None:
    """The error lists the valid dimensions."""
    assert "must be model, prompt_version or attributes.NAME" in error_for(breakdowns=[name])


def test_typed_arguments_of_start_match_the_settings() -> None:
    """Type checkers accept exactly the existing settings."""
    assert SettingsArguments.__annotations__.keys() == Settings.model_fields.keys()
