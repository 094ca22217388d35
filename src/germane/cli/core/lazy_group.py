"""Click groups that import their commands on demand and suggest the closest match for a misspelled name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from germane.cli.core.command import Command

CommandPaths = Mapping[str, str]
"""Import path of each command: a module with a ``command`` attribute, or ``module:attribute``."""
HelpSections = Mapping[str, Sequence[str]]
"""Command names by help heading."""


class SuggestingGroup(Command, click.Group):
    """A group that suggests the closest command for a misspelled name. Click itself does this only since 8.4."""

    command_class = Command

    def __init__(self, *args: Any, shared: Sequence[click.Option] = (), **kwargs: Any) -> None:
        super().__init__(*args, shared=shared, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            similar = get_close_matches(name, known, n=1)
            hint = f"Did you mean {similar[0]!r}?" if similar else f"The commands are {', '.join(known)}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group whose commands are imported on demand and listed under headings. This keeps startup fast.

    Commands without a heading come last, under "Commands". Commands with a summary are listed without importing them.
    """

    def __init__(
        self,
        *args: Any,
        paths: CommandPaths,
        sections: HelpSections,
        summaries: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._paths = paths
        self._sections = sections
        self._summaries = summaries or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the base class defines the signature
        return list(self._paths)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module, _, attribute = self._paths.get(cmd_name, "").partition(":")
        command: Any = getattr(import_module(module), attribute or "command") if module else None
        return command  # type: ignore[no-any-return]  # every path resolves to a command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = {name for names in self._sections.values() for name in names}
        others = [name for name in self._paths if name not in listed]
        width = max(map(len, self._paths))
        for heading, names in {**self._sections, "Commands": others}.items():
            rows = []
            for name in names:
                summary = self._summaries.get(name)
                command = self.get_command(ctx, name) if summary is None else click.Command(name, help=summary)
                if command is not None:
                    rows.append((name.ljust(width), command.get_short_help_str(formatter.width - 6 - width)))
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
