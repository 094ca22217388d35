"""``germane prune`` and ``germane forget``: apply retention limits now, and delete all data of a user."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from germane import sanitize
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import EXIT_ERROR, print_json
from germane.cli.core.params import AGE, BYTE_SIZE, NAME_VALUE
from germane.cli.core.store import load_command_settings, open_store

if TYPE_CHECKING:
    from germane.storage import PruneResult

REMAINING_DATA: Final = """\
Not deleted: counts, which do not identify anyone; exported spans, sent alerts and exported files; backups; and, on
SQLite, data that stays in the write-ahead log for some time ('germane db vacuum' empties it). Exchanges and spans that
were captured or received but not written yet are stored within seconds. To delete them, run this command again."""


@click.command("prune", cls=Command)
@click.option("--older-than", type=AGE, metavar="AGE", help="Delete exchanges older than this, such as 90d.")
@click.option("--text-older-than", type=AGE, metavar="AGE", help="Erase texts older than this, such as 30d.")
@click.option(
    "--max-size",
    type=BYTE_SIZE,
    help="Then delete the oldest exchanges until the database is smaller than this, such as 5GB.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed because of age.")
def command(
    older_than: datetime | None,
    text_older_than: datetime | None,
    max_size: int | None,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Erase old texts and delete old exchanges.

    Scores, labels and counts of deleted exchanges are deleted too. Pending tasks expire; tasks in progress are kept.
    With an archive, exchanges are not deleted here, but moved by `germane archive`.
    Options that are not given default to the `retention` setting.
    """
    retention, now = load_command_settings().retention, datetime.now(UTC)
    limits: dict[str, Any] = {
        "texts_before": text_older_than or now - timedelta(days=retention.text_days),
        "before": older_than or now - timedelta(days=retention.score_days),
        "max_size": max_size or retention.max_size,
    }
    with open_store() as store:
        removed = store.retention.prune(**limits, dry_run=dry_run)
        size, name = store.retention.measure_size(limits["max_size"]), store.name
    if wants_json():
        print_json({"database": name, "dry_run": dry_run, **limits, "removed": removed, "size": size})
        return
    texts_before, before = (f"{limits[key]:%Y-%m-%d %H:%M} UTC" for key in ("texts_before", "before"))
    click.echo(f"{name}: pruning texts before {texts_before} and exchanges before {before}")
    click.echo(f"  {'would remove' if dry_run else 'removed'}: {removed}")
    limit = limits["max_size"]
    excess = ""
    if limit is not None and size > limit:
        reason = (
            "the oldest exchanges would be deleted too" if dry_run else "exchanges younger than an hour are not deleted"
        )
        excess = f", over the limit of {limit / 1e6:.1f} MB: {reason}"
    click.echo(f"  size: {size / 1e6:.1f} MB{excess}")


@click.command("forget", cls=Command)
@click.option("--user", help="Delete the exchanges of this user id, and the labels that this user gave.")
@click.option("--session", help="Delete the exchanges of this session id.")
@click.option(
    "--attribute",
    type=NAME_VALUE,
    help="Delete the exchanges with this attribute, such as tenant=acme. Booleans are written as true or false.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.pass_context
def forget(
    context: click.Context,
    user: str | None,
    session: str | None,
    attribute: tuple[str, str] | None,
    yes: bool,  # noqa: FBT001 - click passes it by name
    dry_run: bool,  # noqa: FBT001
) -> None:
    """Delete all exchanges of a user or session, or with an attribute.

    Their scores and labels are deleted too, and received spans that are not processed or not forwarded yet.
    """
    selector: dict[str, Any] = {"user": user, "session": session, "attribute": attribute}
    selected = {name: value for name, value in selector.items() if value is not None}
    if len(selected) != 1 or not all(selected.values()):
        raise click.UsageError("pass exactly one of --user, --session and --attribute")
    must_confirm = not (yes or dry_run)
    if must_confirm and (wants_json() or not sys.stdin.isatty()):
        raise click.UsageError("no terminal to confirm on; pass --yes, or --dry-run to preview")
    ((kind, value),) = selected.items()
    who = f"{kind} {sanitize.line(value if isinstance(value, str) else '='.join(value), 80)}"
    with open_store() as store:
        if must_confirm and (preview := store.retention.forget(**selector, dry_run=True)):
            click.echo(f"{store.name} contains data for {who}: {_format_counts(preview)}")
            if not click.confirm("Delete permanently?"):
                click.echo("Nothing was deleted.")
                context.exit(EXIT_ERROR)
        removed, name = store.retention.forget(**selector, dry_run=dry_run), store.name
    if wants_json():
        print_json({"database": name, "dry_run": dry_run, "removed": removed})
    elif not removed:
        click.echo(f"{name} contains no data for {who}.")
    else:
        action = "Would delete" if dry_run else "Deleted"
        click.echo(f"{action} from {name}: {_format_counts(removed)}.\n{REMAINING_DATA}")


def _format_counts(removed: PruneResult) -> str:
    counts = {
        "exchange": removed.exchanges,
        "score": removed.scores,
        "label": removed.feedback,
        "pending task": removed.expired,
        "unfinished trace": removed.traces,
        "unsent request": removed.requests,
    }
    return ", ".join(sanitize.count_noun(count, noun) for noun, count in counts.items() if count)
