"""Which rules are tried, and with what other settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import click
from pydantic import ValidationError

from germane.cli.output import harmless
from germane.settings import AnyRule, Rule, Settings
from germane.settings.rules import BY_DEFAULT, KINDS

ALL = "all"
_FIXED = {"kind", "name", "enabled"}
"""What makes a rule the one that it is."""


class Setting(click.ParamType[tuple[str, Any]]):
    """A setting's name and value, written as in germane.toml or bare: ``threshold=.7``, ``routes=["docs-*"]``."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click passes what is converted already
        name, equals, written = value.partition("=")
        if not name.strip() or not equals or not written.strip():
            self.fail(f"{value!r}: say NAME=VALUE, such as threshold=0.7", param, ctx)
        return name.strip(), _read(written.strip())


def rules_for(settings: Settings, name: str, changes: Sequence[tuple[str, Any]]) -> list[AnyRule]:
    """Return the rules that are meant, with other settings.

    Args:
        settings: whose rules they are; one that is switched off may be named, and so may a kind that is in no settings.
        name: of a rule, or ``all`` for those in force.
        changes: names and values of their settings.

    Raises:
        click.UsageError: there is no such rule, none of them has such a setting, or it cannot have that value.
    """
    given = dict(changes)
    found = list(settings.watched) if name == ALL else _named(settings, name)
    known = {setting for one in found for setting in _settings_of(type(one) if isinstance(one, Rule) else one)}
    for setting in given:
        if setting not in known:
            raise click.UsageError(_unknown(setting, name, known))
    return [_changed(one, given) if isinstance(one, Rule) else _made(one, {}, given) for one in found]


def _named(settings: Settings, name: str) -> Sequence[AnyRule | type[Rule]]:
    """Return the rules of that name, or the kind."""
    for rules in (settings.watched, settings.rules, BY_DEFAULT):
        if found := [rule for rule in rules if rule.name == name]:
            return found
    if name in KINDS:
        return [KINDS[name]]
    names = list(dict.fromkeys([*(rule.name for rule in (*settings.watched, *settings.rules)), *KINDS]))
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(harmless(one, 40) for one in names)}"
    raise click.UsageError(f"--rule: there is no rule called {harmless(name, 40)!r}{hint}")


def _settings_of(kind: type[Rule]) -> dict[str, str]:
    """Return the fields behind the names of a kind's settings."""
    fields = {str(one.validation_alias or name): name for name, one in kind.model_fields.items()}
    return {name: field for name, field in fields.items() if field not in _FIXED}


def _unknown(setting: str, name: str, known: set[str]) -> str:
    what = "no rule in force has" if name == ALL else f"the rule {harmless(name, 40)} does not have"
    close = get_close_matches(setting, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(sorted(known))}"
    return f"--set: {what} a setting {harmless(setting, 40)!r}{hint}"


def _changed(rule: AnyRule, given: Mapping[str, Any]) -> AnyRule:
    known = {name: value for name, value in given.items() if name in _settings_of(type(rule))}
    return _made(type(rule), rule.model_dump(exclude_unset=True), known) if known else rule


def _made(kind: type[Rule], fields: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    names = _settings_of(kind)
    try:
        return kind.model_validate({**fields, **{names[name]: value for name, value in given.items()}})
    except ValidationError as error:
        raise click.UsageError(_wrong(kind, error)) from None


def _wrong(kind: type[Rule], error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    aliases = {field: name for name, field in _settings_of(kind).items()}
    place = ".".join(aliases.get(str(part), str(part)) for part in first["loc"])
    if first["type"] == "missing":
        return f"a rule of the kind {kind.model_fields['kind'].default} needs a {place}: --set {place}=VALUE"
    return (
        f"--set {place}={first['input']!r:.60}: {first['msg'].removeprefix('Value error, ').replace('tuple', 'list')}"
    )


def _read(written: str) -> Any:
    """Return a value as TOML has it; what is none is text. Numbers may begin with a point."""
    for text in (written, f"0{written}"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
    return written
