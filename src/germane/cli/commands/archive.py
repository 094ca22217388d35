"""``germane archive``: move closed days to Parquet files, and verify them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import EXIT_ERROR, print_json
from germane.cli.core.params import AGE
from germane.cli.core.store import load_command_settings, open_store
from germane.records import select
from germane.sanitize import count_noun

if TYPE_CHECKING:
    from germane.storage import ArchivedDay, DayResult, TrackingStore


@click.command("archive", cls=Command)
@click.option(
    "--older-than", type=AGE, metavar="AGE", help="Archive days older than this. Defaults to `archive.after_days`."
)
@click.option("--dry-run", is_flag=True, help="Only show which days would be archived.")
@click.option(
    "--verify", is_flag=True, help="Do not archive anything, but compare all archived files with their checksums."
)
@click.pass_context
def command(
    context: click.Context,
    older_than: datetime | None,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
    verify: bool,  # noqa: FBT001
) -> None:
    """Move closed days from the database to Parquet files.

    The files are verified before anything is deleted. Reports, trends, exports and the dashboard read both. Configure
    the archive with the `archive` setting; workers then run this command once per hour.
    """
    settings = load_command_settings().archive
    if verify:
        if older_than is not None or dry_run:
            raise click.UsageError("--verify cannot be combined with other options")
        with open_store() as store:
            if _verify(store):
                context.exit(EXIT_ERROR)
        return
    if settings is None:
        raise click.UsageError(
            "no archive is configured: set GERMANE_ARCHIVE__LOCATION to a folder or s3://BUCKET/PREFIX, or location "
            "in the [archive] table of germane.toml"
        )
    before = older_than or datetime.now(UTC) - timedelta(days=settings.after_days)
    with open_store() as store:
        if not wants_json():
            click.echo(f"{store.name}: archiving days before {before:%Y-%m-%d %H:%M} UTC to {settings.location}")
        results = store.archive.archive_days(
            settings.location,
            before=before,
            has_text=settings.text,
            dry_run=dry_run,
            on_day=(lambda _: None) if wants_json() else _print_day,
        )
        summary, name = store.archive.summarize(), store.name
    if wants_json():
        days = [
            {
                "day": f"{result.day:%Y-%m-%d}",
                "exchanges": None if result.manifest is None else result.manifest.rows("exchange"),
                "scores": None if result.manifest is None else result.manifest.rows("score"),
                "size": None if result.manifest is None else result.manifest.size,
                "waiting_for": result.waiting_for,
            }
            for result in results
        ]
        content = {"database": name, "location": settings.location, "dry_run": dry_run, "before": before, "days": days}
        totals = {"days": len(summary.days), **select(summary, "exchanges", "scores", "size")}
        print_json({**content, "archive": totals})
        return
    if not results:
        click.echo("  no day is ready to be archived")
    if summary.days:
        per_score = f" ({summary.size / summary.scores:.0f} bytes per score)" if summary.scores else ""
        content_of = f"{count_noun(len(summary.days), 'day')} with {count_noun(summary.scores, 'score')}"
        click.echo(f"The archive contains {content_of} in {summary.size / 1e6:,.1f} MB{per_score}.")


def _print_day(result: DayResult) -> None:
    if result.waiting_for is not None:
        text = f"waiting: {result.waiting_for}"
    elif result.problem is not None:
        text = "failed"
    elif result.manifest is None:
        text = "would be archived"
    else:
        exchanges, scores = (result.manifest.rows(table) for table in ("exchange", "score"))
        size = f"{result.manifest.size / 1e6:,.1f} MB"
        text = f"{count_noun(exchanges, 'exchange')}, {count_noun(scores, 'score')}, {size}"
    click.echo(f"  {result.day:%Y-%m-%d}  {text}")


def _verify(store: TrackingStore) -> bool:
    """Verify the archive and print the result. Return whether there are problems."""

    def show(day: ArchivedDay, problem: str | None) -> None:
        if problem is not None and not wants_json():
            click.echo(f"  {day.location}: {problem}")

    problems = store.archive.verify(on_day=show)
    days = len(store.archive.list_days())
    if wants_json():
        found = [{"day": f"{day:%Y-%m-%d}", "problem": problem} for day, problem in problems.items()]
        print_json({"database": store.name, "days": days, "problems": found})
    elif not days:
        click.echo(f"{store.name}: no day is archived")
    elif problems:
        click.echo(
            f"{store.name}: {len(problems)} of {count_noun(days, 'archived day')} cannot be read; restore their files "
            "from a backup"
        )
    else:
        click.echo(f"{store.name}: all files of {count_noun(days, 'archived day')} match their checksums")
    return bool(problems)
