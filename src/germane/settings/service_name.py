"""The default service name. It is the same for every process that runs in an application's directory."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from germane import sanitize

MAX_LENGTH: Final = 80
FALLBACK: Final = "app"
_APPLICATION: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):[A-Za-z_][\w.]*(\(.*\))?")
"""An application on a server's command line, such as ``shop.main:app``."""


def default_service_name() -> str:
    """Return OpenTelemetry's service name if it is set, and the project's name otherwise.

    The program's name is ignored. It may be uvicorn, gunicorn, celery or germane itself, which would split one
    application's scores between several names.
    """
    return opentelemetry_service_name() or project_name(Path.cwd())


def opentelemetry_service_name() -> str | None:
    """Return the name from ``OTEL_SERVICE_NAME``, falling back to ``OTEL_RESOURCE_ATTRIBUTES``."""
    if name := os.environ.get("OTEL_SERVICE_NAME"):
        return name
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, _, value = pair.partition("=")
        if key.strip() == "service.name" and value.strip():
            return unquote(value.strip())
    return None


def project_name(directory: Path) -> str:
    """Return the name of the project in a directory: the name in ``pyproject.toml``, or else the directory's name.

    In the root directory, where some process managers start programs, return the name of the application's module.
    """
    names = (_declared_name(directory), directory.resolve().name, _application_module(sys.argv))
    shown = (sanitize.line(name, MAX_LENGTH).strip() for name in names)
    return next(filter(None, shown), FALLBACK)


def _declared_name(directory: Path) -> str | None:
    content: dict[str, Any] = {}
    with suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        content = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))
    tools = content.get("tool")
    for table in (content.get("project"), tools.get("poetry") if isinstance(tools, dict) else None):
        if isinstance(table, dict) and isinstance(table.get("name"), str) and table["name"]:
            return str(table["name"])
    return None


def _application_module(arguments: list[str]) -> str | None:
    """Return the top-level module on a server's command line, or else the name of the script."""
    for argument in arguments[1:]:
        if found := _APPLICATION.fullmatch(argument):
            return found["module"].partition(".")[0]
    script = Path(arguments[0]) if arguments else Path()
    return script.stem if script.suffix == ".py" and not script.stem.startswith("__") else None
