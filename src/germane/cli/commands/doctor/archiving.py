"""Checks of the files of an SQLite database and of the archive."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from germane.cli.commands.doctor.finding import Finding
from germane.errors import ArchiveError, UsageError
from germane.installation import install_command
from germane.sanitize import count_noun

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore


OTHERS: Final = stat.S_IRWXO


def check_permissions(files: Sequence[Path]) -> Iterator[Finding]:
    """Check that other users cannot read the files, and that only trusted users can replace them.

    For SQLite, these are the database, its write-ahead log and the index of that log.
    """
    if not files or os.name != "posix":
        return
    directory = files[0].parent
    if open_files := [file for file in files if file.stat().st_mode & OTHERS]:
        names = " ".join(file.name for file in open_files)
        message = f"every user on this machine can read or change the questions and answers in {names}"
        yield Finding("database files", "warning", message, f"in {directory}: chmod o= {names}")
    mode = directory.stat().st_mode
    if not os.access(directory, os.W_OK | os.X_OK):
        message = f"this process cannot create files in {directory}, where SQLite creates its write-ahead log"
        yield Finding(
            "database directory",
            "error",
            message,
            "give the user that runs this process write access to this directory",
        )
    elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        message = f"every user on this machine can delete and replace files in {directory}"
        yield Finding("database directory", "warning", message, f"chmod o-w {directory}")


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
