"""A group of verbs: each is imported when it is called, so that ``--help`` and the light ones stay quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

Places = Mapping[str, str]
"""Where each verb is: a module, whose ``command`` it is, or ``module:name``."""
Sections = Mapping[str, Sequence[str]]
"""Verbs by the heading that they are listed under."""
_OTHERS = "Commands"


class Verbs(click.Group):
    """A group whose verbs are found by their modules, and listed under headings.

    Args:
        places: Where they are.
        sections: In which order they are listed, and under which headings; those in none come last.
        given: As of the base class.
    """

    def __init__(self, *given: Any, places: Places, sections: Sections | None = None, **more: Any) -> None:
        super().__init__(*given, **more)
        self._places = places
        self._sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is the base class's
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module, _, name = self._places.get(cmd_name, "").partition(":")
        command: Any = getattr(import_module(module), name or "command") if module else None
        return command  # type: ignore[no-any-return]  # each place's is one

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        close = [] if name in self._places else get_close_matches(name, self._places, n=1)
        if close and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = {name for names in self._sections.values() for name in names}
        others = [name for name in self._places if name not in listed]
        width = max(map(len, self._places))
        for heading, names in {**self._sections, _OTHERS: others}.items():
            known = [name for name in names if name in self._places]
            rows = [(name.ljust(width), self._short(ctx, name, formatter.width - 6 - width)) for name in known]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _short(self, ctx: click.Context, name: str, limit: int) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(limit)
