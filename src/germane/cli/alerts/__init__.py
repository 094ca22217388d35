"""``germane alerts``: what is wrong, what would have been, and what would be noticed."""

from __future__ import annotations

import click

from germane.cli.output import as_json, database
from germane.cli.verbs import Verbs

_VERBS = {
    "accept": "germane.cli.alerts.acts:accept",
    "ack": "germane.cli.alerts.acts:ack",
    "dead": "germane.cli.alerts.dead:dead",
    "power": "germane.cli.alerts.power",
    "preview": "germane.cli.alerts.preview",
    "resend": "germane.cli.alerts.dead:resend",
    "resolve": "germane.cli.alerts.acts:resolve",
    "show": "germane.cli.alerts.show",
    "silence": "germane.cli.alerts.silence:silence",
    "test": "germane.cli.alerts.trial",
    "unsilence": "germane.cli.alerts.silence:unsilence",
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
        from germane.cli.alerts.listing import tell

        context.exit(tell(database, every=every, check=check, as_json=as_json))
