"""Tests of `germane config`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.settings import Settings

Call = Callable[..., Any]
SECRETS = ("hunter2", "sk-12345", "s3cret")
FILE = """
service = "from-a-file"
sample_rate = 0.5

[budget]
requests_per_day = 2000

[channels.oncall]
type = "slack"
url = "env:SLACK_URL"

[[rules]]
threshold = 0.7

[scorer_options.answer_relevancy]
similarity = "judge"
"""


def origins(content: dict[str, Any]) -> dict[str, str]:
    """Return the source of each setting, with its variable or table."""
    found = {one["name"]: one["origin"] for one in content["settings"]}
    return {name: " ".join(filter(None, (o["source"], o["variable"], o["table"]))) for name, o in found.items()}


def test_each_setting_is_shown_once(call: Call) -> None:
    """Without configuration, every setting has its default."""
    content = call("config", "--json").content

    assert {one["name"].partition(".")[0] for one in content["settings"]} == set(Settings.model_fields)
    assert set(origins(content).values()) == {"default"}
    names = ["drop", "no_data", "scorer_error", "budget_exhausted", "judge_drift"]
    assert [rule["name"] for rule in content["rules"]] == names


def test_the_origin_of_a_setting_is_the_source_that_takes_precedence(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source is an argument, a variable, a file with its table, or another tool's variable."""
    (bare / "germane.toml").write_text(FILE)
    (bare / "pyproject.toml").write_text(
        "[tool.germane]\nsample_rate = 0.1\npoll_interval = 5.0\n[tool.germane.retention]\ntext_days=7"
    )
    monkeypatch.setenv("GERMANE_SERVICE", "from-a-variable")
    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_HOUR", "100")
    monkeypatch.setenv("OPENAI_MODEL", "a-judge")

    ended = call("config", "--json", "--database", "sqlite:///other.db")

    found = origins(ended.content)
    assert found["database"] == "argument"
    assert found["service"] == "variable GERMANE_SERVICE"
    assert found["sample_rate"] == "germane.toml"
    assert found["poll_interval"] == "pyproject.toml tool.germane"
    assert found["budget.requests_per_hour"] == "variable GERMANE_BUDGET__REQUESTS_PER_HOUR"
    assert found["budget.requests_per_day"] == "germane.toml budget"
    assert found["retention.text_days"] == "pyproject.toml tool.germane.retention"
    assert found["retention.score_days"] == "default"
    assert found["channels.oncall"] == "germane.toml channels"
    assert found["scorer_options.answer_relevancy"] == "germane.toml scorer_options"
    assert found["judge"] == "variable OPENAI_MODEL"
    values = {one["name"]: one["value"] for one in ended.content["settings"]}
    assert (values["service"], values["sample_rate"], values["poll_interval"]) == ("from-a-variable", 0.5, 5.0)
    assert [rule["default"] for rule in ended.content["rules"]].count(False) == 1


def test_secret_settings_are_masked(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and passwords in URLs never appear. References to secrets do."""
    (bare / "germane.toml").write_text(FILE)
    monkeypatch.setenv("SLACK_URL", "https://hooks.example.com/s3cret")
    monkeypatch.setenv("GERMANE_DATABASE", "postgresql://app:hunter2@db/app?password=hunter2")
    monkeypatch.setenv("GERMANE_API_KEY", "sk-12345")
    monkeypatch.setenv("GERMANE_BASE_URL", "https://user:hunter2@judge.example.com/s3cret/v1?key=sk-12345")
    monkeypatch.setenv("GERMANE_ALERT_URL", "https://u:hunter2@germane.example.com/alerts/{id}")
    monkeypatch.setenv("GERMANE_SCORER_OPTIONS", json.dumps({"answer_relevancy": {"api_key": "sk-12345"}}))

    shown = [call("config", *more) for more in ((), ("--origins",), ("--json",))]

    assert [one.code for one in shown] == [0] * 3
    for one in shown:
        assert not [secret for secret in SECRETS if secret in one.out + one.err]
        assert "judge.example.com" in one.out
        assert "env:SLACK_URL" in one.out


def test_setting_values_are_sanitized_for_terminals(call: Call, bare: Path) -> None:
    """Names and values with escapes, 100 kB of text or right-to-left characters take one line each."""
    hostile = "\x1b[2J\u202eabc\n" + "x" * 100_000
    content = f"service = {json.dumps(hostile)}\n[filters.{json.dumps(hostile)}]\nroutes = [{json.dumps(hostile)}]\n"
    (bare / "germane.toml").write_text(content)

    ended = call("config", "--origins")

    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert len(ended.out) < 30_000


def test_invalid_settings_exit_with_1(call: Call, bare: Path) -> None:
    """One line names the setting. With --json, one object is printed."""
    (bare / "germane.toml").write_text("sample_rate = 3")

    ended = call("config", "--json")

    assert ended.code == 1
    assert "setting sample_rate" in ended.content["error"]
