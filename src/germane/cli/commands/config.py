"""``germane config``: which settings are in force, and where they are from."""

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

from germane.cli.core.output import as_json, database, harmless, print_json
from germane.settings import Rule, Settings, load

if TYPE_CHECKING:
    from germane.settings.origins import Valued

MASK: Final = "***"
_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_SECRET: Final = re.compile(r"key|secret|token|password", re.IGNORECASE)
_LONGEST: Final = 400
"""Characters of a value that are shown to people."""


@click.group("config")
def command() -> None:
    """Show the settings in force."""


@command.command("show")
@click.option("--origins", is_flag=True, help="Say where each value is from.")
@click.option("--changed", is_flag=True, help="Only what is not a default.")
@database
@as_json
def show(origins: bool, changed: bool, database: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes them by name
    """Show each setting, and the rules and channels in force. Secrets are masked."""
    from germane.settings.origins import valued

    arguments = {} if database is None else {"database": database}
    settings = load(**arguments)
    found = [one for one in valued(settings, arguments) if not changed or one.origin.kind != "default"]
    if as_json:
        print_json(_as_dict(settings, found))
        return
    _print(settings, found, origins=origins)


def _as_dict(settings: Settings, found: Sequence[Valued]) -> dict[str, Any]:
    return {
        "settings": [{"name": one.name, "value": plain(settings, one), "origin": asdict(one.origin)} for one in found],
        "rules": [{"default": rule not in settings.rules, **_rule(rule)} for rule in settings.watched],
        "channels": {name: _masked(_dumped(channel)) for name, channel in settings.channels.items()},
    }


def _print(settings: Settings, found: Sequence[Valued], *, origins: bool) -> None:
    shown = [(harmless(one.name), _short(settings, one), _origin(one)) for one in found]
    width = max((len(name) for name, _, _ in shown), default=0)
    of_values = min(max((len(value) for _, value, _ in shown), default=0), shutil.get_terminal_size().columns // 3)
    for name, value, origin in shown:
        click.echo(f"{name:{width}}  {f'{value:{of_values}}  {origin}' if origins else value}")
    if not found:
        click.echo("Every setting has its default.")
    click.echo("\nRules in force:")
    for rule in settings.watched:
        _print_parts(rule.name, rule.kind, _told(rule), "on by default" if rule not in settings.rules else "")
    click.echo("\nChannels:" if settings.channels else "\nChannels: none but the log, and the callback of your code.")
    for name, channel in settings.channels.items():
        _print_parts(name, _kind(channel), _masked(_dumped(channel)), "")


def _short(settings: Settings, one: Valued) -> str:
    """Return a value for a line; what has lines of its own below is only counted here."""
    if one.name == "rules":
        return f"{len(one.value)} configured, see below" if one.value else "-"
    return f"{_kind(one.value)}, see below" if one.name.startswith("channels.") else _text(plain(settings, one))


def _kind(channel: Any) -> str:
    return str(channel.kind)


def _origin(one: Valued) -> str:
    origin = str(one.origin)
    return harmless(origin.removeprefix(f"{Path.cwd()}{os.sep}"))


def _told(rule: Rule) -> dict[str, Any]:
    """Return what a rule goes by: what only its kind has, and what of the rest is not as usual."""
    usual = {name: field.default for name, field in Rule.model_fields.items()}
    names = {str(Rule.model_fields[name].validation_alias or name): value for name, value in usual.items()}
    told = {name: value for name, value in _rule(rule).items() if name not in names or value != _jsonable(names[name])}
    return {"severity": rule.severity, **told}


def _print_parts(name: str, kind: str, content: Mapping[str, Any], tail: str) -> None:
    given = {part: value for part, value in content.items() if part not in _SAID and value not in (None, [], {})}
    parts = [f"{part} {_text(value)}" for part, value in given.items()]
    text = f"{harmless(name, 40)}{'' if name == kind else f' ({kind})'}: {', '.join([*parts, tail] if tail else parts)}"
    width = shutil.get_terminal_size().columns
    click.echo(click.wrap_text(text, width, initial_indent="  ", subsequent_indent="    "))


_SAID: Final = ("name", "kind", "enabled")


def _rule(rule: Rule) -> dict[str, Any]:
    """Return a rule as a file would have it."""
    names = {name: str(field.validation_alias or name) for name, field in type(rule).model_fields.items()}
    return {names[name]: value for name, value in _dumped(rule).items()}


def _dumped(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


def plain(settings: Settings, one: Valued) -> Any:
    """Return a value ready for JSON, without what is secret in it."""
    if one.name == "database":
        return settings.model_dump(include={"database"})["database"]
    if isinstance(one.value, SecretStr):
        return _address(one.value) if one.name == "base_url" else MASK
    return _without_secrets(one.name, _jsonable(one.value))


def _address(secret: SecretStr) -> str:
    """Return a server's address without whatever in it may be a secret: user, parameters, a long path."""
    parts = urlsplit(secret.get_secret_value())
    place = parts.netloc.rpartition("@")[2]
    path = parts.path if parts.path.rstrip("/") in {"", "/v1"} else f"/{MASK}"
    return f"{parts.scheme}://{place}{path}{f'?{MASK}' if parts.query else ''}"


def _jsonable(value: Any) -> Any:
    if isinstance(value, Rule):
        return _rule(value)
    if isinstance(value, BaseModel):
        return _dumped(value)
    if isinstance(value, Mapping):
        return {str(name): _jsonable(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _masked(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return content without users and passwords in addresses, and without what is named as a secret."""
    return {name: _without_secrets(name, value) for name, value in content.items()}


def _without_secrets(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _masked(value)
    if isinstance(value, list):
        return [_without_secrets(name, part) for part in value]
    if not isinstance(value, str):
        return value
    place = value.startswith(("env:", "file:"))  # where a secret stands is none
    return MASK if _SECRET.search(name.rpartition(".")[2]) and not place else _USER.sub(f"{MASK}@", value)


def _text(value: Any) -> str:
    """Return a value for people, on one line."""
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return harmless(", ".join(value), _LONGEST)
    if isinstance(value, (list, dict)):
        return harmless(json.dumps(value, ensure_ascii=False), _LONGEST)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else harmless(str(value), _LONGEST)
