"""Tests of `germane init`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from germane.cli.commands.init import detect_environment
from germane.settings import load_settings

Call = Callable[..., Any]
SECRETS = {
    "OPENAI_API_KEY": "sk-hunter2",
    "OPENAI_BASE_URL": "http://user:hunter2@judge.example.com:8000/hunter2/v1?key=hunter2",
    "DATABASE_URL": "postgresql://app:hunter2@db/app",
}


def test_the_created_settings_file_is_valid_and_short(call: Call, bare: Path) -> None:
    """The file can be loaded unchanged, and fits on a screen."""
    ended = call("init")

    text = (bare / "germane.toml").read_text()
    assert (ended.code, ended.err) == (0, "")
    assert load_settings().sample_rate == 1.0
    assert load_settings().service == bare.name
    assert len(text.splitlines()) <= 40
    assert all(len(line) <= 120 for line in text.splitlines())


def test_commented_examples_in_the_settings_file_are_valid(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example works as it is."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    call("init")
    file = bare / "germane.toml"
    examples = [
        line for line in file.read_text().splitlines() if line.startswith("# ") and (" = " in line or "[" in line)
    ]
    seen: set[str] = set()
    for line in examples:
        name = line.removeprefix("# ").partition(" = ")[0]
        if name.startswith("[") or (name.isidentifier() and name not in seen):
            seen.add(name)
            file.write_text(file.read_text().replace(line, line.removeprefix("# "), 1))

    settings = load_settings()

    assert {"judge", "database", "[budget]", "[[rules]]", "[channels.oncall]"} <= seen
    assert (settings.budget is not None, len(settings.rules), list(settings.channels)) == (True, 1, ["oncall"])


def test_init_shows_the_next_steps(call: Call) -> None:
    """The output names the next two commands."""
    output = call("init").out

    assert [line.split()[:2] for line in output.splitlines()[-2:]] == [["germane", "doctor"], ["germane", "serve"]]


def test_init_does_not_overwrite_an_existing_file(call: Call, bare: Path) -> None:
    """With --force, the file is overwritten."""
    file = bare / "germane.toml"
    file.write_text("sample_rate = 0.5\n")

    refused = call("init")

    assert (refused.code, refused.out, file.read_text()) == (1, "", "sample_rate = 0.5\n")
    assert "--force" in refused.err
    assert call("init", "--force").code == 0
    assert load_settings().sample_rate == 1.0


def test_init_with_the_print_option_writes_no_file(call: Call, bare: Path) -> None:
    """`--print` shows the file, whether or not one exists."""
    shown = call("init", "--print")

    assert tomllib.loads(shown.out)["service"] == bare.name
    assert list(bare.iterdir()) == []
    call("init")
    assert call("init", "--print").out == shown.out


def test_init_writes_no_secrets_to_the_file(call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file refers to keys, and URLs with passwords, by the names of their variables."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    call("init")

    text = (bare / "germane.toml").read_text()
    assert "hunter2" not in text
    assert "http://judge.example.com:8000, with the key in OPENAI_API_KEY" in text
    assert '# database = "env:DATABASE_URL"' in text


def test_init_adapts_the_file_to_the_environment(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file contains the project's name, the judge's model, and a PostgreSQL URL that germane supports."""
    (bare / "pyproject.toml").write_text('[project]\nname = "web-shop"\n')
    monkeypatch.setenv("OPENAI_MODEL", "a-judge")
    monkeypatch.setenv("DATABASE_URL", "mysql://a@b/c")
    monkeypatch.setenv("POSTGRES_URL", "postgresql://a@b/c")

    found = detect_environment(bare)

    assert (found.service, found.model, found.postgresql_variables) == ("web-shop", "a-judge", ("POSTGRES_URL",))
    assert (found.key_variable, found.judge_url) == (None, None)


@pytest.mark.parametrize("variable", [None, "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "GERMANE_SERVICE"])
@pytest.mark.parametrize("project", [None, '[project]\nname = "web-shop"\n'])
def test_init_does_not_rename_the_service(
    call: Call, bare: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, project: str | None
) -> None:
    """The application's scores and markers keep their service name."""
    if project:
        (bare / "pyproject.toml").write_text(project)
    if variable:
        monkeypatch.setenv(variable, "service.name=orders" if "RESOURCE" in variable else "orders")
    before = load_settings().service

    call("init")

    assert load_settings().service == before
    if variable in {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"}:
        monkeypatch.setenv(variable, "service.name=later" if "RESOURCE" in variable else "later")
        assert load_settings().service == "later"


@pytest.mark.parametrize("name", ['a"b\\c', "\x1b[31mred", "\u202eabc", "x" * 300, "", "\u5e97 \U0001f600"])
def test_any_project_name_yields_a_valid_settings_file(call: Call, bare: Path, name: str) -> None:
    """The name may be hostile text."""
    written = "".join(f"\\U{ord(one):08x}" for one in name)
    (bare / "pyproject.toml").write_text(f'[project]\nname = "{written}"\n')

    assert call("init").code == 0

    assert load_settings().service
    assert (bare / "germane.toml").read_text().isprintable() or "\n" in (bare / "germane.toml").read_text()
    assert "\x1b" not in (bare / "germane.toml").read_text()


def test_an_unwritable_settings_file_is_reported(call: Call, bare: Path) -> None:
    """The error states the cause, without a traceback."""
    (bare / "germane.toml").mkdir()

    ended = call("init", "--force")

    assert ended.code == 1
    assert "cannot write" in ended.err
