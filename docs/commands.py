"""Generates the pages of the site about commands, one for each. The site's configuration, conf.py, runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from germane.cli.app import SECTIONS, group
from germane.cli.core.command import read_examples

HERE = Path(__file__).parent
FOLDER = HERE / "command-line"
SCHEMAS = HERE / "schemas" / "cli"


def pages() -> dict[str, str]:
    """Return a page in Markdown for each command that `germane --help` lists, by name."""
    root = click.Context(group, info_name="germane", **group.context_settings)
    found = {}
    for name in [name for names in SECTIONS.values() for name in names]:
        nodes = _walk(group.get_command(root, name), root, (name,))
        found[name] = "\n".join(part for path, command, context in nodes for part in _described(path, command, context))
    return found


def write_pages() -> None:
    """Write the pages that changed, and delete pages of commands that no longer exist."""
    found = pages()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.stem not in found:
            old.unlink()
    for name, text in found.items():
        file = FOLDER / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


Node = tuple[tuple[str, ...], click.Command, click.Context]


def _walk(command: click.Command | None, parent: click.Context, path: tuple[str, ...]) -> Iterator[Node]:
    if command is None:
        return
    context = click.Context(command, parent=parent, info_name=path[-1])
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _walk(command.get_command(context, name), context, (*path, name))


def _described(path: tuple[str, ...], command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(["germane", *path, *command.collect_usage_pieces(context)])
    yield f"{'#' * len(path)} germane {' '.join(path)}\n"
    yield _paragraphs(command.help or "")
    yield f"```text\n{usage}\n```\n"
    lines = [f"# {purpose}\n{line}" for purpose, line in read_examples(context).items()]
    yield "```bash\n" + "\n".join(lines) + "\n```\n"
    options = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    shown = [(name, text) for name, text in options if "--help" not in name]
    if shown:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(f"| `{_cell(name)}` | {_cell(_marked(text))} |" for name, text in shown) + "\n"
    for title, file in _schemas("-".join(path)):
        yield f"[JSON Schema of `{title}`](../schemas/cli/{file})\n"


def _schemas(name: str) -> Iterator[tuple[str, str]]:
    """Yield the command lines that print JSON with a schema, and the files."""
    for option in ("", "-compare", "-estimate", "-undelivered"):
        file = f"{name}{option}.json"
        if (SCHEMAS / file).exists():
            flag = f" --{option[1:]}" if option else ""
            yield f"germane {name.replace('-', ' ')}{flag} --json", file


def _paragraphs(text: str) -> str:
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return _marked("\n\n".join(filter(None, parts))) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _marked(text: str) -> str:
    """Return text of the command line in Markdown: options are code, and asterisks are not emphasis."""
    return re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)", r"`\1`", text.replace("*", "\\*"))
