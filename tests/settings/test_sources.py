"""Where settings come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ByteSize

from germane.errors import SettingsError
from germane.settings import Budget, Floor, Retention, load
from germane.settings.channels import Slack
from germane.settings.kinds import read_secret

pytestmark = pytest.mark.usefixtures("bare")


def test_nearer_sources_win(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argument, then environment, then germane.toml, then pyproject.toml, then the default."""
    (bare / "pyproject.toml").write_text("[tool.germane]\nquestions = 4\nrate = 0.4\ntick = 4\nqueue = 4\n")
    (bare / "germane.toml").write_text("questions = 5\nrate = 0.5\ntick = 5\n")
    monkeypatch.setenv("GERMANE_QUESTIONS", "6")
    monkeypatch.setenv("GERMANE_RATE", "0.6")

    settings = load(questions=7)

    assert (settings.questions, settings.rate, settings.tick, settings.queue) == (7, 0.6, 5, 4)
    assert settings.concurrency == 16


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments set variables to nothing to mean nothing."""
    for name in ("GERMANE_RATE", "GERMANE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.setenv(name, "")

    settings = load()

    assert (settings.rate, settings.judge, settings.has_server) == (1.0, "gpt-4o-mini", False)


@pytest.mark.parametrize("service", ["GERMANE", "GERMANE_WORKER"])
@pytest.mark.parametrize(
    "variable", ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR"]
)
def test_what_kubernetes_tells_of_a_service_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, service: str, variable: str
) -> None:
    """A service named germane beside the application keeps no process from starting."""
    monkeypatch.setenv(f"{service}_{variable}", "tcp://10.0.0.1:80")

    load()


def test_nested_and_listed_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are set as a list with commas, rules and channels as JSON."""
    monkeypatch.setenv("GERMANE_CHANNELS", '{"oncall": {"kind": "slack", "url": "env:SLACK_URL"}}')
    monkeypatch.setenv("GERMANE_SCORERS", "answer_relevancy, question_answer_similarity")
    monkeypatch.setenv("GERMANE_RULES", '[{"threshold": 0.7, "routes": ["ask"], "for": 60}]')
    monkeypatch.setenv("GERMANE_LOCAL_LLM", "/models/small.gguf")

    settings = load()

    assert settings.channels == {"oncall": Slack(kind="slack", url="env:SLACK_URL")}
    assert settings.scorers == ("answer_relevancy", "question_answer_similarity")
    assert settings.rules == (Floor(threshold=0.7, routes=("ask",), pending=60),)
    assert settings.local_llm == Path("/models/small.gguf")


def test_a_budget_is_set_part_by_part(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file or by variables; what both say adds up, and the variable wins."""
    (bare / "germane.toml").write_text("[budget]\ncalls_per_day = 100\nusd_per_day = 1.5\n")
    assert load().budget == Budget(calls_per_day=100, usd_per_day=1.5)

    monkeypatch.setenv("GERMANE_BUDGET__CALLS_PER_DAY", "7")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_HOUR", "900")
    monkeypatch.setenv("GERMANE_RETENTION__MAX_SIZE", "5GB")
    assert load().budget == Budget(calls_per_day=7, usd_per_day=1.5, tokens_per_hour=900)
    assert load().retention == Retention(max_size=ByteSize(5_000_000_000))

    (bare / "germane.toml").unlink()
    assert load().budget == Budget(calls_per_day=7, tokens_per_hour=900)
    monkeypatch.setenv("GERMANE_BUDGET", '{"usd_per_hour": 2}')
    assert load().budget == Budget(calls_per_day=7, tokens_per_hour=900, usd_per_hour=2)


def test_the_openai_clients_own_variables_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has set up the client has set up the judge; germane's own variables come first."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("OPENAI_MODEL", "mistral")
    monkeypatch.setenv("GERMANE_API_KEY", "sk-2")

    settings = load()

    assert settings.api_key is not None
    assert settings.base_url is not None
    assert settings.api_key.get_secret_value() == "sk-2"
    assert settings.base_url.get_secret_value() == "http://localhost:8000/v1"
    assert settings.judge == "mistral"


def test_secrets_stand_elsewhere(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of settings may be shared: it names the variable or file that holds the secret."""
    (bare / "key").write_text("sk-from-a-file\n")
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:pw@db/app")
    (bare / "germane.toml").write_text(f'database = "env:DATABASE_URL"\napi_key = "file:{bare / "key"}"\n')

    settings = load()

    assert settings.database == "postgresql://app:pw@db/app"
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-from-a-file"


def test_white_space_around_a_secret_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and secret stores like to end with a new line, which no header of a request takes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\n")
    monkeypatch.setenv("GERMANE_BASE_URL", " http://localhost:8000/v1\n")
    monkeypatch.setenv("ALERT_SECRET", "shared\n")

    settings = load()

    assert settings.api_key is not None
    assert settings.base_url is not None
    assert settings.api_key.get_secret_value() == "sk-1"
    assert settings.base_url.get_secret_value() == "http://localhost:8000/v1"
    assert read_secret("env:ALERT_SECRET") == "shared"


@pytest.mark.parametrize("key", ["sk-hunter2\nsk-hunter3", "sk-hünter2", "sk-hunter2\x00", " "])
def test_a_key_that_no_request_can_carry_is_told_at_the_start(key: str) -> None:
    """Else every request would fail, as if the server were away. The key is not quoted."""
    with pytest.raises(SettingsError, match=r"^setting api_key: must be one line of ASCII") as raised:
        load(api_key=key)

    assert "nter" not in str(raised.value)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("env:NOWHERE", "variable NOWHERE is not set"),
        ("file:/nowhere", "file /nowhere does not"),
        ("file:secret", "file secret cannot be read"),
    ],
)
def test_a_secret_that_is_not_there_is_told(bare: Path, secret: str, said: str) -> None:
    """The name of its place is no secret."""
    (bare / "secret").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=said):
        load(api_key=secret)


def test_nothing_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may be logged, dumped or printed."""
    monkeypatch.setenv("SLACK_URL", "https://hooks.slack.com/hunter2")
    settings = load(
        database="postgresql://app:hunter2@db/app?password=hunter2",
        api_key="hunter2",
        base_url="https://user:hunter2@example.com/v1",
        channels={"oncall": {"kind": "slack", "url": "env:SLACK_URL"}},
    )

    shown = [repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()]

    assert [text for text in shown if "hunter2" in text] == []
    assert settings.model_dump()["database"] == "postgresql://***@db/app"


def test_the_url_of_a_file_is_dumped_as_it_is() -> None:
    """Where there is no password there is nothing to hide."""
    assert load(database="sqlite:////srv/germane.db").model_dump()["database"] == "sqlite:////srv/germane.db"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OTEL_SERVICE_NAME": "shop"}, "shop"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b, service.name=shop%20two,c=d"}, "shop two"),
        ({"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}, "shop"),
        ({"OTEL_SERVICE_NAME": "shop", "GERMANE_SERVICE": "ours"}, "ours"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "nonsense,,="}, "program"),
    ],
)
def test_the_service_is_named_as_opentelemetry_names_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    """One name for one service, in traces and in scores."""
    monkeypatch.setattr(sys, "argv", ["/srv/program.py"])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert load().service == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/srv/shop.py", "shop"),
        ("/usr/bin/gunicorn", "gunicorn"),
        ("/lib/uvicorn/__main__.py", "uvicorn"),
        ("-c", "python"),
        ("-", "python"),
        ("", "python"),
    ],
)
def test_the_program_gives_its_name(monkeypatch: pytest.MonkeyPatch, program: str, expected: str) -> None:
    """Without any name the program's own is taken, also of `python -m` and `python -c`."""
    monkeypatch.setattr(sys, "argv", [program])

    assert load().service == expected


def test_trends_go_by_the_route_whether_it_is_named_or_not() -> None:
    """Naming it beside the others is no fault."""
    assert load(trend_by="route, model").trend_by == ("model",)


def test_settings_do_not_change() -> None:
    """They are read once; whoever holds them can rely on it."""
    with pytest.raises(ValueError, match="frozen"):
        load().rate = 0.5
