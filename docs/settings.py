"""Writes settings.md from the settings themselves. Run: python docs/settings.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from germane.settings import PREFIX, Always, Budget, Match, Price, Retention, Rule, Settings, Windowed, rules
from germane.settings.channels import KINDS, Channel, WebChannel

HEAD = """\
# Settings

Arguments of `germane.start()` win over `GERMANE_...` variables, those over `germane.toml`, that over `[tool.germane]`
in `pyproject.toml`. An unknown or wrong setting is refused at the start, by name, with the fix. A secret may be given
as `env:NAME` or `file:/path`.

What has parts is a table of a file, and has a variable for each part, with two underscores: `[budget]` with
`calls_per_day = 2000` is `GERMANE_BUDGET__CALLS_PER_DAY=2000`. What is given in both places adds up, and the variable
wins where the part is the same. Lists of names are written with commas in a variable; `rules`, `channels`, `always`,
`prices`, `filters` and `scorer_options` as JSON.

<!-- Written by docs/settings.py: edit the settings, not this page. -->
"""
DEFAULTS = {
    "name": "its kind",
    "service": "`OTEL_SERVICE_NAME`, else the program's name",
    "judge": "`OPENAI_MODEL`, else `gpt-4o-mini`",
    "api_key": "`OPENAI_API_KEY`",
    "base_url": "`OPENAI_BASE_URL`",
    "trend_by": "`model`, `prompt_version`",
}


def page() -> str:
    """Return the page."""
    parts = [HEAD, _table(Settings.model_fields, PREFIX)]
    parts += _rules()
    parts += ["\n## A price\n", "One of `prices`. " + str(Price.__doc__) + "\n", _table(Price.model_fields)]
    parts += _channels()
    parts += ["\n## The budget\n", str(Budget.__doc__) + "\n", _table(Budget.model_fields, f"{PREFIX}BUDGET__")]
    parts += ["\n## A filter\n", "One of `filters`. " + _first_line(Match) + "\n", _table(Match.model_fields)]
    parts += ["\n## What is always scored\n", "One of `always`. " + _first_line(Always) + "\n"]
    parts += [_table(Always.model_fields)]
    parts += ["\n## Retention\n", str(Retention.__doc__) + "\n", _table(Retention.model_fields, f"{PREFIX}RETENTION__")]
    return "\n".join(parts)


def _rules() -> list[str]:
    """Return a table of what all rules have, one of what those over a window have, and one for each kind."""
    on = ", ".join(f"`{rule.kind}`" for rule in rules.BY_DEFAULT)
    common = (
        f"One of `rules`: `[[rules]]`; without a `kind` a floor. On by default are {on}: an entry of that kind takes"
    )
    parts = ["\n## A rule\n", f"{common} the default's place. See [Alarms](alarms.md).\n", _table(Rule.model_fields)]
    parts += ["\n`floor`, `low_rate` and `noncommittal_rate` also have:\n", _table(_own(Windowed, Rule))]
    for kind, model in rules.KINDS.items():
        base = Windowed if issubclass(model, Windowed) else Rule
        own = {name: field for name, field in _own(model, base).items() if name not in {"kind", "name"}}
        parts += [f'\n`kind = "{kind}"`: {_first_line(model)}\n', *([_table(own)] if own else [])]
    return parts


def _own(model: type[BaseModel], base: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields that a model adds, and those whose default it changes."""
    before = base.model_fields
    return {
        name: field
        for name, field in model.model_fields.items()
        if name not in before or field.default != before[name].default
    }


def _channels() -> list[str]:
    """Return a table of what all channels have, one of what those over HTTP have, and one for each kind."""
    common = "One of `channels`: `[channels.NAME]`. See [Channels](channels.md)."
    parts = ["\n## A channel\n", common + "\n", _table(Channel.model_fields)]
    over_http = {name: field for name, field in WebChannel.model_fields.items() if name not in Channel.model_fields}
    parts += ["\nEach but `email` also has:\n", _table(over_http)]
    for kind, model in KINDS.items():
        base = {*WebChannel.model_fields, "kind"}
        own = {name: field for name, field in model.model_fields.items() if name not in base}
        parts += [f'\n`kind = "{kind}"`: {_first_line(model)}\n', _table(own)]
    return parts


def _first_line(model: Any) -> str:
    sentence = str(model.__doc__).partition(": ")[2]
    return sentence[0].upper() + sentence[1:]


def _table(fields: dict[str, FieldInfo], prefix: str | None = None) -> str:
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for field_name, field in fields.items():
        name = str(field.validation_alias or field_name)
        shown = f"`{name}`" if prefix is None else f"`{name}`<br>`{prefix}{name.upper()}`"
        lines.append(f"| {shown} | {_default(name, field)} | {_meaning(field)} |")
    return "\n".join(lines) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    if name in DEFAULTS:
        return DEFAULTS[name]
    if field.is_required():
        return "needed"
    if field.default in (None, ()) or field.default_factory is dict:
        return "none"
    if isinstance(field.default, BaseModel):
        return "see below"
    return f"`{str(field.default).lower()}`" if isinstance(field.default, bool) else f"`{field.default}`"


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").replace("``", "`").split())


if __name__ == "__main__":
    Path(__file__).with_name("settings.md").write_text(page(), encoding="utf-8")
