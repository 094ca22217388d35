"""``germane prune``: old text is erased, old exchanges and counts are deleted, now rather than in the background."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from germane.cli.core.output import Since, as_json, database, print_json
from germane.cli.core.store import opened, settings_for


class Size(click.ParamType[int]):
    """A number of bytes, such as ``5GB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from pydantic import ByteSize, TypeAdapter, ValidationError

        try:
            size = int(TypeAdapter(ByteSize).validate_python(value))
        except ValidationError:
            size = 0
        return size if size > 0 else self.fail(f"{value!r} is no size such as 500MB or 5GB", param, ctx)


class Age(Since):
    """A span such as ``90d`` or ``12h``, or a moment that is over."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        if isinstance(value, str) and value[-1:] == "m":
            self.fail(f"{value!r}: minutes or months? Say 90d or 12h, or a moment in ISO 8601", param, ctx)
        moment = super().convert(value, param, ctx)
        if moment is not None and moment > datetime.now(UTC):
            self.fail(f"{value!r} is still to come", param, ctx)
        return moment


@click.command("prune")
@click.option("--older-than", type=Age(), metavar="AGE", help="Delete exchanges older than 90d, or than a moment.")
@click.option("--text-older-than", type=Age(), metavar="AGE", help="Erase text older than 30d, or than a moment.")
@click.option("--max-size", type=Size(), help="Then the oldest, until the database takes no more than 5GB.")
@click.option("--dry-run", is_flag=True, help="Say what would go for its age, and change nothing.")
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
    """Erase old text, delete old exchanges. Their scores, labels and counts go with them.

    What is not given is as the setting retention says. What waits to be scored expires; what is being scored stays.
    """
    retention, now = settings_for(database).retention, datetime.now(UTC)
    limits: dict[str, Any] = {
        "texts_before": text_older_than or now - timedelta(days=retention.text_days),
        "before": older_than or now - timedelta(days=retention.score_days),
        "max_size": max_size or retention.max_size,
    }
    with opened(database) as store:
        removed = store.prune(**limits, dry_run=dry_run)
        size, name = store.size(limits["max_size"]), store.name
    if as_json:
        print_json({"database": name, "dry_run": dry_run, **limits, "removed": asdict(removed), "size": size})
        return
    texts, all_ = (f"{limits[key]:%Y-%m-%d %H:%M} UTC" for key in ("texts_before", "before"))
    click.echo(f"{name}: text from before {texts}, exchanges from before {all_}")
    click.echo(f"  {'would go' if dry_run else 'gone'}: {removed}")
    click.echo(f"  it takes {size / 1e6:.1f} MB{_excess(size, limits['max_size'], dry_run=dry_run)}")


def _excess(size: int, limit: int | None, *, dry_run: bool) -> str:
    """Return what is to be said of a size that is too large."""
    if limit is None or size <= limit:
        return ""
    rest = "the oldest would go too" if dry_run else "but what is left is younger than an hour"
    return f", more than {limit / 1e6:.1f} MB: {rest}"
