"""What `germane config show` says, and what it never does."""

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
rate = 0.5

[budget]
calls_per_day = 2000

[channels.oncall]
kind = "slack"
url = "env:SLACK_URL"

[[rules]]
threshold = 0.7

[scorer_options.answer_relevancy]
similarity = "judge"
"""


def origins(content: dict[str, Any]) -> dict[str, str]:
    """Return by setting the kind of its origin, with the name of a variable or the table of a file."""
    found = {one["name"]: one["origin"] for one in content["settings"]}
    return {name: " ".join(filter(None, (o["kind"], o["variable"], o["table"]))) for name, o in found.items()}


def test_each_setting_is_shown_once(call: Call) -> None:
    """Without any configuration: all of them, each by its default."""
    content = call("config", "show", "--json").content

    assert {one["name"].partition(".")[0] for one in content["settings"]} == set(Settings.model_fields)
    assert set(origins(content).values()) == {"default"}
    assert [rule["name"] for rule in content["rules"]] == ["drop", "no_data", "scorer_error", "budget_exhausted"]


def test_the_origin_is_the_place_that_wins(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argument, variable, germane.toml with its table, pyproject, a variable of others: each is named."""
    (bare / "germane.toml").write_text(FILE)
    (bare / "pyproject.toml").write_text(
        "[tool.germane]\nrate = 0.1\ntick = 5.0\n[tool.germane.retention]\ntext_days=7"
    )
    monkeypatch.setenv("GERMANE_SERVICE", "from-a-variable")
    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_HOUR", "100")
    monkeypatch.setenv("OPENAI_MODEL", "a-judge")

    ended = call("config", "show", "--json", "--database", "sqlite:///other.db")

    found = origins(ended.content)
    assert found["database"] == "argument"
    assert found["service"] == "variable GERMANE_SERVICE"
    assert found["rate"] == "germane.toml"
    assert found["tick"] == "pyproject.toml tool.germane"
    assert found["budget.calls_per_hour"] == "variable GERMANE_BUDGET__CALLS_PER_HOUR"
    assert found["budget.calls_per_day"] == "germane.toml budget"
    assert found["retention.text_days"] == "pyproject.toml tool.germane.retention"
    assert found["retention.score_days"] == "default"
    assert found["channels.oncall"] == "germane.toml channels"
    assert found["scorer_options.answer_relevancy"] == "germane.toml scorer_options"
    assert found["judge"] == "variable OPENAI_MODEL"
    values = {one["name"]: one["value"] for one in ended.content["settings"]}
    assert (values["service"], values["rate"], values["tick"]) == ("from-a-variable", 0.5, 5.0)
    assert [rule["default"] for rule in ended.content["rules"]].count(False) == 1


def test_only_what_was_changed(call: Call, bare: Path) -> None:
    """`--changed` leaves out what has its default."""
    (bare / "germane.toml").write_text("rate = 0.5")

    ended = call("config", "show", "--changed", "--origins")

    settings, _, rest = ended.out.partition("\n\n")
    assert settings.split() == ["rate", "0.5", "germane.toml"]
    assert "drop: severity warning, min_drop 0.05" in rest
    assert "on by default" in rest


def test_no_secret_is_shown(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor passwords in addresses, in no form; where a secret stands is none."""
    (bare / "germane.toml").write_text(FILE)
    monkeypatch.setenv("SLACK_URL", "https://hooks.example.com/s3cret")
    monkeypatch.setenv("GERMANE_DATABASE", "postgresql://app:hunter2@db/app?password=hunter2")
    monkeypatch.setenv("GERMANE_API_KEY", "sk-12345")
    monkeypatch.setenv("GERMANE_BASE_URL", "https://user:hunter2@judge.example.com/s3cret/v1?key=sk-12345")
    monkeypatch.setenv("GERMANE_ALERT_LINK", "https://u:hunter2@germane.example.com/alerts/{id}")
    monkeypatch.setenv("GERMANE_SCORER_OPTIONS", json.dumps({"answer_relevancy": {"api_key": "sk-12345"}}))

    shown = [call("config", "show", *more) for more in ((), ("--origins",), ("--json",), ("--changed",))]

    assert [one.code for one in shown] == [0] * 4
    for one in shown:
        assert not [secret for secret in SECRETS if secret in one.out + one.err]
        assert "judge.example.com" in one.out
        assert "env:SLACK_URL" in one.out


def test_what_stands_in_settings_cannot_trick_a_terminal(call: Call, bare: Path) -> None:
    """Names and values with escapes, 100 kB and letters from the right are one line each."""
    hostile = "\x1b[2J\u202eabc\n" + "x" * 100_000
    content = f"service = {json.dumps(hostile)}\n[filters.{json.dumps(hostile)}]\nroutes = [{json.dumps(hostile)}]\n"
    (bare / "germane.toml").write_text(content)

    ended = call("config", "show", "--origins")

    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert len(ended.out) < 30_000


def test_wrong_settings_end_with_1(call: Call, bare: Path) -> None:
    """The refusal is the one of the start, and one JSON object where that was asked for."""
    (bare / "germane.toml").write_text("rate = 3")

    ended = call("config", "show", "--json")

    assert ended.code == 1
    assert "setting rate" in ended.content["error"]
