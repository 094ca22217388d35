"""``germane alerts``: what is wrong, what would have been, and what would be noticed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from germane.cli.output import as_json, database

_VERBS = {
    "accept": ("germane.cli.alerts.acts", "accept"),
    "ack": ("germane.cli.alerts.acts", "ack"),
    "dead": ("germane.cli.alerts.dead", "dead"),
    "power": ("germane.cli.alerts.power", "command"),
    "preview": ("germane.cli.alerts.preview", "command"),
    "resend": ("germane.cli.alerts.dead", "resend"),
    "resolve": ("germane.cli.alerts.acts", "resolve"),
    "show": ("germane.cli.alerts.show", "command"),
    "silence": ("germane.cli.alerts.silence", "silence"),
    "test": ("germane.cli.alerts.trial", "command"),
    "unsilence": ("germane.cli.alerts.silence", "unsilence"),
}
"""Module and name of each verb: imported when it is called."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is the base class's
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module, name = _VERBS.get(cmd_name, (None, ""))
        found: Any = None if module is None else getattr(import_module(module), name)
        return found  # type: ignore[no-any-return]  # each of them is a command


@click.group("alerts", cls=_Verbs, invoke_without_command=True)
@click.option("--all", "every", is_flag=True, help="Also those that are over: the newest hundred.")
@click.option("--check", is_flag=True, help="Exit with 3 when something fires.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    every: bool,  # noqa: FBT001 - click passes them by name
    check: bool,  # noqa: FBT001
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Show what is wrong now; say that you know of it, silence it, or try rules on the past."""
    if context.invoked_subcommand is None:
        from germane.cli.alerts.listing import tell

        context.exit(tell(database, every=every, check=check, as_json=as_json))
