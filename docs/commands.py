"""Writes command-line.md from the commands themselves, and from shapes.json. Run: python docs/commands.py"""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from germane.cli.main import SECTIONS, group

HERE = Path(__file__).parent
WIDTH = 96
HEAD = """\
# Command line

`germane --help` lists the verbs, `germane VERB --help` tells of one, and `germane completion --help` how a shell
completes them.

Every verb that reads takes `--json`: then one object stands on standard output, on one line, and all else on standard
error. Its `schema_version` is 1; names may be added to a shape within a version, and none is taken away or changed.
Colours, lines and progress are for terminals only, and not where `NO_COLOR` is set, `TERM` is `dumb` or the terminal
does not know UTF-8.

| exit code | meaning |
|---|---|
| 0 | fine |
| 1 | error: settings, database, judge, file; with `--json` also as `{"schema_version": 1, "error": "..."}` |
| 2 | wrong usage |
| 3 | a threshold is broken: `report --fail-under`, `report --fail-on-drop`, `alerts --check`, `score --fail-under` |
| 4 | `doctor` or `db check` found a fault |
| 5 | not enough data to tell |
| 130 | interrupted |

Times are spans up to now such as `30m`, `24h`, `7d`, or moments in ISO 8601, local unless they name a zone.

<!-- Written by docs/commands.py: edit the commands, not this page. -->
"""


def page() -> str:
    """Return the page."""
    shapes: dict[str, Any] = json.loads((HERE / "shapes.json").read_text(encoding="utf-8"))
    root = click.Context(group, info_name="germane", **group.context_settings)
    parts = [HEAD]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in names:
            for path, command, context in _walk(group.get_command(root, name), root, (name,)):
                parts += _told(path, command, context, shapes.get(" ".join(path)))
    return "\n".join(parts)


Found = tuple[tuple[str, ...], click.Command, click.Context]


def _walk(command: click.Command | None, parent: click.Context, path: tuple[str, ...]) -> Iterator[Found]:
    if command is None:
        return
    context = click.Context(command, parent=parent, info_name=path[-1])
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _walk(command.get_command(context, name), context, (*path, name))


def _told(path: tuple[str, ...], command: click.Command, context: click.Context, shape: Any) -> Iterator[str]:
    usage = " ".join(["germane", *path, *command.collect_usage_pieces(context)])
    yield f"{'#' * (2 + len(path))} germane {' '.join(path)}\n"
    yield f"```text\n{usage}\n```\n"
    yield _paragraphs(command.help or "")
    options = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    shown = [(name, text) for name, text in options if "--help" not in name]
    if shown:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(f"| `{_cell(name)}` | {_cell(text)} |" for name, text in shown) + "\n"
    if shape is not None:
        given = [word.format(alert="ID") for word in _reading()[" ".join(path)]]
        called = " ".join(["germane", *path, *given, "--json"])
        yield f"`{called}` prints:\n"
        yield f"```text\n{_drawn(shape)}\n```\n"


def _drawn(shape: Any, depth: int = 0) -> str:
    """Return JSON, of which each part that fits stands on one line."""
    line = json.dumps(shape)
    if len(line) + 2 * depth <= WIDTH or not isinstance(shape, (dict, list)):
        return line
    pairs = [(f"{json.dumps(name)}: ", part) for name, part in shape.items()] if isinstance(shape, dict) else []
    parts = pairs or [("", part) for part in shape]
    inner = ",\n".join(f"{'  ' * (depth + 1)}{name}{_drawn(part, depth + 1)}" for name, part in parts)
    first, last = "{}" if isinstance(shape, dict) else "[]"
    return f"{first}\n{inner}\n{'  ' * depth}{last}"


def _reading() -> Any:
    return runpy.run_path(str(HERE / "shapes.py"))["READING"]


def _paragraphs(text: str) -> str:
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(filter(None, parts)).replace("*", "\\*") + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    (HERE / "command-line.md").write_text(page(), encoding="utf-8")
