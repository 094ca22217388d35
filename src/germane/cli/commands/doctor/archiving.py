"""The archive checks of ``germane doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from germane.cli.commands.doctor.finding import Finding
from germane.errors import ArchiveError, UsageError
from germane.installation import install_command
from germane.sanitize import count_noun

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

MAX_NAMED = 3


def check_archive(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Check that the archive's files exist and have the right size."""
    summary = store.archive.summarize()
    if settings.archive is None and not summary.days:
        return
    try:
        problems = store.archive.find_missing()
    except UsageError as error:
        yield Finding("archive", "error", str(error), install_command("archive"))
        return
    except ArchiveError as error:
        fix = "make sure that this process can read the location; for S3, check the AWS_ variables"
        yield Finding("archive", "error", str(error), fix)
        return
    if problems:
        named = "; ".join(problems[:MAX_NAMED]) + ("; ..." if len(problems) > MAX_NAMED else "")
        fix = "restore the files from a backup; 'germane archive --verify' also checks their content"
        yield Finding("archive", "error", f"{count_noun(len(problems), 'file')} cannot be read: {named}", fix)
    elif not summary.days:
        yield Finding("archive", "ok", "no day is archived yet")
    else:
        content = f"{count_noun(len(summary.days), 'day')} with {count_noun(summary.scores, 'score')}"
        yield Finding("archive", "ok", f"{content} in {summary.size / 1e6:,.1f} MB")
    if settings.archive is None:
        message = "archived days exist, but no archive is configured, so retention deletes later days"
        yield Finding("archive", "warning", message, f"set archive.location to {summary.days[-1].location}")
