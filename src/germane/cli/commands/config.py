"""``germane config``: show the effective settings and their origins."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click
from pydantic import BaseModel, SecretStr

from germane import sanitize
from germane.cli.core.command import Command, database_setting, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.store import load_command_settings
from germane.settings import Rule, Settings

if TYPE_CHECKING:
    from germane.settings import SettingValue

MASK: Final = "***"
MAX_VALUE_LENGTH: Final = 400
"""Maximum length of a displayed value, in characters."""
_URL_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_SECRET_NAME: Final = re.compile(r"key|secret|token|password", re.IGNORECASE)
_UNLISTED_FIELDS: Final = ("name", "type", "enabled")
"""Rule and channel fields that are not listed, because the title already shows them."""


@click.command("config", cls=Command)
@click.option("--origins", is_flag=True, help="Show the origin of each value.")
def command(origins: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Show the effective settings, active rules, channels and sinks.

    Secrets are masked.
    """
    from germane.settings import setting_values

    settings = load_command_settings()
    values = setting_values(settings, database_setting())
    if wants_json():
        content: dict[str, Any] = {
            "settings": [
                {"name": value.name, "value": _to_json(settings, value), "origin": asdict(value.origin)}
                for value in values
            ],
            "rules": [{"default": rule not in settings.rules, **_rule_fields(rule)} for rule in settings.active_rules],
            "channels": {name: _target_fields(channel) for name, channel in settings.channels.items()},
            "sinks": {name: _target_fields(sink) for name, sink in settings.sinks.items()},
        }
        print_json(content)
        return
    _print_values(settings, values, shows_origins=origins)
    click.echo("\nActive rules:")
    for rule in settings.active_rules:
        defaults = {name: field.default for name, field in Rule.model_fields.items()}
        names = {str(Rule.model_fields[name].validation_alias or name): value for name, value in defaults.items()}
        # Show settings specific to this rule type, and common settings that differ from their default.
        fields = {
            name: value
            for name, value in _rule_fields(rule).items()
            if name not in names or value != _jsonable(names[name])
        }
        note = "default rule" if rule not in settings.rules else ""
        _print_fields(rule.name, rule.type, {"severity": rule.severity, **fields}, note)
    click.echo(
        "\nChannels:"
        if settings.channels
        else "\nChannels: none configured. Alerts go to the log and to the on_alert callback."
    )
    for name, channel in settings.channels.items():
        _print_fields(name, str(channel.type), _target_fields(channel), "")
    if settings.sinks:
        click.echo("\nSinks:")
    for name, sink in settings.sinks.items():
        _print_fields(name, str(sink.type), _target_fields(sink), "")


def _print_values(settings: Settings, values: Sequence[SettingValue], *, shows_origins: bool) -> None:
    if not values:
        click.echo("All settings have their default values.")
        return
    rows = []
    for value in values:
        if value.name == "rules":
            text = f"{len(value.value)} configured, see below" if value.value else "-"
        elif value.name.startswith(("channels.", "sinks.")):
            text = f"{value.value.type}, see below"
        else:
            text = _format_value(_to_json(settings, value))
        origin = str(value.origin).removeprefix(f"{Path.cwd()}{os.sep}")
        rows.append((sanitize.line(value.name), text, sanitize.line(origin)))
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(max(len(text) for _, text, _ in rows), shutil.get_terminal_size().columns // 3)
    for name, text, origin in rows:
        click.echo(f"{name:{name_width}}  {f'{text:{value_width}}  {origin}' if shows_origins else text}")


def _print_fields(name: str, type_: str, fields: Mapping[str, Any], note: str) -> None:
    parts = [
        f"{field} {_format_value(value)}"
        for field, value in fields.items()
        if field not in _UNLISTED_FIELDS and value not in (None, [], {})
    ]
    title = sanitize.line(name, 40) + ("" if name == type_ else f" ({type_})")
    text = f"{title}: {', '.join([*parts, note] if note else parts)}"
    width = shutil.get_terminal_size().columns
    click.echo(click.wrap_text(text, width, initial_indent="  ", subsequent_indent="    "))


def _rule_fields(rule: Rule) -> dict[str, Any]:
    """Return a rule's fields, keyed by their names in a configuration file."""
    names = {name: str(field.validation_alias or name) for name, field in type(rule).model_fields.items()}
    return {names[name]: value for name, value in rule.model_dump(mode="json").items()}


def _target_fields(target: BaseModel) -> dict[str, Any]:
    """Return the fields of a channel or sink with masked secrets."""
    return {name: _mask_secrets(name, value) for name, value in target.model_dump(mode="json").items()}


def _to_json(settings: Settings, value: SettingValue) -> Any:
    """Return a value as JSON data, with masked secrets."""
    if value.name == "database":
        return settings.model_dump(include={"database"})["database"]
    if not isinstance(value.value, SecretStr):
        return _mask_secrets(value.name, _jsonable(value.value))
    if value.name != "base_url":
        return MASK
    # The URL's user, query parameters and path, except /v1, may contain secrets.
    parts = urlsplit(value.value.get_secret_value())
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if parts.path.rstrip("/") in {"", "/v1"} else f"/{MASK}"
    return f"{parts.scheme}://{host}{path}{f'?{MASK}' if parts.query else ''}"


def _jsonable(value: Any) -> Any:
    if isinstance(value, Rule):
        return _rule_fields(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _jsonable(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _mask_secrets(name: str, value: Any) -> Any:
    """Mask credentials in URLs, and values whose name indicates a secret."""
    if isinstance(value, Mapping):
        return {field: _mask_secrets(field, part) for field, part in value.items()}
    if isinstance(value, list):
        return [_mask_secrets(name, part) for part in value]
    if not isinstance(value, str):
        return value
    is_reference = value.startswith(("env:", "file:"))  # the location of a secret is not secret
    is_secret = _SECRET_NAME.search(name.rpartition(".")[2]) and not is_reference
    return MASK if is_secret else _URL_USER.sub(f"{MASK}@", value)


def _format_value(value: Any) -> str:
    """Format a value on one line."""
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return sanitize.line(", ".join(value), MAX_VALUE_LENGTH)
    if isinstance(value, (list, dict)):
        return sanitize.line(json.dumps(value, ensure_ascii=False), MAX_VALUE_LENGTH)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else sanitize.line(str(value), MAX_VALUE_LENGTH)
