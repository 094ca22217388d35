"""Sources of settings and their precedence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ByteSize
from tests.cases import each

from germane.errors import SettingsError
from germane.settings import Budget, MeanThreshold, Retention, load_settings
from germane.settings.channels import SlackSettings
from germane.settings.service_name import default_service_name, project_name
from germane.settings.types import resolve_secret

pytestmark = pytest.mark.usefixtures("bare")


def test_settings_sources_have_a_fixed_precedence(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is arguments, environment variables, germane.toml, pyproject.toml, and defaults."""
    (bare / "pyproject.toml").write_text(
        "[tool.germane]\ngenerated_questions = 4\nsample_rate = 0.4\npoll_interval = 4\nqueue_size = 4\n"
    )
    (bare / "germane.toml").write_text("generated_questions = 5\nsample_rate = 0.5\npoll_interval = 5\n")
    monkeypatch.setenv("GERMANE_GENERATED_QUESTIONS", "6")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "0.6")

    settings = load_settings(generated_questions=7)

    assert (settings.generated_questions, settings.sample_rate) == (7, 0.6)
    assert (settings.poll_interval, settings.queue_size) == (5, 4)
    assert settings.concurrency == 16


def test_an_empty_environment_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments use empty variables to mean that nothing is set."""
    for name in ("GERMANE_SAMPLE_RATE", "GERMANE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.setenv(name, "")

    settings = load_settings()

    assert (settings.sample_rate, settings.judge, settings.has_server) == (1.0, "gpt-4o-mini", False)


@pytest.mark.parametrize("service", ["GERMANE", "GERMANE_WORKER"])
@pytest.mark.parametrize(
    "variable", ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR"]
)
def test_kubernetes_service_variables_are_ignored(monkeypatch: pytest.MonkeyPatch, service: str, variable: str) -> None:
    """A Kubernetes service named germane does not prevent startup."""
    monkeypatch.setenv(f"{service}_{variable}", "tcp://10.0.0.1:80")

    load_settings()


def test_environment_variables_can_contain_lists_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in lists are separated by commas. Rules and channels are JSON."""
    monkeypatch.setenv("GERMANE_CHANNELS", '{"oncall": {"type": "slack", "url": "env:SLACK_URL"}}')
    monkeypatch.setenv("GERMANE_SCORERS", "answer_relevancy, question_answer_similarity")
    monkeypatch.setenv("GERMANE_RULES", '[{"threshold": 0.7, "routes": ["ask"], "for": 60}]')
    monkeypatch.setenv("GERMANE_LOCAL_JUDGE_PATH", "/models/small.gguf")

    settings = load_settings()

    assert settings.channels == {"oncall": SlackSettings(type="slack", url="env:SLACK_URL")}
    assert settings.scorers == ("answer_relevancy", "question_answer_similarity")
    assert settings.rules == (MeanThreshold(threshold=0.7, routes=("ask",), pending=60),)
    assert settings.local_judge_path == Path("/models/small.gguf")


def test_budget_fields_can_come_from_different_sources(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields from files and variables are merged, and the variable takes precedence."""
    (bare / "germane.toml").write_text("[budget]\nrequests_per_day = 100\nusd_per_day = 1.5\n")
    assert load_settings().budget == Budget(requests_per_day=100, usd_per_day=1.5)

    monkeypatch.setenv("GERMANE_BUDGET__REQUESTS_PER_DAY", "7")
    monkeypatch.setenv("GERMANE_BUDGET__TOKENS_PER_HOUR", "900")
    monkeypatch.setenv("GERMANE_RETENTION__MAX_SIZE", "5GB")
    assert load_settings().budget == Budget(requests_per_day=7, usd_per_day=1.5, tokens_per_hour=900)
    assert load_settings().retention == Retention(max_size=ByteSize(5_000_000_000))

    (bare / "germane.toml").unlink()
    assert load_settings().budget == Budget(requests_per_day=7, tokens_per_hour=900)
    monkeypatch.setenv("GERMANE_BUDGET", '{"usd_per_hour": 2}')
    assert load_settings().budget == Budget(requests_per_day=7, tokens_per_hour=900, usd_per_hour=2)


def test_variables_of_the_openai_client_are_used_as_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenAI client's variables also configure the judge. germane's own variables take precedence."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("OPENAI_MODEL", "mistral")
    monkeypatch.setenv("GERMANE_API_KEY", "sk-2")

    settings = load_settings()

    assert settings.api_key is not None
    assert settings.base_url is not None
    assert settings.api_key.get_secret_value() == "sk-2"
    assert settings.base_url.get_secret_value() == "http://localhost:8000/v1"
    assert settings.judge == "mistral"


def test_secrets_are_read_from_environment_variables_and_files(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settings file names the variable or file that contains a secret, so the settings file itself can be shared."""
    (bare / "key").write_text("sk-from-a-file\n")
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:pw@db/app")
    (bare / "germane.toml").write_text(f'database = "env:DATABASE_URL"\napi_key = "file:{bare / "key"}"\n')

    settings = load_settings()

    assert settings.database == "postgresql://app:pw@db/app"
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-from-a-file"


def test_whitespace_around_a_secret_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and secret stores add a trailing newline, which an HTTP header cannot carry."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\n")
    monkeypatch.setenv("GERMANE_BASE_URL", " http://localhost:8000/v1\n")
    monkeypatch.setenv("ALERT_SECRET", "shared\n")

    settings = load_settings()

    assert settings.api_key is not None
    assert settings.base_url is not None
    assert settings.api_key.get_secret_value() == "sk-1"
    assert settings.base_url.get_secret_value() == "http://localhost:8000/v1"
    assert resolve_secret("env:ALERT_SECRET") == "shared"


@each("key", ["sk-hunter2\nsk-hunter3", "sk-hünter2", "sk-hunter2\x00", " "])
def test_a_key_that_is_invalid_in_a_header_is_rejected_at_startup(key: str) -> None:
    """Otherwise every request would fail as if the server were unreachable. The error does not quote the key."""
    with pytest.raises(SettingsError, match=r"^setting api_key: must be one line of ASCII") as raised:
        load_settings(api_key=key)

    assert "nter" not in str(raised.value)


@each(
    ("secret", "message"),
    [
        ("env:NOWHERE", "variable NOWHERE is not set"),
        ("file:/nowhere", "file /nowhere does not"),
        ("file:secret", "file secret cannot be read"),
    ],
)
def test_a_missing_secret_is_reported_by_its_reference(bare: Path, secret: str, message: str) -> None:
    """The reference itself is not a secret."""
    (bare / "secret").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=message):
        load_settings(api_key=secret)


def test_no_representation_of_the_settings_contains_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings can be logged, dumped and printed."""
    monkeypatch.setenv("SLACK_URL", "https://hooks.slack.com/hunter2")
    settings = load_settings(
        database="postgresql://app:hunter2@db/app?password=hunter2",
        api_key="hunter2",
        base_url="https://user:hunter2@example.com/v1",
        channels={"oncall": {"type": "slack", "url": "env:SLACK_URL"}},
    )

    shown = [repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()]

    assert [text for text in shown if "hunter2" in text] == []
    assert settings.model_dump()["database"] == "postgresql://***@db/app"


def test_a_sqlite_url_is_dumped_unchanged() -> None:
    """A URL without credentials needs no redaction."""
    assert load_settings(database="sqlite:////srv/germane.db").model_dump()["database"] == "sqlite:////srv/germane.db"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OTEL_SERVICE_NAME": "shop"}, "shop"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b, service.name=shop%20two,c=d"}, "shop two"),
        ({"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}, "shop"),
        ({"OTEL_SERVICE_NAME": "shop", "GERMANE_SERVICE": "ours"}, "ours"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "nonsense,,="}, "project"),
    ],
)
def test_the_service_name_comes_from_the_opentelemetry_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    """Traces and scores use the same service name."""
    Path("pyproject.toml").write_text('[project]\nname = "project"\n')
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert load_settings().service == expected


PROGRAMS = [
    ["/usr/bin/gunicorn", "shop.main:app"], ["/lib/uvicorn/__main__.py", "main:app", "--reload"], ["/usr/bin/germane"],
    ["/usr/bin/celery", "-A", "shop"], ["/usr/bin/flask", "run"], ["/usr/bin/django-admin"], ["manage.py", "runserver"],
    ["/srv/app.py"], ["-c"], ["-"], [""],
]  # fmt: skip


@pytest.mark.parametrize("arguments", PROGRAMS, ids=" ".join)
@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ('[project]\nname = "web-shop"\n', "web-shop"),
        ('[tool.poetry]\nname = "web-shop"\n', "web-shop"),
        ("[project]\nname = 3\n", "shop-directory"),
        ("not [ TOML", "shop-directory"),
        (None, "shop-directory"),
    ],
)
def test_all_programs_in_an_application_have_the_same_service_name(
    bare: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], project: str | None, expected: str
) -> None:
    """The service is named after the project, not after the server, task queue or script that runs it."""
    (bare / "shop-directory").mkdir()
    monkeypatch.chdir(bare / "shop-directory")
    monkeypatch.setattr(sys, "argv", arguments)
    if project is not None:
        Path("pyproject.toml").write_text(project)
        if not project.startswith("not"):
            assert load_settings().service == expected
    assert default_service_name() == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["/usr/bin/gunicorn", "-w", "4", "shop.main:app"], "shop"),
        (["/lib/uvicorn/__main__.py", "--factory", "shop.main:create_app"], "shop"),
        (["/usr/bin/gunicorn", "shop:create_app('production')"], "shop"),
        (["/srv/shop.py"], "shop"),
        (["/usr/bin/gunicorn"], "app"),
        (["/lib/uvicorn/__main__.py", "--host", "127.0.0.1"], "app"),
        (["-c"], "app"),
    ],
)
def test_the_service_is_named_after_the_application_module_in_the_root_directory(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    """A process manager may start programs in `/`, a directory without a name."""
    monkeypatch.setattr(sys, "argv", arguments)

    assert project_name(Path("/")) == expected


def test_listing_the_route_in_breakdowns_has_no_effect() -> None:
    """Trends are always broken down by route, so listing it has no effect."""
    assert load_settings(breakdowns="route, model").breakdowns == ("model",)


def test_settings_are_immutable() -> None:
    """Settings are read once and do not change afterwards."""
    with pytest.raises(ValueError, match="frozen"):
        load_settings().sample_rate = 0.5


def test_each_invalid_setting_is_reported_on_its_own_line(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All problems are shown at once, whether in a variable's name, a variable's value or a file."""
    monkeypatch.setenv("GERMANE_QUEU", "3")
    monkeypatch.setenv("GERMANE_JUDG", "x")
    monkeypatch.setenv("GERMANE_SAMPLE_RATE", "2")
    (bare / "germane.toml").write_text("concurrency = 0\n")

    with pytest.raises(SettingsError) as error:
        load_settings()

    lines = str(error.value).splitlines()
    assert len(lines) == 4
    for named in ("GERMANE_QUEU;", "GERMANE_JUDG;", "sample_rate = '2'", "concurrency = 0"):
        assert sum(named in line for line in lines) == 1
