"""``germane sinks``: the state of sinks, a test of their settings, and writing scores again."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import click

from germane import sanitize, sinks, storage
from germane.cli.core.command import JSON, Command, wants_json
from germane.cli.core.lazy_group import SuggestingGroup
from germane.cli.core.output import EXIT_ERROR, print_json, print_table
from germane.cli.core.params import PAST_TIME
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import SettingsError, UsageError
from germane.records import select

if TYPE_CHECKING:
    from germane.settings import Settings


@click.group("sinks", cls=SuggestingGroup)
def command() -> None:
    """Show and test sinks, or write scores to them again.

    Sinks write scores and labels to tools such as Phoenix, MLflow and Langfuse.
    """


@command.command("status")
def status() -> None:
    """Show what waits for each sink, and what was given up.

    Lists up to 20 exchanges that were given up in each sink: the backend has not received their span within an hour, or
    refused their scores. `germane sinks resend` queues them again.
    """
    settings = load_command_settings()
    with open_store() as store:
        queues = {queue.target: queue for queue in store.outbox.list_queues(storage.SINK)}
        undelivered = store.sinks.list_undelivered()
    names = sorted({*settings.sinks, *queues})
    found = [queues.get(name, storage.QueueStatus(target=name)) for name in names]
    if wants_json():
        fields = ("waiting", "waiting_since", "retry_error", "undelivered", "last_undelivered_error")
        listed = [
            {"name": each.target, "configured": each.target in settings.sinks, **select(each, *fields)}
            for each in found
        ]
        print_json({"sinks": listed, "undelivered": undelivered})
        return
    if not found:
        click.echo("No sinks are configured, and nothing waits for one. Configure sinks in germane.toml.")
        return
    rows = [
        (
            sanitize.line(each.target, 40),
            f"{each.waiting:,}",
            "" if each.waiting_since is None else f"{each.waiting_since:%Y-%m-%d %H:%M}",
            f"{each.undelivered:,}",
            sanitize.line(each.retry_error or each.last_undelivered_error or "", 80),
        )
        for each in found
    ]
    print_table(("sink", "waiting", "oldest (UTC)", "given up", "last error"), rows)
    if undelivered:
        click.echo("\nGiven up, newest first:")
        details = [
            (sanitize.line(each.sink, 40), each.exchange_id, each.span_id or "", sanitize.line(each.error or "", 80))
            for each in undelivered
        ]
        print_table(("sink", "exchange", "span", "error"), details)


@command.command("test", cls=Command, shared=(JSON,))
@click.argument("sink", metavar="[SINK]", required=False)
@click.pass_context
def test(context: click.Context, sink: str | None) -> None:
    """Check the addresses and keys of sinks, by default of all.

    Nothing is written, except that a webhook receives a request without items. No database is needed. Exits with 1 if a
    sink does not accept the request.
    """
    built = sinks.build_sinks(_with_sinks(load_command_settings(), sink))
    chosen = {name: each for name, each in built.items() if sink in (None, name)}
    results = {name: asyncio.run(_problem(each)) for name, each in chosen.items()}
    if wants_json():
        rows = [
            {"name": name, "destination": chosen[name].destination, "error": error} for name, error in results.items()
        ]
        print_json({"sinks": rows})
    else:
        for name, error in results.items():
            result = "ok" if error is None else sanitize.line(error)
            click.echo(f"{name}: {sanitize.line(chosen[name].destination)}: {result}")
    context.exit(EXIT_ERROR if any(results.values()) else 0)


@command.command("resend")
@click.argument("sink", metavar="[SINK]", required=False)
@click.option("--since", type=PAST_TIME, required=True, help="Answers given or labeled since this time.")
def resend(sink: str | None, since: datetime) -> None:
    """Write scores and labels again, also those that were given up.

    A running worker writes them. Scores that a backend has already are replaced, not added.
    """
    settings = _with_sinks(load_command_settings(), sink)
    with open_store() as store:
        number = store.sinks.resend([sink] if sink else list(settings.sinks), since)
    if wants_json():
        print_json({"queued": number})
        return
    click.echo(f"Queued {sanitize.count_noun(number, 'exchange')}.")


def _with_sinks(settings: Settings, sink: str | None) -> Settings:
    """Return settings with sinks, among them the given one."""
    if not settings.sinks:
        raise UsageError("no sinks are configured; configure them in germane.toml")
    if sink is not None and sink not in settings.sinks:
        raise UsageError(f"unknown sink {sanitize.line(sink, 80)!r}; configured: {', '.join(settings.sinks)}")
    return settings


async def _problem(sink: sinks.Sink) -> str | None:
    from germane.delivery import DeliveryError

    try:
        await sink.test()
    except (DeliveryError, SettingsError) as error:
        return str(error)
    return None
