"""The source of each setting's value: argument, environment variable, file or default."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic_settings import EnvSettingsSource, PyprojectTomlConfigSettingsSource, TomlConfigSettingsSource

from germane.settings.settings import ENV_PREFIX, Settings

Source = Literal["argument", "variable", "germane.toml", "pyproject.toml", "default"]
_INHERITED: Final[Mapping[str, Sequence[str]]] = {
    "service": ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"),
    "judge": ("OPENAI_MODEL",),
    "api_key": ("OPENAI_API_KEY",),
    "base_url": ("OPENAI_BASE_URL",),
}
"""Variables from other tools that provide defaults."""
_SPLIT_BY_FIELD: Final = ("budget", "retention", "channels", "sinks", "filters", "prices", "scorer_options")
"""Settings whose fields may come from different sources."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a value."""

    source: Source
    variable: str | None = None
    """Name of the environment variable, if the value comes from one."""
    file: Path | None = None
    table: str | None = None
    """Table in the file, such as ``budget``; None for the top level."""

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}{f' [{self.table}]' if self.table else ''}"
        return self.variable or self.source


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting or one of its fields, with its value and source."""

    name: str
    """Name of the setting. If the value is for one field, a dot and the field's name follow, such as in
    ``budget.requests_per_day``."""
    value: Any
    origin: Origin


def setting_values(settings: Settings, arguments: Mapping[str, Any]) -> list[SettingValue]:
    """Return every setting with its value and origin.

    ``settings`` is what :func:`load_settings` returned for these arguments.
    """
    toml, pyproject = TomlConfigSettingsSource(Settings), PyprojectTomlConfigSettingsSource(Settings)
    sources: list[tuple[Source, Mapping[str, Any], Path | None]] = [  # highest precedence first
        ("argument", arguments, None),
        ("variable", EnvSettingsSource(Settings)(), None),
        ("germane.toml", toml.toml_data, Path(str(Settings.model_config.get("toml_file"))).absolute()),
        ("pyproject.toml", pyproject.toml_data, Path("pyproject.toml").absolute()),
    ]
    values = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        fields: dict[str, Any] = dict(value or {}) if name in _SPLIT_BY_FIELD else {}
        parts: dict[tuple[str, ...], Any] = {(name, field): part for field, part in fields.items()}
        for path, part in (parts or {(name,): value}).items():
            values.append(SettingValue(".".join(path), part, _origin(path, sources)))
    return values


def _origin(path: tuple[str, ...], sources: Sequence[tuple[Source, Mapping[str, Any], Path | None]]) -> Origin:
    for source, content, file in sources:
        if not _contains(content, path):
            continue
        if source == "variable":
            part, whole = (ENV_PREFIX + "__".join(path)).upper(), (ENV_PREFIX + path[0]).upper()
            return Origin(source, variable=part if part in {name.upper() for name in os.environ} else whole)
        head = "tool.germane" if source == "pyproject.toml" else ""
        table = ".".join(filter(None, (head, *path[:-1])))
        return Origin(source, file=file, table=table or None) if file else Origin(source)
    inherited = [variable for variable in _INHERITED.get(path[0], ()) if os.environ.get(variable)]
    return Origin("variable", variable=inherited[0]) if inherited else Origin("default")


def _contains(content: Any, path: Sequence[str]) -> bool:
    for name in path:
        fields = content.model_dump(exclude_unset=True) if isinstance(content, BaseModel) else content
        if not isinstance(fields, Mapping) or name not in fields:
            return False
        content = fields[name]
    return True
