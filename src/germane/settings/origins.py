"""Where each setting has its value from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic_settings import EnvSettingsSource, PyprojectTomlConfigSettingsSource, TomlConfigSettingsSource

from germane.settings.settings import PREFIX, Settings

Kind = Literal["argument", "variable", "germane.toml", "pyproject.toml", "default"]
_INHERITED: Final[Mapping[str, Sequence[str]]] = {
    "service": ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"),
    "judge": ("OPENAI_MODEL",),
    "api_key": ("OPENAI_API_KEY",),
    "base_url": ("OPENAI_BASE_URL",),
}
"""Variables of others that defaults go by."""
_BY_PART: Final = ("budget", "retention", "channels", "filters", "prices", "scorer_options")
"""Settings whose parts may come from different places."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value is from."""

    kind: Kind
    variable: str | None = None
    """Its name."""
    file: Path | None = None
    table: str | None = None
    """Of the file, such as ``budget``; None at its top."""

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}{f' [{self.table}]' if self.table else ''}"
        return self.variable or self.kind


@dataclass(frozen=True, slots=True)
class Valued:
    """A setting, or a part of one."""

    name: str
    """With the part after a dot: ``budget.calls_per_day``, ``channels.oncall``."""
    value: Any
    origin: Origin


def valued(settings: Settings, arguments: Mapping[str, Any]) -> list[Valued]:
    """Return each setting with its origin.

    Args:
        settings: As :func:`load` returned them.
        arguments: What it was given.
    """
    places = list(_places(arguments))
    return [
        Valued(".".join(path), value, _origin(path, places))
        for field in type(settings).model_fields
        for path, value in _parts((field,), getattr(settings, field))
    ]


def _parts(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return a setting, or its parts where it has some."""
    parts: Mapping[str, Any] = {}
    if path[0] in _BY_PART and isinstance(value, BaseModel):
        parts = {name: getattr(value, name) for name in type(value).model_fields}
    elif path[0] in _BY_PART:
        parts = value or {}
    for name, part in parts.items():
        yield (*path, name), part
    if not parts:
        yield path, value


def _places(arguments: Mapping[str, Any]) -> Iterator[tuple[Kind, Mapping[str, Any], Path | None]]:
    """Return what each source has, those that win first."""
    toml, pyproject = TomlConfigSettingsSource(Settings), PyprojectTomlConfigSettingsSource(Settings)
    yield "argument", arguments, None
    yield "variable", EnvSettingsSource(Settings)(), None
    yield "germane.toml", toml.toml_data, Path(str(Settings.model_config.get("toml_file"))).absolute()
    yield "pyproject.toml", pyproject.toml_data, Path("pyproject.toml").absolute()


def _origin(path: tuple[str, ...], places: Sequence[tuple[Kind, Mapping[str, Any], Path | None]]) -> Origin:
    for kind, content, file in places:
        if _holds(content, path):
            return _of(kind, path, file)
    inherited = [variable for variable in _INHERITED.get(path[0], ()) if os.environ.get(variable)]
    return Origin("variable", variable=inherited[0]) if inherited else Origin("default")


def _holds(content: Any, path: Sequence[str]) -> bool:
    for name in path:
        held = content.model_dump(exclude_unset=True) if isinstance(content, BaseModel) else content
        if not isinstance(held, Mapping) or name not in held:
            return False
        content = held[name]
    return True


def _of(kind: Kind, path: tuple[str, ...], file: Path | None) -> Origin:
    if kind == "variable":
        part, whole = (PREFIX + "__".join(path)).upper(), (PREFIX + path[0]).upper()
        return Origin(kind, variable=part if part in {name.upper() for name in os.environ} else whole)
    if file is None:
        return Origin(kind)
    head = "tool.germane" if kind == "pyproject.toml" else ""
    table = ".".join(filter(None, (head, *(path[:1] if len(path) > 1 else ()))))
    return Origin(kind, file=file, table=table or None)
