"""``germane prune``: apply retention limits now."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from germane.cli.core.output import as_json, database, print_json
from germane.cli.core.params import Age, ByteSizeType
from germane.cli.core.store import load_settings_for, open_store


@click.command("prune")
@click.option("--older-than", type=Age(), metavar="AGE", help="Delete exchanges older than this, such as 90d.")
@click.option("--text-older-than", type=Age(), metavar="AGE", help="Erase texts older than this, such as 30d.")
@click.option(
    "--max-size",
    type=ByteSizeType(),
    help="Then delete the oldest exchanges until the database is smaller than this, such as 5GB.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed because of its age.")
@database
@as_json
def command(
    older_than: datetime | None,
    text_older_than: datetime | None,
    max_size: int | None,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Erase old texts and delete old exchanges.

    Scores, labels and counts of deleted exchanges are deleted too. Tasks waiting to be scored expire; tasks in progress
    stay. Options that are not given default to the `retention` setting.
    """
    retention, now = load_settings_for(database).retention, datetime.now(UTC)
    limits: dict[str, Any] = {
        "texts_before": text_older_than or now - timedelta(days=retention.text_days),
        "before": older_than or now - timedelta(days=retention.score_days),
        "max_size": max_size or retention.max_size,
    }
    with open_store(database) as store:
        removed = store.retention.prune(**limits, dry_run=dry_run)
        size, name = store.retention.measure_size(limits["max_size"]), store.name
    if as_json:
        print_json({"database": name, "dry_run": dry_run, **limits, "removed": asdict(removed), "size": size})
        return
    texts_before, before = (f"{limits[key]:%Y-%m-%d %H:%M} UTC" for key in ("texts_before", "before"))
    click.echo(f"{name}: texts before {texts_before}, exchanges before {before}")
    click.echo(f"  {'would remove' if dry_run else 'removed'}: {removed}")
    limit = limits["max_size"]
    excess = ""
    if limit is not None and size > limit:
        reason = (
            "the oldest exchanges would be deleted too" if dry_run else "exchanges younger than an hour are not deleted"
        )
        excess = f", over the limit of {limit / 1e6:.1f} MB: {reason}"
    click.echo(f"  size: {size / 1e6:.1f} MB{excess}")
