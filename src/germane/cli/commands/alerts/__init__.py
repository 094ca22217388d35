"""``germane alerts``: list alerts, act on them, and test rules and channels."""

from __future__ import annotations

from typing import Final

import click

from germane.cli.core.command import DATABASE, JSON, wants_json
from germane.cli.core.lazy_group import LazyGroup
from germane.cli.core.output import EXIT_THRESHOLD_VIOLATED, print_json

MAX_ALERTS: Final = 100
_COMMANDS: Final = {
    name: f"germane.cli.commands.alerts.{name}" for name in ("show", "respond", "test", "backtest", "sensitivity")
}
_SECTIONS: Final = {"Inspect and act": ("show", "respond"), "Test": ("test", "backtest", "sensitivity")}


@click.group(
    "alerts", cls=LazyGroup, paths=_COMMANDS, sections=_SECTIONS, invoke_without_command=True, shared=(DATABASE, JSON)
)
@click.option("--all", "include_resolved", is_flag=True, help="Also list resolved alerts, up to 100 alerts in total.")
@click.option("--undelivered", is_flag=True, help="List notifications that could not be delivered instead.")
@click.option("--check", is_flag=True, help="Exit with 3 if an alert is firing.")
@click.pass_context
def command(
    context: click.Context,
    include_resolved: bool,  # noqa: FBT001 - click passes them by name
    undelivered: bool,  # noqa: FBT001
    check: bool,  # noqa: FBT001
) -> None:
    """List open alerts, act on them, or test rules.

    Without a subcommand, lists open alerts and active silences.
    """
    if context.invoked_subcommand is not None:
        return
    from germane.cli.commands.alerts.show import format_alert, format_silence
    from germane.cli.commands.alerts.undelivered import list_undelivered, print_undelivered
    from germane.cli.core.output import detect_terminal
    from germane.cli.core.store import open_store

    if undelivered:
        with open_store() as store:
            print_undelivered(list_undelivered(store))
        return
    with open_store() as store:
        alerts = store.alerts.search(limit=MAX_ALERTS) if include_resolved else store.alerts.list_open()
        silences = store.alerts.list_silences()
    if wants_json():
        print_json({"alerts": alerts, "silences": silences})
    else:
        if not alerts:
            click.echo("No alerts." if include_resolved else "No open alerts.")
        terminal = detect_terminal()
        for alert in alerts:
            click.echo("\n".join([*(terminal.wrap_line(line, 2) for line in format_alert(alert)), ""]))
        for silence in silences:
            click.echo(format_silence(silence))
    is_firing = any(alert.is_open and alert.fired_at is not None for alert in alerts)
    context.exit(EXIT_THRESHOLD_VIOLATED if check and is_firing else 0)
