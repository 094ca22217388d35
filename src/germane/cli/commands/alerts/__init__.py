"""``germane alerts``: what is wrong, what would have been, and what would be noticed."""

from __future__ import annotations

import click

from germane.cli.core.lazy_group import Verbs
from germane.cli.core.output import as_json, database

_VERBS = {
    "accept": "germane.cli.commands.alerts.actions:accept",
    "ack": "germane.cli.commands.alerts.actions:ack",
    "dead": "germane.cli.commands.alerts.undelivered:dead",
    "power": "germane.cli.commands.alerts.sensitivity",
    "preview": "germane.cli.commands.alerts.backtest",
    "resend": "germane.cli.commands.alerts.undelivered:resend",
    "resolve": "germane.cli.commands.alerts.actions:resolve",
    "show": "germane.cli.commands.alerts.list",
    "silence": "germane.cli.commands.alerts.actions:silence",
    "test": "germane.cli.commands.alerts.test",
    "unsilence": "germane.cli.commands.alerts.actions:unsilence",
}
_SECTIONS = {
    "Look": ("show", "dead"),
    "Act": ("ack", "silence", "unsilence", "resolve", "accept", "resend"),
    "Try": ("test", "preview", "power"),
}


@click.group("alerts", cls=Verbs, places=_VERBS, sections=_SECTIONS, invoke_without_command=True)
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
    """Show what is wrong now, acknowledge, silence, or try rules."""
    if context.invoked_subcommand is None:
        from germane.cli.commands.alerts.list import tell

        context.exit(tell(database, every=every, check=check, as_json=as_json))
